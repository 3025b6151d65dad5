/* Names that no line of a trace binds. */
#include "eager/pass.h"
#include "support/test.h"

/* `residual = h` is no operation: that is the name by which a sum reads what `h` was before. It stays when no line reads it again. */
TEST(other_names_hold)
{
    static const struct {
        const char *sum, *after;
        uint32_t last_a;
    } cases[] = {
        {"h = residual + h", "h = f(h)", 4}, {"h = residual + h", "h = f(h, residual)", 2},
        {"h = a + h", "h = f(h)", 4},        {"h = self.f(1, h)", "h = f(h)", 2},
        {"h = g(", "h = f(h)", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const ops[][4] = {{"Neg", "x", "a", "h = f(x)"},
                                      {"Neg", "a", "b", "h = f(h)"},
                                      {"Add", "a b", "c", cases[i].sum},
                                      {"Neg", "c", "d", cases[i].after},
                                      {"Neg", "d", "y", "return f(h)"}};
        OWNED_PASS p;
        model *m = model_read(17, "in x f32[4,6]");
        for (unsigned k = 0; k < 5; k++) {
            model_source(m, "net", "f");
            model_class(m, "Net", k == 2 ? "aten.add.Tensor" : "aten.f.default");
            model_statement(m, 10 + k, ops[k][3]);
            model_node(m, ops[k][0], "", ops[k][1], ops[k][2], "");
        }
        model_output(m, "y", "f32");
        pass_run(&p, m, NULL);
        if (pass_find(&p, "a")->last != cases[i].last_a)
            fail_msg("%s: %u", cases[i].sum, pass_find(&p, "a")->last);
    }
}

/* Weights of attention that a module gives beside its result, where the line around the call gets several. */
TEST(weights_of_attention_are_given)
{
    static const struct {
        const char *call, *after;
        bool locals;
        uint32_t last_w;
    } cases[] = {
        {"o, w = self.attend(x)", "h = f(o)", false, 3},
        {"found = self.attend(x)", "h = f(found[0])", false, 3},
        {"o = self.attend(x)", "h = f(o)", false, 1},
        {"o = self.attend(x)", "h = f(o)", true, 3},
        {"o = self.attend(x)", "o = f(o)", true, 2},
        {"return self.attend(x)", "h = f(o)", true, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const ops[][3] = {
            {"Softmax", "x", "w"}, {"MatMul", "w x", "o"}, {"Neg", "o", "h"}, {"Neg", "h", "y"}};
        const char *const inner[] = {"p = softmax(x)", "o = torch.matmul(p, x)"};
        pass p;
        model *m = model_read(17, "in z f32[6,6]", "x = Neg(z) begin");
        for (unsigned k = 0; k < 4; k++) {
            char lines[256];
            static const char outer[] = "return self.net(x)\n  File \"n.py\", line ";
            if (k < 2)
                snprintf(lines, sizeof lines,
                         "%s11, in forward\n    %s\n  File \"n.py\", line %u, in forward\n    %s",
                         outer, cases[i].call, 20 + k, inner[k]);
            else
                snprintf(lines, sizeof lines, "%s%u, in forward\n    %s", outer, 10 + k,
                         k == 2 ? cases[i].after : "return f(h)");
            model_source(m, k < 2 ? "net', 'net.attend" : "net", "f");
            model_class(m, k < 2 ? "Net', 'Attend" : "Net",
                        k == 1 ? "aten.matmul.default" : "aten.f.default");
            model_trace(m, lines);
            model_node(m, ops[k][0], "", ops[k][1], ops[k][2], "");
        }
        model_output(m, "y", "f32");
        pass_run(&p, m, &(onv_lower_options){.locals = cases[i].locals});
        if (pass_find(&p, "w")->last != cases[i].last_w + 1)
            fail_msg("case %zu: %u", i, pass_find(&p, "w")->last);
        pass_drop(&p);
    }
}

/* norm(embed(x) * 1): the product runs in no line of the norm, and what it read goes before the layer begins. */
TEST(factors_of_1_run_before_the_module_that_is_given_them)
{
    for (int has_factor = 0; has_factor < 2; has_factor++) {
        model *m = model_read(18, "in x f32[4,8]", "weight w f32[8,8]", "role w PARAMETER",
                              "source embed mm", "class zoo.Embed aten.mm.default",
                              "call aten.mm.default %x, %p_w", "mm = MatMul(x w) mm",
                              "source layer.norm tanh", "class zoo.Norm aten.tanh.default");
        model_call(m, "aten.tanh.default", has_factor ? "%mul" : "%mm");
        model_add(m, "t = Tanh(mm) tanh", "source layer.act exp", "class zoo.Act aten.exp.default",
                  "call aten.exp.default %tanh", "y = Exp(t) exp", "out y f32");
        OWNED_PASS p;
        pass_run(&p, m, NULL);
        assert_int_equal(pass_find(&p, "mm")->last, 1);
    }
}

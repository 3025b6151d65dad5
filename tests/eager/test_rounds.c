/* Loops over a sequence that the exporter unrolled: states that begin with zeros, and lists that each round begins anew. And
 * numbers that it computed of parameters. */
#include "eager/noted_network.h"
#include "eager/pass.h"
#include "eager/trainer.h"
#include "support/test.h"

enum { TENSOR = 4 * 8 * 4 };

static uint64_t kept(model *m)
{
    return trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE});
}

static void add_line(model *m, const char *op, const char *inputs, const char *output,
                     unsigned line, const char *text, const char *arguments)
{
    model_source(m, "net", output);
    model_class(m, "zoo.Net", "aten.op.default");
    model_statement(m, line, text);
    if (arguments != NULL) model_call(m, "aten.op.default", arguments);
    model_node(m, op, output, inputs, output, "");
}

/* stack([a, b]) becomes a node for each, which reads one of the arguments: the others were not merged with it. */
TEST(parts_of_a_call_read_some_arguments)
{
    model *m = model_read(18, "in x f32[4,8]", "weight w f32[8,8]");
    static const int64_t axis[] = {0};
    model_ints(m, "val_0", 1, axis);
    model_add(m, "role w PARAMETER", "parameters w");
    add_line(m, "MatMul", "x w", "mm", 10, "a = mm(x, w)", "%x, %p_w");
    add_line(m, "Exp", "mm", "exp", 11, "a = exp(a)", "%mm");
    add_line(m, "Exp", "exp", "exp_1", 12, "b = exp(a)", "%exp");
    for (int k = 0; k < 2; k++) {
        model_add(m, "source net stack", "class zoo.Net aten.stack.default",
                  "call aten.stack.default [%exp, %exp_1]");
        model_node(m, "Unsqueeze", k == 0 ? "u0" : "u1", k == 0 ? "exp val_0" : "exp_1 val_0",
                   k == 0 ? "u0" : "u1", "");
    }
    model_add(m, "source net stack", "class zoo.Net aten.stack.default",
              "y = Concat(u0 u1) y axis=0", "out y f32");
    assert_int_equal(kept(m), 3 * TENSOR); /* x, exp, exp_1 */
}

/* A list that has a name may have what is joined until the call is over: the upper end. */
TEST(lists_may_hold_what_is_joined)
{
    static const struct {
        const char *again;
        bool is_upper;
        uint32_t last_a;
    } cases[] = {{"d e", false, 3}, {"d e", true, 7}, {"d a", false, 5}, {"d a", true, 7}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *ops[][4] = {{"Neg", "x", "a", "a = f(x)"},
                                {"Neg", "a", "b", "found += [f(a)]"},
                                {"Concat", "a b", "c", "x = torch.cat(found, 1)"},
                                {"Neg", "c", "d", "a = f(x)"},
                                {"Neg", "d", "e", "found += [f(a)]"},
                                {"Concat", cases[i].again, "f", "x = torch.cat(found, 1)"},
                                {"Neg", "f", "g", "x = f(x)"},
                                {"Neg", "g", "y", "return f(x)"}};
        static const unsigned lines[] = {10, 12, 14, 10, 12, 14, 15, 16};
        OWNED_PASS p;
        model *m = model_read(17, "in x f32[4,6]");
        for (uint32_t k = 0; k < 8; k++) {
            bool joins = ops[k][0][0] == 'C';
            model_source(m, "net", joins ? "cat" : "neg");
            model_class(m, "Net", joins ? "aten.cat.default" : "aten.neg.default");
            model_statement(m, lines[k], ops[k][3]);
            model_node(m, ops[k][0], "", ops[k][1], ops[k][2], joins ? "axis=1" : "");
        }
        model_output(m, "y", "f32");
        pass_run(&p, m, &(onv_lower_options){.locals = cases[i].is_upper});
        if (pass_find(&p, "a")->last != cases[i].last_a)
            fail_msg("%zu: %u", i, pass_find(&p, "a")->last);
    }
}

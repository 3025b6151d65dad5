/* What names of Python hold, and which calls hold their arguments, as exports tell. */
#include "eager/pass.h"
#include "eager/trainer.h"
#include "support/test.h"

/* What a module is called with is there until it returns; what it may have a name for, on request. */
TEST(calls_hold_their_arguments)
{
    static const struct {
        const char *prefix;
        bool locals, graph_module;
        uint32_t last_a, last_b;
    } cases[] = {{"/", false, false, 3, 2}, {"/", true, false, 4, 3}, {"", false, false, 1, 2},
                 {"", true, false, 1, 2},   {"/", false, true, 1, 2}, {"/", true, true, 1, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const char *const names[] = {"Neg", "block/Neg", "block/inner/Neg", "block/Neg_1",
                                            "Neg_1"};
        static const char *const values[] = {"x", "a", "b", "c", "d", "y"};
        OWNED_PASS p;
        model *m = model_new(17);
        onv_lower_options how = {.locals = cases[i].locals, .graph_module = cases[i].graph_module};
        model_input(m, "x", "f32[4,6]");
        for (size_t k = 0; k < 5; k++) {
            char name[64];
            snprintf(name, sizeof name, "%s%s", cases[i].prefix, names[k]);
            model_node(m, "Neg", name, values[k], values[k + 1], "");
        }
        model_output(m, "y", "f32");
        pass_run(&p, m, &how);
        assert_int_equal(pass_find(&p, "a")->last, cases[i].last_a);
        assert_int_equal(pass_find(&p, "b")->last, cases[i].last_b);
    }
}

/* A module of its own operations and of one inside, with the lines of Python that called them. Where the
 * results of the second and third operation go: at a name that is bound again, at the end of the call, in
 * the one statement that reads them. */
TEST(statements_tell_what_names_hold)
{
    static const struct {
        const char *lines[5]; /* of the forward of "net" */
        bool locals;
        uint32_t last_b, last_c;
    } cases[] = {
        {{"a = f(x)", "b = f(a)", "c = f(b)", "d = f(c)", "return f(d)"}, false, 4, 4},
        {{"x = f(x)", "x = f(x)", "x = f(x)", "x = f(x)", "return f(x)"}, false, 2, 3},
        {{"a = f(x)", "c, b = g(a)", "c, b = g(a)", "c = f(c)", "return f(b)"}, false, 2, 3},
        {{"a = f(x)", "b: Tensor = f(a)", "c = f(b)", "b += f(c)", "return f(b)"}, false, 3, 4},
        {{"a = f(x)", "b=f(a),", "c = f(b)", "d = f(c)", "return f(d)"}, false, 2, 4},
        {{"a = f(x)", "if f(a):", "c = f(b)", "d = f(c)", "return f(d)"}, false, 2, 4},
        {{"a = f(x)", "m['b'] = f(a)", "m['b'] = f(b)", "d = f(c)", "return f(d)"}, false, 4, 4},
        /* What a function between has names for is not told. */
        {{"a = f(x)", "d = g(a)", "d = g(a)", "d = g(a)", "return f(d)"}, false, 2, 3},
        {{"a = f(x)", "d = g(a)", "d = g(a)", "d = g(a)", "return f(d)"}, true, 4, 4},
        {{"a = f(x)", "d = neg(neg(neg(a)))", "d = neg(neg(neg(a)))", "d = neg(neg(neg(a)))",
          "return f(d)"},
         true,
         2,
         3},
        {{"", "", "", "", ""}, false, 2, 3},
        {{"a = f(x)", "b=f(a), d=e", "c = f(b)", "d = f(c)", "return f(d)"}, false, 2, 4},
        {{"a = f(x)", "b = f(a)", "c = f(b)", "b = f(c)", "return f(b)"}, false, 3, 4},
        /* An element of a list of several lines: its names are in another one. */
        {{"a = f(x)", "f(a),", "b = f(b)", "d = f(c)", "return f(d)"}, true, 4, 4},
        /* In a list as long as that has its name. */
        {{"a = f(x)", "e.append(f(a))", "c = f(b)", "d = f(c)", "return f(d)"}, false, 4, 4},
        {{"a = f(x)", "e.append(f(a))", "c = f(b)", "e = f(c)", "return f(d)"}, false, 3, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const char *const values[] = {"x", "a", "b", "c", "d", "y"};
        OWNED_PASS p;
        model *m = model_new(17);
        onv_lower_options how = {.locals = cases[i].locals};
        unsigned line = 0;
        model_input(m, "x", "f32[4,6]");
        for (size_t k = 0; k < 5; k++) {
            line += k == 0 || strcmp(cases[i].lines[k], cases[i].lines[k - 1]) != 0 ||
                    strncmp(cases[i].lines[k], "x = ", 4) == 0;
            model_add(m, "source net neg", "class Net aten.neg.default");
            model_statement(m, 10 + line, cases[i].lines[k]);
            model_node(m, "Neg", "", values[k], values[k + 1], "");
        }
        model_output(m, "y", "f32");
        pass_run(&p, m, &how);
        if (pass_find(&p, "b")->last != cases[i].last_b ||
            pass_find(&p, "c")->last != cases[i].last_c)
            fail_msg("case %zu: b %u, c %u", i, pass_find(&p, "b")->last, pass_find(&p, "c")->last);
    }
}

/* Two layers of a list in one line, and what is around them in lines of its own. `h` is another one when the line
 * runs again; an argument in a line of its own belongs to the call that begins before it. */
TEST(lines_that_run_again_tell)
{
    static const struct {
        const char *modules[4], *lines[4];
        unsigned numbers[4];
        uint32_t last_a, last_b;
        bool locals;
    } cases[] = {
        {{"", "layers.0", "layers.1", ""},
         {"h = neg(x)", "o = layer(h)", "o = layer(h)", "return neg(o)"},
         {10, 11, 11, 12},
         1,
         2,
         false},
        {{"", "layers.0", "layers.1", ""},
         {"h = neg(x)", "o = layer(h)", "z = layer(o)", "return neg(z)"},
         {10, 11, 12, 13},
         3,
         3,
         false},
        /* Another name than the one that the loop reads stays, be its line whole or not. */
        {{"", "layers.0", "layers.1", ""},
         {"e = neg(x)", "h = layer(h, mask=m.e)", "h = layer(h, mask=m.e)", "return neg(h)"},
         {10, 11, 11, 12},
         3,
         2,
         false},
        {{"", "layers.0", "layers.1", ""},
         {"e = neg(x)", "h = layer(", "h = layer(", "return neg(h)"},
         {10, 11, 11, 12},
         3,
         2,
         false},
        /* A line that goes on where another one ended is no loop. */
        {{"", "", "", ""},
         {"e = neg(x)", "c = neg(neg(e))", "d = neg(c)", "c = neg(neg(e))"},
         {10, 11, 12, 11},
         3,
         3,
         false},
        /* Two lists that are gone through together: the layer and its norm are one run of the line. */
        {{"layers.0", "norms.0", "layers.1", "norms.1"},
         {"x = norm(layer(x))", "x = norm(layer(x))", "x = norm(layer(x))", "x = norm(layer(x))"},
         {11, 11, 11, 11},
         1,
         3,
         false},
        {{"norm", "attend", "", ""},
         {"o, w = self.attend(", "o, w = self.attend(", "h = neg(o)", "return neg(h)"},
         {10, 10, 11, 12},
         1,
         3,
         false},
        /* An argument in a line of its own, whose call has the line that it begins with. */
        {{"", "", "", ""},
         {"o = neg(x)", "neg(o),", "o = g(", "return neg(o)"},
         {10, 12, 11, 13},
         2,
         2,
         false},
        /* A method that calls members of a list, and has names that are not told. */
        {{"layers.0", "", "layers.1", ""},
         {"o = self.query(m.e(x))", "o = self.query(m.e(x))", "o = self.query(m.e(x))",
          "return neg(o)"},
         {10, 10, 10, 12},
         1,
         2,
         false},
        {{"layers.0", "", "layers.1", ""},
         {"o = self.query(m.e(x))", "o = self.query(m.e(x))", "o = self.query(m.e(x))",
          "return neg(o)"},
         {10, 10, 10, 12},
         3,
         3,
         true},
        /* One run of the line makes all calls, and a graph does not tell what it gives. */
        {{"layers.0", "layers.1", "", ""},
         {"o = sum([layer(x) for layer in self.layers])",
          "o = sum([layer(x) for layer in self.layers])", "o = neg(o)", "return neg(o)"},
         {10, 10, 11, 12},
         3,
         3,
         true},
        /* Sequential calls its members so, whatever their names are. */
        {{"conv", "act", "", ""},
         {"input = module(input)", "input = module(input)", "o = neg(o)", "return neg(o)"},
         {10, 10, 11, 12},
         1,
         3,
         true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const char *const values[] = {"x", "a", "b", "c", "y"};
        pass p;
        model *m = model_read(17, "in x f32[4,6]");
        for (uint32_t k = 0; k < 4; k++) {
            const char *module = cases[i].modules[k];
            char lines[256];
            snprintf(lines, sizeof lines,
                     "return self.net(x)\n  File \"n.py\", line %u, in forward\n    %s%s",
                     cases[i].numbers[k], cases[i].lines[k],
                     module[0] != '\0' ? "\n  File \"n.py\", line 30, in forward\n    return neg(x)"
                                       : "");
            char modules[64];
            snprintf(modules, sizeof modules, "net%s%s", module[0] != '\0' ? "', '" : "", module);
            model_source(m, modules, "neg");
            model_class(m, module[0] != '\0' ? "Net', 'Layer" : "Net", "aten.neg.default");
            model_trace(m, lines);
            model_node(m, "Neg", "", values[k], values[k + 1], "");
        }
        model_output(m, "y", "f32");
        pass_run(&p, m, &(onv_lower_options){.locals = cases[i].locals});
        if (pass_find(&p, "a")->last != cases[i].last_a ||
            pass_find(&p, "b")->last != cases[i].last_b)
            fail_msg("case %zu: a %u, b %u", i, pass_find(&p, "a")->last, pass_find(&p, "b")->last);
        pass_drop(&p);
    }
}

/* Three calls of one layer, as those that share weights have: `y` of one call is gone when the next begins,
 * whose argument is what the one before gave. */
TEST(shared_layers_are_called_again)
{
    static const struct {
        const char *module, *line;
        uint32_t last_a, last_b;
    } cases[] = {{"layers.0", "h = self.layers[0](h)", 1, 3}, {"layer", "h = self.layer(h)", 2, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const char *const values[] = {"x", "a", "b", "c", "d", "e", "y"};
        pass p;
        model *m = model_read(17, "in x f32[4,6]");
        for (uint32_t k = 0; k < 6; k++) {
            bool is_inside = k % 2 == 0;
            char modules[96], lines[256];
            snprintf(modules, sizeof modules, "%s%s%s%s", cases[i].module, is_inside ? "', '" : "",
                     is_inside ? cases[i].module : "", is_inside ? ".inner" : "");
            snprintf(lines, sizeof lines, "%s\n  File \"n.py\", line %s", cases[i].line,
                     is_inside ? "20, in forward\n    y = self.inner(x)\n"
                                 "  File \"n.py\", line 30, in forward\n    return f(x)"
                               : "21, in forward\n    return f(y)");
            model_source(m, modules, "neg");
            model_class(m, is_inside ? "Layer', 'Inner" : "Layer", "aten.neg.default");
            model_trace(m, lines);
            model_node(m, "Neg", "", values[k], values[k + 1], "");
        }
        model_output(m, "y", "f32");
        pass_run(&p, m, NULL);
        if (pass_find(&p, "a")->last != cases[i].last_a ||
            pass_find(&p, "b")->last != cases[i].last_b)
            fail_msg("%s: a %u, b %u", cases[i].line, pass_find(&p, "a")->last,
                     pass_find(&p, "b")->last);
        pass_drop(&p);
    }
}

/* An encoder of four stages gives three results, in a list; whether it has the first one, too, nothing tells. */
TEST(lists_of_results_may_hold_others)
{
    for (int n_read = 2; n_read < 4; n_read++)
        for (int locals = 0; locals < 4; locals++) {
            static const char *const values[] = {"x", "a", "b", "c", "d"};
            bool loops = locals < 2;
            pass p;
            model *m = model_read(17, "in x f32[4,6]");
            for (unsigned k = 0; k < 4; k++) {
                char modules[64], lines[256], call[32] = "stage";
                if (!loops) snprintf(call, sizeof call, "self.stage%u", k);
                snprintf(modules, sizeof modules, "encoder', 'encoder.%s%u", loops ? "" : "stage",
                         k);
                model_source(m, modules, "neg");
                model_class(m, "Encoder', 'Stage", "aten.neg.default");
                snprintf(lines, sizeof lines,
                         "found = self.encoder(x)\n  File \"n.py\", line %u, in forward\n    x = "
                         "%s(x)\n  File \"n.py\", line 20, in forward\n    return neg(x)",
                         loops ? 11 : 11 + k, call);
                model_trace(m, lines);
                model_node(m, "Neg", "", values[k], values[k + 1], "");
            }
            model_add(m, "source net add", "class Net aten.add.Tensor",
                      "trace return sum(found[1:])");
            model_node(m, "Sum", "", n_read == 3 ? "b c d" : "c d", "y", "");
            model_output(m, "y", "f32");
            bool is_upper = locals % 2 == 1;
            pass_run(&p, m, &(onv_lower_options){.locals = is_upper});
            assert_int_equal(pass_find(&p, "a")->last, is_upper && n_read == 3 ? 5 : 1);
            pass_drop(&p);
        }
}

/* The forward of a base class is a frame without a call of its own: what it gives has the names outside. */
TEST(base_classes_are_no_calls)
{
    static const struct {
        const char *line;
        uint32_t last_a;
    } cases[] = {{"return super().forward(x)", 3}, {"return self.inner(x)", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const char *const values[] = {"x", "a", "b", "c", "y"};
        pass p;
        model *m = model_read(17, "in x f32[4,6]");
        for (uint32_t k = 0; k < 4; k++) {
            char lines[256];
            static const char outer[] = "return self.net(x)\n  File \"n.py\", line ";
            if (k == 0)
                snprintf(lines, sizeof lines,
                         "%s9, in forward\n    a = self.table(x)\n  File \"n.py\", line 20, in "
                         "forward\n    %s\n"
                         "  File \"n.py\", line 30, in forward\n    return f(x)",
                         outer, cases[i].line);
            else
                snprintf(lines, sizeof lines, "%s%u, in forward\n    b = f(b)", outer, k + 10);
            model_source(m, k == 0 ? "net', 'net.table" : "net", "neg");
            model_class(m, k == 0 ? "Net', 'Table" : "Net", "aten.neg.default");
            model_trace(m, lines);
            model_node(m, "Neg", "", values[k], values[k + 1], "");
        }
        model_output(m, "y", "f32");
        pass_run(&p, m, NULL);
        if (pass_find(&p, "a")->last != cases[i].last_a)
            fail_msg("%s: %u", cases[i].line, pass_find(&p, "a")->last);
        pass_drop(&p);
    }
}

/* Training: w1 is in front of a rounding to integers. After it nothing leads to what its side keeps any more, but where
 * a name still holds the last of it, as the lines of calls tell. */
TEST(what_leads_nowhere_goes_with_its_last_tensor)
{
    enum { W = 64 * 64 * 4, T = 1024 * 64 * 4, Y = 64 * 4 };
    for (int is_named = 0; is_named < 2; is_named++) {
        static const char *const nodes[][4] = {{"MatMul", "x w1", "a", ""},
                                               {"Sigmoid", "a", "b", ""},
                                               {"Tanh", "b", "c", ""},
                                               {"Cast", "c", "d", "to=7"},
                                               {"Cast", "d", "r", "to=1"},
                                               {"MatMul", "r w2", "e", ""},
                                               {"Concat", "e e e e e e e e", "k", "axis=0"},
                                               {"ReduceSum", "k zero", "y", ""}};
        const int64_t zero[] = {0};
        OWNED_MODEL m =
            model_read(17, "in x f32[1024,64]", "weight w1 f32[64,64]", "weight w2 f32[64,64]",
                       "role w1 PARAMETER", "role w2 PARAMETER");
        model_ints(m, "zero", 1, zero);
        for (unsigned k = 0; k < 8; k++) {
            bool is_tanh = k == 2;
            model_add(m, "source net call", "class Net aten.call.default");
            model_statement(m, 20 + k, is_tanh && is_named ? "z = call(x)" : "return call(x)");
            model_node(m, nodes[k][0], nodes[k][2], nodes[k][1], nodes[k][2], nodes[k][3]);
        }
        model_output(m, "y", "f32");
        trainer t;
        trainer_open_model(&t, m);
        onv_train_options options = {.optimizer = onv_optimizer_find("momentum"),
                                     .lower = {.loss = ONV_LOSS_MSE, .attention_dropout = -1}};
        uint64_t peak = trainer_run(&t, &options).figures.peak_bytes;
        trainer_close(&t);
        /* Parameters and the momentum of w2; x, r, e and what joins it; y, the one before it, the targets. */
        uint64_t there = 3 * W + (3 + 8) * T + 3 * Y;
        assert_int_equal(peak, there + (is_named ? 2 * T : 0));
    }
}

/* torch.no_grad() makes a graph of its own in exports, as torch.autocast() does: its weights may get no gradient. */
TEST(inner_graphs_may_have_no_gradient)
{
    for (int without = 0; without < 2; without++) {
        model *m = model_read(17, "in x f32[4,6]", "weight w f32[6,6]", "weight v f32[6,2]");
        model_inner_trace(m, 7, 4, "mm = f(x, w)");
        model_node(m, "MatMul", "teacher", "x w", "a", "");
        model_statement(m, 5, "return f(a, v)");
        model_node(m, "MatMul", "student", "a v", "y", "");
        model_output(m, "y", "f32");
        trainer t;
        trainer_open_model(&t, m);
        onv_train_options options = {
            .optimizer = onv_optimizer_find("momentum"),
            .lower = {.loss = ONV_LOSS_MSE, .attention_dropout = -1, .inner_no_grad = without}};
        const onv_training_figures f = trainer_run(&t, &options).figures;
        assert_int_equal(f.gradient_bytes, (without ? 12 : 36 + 12) * sizeof(float));
        trainer_close(&t);
        model_free(m);
    }
}

/* A graph of its own, as torch.no_grad() makes one, has lines that bind a name to each result. PyTorch ran the module's. */
TEST(names_of_inner_graphs_hold_nothing)
{
    for (int is_inner = 0; is_inner < 2; is_inner++) {
        static const char *const values[] = {"x", "a", "b", "c", "y"},
                                 *const lines[] = {"neg = f(x)", "neg_1 = f(neg);  neg = None",
                                                   "neg_2 = f(neg_1)", "neg_3 = f(neg_2)"};
        OWNED_PASS p;
        model *m = model_read(17, "in x f32[4,6]");
        for (unsigned k = 0; k < 4; k++) {
            model_add(m, "source net f", "class Net aten.neg.default");
            if (is_inner)
                model_inner_trace(m, 7, 4 + k, lines[k]);
            else
                model_statement(m, 4 + k, lines[k]);
            model_node(m, "Neg", "", values[k], values[k + 1], "");
        }
        model_output(m, "y", "f32");
        pass_run(&p, m, NULL);
        if (pass_find(&p, "b")->last != (is_inner ? 2U : 3U))
            fail_msg("%d: b %u", is_inner, pass_find(&p, "b")->last);
    }
}

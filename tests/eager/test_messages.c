/* Names of propagate() and edge_updater() of PyTorch Geometric, of which exports tell no line but the one that calls them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "eager/pass.h"

/* What propagate() of PyTorch Geometric selects for messages stays until it returns; what it selects later does not. */
static void collected_rows_stay(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        unsigned first, second; /* the last steps of both selections */
    } cases[] = {{"h = self.propagate(at, x=x)", 4, 3}, {"h = self.sends(at, x=x)", 1, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const struct {
            const char *op, *inputs, *output, *aten;
        } nodes[] = {{"Gather", "x at", "a", "aten.index_select.default"},
                     {"Neg", "a", "b", "aten.neg.default"},
                     {"Gather", "b at", "c", "aten.index_select.default"},
                     {"Neg", "c", "d", "aten.neg.default"},
                     {"Neg", "d", "e", "aten.neg.default"},
                     {"Neg", "e", "y", "aten.neg.default"}};
        pass p;
        model *m = model_new(17);
        model_input(m, "x", "f32[4,6]");
        model_input(m, "at", "i64[4]");
        for (size_t k = 0; k < sizeof nodes / sizeof nodes[0]; k++) {
            model_source(m, "net", "call");
            model_class(m, "Net", nodes[k].aten);
            model_statement(m, k == 5 ? 11 : 10, k == 5 ? "return neg(h)" : cases[i].line);
            model_node(m, nodes[k].op, "", nodes[k].inputs, nodes[k].output, "");
        }
        model_output(m, "y", "f32");
        pass_run(&p, m, NULL);
        if (pass_find(&p, "a")->last != cases[i].first ||
            pass_find(&p, "c")->last != cases[i].second)
            fail_msg("%s: a %u, c %u", cases[i].line, pass_find(&p, "a")->last,
                     pass_find(&p, "c")->last);
        pass_drop(&p);
    }
}

/* What message() has of a module stays until messages are joined, if it is read together with something else. */
static void results_of_modules_stay_in_messages(void **state)
{
    (void)state;
    static const struct {
        const char *op, *inputs, *output, *module, *class;
    } nodes[] = {
        {"Gather", "x at", "a", "net", "Net"},
        {"Exp", "a", "b", "net', 'net.lin", "Lin"},
        {NULL, NULL, "c", "net", "Net"},
        {"Neg", "c", "d", "net", "Net"},
        {"Neg", "d", "e", "net', 'net.sum", "torch_geometric.nn.aggr.basic.SumAggregation"},
        {"Neg", "e", "y", "net", "Net"}};
    for (int adds = 0; adds < 2; adds++) {
        pass p;
        model *m = model_new(17);
        model_input(m, "x", "f32[4,6]");
        model_input(m, "at", "i64[4]");
        for (size_t k = 0; k < sizeof nodes / sizeof nodes[0]; k++) {
            model_source(m, nodes[k].module, "call");
            model_class(m, nodes[k].class,
                        k == 0 ? "aten.index_select.default" : "aten.op.default");
            model_statement(m, k == 5 ? 11 : 10,
                            k == 5 ? "return neg(h)" : "h = self.propagate(at, x=x)");
            if (k == 1 || k == 4) model_inner_statement(m, 20, "return call(x)");
            bool is_reader = nodes[k].op == NULL;
            model_node(m, is_reader ? (adds ? "Add" : "Neg") : nodes[k].op, "",
                       is_reader ? (adds ? "a b" : "b") : nodes[k].inputs, nodes[k].output, "");
        }
        model_output(m, "y", "f32");
        pass_run(&p, m, NULL);
        if (pass_find(&p, "b")->last != (adds ? 3U : 2U))
            fail_msg("%d: b %u", adds, pass_find(&p, "b")->last);
        pass_drop(&p);
    }
}

/* One operation of a line that sends messages. */
typedef struct step {
    const char *op, *inputs, *output;
    const char *module; /* that computes it, "net" or inside of it */
    const char *class;
} step;

#define OWN    "net", "Net"
#define LINEAR "net', 'net.lin", "Lin"
#define JOINS  "net', 'net.sum", "torch_geometric.nn.aggr.basic.SumAggregation"

/* Lowers the steps, all of `line` but the last one. */
static void run_steps(pass *p, const step *steps, size_t n, const char *line)
{
    model *m = model_new(17);
    model_input(m, "x", "f32[4,6]");
    model_input(m, "at", "i64[4]");
    for (size_t k = 0; k < n; k++) {
        bool selects = strcmp(steps[k].op, "Gather") == 0, is_last = k + 1 == n;
        model_source(m, steps[k].module, "call");
        model_class(m, steps[k].class, selects ? "aten.index_select.default" : "aten.op.default");
        model_statement(m, is_last ? 11 : 10, is_last ? "return neg(h)" : line);
        if (strchr(steps[k].module, ',') != NULL) model_inner_statement(m, 20, "return call(x)");
        model_node(m, steps[k].op, "", steps[k].inputs, steps[k].output, "");
    }
    model_output(m, steps[n - 1].output, "f32");
    pass_run(p, m, NULL);
}

/* A module of message() does not join messages: rows that are selected behind it are of the same call. */
static void modules_of_messages_do_not_end_them(void **state)
{
    (void)state;
    static const step steps[] = {{"Gather", "x at", "a", OWN}, {"Exp", "x", "b", LINEAR},
                                 {"Add", "a b", "c", OWN},     {"Gather", "c at", "d", OWN},
                                 {"Neg", "d", "e", JOINS},     {"Neg", "e", "y", OWN}};
    pass p;
    run_steps(&p, steps, sizeof steps / sizeof steps[0], "h = self.propagate(at, x=x)");
    assert_int_equal(pass_find(&p, "a")->last, 4);
    pass_drop(&p);
}

/* Behind what joined messages a loop collects anew. */
static void loops_send_messages_again(void **state)
{
    (void)state;
    static const step steps[] = {{"Gather", "x at", "a", OWN}, {"Neg", "a", "b", OWN},
                                 {"Neg", "b", "c", JOINS},     {"Gather", "c at", "d", OWN},
                                 {"Neg", "d", "e", OWN},       {"Neg", "e", "f", JOINS},
                                 {"Neg", "f", "y", OWN}};
    pass p;
    run_steps(&p, steps, sizeof steps / sizeof steps[0], "h = self.propagate(at, x=h)");
    assert_int_equal(pass_find(&p, "a")->last, 2);
    assert_int_equal(pass_find(&p, "d")->last, 5);
    pass_drop(&p);
}

/* What the line computes before rows are selected are arguments, which stay; what they are made of does not. */
static void arguments_of_messages_stay(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        uint32_t last;
    } cases[] = {{"h = self.propagate(at, x=self.lin(x))", 5},
                 {"h = self.sends(at, self.lin(x))", 2}};
    static const step steps[] = {{"Neg", "x", "a", LINEAR},    {"Exp", "a", "b", LINEAR},
                                 {"Gather", "b at", "c", OWN}, {"Neg", "c", "d", OWN},
                                 {"Neg", "d", "e", OWN},       {"Neg", "e", "f", JOINS},
                                 {"Neg", "f", "y", OWN}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pass p;
        run_steps(&p, steps, sizeof steps / sizeof steps[0], cases[i].line);
        assert_int_equal(pass_find(&p, "a")->last, 1);
        assert_int_equal(pass_find(&p, "b")->last, cases[i].last);
        pass_drop(&p);
    }
}

/* edge_updater() collects as propagate() does, and edge_update() has a name for what a module gives it. */
static void edges_are_updated_of_what_stays(void **state)
{
    (void)state;
    static const step steps[] = {{"Gather", "x at", "a", OWN}, {"Exp", "x", "b", LINEAR},
                                 {"Add", "a b", "c", OWN},     {"Neg", "c", "d", OWN},
                                 {"Neg", "d", "e", OWN},       {"Neg", "e", "y", OWN}};
    static const char *const lines[] = {"h = self.edge_updater(at, x=x)", "h = self.update(at, x)"};
    for (size_t i = 0; i < 2; i++) {
        pass p;
        run_steps(&p, steps, sizeof steps / sizeof steps[0], lines[i]);
        assert_int_equal(pass_find(&p, "a")->last, i == 0 ? 4 : 2);
        assert_int_equal(pass_find(&p, "b")->last, i == 0 ? 4 : 2);
        pass_drop(&p);
    }
}

/* What softmax() is given has its name until it returns: then the result has it. Here a module gives it, and without the
 * maxima it would stay until messages are joined. */
static void softmax_takes_the_name(void **state)
{
    (void)state;
    for (int has_maxima = 0; has_maxima < 2; has_maxima++) {
        pass p;
        model *m = model_new(18);
        model_input(m, "x", "f32[4,6]");
        model_input(m, "at", "i64[4]");
        model_input(m, "where", "i64[4,6]");
        model_input(m, "base", "f32[4,6]");
        const struct {
            const char *op, *inputs, *output, *attributes;
            const char *module, *class;
        } nodes[] = {{"Gather", "x at", "a", "axis=0", OWN},
                     {"Neg", "a", "b", "", LINEAR},
                     {has_maxima ? "ScatterElements" : "Add",
                      has_maxima ? "base where b" : "base b", "c",
                      has_maxima ? "axis=0 reduction='max'" : "", OWN},
                     {"Sub", "b c", "d", "", OWN},
                     {"Exp", "d", "e", "", OWN},
                     {"Div", "e c", "f", "", OWN},
                     {"Neg", "f", "g", "", OWN},
                     {"Neg", "g", "h", "", JOINS},
                     {"Neg", "h", "y", "", OWN}};
        const size_t n = sizeof nodes / sizeof nodes[0];
        for (size_t k = 0; k < n; k++) {
            model_source(m, nodes[k].module, "call");
            model_class(m, nodes[k].class,
                        k == 0 ? "aten.index_select.default" : "aten.op.default");
            model_statement(m, k + 1 < n ? 10 : 11,
                            k + 1 < n ? "h = self.propagate(at, x=x)" : "return neg(h)");
            if (strchr(nodes[k].module, ',') != NULL)
                model_inner_statement(m, 20, "return call(x)");
            model_node(m, nodes[k].op, nodes[k].output, nodes[k].inputs, nodes[k].output,
                       nodes[k].attributes);
        }
        model_output(m, "y", "f32");
        pass_run(&p, m, NULL);
        const onv_buffer *b = pass_find(&p, "b"), *f = pass_find(&p, "f"), *g = pass_find(&p, "g");
        assert_int_equal(b->last, has_maxima ? f->first : g->first);
        pass_drop(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collected_rows_stay),
        cmocka_unit_test(results_of_modules_stay_in_messages),
        cmocka_unit_test(modules_of_messages_do_not_end_them),
        cmocka_unit_test(loops_send_messages_again),
        cmocka_unit_test(arguments_of_messages_stay),
        cmocka_unit_test(edges_are_updated_of_what_stays),
        cmocka_unit_test(softmax_takes_the_name),
    };
    return cmocka_run_group_tests_name("eager.messages", tests, NULL, NULL);
}

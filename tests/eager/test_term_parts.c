/* Parts of what parameters lead to, joined parameters, layers of buffers, factors of 1, and terms that the exporter merged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "eager/noted_network.h"
#include "eager/pass.h"
#include "eager/trainer.h"

enum { X = 4 * 8 * 4, W = 8 * 8 * 4 };

typedef struct found {
    uint64_t parameters, saved, buffers;
    bool is_assumed, is_folded, lacks_buffers;
} found;

static found train(model *m, onv_lower_options how)
{
    trainer t;
    how.reports = true;
    trainer_open_model(&t, m);
    onv_train_options options = {.optimizer = onv_optimizer_find("sgd"), .lower = how};
    onv_training_figures figures = trainer_run(&t, &options).figures;
    found f = {.parameters = figures.parameter_bytes,
               .saved = figures.saved_activation_bytes,
               .buffers = figures.buffer_bytes};
    for (size_t i = 0; i < t.model.diags.count; i++) {
        const onv_diag *diag = &t.model.diags.at[i];
        f.is_assumed |= strcmp(diag->code, "assumed-sizes") == 0;
        f.is_folded |= strcmp(diag->code, "folded-layers") == 0;
        f.lacks_buffers |=
            strcmp(diag->code, "missing-buffers") == 0 && diag->severity == ONV_WARNING;
    }
    trainer_close(&t);
    model_free(m);
    return f;
}

/* `h = x W`, which is trained. */
static model *begin(const char *listed)
{
    model *m = model_new(18);
    model_input(m, "x", "f32[4,8]");
    model_weight(m, "fc.weight", "f32[8,8]");
    model_role(m, "fc.weight", "PARAMETER");
    char all[256];
    snprintf(all, sizeof all, "fc.weight %s", listed);
    model_parameters(m, all);
    add_call(m, "MatMul", "x fc.weight", "h", "mm");
    return m;
}

static void add_constant(model *m, const char *name, const char *type, const char *from)
{
    model_weight(m, name, type);
    if (from != NULL) model_folded(m, name, from);
}

/* `softmax(a)[i]` for each step: one parameter, one softmax, and the steps are kept, as what they are multiplied by has a
 * gradient. */
static void parts_of_a_result_are_views_of_it(void **state)
{
    (void)state;
    model *m = begin("a");
    add_constant(m, "select", "f32[]", "['a', 'softmax', 'val_5']");
    add_constant(m, "select_1", "f32[]", "['a', 'softmax', 'val_6']");
    add_call(m, "Mul", "h select", "p", "mul");
    add_call(m, "Mul", "h select_1", "q", "mul_1");
    add_call(m, "Add", "p q", "y", "add");
    model_output(m, "y", "f32");
    found f = train(m, (onv_lower_options){.loss = ONV_LOSS_NONE});
    assert_int_equal(f.parameters, W + 2 * 4);
    assert_int_equal(f.saved, X + X + 2 * 4); /* h, and what softmax gave */
    assert_false(f.is_assumed);
    assert_false(f.is_folded);
}

/* `weight[i][k]` of each step of a loop: the same parts again are no parameters of their own. */
static void parts_of_a_parameter_are_counted_once(void **state)
{
    (void)state;
    static const char *const from[] = {"['select_0', 'val_0', 'w']", "['select_2', 'val_1', 'w']",
                                       "['select_4', 'val_0', 'w']", "['select_6', 'val_1', 'w']"};
    model *m = begin("w");
    const char *before = "h";
    char outputs[4][16];
    for (int i = 0; i < 4; i++) {
        char name[16], inputs[96], number[16];
        snprintf(name, sizeof name, "select_%d", 2 * i + 1);
        add_constant(m, name, "f32[8,8]", from[i]);
        snprintf(inputs, sizeof inputs, "%s %s", before, name);
        snprintf(outputs[i], sizeof outputs[i], "y%d", i);
        snprintf(number, sizeof number, "mm_%d", i + 1);
        add_call(m, "MatMul", inputs, outputs[i], number);
        before = outputs[i];
    }
    model_output(m, "y3", "f32");
    assert_int_equal(train(m, (onv_lower_options){.loss = ONV_LOSS_NONE}).parameters, W + 2 * W);
}

/* cat([users, items]): the sum of both is told. */
static void joined_parameters_have_gradients(void **state)
{
    (void)state;
    model *m = begin("items.weight users.weight");
    add_constant(m, "cat", "f32[4,8]", "['items.weight', 'users.weight']");
    add_call(m, "Mul", "h cat", "y", "mul");
    model_output(m, "y", "f32");
    found f = train(m, (onv_lower_options){.loss = ONV_LOSS_NONE});
    assert_int_equal(f.parameters, W + X);
    assert_int_equal(f.saved, X + 2 * X);
    assert_false(f.is_folded);
}

/* A layer of a buffer that the file lacks: what it is made of is kept, and how wide that is --parameters tells. */
static void layers_of_buffers_have_gradients(void **state)
{
    (void)state;
    for (uint32_t told = 0; told < 2; told++) {
        model *m = begin("enc.bias enc.weight ~marks");
        add_constant(m, "linear", "f32[4,8]", "['enc.bias', 'enc.weight', 'marks']");
        add_call(m, "Add", "h linear", "y", "add");
        model_output(m, "y", "f32");
        uint64_t n = told ? 8 * 8 + 8 * 3 + 8 : 0;
        found f = train(m, (onv_lower_options){.loss = ONV_LOSS_NONE, .parameters = n});
        if (told) assert_int_equal(f.parameters, W + (8 * 3 + 8) * 4);
        assert_true(f.parameters > W);
        assert_int_equal(f.is_assumed, !told);
        assert_int_equal(f.saved, X);
        assert_false(f.is_folded);
    }
}

/* -exp(A) of two layers, whose parameters have the same numbers in the file: the second one's call has another number. */
static void merged_terms_are_of_the_layers_own_parameters(void **state)
{
    (void)state;
    for (int is_named = 0; is_named < 2; is_named++) {
        model *m = begin("l.0.A l.1.A");
        add_constant(m, "neg", "f32[4,8]", "['exp', 'l.0.A']");
        for (int i = 0; i < 2; i++) {
            char layer[8], number[8], out[] = {(char)('a' + i), '\0'};
            snprintf(layer, sizeof layer, "l.%d", i);
            snprintf(number, sizeof number, "mul_%d", i);
            model_source(m, layer, number);
            model_class(m, "zoo.Layer", "aten.mul.Tensor");
            model_call(m, "aten.mul.Tensor",
                       i == 0     ? "%h, %neg"
                       : is_named ? "%a, %neg_1"
                                  : "%a, %neg");
            model_node(m, "Mul", number, i == 0 ? "h neg" : "a neg", out, "");
        }
        model_output(m, "b", "f32");
        found f = train(m, (onv_lower_options){.loss = ONV_LOSS_NONE});
        assert_int_equal(f.parameters, W + 2 * X); /* one that nothing reads is there, too */
        /* x; h, a, and for each term what exp gave and what its sign was changed of. */
        assert_int_equal(f.saved, X + 2 * X + (is_named ? 2 : 1) * 2 * X);
    }
}

/* A result that is taken apart is a constant that the file has as it is: it has a gradient without a term, too. */
static void constants_without_a_term_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *from, *listed;
        bool is_folded;
    } cases[] = {
        {"['a', 'b', 'fft_rfft', 'mul']", "a b", true},
        {"['a', 'select']", "a", false},
        {"['mask', 'triu']", "a ~mask", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        model *m = begin(cases[i].listed);
        add_constant(m, "unsqueeze", "f32[4,8]", cases[i].from);
        add_call(m, "Mul", "h unsqueeze", "y", "mul");
        model_output(m, "y", "f32");
        assert_int_equal(train(m, (onv_lower_options){.loss = ONV_LOSS_NONE}).is_folded,
                         cases[i].is_folded);
    }
}

/* (x W)[1, ...] @ w[2, ...]: a batch of one matrix, which has a gradient, is that matrix, times the other batch turned, by a
 * copy. */
static void a_batch_of_one_matrix_is_a_matrix(void **state)
{
    (void)state;
    enum { H = 4 * 8 * 4, V = 2 * 8 * 8 * 4 };
    uint64_t saved[2];
    for (int has_gradient = 0; has_gradient < 2; has_gradient++) {
        model *m = model_new(18);
        model_input(m, "x", "f32[1,4,8]");
        model_weight(m, "v", "f32[2,8,8]");
        model_role(m, "v", "PARAMETER");
        model_weight(m, "b", "f32[8]");
        model_role(m, "b", has_gradient ? "PARAMETER" : "BUFFER");
        model_parameters(m, has_gradient ? "v b" : "v ~b");
        add_call(m, "Add", "x b", "h", "add");
        add_call(m, "MatMul", "h v", "y", "matmul");
        model_output(m, "y", "f32");
        saved[has_gradient] = train(m, (onv_lower_options){.loss = ONV_LOSS_NONE}).saved;
    }
    assert_int_equal(saved[0], H);
    assert_int_equal(saved[1], H + V); /* the copy of the batch */
}

/* `embedding(arange(n)).unsqueeze(0)` of one table for two modules: its rows are counted once. */
static void rows_behind_views_are_of_one_table(void **state)
{
    (void)state;
    model *m = begin("position.weight");
    add_constant(m, "unsqueeze", "f32[1,4,8]", "['arange', 'embedding', 'position.weight']");
    add_constant(m, "unsqueeze_3", "f32[1,4,8]", "['arange_1', 'embedding_1', 'position.weight']");
    add_call(m, "Add", "h unsqueeze", "a", "add");
    add_call(m, "Add", "a unsqueeze_3", "y", "add_1");
    model_output(m, "y", "f32");
    found f = train(m, (onv_lower_options){.loss = ONV_LOSS_NONE});
    assert_int_equal(f.parameters, W + X);
    assert_true(f.is_assumed);
    assert_false(f.is_folded);
}

/* `nodes.expand(4, -1).view(4, 8)`: the parameter has the rows once. */
static void views_of_what_was_expanded_are_views(void **state)
{
    (void)state;
    float data[4][8];
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 8; k++) data[i][k] = (float)k;
    model *m = begin("nodes");
    model_weight_data(m, "view_2", "f32[4,8]", data, sizeof data);
    model_folded(m, "view_2", "['expand', 'nodes', 'val_3']");
    model_weight(m, "v", "f32[8,8]");
    add_call(m, "MatMul", "h v", "k", "mm_1");
    add_call(m, "Mul", "k view_2", "y", "mul");
    model_output(m, "y", "f32");
    assert_int_equal(train(m, (onv_lower_options){.loss = ONV_LOSS_NONE}).parameters, W + 8 * 4);
}

/* Indices that the exporter computed of a buffer by more than views: the buffer lies beside them. */
static void buffers_behind_large_results_are_missed(void **state)
{
    (void)state;
    for (int is_computed = 0; is_computed < 2; is_computed++) {
        model *m = begin("~edges");
        model_input(m, "z", "f32[2000,8]");
        add_constant(m, "select", "i64[1500]",
                     is_computed ? "['edges', 'remainder', 'val_1']" : "['edges', 'val_1']");
        add_call(m, "Gather", "z select", "g", "index_select");
        add_call(m, "MatMul", "g fc.weight", "y", "mm_1");
        model_output(m, "y", "f32");
        found f = train(m, (onv_lower_options){.loss = ONV_LOSS_NONE});
        assert_int_equal(f.lacks_buffers, is_computed);
    }
}

/* dropout(A) x, twice, of a buffer: the exporter merged the second one, which is another number. */
static void dropouts_at_the_end_ran_each(void **state)
{
    (void)state;
    uint64_t saved[2];
    for (int is_merged = 0; is_merged < 2; is_merged++) {
        model *m = begin("~A");
        model_weight(m, "A", "f32[4,4]");
        model_role(m, "A", "BUFFER");
        model_float(m, "val_0", 0.5f);
        model_bool(m, "val_1", true);
        model_source(m, "", "native_dropout");
        model_class(m, "zoo.Net", "aten.native_dropout.default");
        model_call(m, "aten.native_dropout.default", "%b_a, 0.5, True");
        model_node(m, "Dropout", "native_dropout", "A val_0 val_1", "getitem", "");
        static const char *const arguments[] = {"%getitem, %h", "%getitem, %matmul",
                                                "%getitem_2, %matmul"};
        for (int i = 0; i < 2; i++) {
            model_source(m, "", i == 0 ? "matmul" : "matmul_1");
            model_class(m, "zoo.Net", "aten.matmul.default");
            model_call(m, "aten.matmul.default", arguments[i == 0 ? 0 : 1 + is_merged]);
            model_node(m, "MatMul", i == 0 ? "matmul" : "matmul_1",
                       i == 0 ? "getitem h" : "getitem matmul", i == 0 ? "matmul" : "y", "");
        }
        model_output(m, "y", "f32");
        saved[is_merged] = train(m, (onv_lower_options){.loss = ONV_LOSS_NONE}).saved;
    }
    assert_int_equal(saved[1] - saved[0], 4 * 4 * 4);
}

/* softmax(nodes nodes^T) and `nodes @ pool`: the size that both leave open is one, and what one term makes of a parameter
 * tells which operand it is of another. */
static void terms_agree_on_shapes_of_parameters(void **state)
{
    (void)state;
    model *m = begin("a_pool nodes");
    add_constant(m, "softmax", "f32[4,4]", "['mm_7', 'nodes', 'transpose']");
    add_constant(m, "matmul", "f32[4,8]", "['a_pool', 'nodes']");
    add_call(m, "MatMul", "softmax h", "k", "mm_8");
    add_call(m, "Add", "k matmul", "y", "add");
    model_output(m, "y", "f32");
    enum { OPEN = 3, ELEMS = 4 * OPEN + OPEN * 8 };
    found f = train(m, (onv_lower_options){.loss = ONV_LOSS_NONE, .parameters = 8 * 8 + ELEMS});
    assert_int_equal(f.parameters, W + ELEMS * 4);
    assert_false(f.is_assumed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_a_result_are_views_of_it),
        cmocka_unit_test(parts_of_a_parameter_are_counted_once),
        cmocka_unit_test(joined_parameters_have_gradients),
        cmocka_unit_test(layers_of_buffers_have_gradients),
        cmocka_unit_test(merged_terms_are_of_the_layers_own_parameters),
        cmocka_unit_test(constants_without_a_term_are_told),
        cmocka_unit_test(a_batch_of_one_matrix_is_a_matrix),
        cmocka_unit_test(rows_behind_views_are_of_one_table),
        cmocka_unit_test(views_of_what_was_expanded_are_views),
        cmocka_unit_test(buffers_behind_large_results_are_missed),
        cmocka_unit_test(dropouts_at_the_end_ran_each),
        cmocka_unit_test(terms_agree_on_shapes_of_parameters),
    };
    return cmocka_run_group_tests_name("eager.term_parts", tests, NULL, NULL);
}

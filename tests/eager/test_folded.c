/* Constants, and the notes of what the exporter computed them of. */
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

enum { W = 8 * 8 * 4 };

/* What training holds of `y = (x W) * sin(c)`, where c is noted to be computed of some values. */
static void trains_folded(const char *from, const char *listed, uint64_t *parameters,
                          uint64_t *saved)
{
    model *m = model_new(18);
    model_input(m, "x", "f32[4,8]");
    model_weight(m, "val_1", "f32[8,8]");
    model_weight(m, "unsqueeze_1", "f32[4,8]");
    model_parameters(m, listed);
    if (from != NULL) model_folded(m, "unsqueeze_1", from);
    model_source(m, "fc", "linear");
    model_class(m, LINEAR, "aten.linear.default");
    model_node(m, "MatMul", "h", "x val_1", "h", "");
    model_source(m, "", "sin");
    model_class(m, "zoo.Net", "aten.sin.default");
    model_node(m, "Sin", "s", "unsqueeze_1", "s", "");
    model_source(m, "", "mul");
    model_class(m, "zoo.Net", "aten.mul.Tensor");
    model_node(m, "Mul", "y", "h s", "y", "");
    model_output(m, "y", "f32");
    trainer t;
    trainer_open_model(&t, m);
    onv_train_options how = {.optimizer = onv_optimizer_find("sgd"),
                             .lower = {.loss = ONV_LOSS_NONE}};
    *parameters = trainer_run(&t, &how).figures.parameter_bytes;
    *saved = trainer_run(&t, &how).figures.saved_activation_bytes;
    trainer_close(&t);
    model_free(m);
}

/* A note lists what the exporter computed a constant of: a view of a parameter in a module that the constant's reader does
 * not call is that parameter, and what its results are multiplied by is kept. One of a buffer, or of more than views, is none. */
static void notes_tell_of_what_constants_are_views(void **state)
{
    (void)state;
    static const struct {
        const char *from;
        bool is_part;
    } cases[] = {{NULL, false},
                 {"['rope.freqs', 'select', 'val_6']", true},
                 {"['polar', 'rope.freqs', 'select']", false},
                 {"['rope.angles', 'val_5']", false},
                 {"['rope.freqs", true},
                 {"", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t parameters, saved, without;
        trains_folded(NULL, "fc.weight rope.freqs", &parameters, &without);
        trains_folded(cases[i].from, "fc.weight rope.freqs", &parameters, &saved);
        assert_int_equal(parameters, W + (cases[i].is_part ? 4 * 8 * 4 : 0));
        assert_int_equal(saved > without, cases[i].is_part);
    }
}

/* Biases between 6 positions for 2 heads: of a table that was looked up, whose rows a permutation puts last, and which a module
 * may call as it likes. Positions that are added to something else are a table themselves. */
static void notes_tell_of_biases_of_scores(void **state)
{
    (void)state;
    for (int looked_up = 0; looked_up < 2; looked_up++) {
        model *m = model_new(18);
        model_input(m, "x", "f32[1,2,6,4]");
        model_input(m, "k", "f32[1,2,4,6]");
        model_weight(m, "w", "f32[4,4]");
        model_role(m, "w", "PARAMETER");
        model_weight(m, "permute", "f32[2,6,6]");
        model_parameters(m, "w at.bias.weight");
        model_folded(m, "permute",
                     looked_up ? "['arange', 'at.bias.weight', 'embedding_1', 'sub']"
                               : "['at.bias.weight', 'val_1']");
        model_source(m, "at", "matmul");
        model_class(m, "zoo.Attention", "aten.matmul.default");
        model_node(m, "MatMul", "q", "x w", "q", "");
        model_node(m, "Neg", "n", "k", "n", "");
        model_node(m, "MatMul", "scores", "q n", "s", "");
        model_source(m, "at", "add");
        model_class(m, "zoo.Attention", "aten.add.Tensor");
        model_node(m, "Add", "y", "s permute", "y", "");
        model_output(m, "y", "f32");
        trainer t;
        trainer_open_model(&t, m);
        onv_train_options how = {.optimizer = onv_optimizer_find("sgd"),
                                 .lower = {.loss = ONV_LOSS_NONE}};
        assert_int_equal(trainer_run(&t, &how).figures.parameter_bytes,
                         4 * 4 * 4 + (looked_up ? 32 * 2 * 4 : 2 * 6 * 6 * 4));
        trainer_close(&t);
        model_free(m);
    }
}

/* A table of positions whose view is resized: the view alone would tell of no parameter. */
static void resized_tables_are_parameters(void **state)
{
    (void)state;
    static const struct {
        const char *name, *from;
        bool is_parameter;
    } cases[] = {{"permute_1", "['net.table']", true}, {"permute_1", NULL, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const int64_t size[] = {1, 4, 2, 2};
        model *m = model_new(18);
        model_input(m, "x", "f32[1,4,2,2]");
        model_weight(m, "w", "f32[2,2]");
        model_role(m, "w", "PARAMETER");
        model_weight(m, cases[i].name, "f32[1,4,6,6]");
        model_ints(m, "size", 4, size);
        model_parameters(m, cases[i].from != NULL ? "w net.table" : "w");
        if (cases[i].from != NULL) model_folded(m, cases[i].name, cases[i].from);
        model_source(m, "net", "upsample_bilinear2d");
        model_class(m, "zoo.Net", "aten.upsample_bilinear2d.vec");
        model_node(m, "Resize", "resize", "permute_1 - - size", "u", "mode='linear'");
        model_node(m, "MatMul", "product", "x w", "h", "");
        model_source(m, "net", "add");
        model_class(m, "zoo.Net", "aten.add.Tensor");
        model_node(m, "Add", "y", "h u", "y", "");
        model_output(m, "y", "f32");
        trainer t;
        trainer_open_model(&t, m);
        onv_train_options how = {.optimizer = onv_optimizer_find("sgd"),
                                 .lower = {.loss = ONV_LOSS_NONE}};
        assert_int_equal(trainer_run(&t, &how).figures.parameter_bytes,
                         2 * 2 * 4 + (cases[i].is_parameter ? 4 * 6 * 6 * 4 : 0));
        trainer_close(&t);
        model_free(m);
    }
}

/* Rows of edges that each layer selects of one buffer: the file has a copy for each, in one shape or another, or spread. */
static void indices_of_one_buffer_count_once(void **state)
{
    (void)state;
    enum { EDGES = 128, BYTES = EDGES * 8 };
    static const struct {
        const char *from, *shape;
        int64_t step; /* of the second one's contents */
        uint64_t bytes;
    } cases[] = {{"['edges', 'select_2', 'val_3']", "i64[128]", 1, BYTES},
                 {"['edges', 'select_2', 'unsqueeze', 'val_3']", "i64[128,1]", 1, BYTES},
                 {"['edges', 'getitem_1', 'val_3']", "i64[128]", 1, BYTES},
                 {"['edges', 'select_2']", "i64[128]", 2, 2 * BYTES},
                 {"['others', 'select_2']", "i64[128]", 1, 2 * BYTES},
                 /* Made anew in each pass. */
                 {"['edges', 'flip', 'select_2']", "i64[128]", 1, BYTES},
                 {"['edges', 'others', 'select_2']", "i64[128]", 1, 2 * BYTES},
                 {NULL, "i64[128]", 1, 2 * BYTES}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t first[EDGES], second[EDGES];
        for (int64_t k = 0; k < EDGES; k++) {
            first[k] = k % 5;
            second[k] = cases[i].step * k % 5;
        }
        bool is_column = strchr(cases[i].shape, ',') != NULL;
        model *m = model_new(18);
        model_input(m, "x", "f32[5,8]");
        model_weight(m, "w", "f32[8,8]");
        model_role(m, "w", "PARAMETER");
        model_weight_data(m, "val_4", "i64[128]", first, sizeof first);
        model_weight_data(m, "val_9", cases[i].shape, second, sizeof second);
        model_parameters(m, "w ~edges ~others");
        model_folded(m, "val_4", "['edges', 'select', 'val_3']");
        if (cases[i].from != NULL) model_folded(m, "val_9", cases[i].from);
        model_source(m, "net", "linear");
        model_class(m, "Net", "aten.linear.default");
        model_node(m, "MatMul", "h", "x w", "h", "");
        model_node(m, "Gather", "a", "h val_4", "a", "axis=0");
        model_node(m, is_column ? "GatherND" : "Gather", "y", "h val_9", "y",
                   is_column ? "" : "axis=0");
        model_output(m, "a", "f32");
        model_output(m, "y", "f32");
        trainer t;
        trainer_open_model(&t, m);
        onv_train_options how = {.optimizer = onv_optimizer_find("sgd"),
                                 .lower = {.loss = ONV_LOSS_NONE}};
        uint64_t found = trainer_run(&t, &how).figures.buffer_bytes;
        if (found != cases[i].bytes) fail_msg("%zu: %llu bytes", i, (unsigned long long)found);
        trainer_close(&t);
        model_free(m);
    }
}

/* Indices of edges that are turned round in each pass, and repeated for each column: a view, whose rows alone are kept. */
static void made_indices_are_kept_unrepeated(void **state)
{
    (void)state;
    enum { EDGES = 128, COLUMNS = 8, X = EDGES * 4 * 4 };
    for (int is_made = 0; is_made < 2; is_made++) {
        static int64_t indices[EDGES][COLUMNS];
        for (int64_t i = 0; i < EDGES * COLUMNS; i++)
            indices[i / COLUMNS][i % COLUMNS] = i / COLUMNS % 5;
        model *m = model_new(18);
        model_input(m, "x", "f32[128,4]");
        model_weight(m, "w", "f32[4,8]");
        model_role(m, "w", "PARAMETER");
        model_weight(m, "base", "f32[5,8]");
        model_role(m, "base", "BUFFER");
        model_weight_data(m, "expand_1", "i64[128,8]", indices, sizeof indices);
        model_parameters(m, "w ~edges ~base");
        model_folded(m, "expand_1",
                     is_made ? "['edges', 'flip', 'select', 'view']"
                             : "['edges', 'select', 'view']");
        model_source(m, "net", "linear");
        model_class(m, "Net", "aten.linear.default");
        model_node(m, "MatMul", "h", "x w", "h", "");
        model_source(m, "net", "scatter_add");
        model_class(m, "Net", "aten.scatter_add.default");
        model_node(m, "ScatterElements", "y", "base expand_1 h", "y", "axis=0 reduction='add'");
        model_output(m, "y", "f32");
        trainer t;
        trainer_open_model(&t, m);
        onv_train_options how = {.optimizer = onv_optimizer_find("sgd"),
                                 .lower = {.loss = ONV_LOSS_NONE}};
        onv_training_figures figures = trainer_run(&t, &how).figures;
        uint64_t rows = EDGES * sizeof(int64_t);
        assert_int_equal(figures.saved_activation_bytes, X + (is_made ? rows : 0));
        assert_int_equal(figures.buffer_bytes, 5 * 8 * 4 + (is_made ? 0 : rows));
        trainer_close(&t);
        model_free(m);
    }
}

/* y = (x W) * (a view of a buffer), in a module that has a parameter of the name that the factor would have: it is none, and
 * neither is the product kept for it. A part of a buffer that is in the file takes nothing. */
static void views_of_noted_buffers_are_no_parameters(void **state)
{
    (void)state;
    static const struct {
        const char *from;
        bool has_buffer;
        uint64_t parameters, buffers;
    } cases[] = {{NULL, false, W + 16, 0},
                 {"['scale', 'val_3', 'view']", false, W, 16},
                 {"['scale', 'val_3', 'view']", true, W, 16}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const float numbers[] = {1, 2, 3, 4};
        model *m = model_new(18);
        model_input(m, "x", "f32[4,8]");
        model_weight(m, "fc.inner.weight", "f32[8,8]");
        model_role(m, "fc.inner.weight", "PARAMETER");
        model_weight_data(m, "view", "f32[4,1]", numbers, sizeof numbers);
        model_parameters(m, "fc.inner.weight fc.weight ~scale");
        if (cases[i].from != NULL) model_folded(m, "view", cases[i].from);
        model_source(m, "fc', 'fc.inner", "linear");
        model_class(m, "zoo.Net', '" LINEAR, "aten.linear.default");
        model_node(m, "MatMul", "h", "x fc.inner.weight", "h", "");
        model_source(m, "fc", "mul");
        model_class(m, "zoo.Net", "aten.mul.Tensor");
        model_node(m, "Mul", "z", "h view", cases[i].has_buffer ? "z" : "y", "");
        if (cases[i].has_buffer) {
            model_weight_data(m, "scale", "f32[4]", numbers, sizeof numbers);
            model_role(m, "scale", "BUFFER");
            model_source(m, "fc", "unsqueeze");
            model_class(m, "zoo.Net", "aten.unsqueeze.default");
            model_node(m, "Reshape", "wide", "scale column", "s", "");
            model_ints(m, "column", 2, (const int64_t[]){4, 1});
            model_node(m, "Add", "y", "z s", "y", "");
        }
        model_output(m, "y", "f32");
        trainer t;
        trainer_open_model(&t, m);
        onv_train_options how = {.optimizer = onv_optimizer_find("sgd"),
                                 .lower = {.loss = ONV_LOSS_NONE}};
        onv_training_figures figures = trainer_run(&t, &how).figures;
        if (figures.parameter_bytes != cases[i].parameters ||
            figures.buffer_bytes != cases[i].buffers)
            fail_msg("%zu: parameters %llu, buffers %llu", i,
                     (unsigned long long)figures.parameter_bytes,
                     (unsigned long long)figures.buffer_bytes);
        trainer_close(&t);
        model_free(m);
    }
}

/* A module has a weight for each round in one parameter, and others beside it: notes tell which part is of which, whatever the
 * module would call what a product takes. */
static void notes_tell_which_parameter_parts_are_of(void **state)
{
    (void)state;
    model *m = model_new(18);
    trainer t;
    model_input(m, "x", "f32[4,8]");
    model_parameters(m, "net.init net.root net.weight");
    static const char *const parts[] = {"select_1", "select_2", "select_3"};
    static const char *const of[] = {"['net.root', 'val_4']", "['net.weight', 'val_4']",
                                     "['net.root', 'val_5']"};
    model_weight(m, "net.init", "f32[8,8]");
    model_role(m, "net.init", "PARAMETER");
    add_call(m, "MatMul", "x net.init", "y_0", "matmul");
    for (int i = 0; i < 3; i++) {
        char inputs[32], output[8], name[16];
        model_weight(m, parts[i], "f32[8,8]");
        model_folded(m, parts[i], of[i]);
        snprintf(inputs, sizeof inputs, "y_%d %s", i, parts[i]);
        snprintf(output, sizeof output, "y_%d", i + 1);
        snprintf(name, sizeof name, "matmul_%d", i + 1);
        add_call(m, "MatMul", inputs, output, name);
    }
    model_output(m, "y_3", "f32");
    trainer_open_model(&t, m);
    onv_train_options how = {.optimizer = onv_optimizer_find("sgd"),
                             .lower = {.loss = ONV_LOSS_NONE, .reports = true}};
    assert_int_equal(trainer_run(&t, &how).figures.parameter_bytes, 4 * W);
    for (size_t i = 0; i < t.model.diags.count; i++)
        assert_string_not_equal(t.model.diags.at[i].code, "missing-parameters");
    trainer_close(&t);
    model_free(m);
}

/* z = (x W) * (what was made of a buffer): a view of it, spread or not, is no tensor; what a call computes of it is made in
 * each pass, and its name is not in its own note. */
static void computed_buffers_are_made_in_each_pass(void **state)
{
    (void)state;
    enum { H = 4 * 8 * 4 };
    static const struct {
        const char *name, *from, *shape;
        uint64_t buffers, kept; /* beside x, which the layer keeps */
    } cases[] = {{"view", "['scale', 'val_3']", "f32[4,8]", H, 0},
                 {"type_as", "['expand', 'scale', 'val_3']", "f32[4,8]", 8 * 4, 0},
                 {"masked_fill", "['scale', 'val_3']", "f32[4,8]", 0, H}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static float numbers[4][8];
        for (int k = 0; k < 32; k++) numbers[k / 8][k % 8] = (float)(i == 1 ? k % 8 : k);
        model *m = model_new(18);
        model_input(m, "x", "f32[4,8]");
        model_weight(m, "w", "f32[8,8]");
        model_role(m, "w", "PARAMETER");
        model_weight_data(m, cases[i].name, cases[i].shape, numbers, sizeof numbers);
        model_parameters(m, "w ~scale");
        model_folded(m, cases[i].name, cases[i].from);
        add_call(m, "MatMul", "x w", "h", "matmul");
        char inputs[32];
        snprintf(inputs, sizeof inputs, "h %s", cases[i].name);
        add_call(m, "Mul", inputs, "y", "mul");
        model_output(m, "y", "f32");
        trainer t;
        trainer_open_model(&t, m);
        onv_train_options how = {.optimizer = onv_optimizer_find("sgd"),
                                 .lower = {.loss = ONV_LOSS_NONE}};
        onv_training_figures figures = trainer_run(&t, &how).figures;
        assert_int_equal(figures.buffer_bytes, cases[i].buffers);
        assert_int_equal(figures.saved_activation_bytes, H + cases[i].kept);
        trainer_close(&t);
        model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notes_tell_of_what_constants_are_views),
        cmocka_unit_test(notes_tell_of_biases_of_scores),
        cmocka_unit_test(resized_tables_are_parameters),
        cmocka_unit_test(indices_of_one_buffer_count_once),
        cmocka_unit_test(made_indices_are_kept_unrepeated),
        cmocka_unit_test(views_of_noted_buffers_are_no_parameters),
        cmocka_unit_test(computed_buffers_are_made_in_each_pass),
        cmocka_unit_test(notes_tell_which_parameter_parts_are_of),
    };
    return cmocka_run_group_tests_name("eager.folded", tests, NULL, NULL);
}

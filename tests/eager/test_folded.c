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
                 {"['rope.freqs', 'cos', 'select']", false},
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notes_tell_of_what_constants_are_views),
        cmocka_unit_test(notes_tell_of_biases_of_scores),
        cmocka_unit_test(notes_tell_which_parameter_parts_are_of),
    };
    return cmocka_run_group_tests_name("eager.folded", tests, NULL, NULL);
}

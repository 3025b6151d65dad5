/* Calls that the exporter merged, and tensors that it wrote once: PyTorch makes each. */
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
#include "ir/notes.h"

/* Two layers compute a table of what both are given; the exporter merged the calls. */
static void layers_compute_what_they_are_given_each(void **state)
{
    (void)state;
#define LAYER(module, call, aten) module, call, "zoo.Layer", "aten." aten
    static const char *const readers[] = {"layers.1", "layers.0", "layers.0.inner"};
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        network n = {
            NULL,
            "val_1 f32[8,8] val_2 f32[8,8]",
            {FC,
             {"Exp", "x", "table", "", LAYER("layers.0", "exp", "exp.default")},
             {"Mul", "h table", "a", "", LAYER("layers.0", "mul", "mul.Tensor")},
             {"MatMul", "a val_2", "b", "", "fc2", "linear_1", LINEAR, "aten.linear.default"},
             {"Mul", "b table", "y", "", readers[i], "mul_1", "zoo.Layer", "aten.mul.Tensor"}}};
        outcome o = run(&n);
        /* x for the first layer, a for the second, and a table for each call. */
        assert_int_equal(o.figures.saved_activation_bytes, (i == 0 ? 4 : 3) * 4 * 8 * 4);
    }
}

/* The second layer is given what the first one computed, if its call has that by its name. */
static void a_layer_may_be_given_what_another_computed(void **state)
{
    (void)state;
    for (int is_given = 0; is_given < 2; is_given++) {
        model *m = model_new(18);
        model_input(m, "x", "f32[4,8]");
        model_source(m, "layers.0", "exp");
        model_class(m, "zoo.Layer", "aten.exp.default");
        model_node(m, "Exp", "exp", "x", "exp", "");
        for (int i = 0; i < 2; i++) {
            char name[8], layer[16];
            snprintf(name, sizeof name, "mul_%d", i);
            snprintf(layer, sizeof layer, "layers.%d", i);
            char weight[] = {'w', (char)('0' + i), '\0'};
            model_weight(m, weight, "f32[4,8]");
            model_role(m, weight, "PARAMETER");
            model_source(m, layer, name);
            model_class(m, "zoo.Layer", "aten.mul.Tensor");
            model_call(m, "aten.mul.Tensor", i == 0 || is_given ? "%w, %exp" : "%w, %exp_1");
            model_node(m, "Mul", name, i == 0 ? "w0 exp" : "w1 exp", name, "");
        }
        model_source(m, "net", "add");
        model_class(m, "zoo.Net", "aten.add.Tensor");
        model_node(m, "Add", "add", "mul_0 mul_1", "y", "");
        model_output(m, "y", "f32");
        assert_int_equal(trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE}),
                         (is_given ? 1 : 2) * 4 * 8 * 4);
    }
}

/* An argument stands for the input in its place: a product with 1, which the exporter removed, is none of the one beside it. */
static void an_argument_is_the_input_in_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *arguments, *inputs, *merged;
    } cases[] = {{"%type_as, %mul_1", "mul exp", NULL},
                 {"%mul_1, %exp", "mul exp", "mul_1"},
                 {"%exp, %mul_1", "exp mul", "mul_1"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        model *m = model_new(18);
        model_input(m, "x", "f32[4,8]");
        add_call(m, "Neg", "x", "mul", "mul");
        add_call(m, "Exp", "mul", "exp", "exp");
        model_source(m, "net", "mul_2");
        model_class(m, "zoo.Net", "aten.mul.Tensor");
        model_call(m, "aten.mul.Tensor", cases[i].arguments);
        model_node(m, "Mul", "y", cases[i].inputs, "y", "");
        model_output(m, "y", "f32");
        trainer t;
        trainer_open_model(&t, m);
        const char *merged = onv_noted(&t.model.nodes.at[2])->merged_call;
        assert_int_equal(merged != NULL, cases[i].merged != NULL);
        if (merged != NULL) assert_string_equal(merged, cases[i].merged);
        trainer_close(&t);
        model_free(m);
    }
}

/* What they are given was computed once: here a view of it is merged. */
static void what_layers_are_given_is_computed_once(void **state)
{
    (void)state;
    network n = {NULL,
                 "val_1 f32[8,8]",
                 {FC,
                  {"Sigmoid", "h", "e", "", "act", "sigmoid", "zoo.Act", "aten.sigmoid.default"},
                  {"Transpose", "e", "t", "perm=[1,0]", LAYER("layers.0", "index", "index.Tensor")},
                  {"Exp", "t", "a", "", LAYER("layers.0", "exp", "exp.default")},
                  {"Exp", "t", "b", "", LAYER("layers.1", "exp_1", "exp.default")},
                  {"Add", "a b", "y", "", "sum", "add", "zoo.Sum", "aten.add.Tensor"}}};
    outcome o = run(&n);
    assert_int_equal(o.figures.saved_activation_bytes, 4 * 4 * 8 * 4); /* x, e, a, b */
}

/* A module's own loop makes again what an argument names, and not what that was made of, whatever numbers are missing. */
static void a_loop_makes_again_what_arguments_name(void **state)
{
    (void)state;
    for (int has_gap = 0; has_gap < 2; has_gap++) {
        model *m = model_new(18);
        model_input(m, "x", "f32[4,8]");
        model_weight(m, "w", "f32[8,8]");
        model_role(m, "w", "PARAMETER");
        model_source(m, "fc", "mm");
        model_class(m, "zoo.Linear", "aten.mm.default");
        model_node(m, "MatMul", "mm", "x w", "h", "");
        add_call(m, "Exp", "h", "exp", "exp");
        add_call(m, "Sqrt", "exp", "sqrt", "sqrt");
        add_call(m, "Mul", "h sqrt", "a", "mul");
        model_source(m, "net", "mul_1");
        model_call(m, "aten.mul.Tensor", "%mul, %sqrt_1");
        add_call(m, "Mul", "a sqrt", "b", "mul_1");
        add_call(m, "Exp", "b", "y", has_gap ? "exp_2" : "exp_1");
        model_output(m, "y", "f32");
        /* x, h, exp, a, y, and two results of the operation in between */
        assert_int_equal(trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE}),
                         7 * 4 * 8 * 4);
    }
}

/* A module computes something of what it is given, and later again, as the arguments tell. */
static void what_arguments_name_is_computed_again(void **state)
{
    (void)state;
    for (int has_gap = 0; has_gap < 2; has_gap++) {
        model *m = model_new(18);
        model_input(m, "x", "f32[4,8]");
        model_weight(m, "w", "f32[8,8]");
        model_weight(m, "v", "f32[8,8]");
        model_role(m, "w", "PARAMETER");
        model_role(m, "v", "PARAMETER");
        add_call(m, "MatMul", "x w", "h", "mm");
        add_call(m, "Exp", "x", "exp", "exp");
        add_call(m, "Neg", "exp", "neg", "neg");
        add_call(m, "Mul", "h neg", "a", "mul");
        add_call(m, "MatMul", "a v", "b", "mm_1");
        model_source(m, "net", "div");
        model_call(m, "aten.div.Tensor", "%mm_1, %neg_1");
        add_call(m, "Div", "b neg", "c", "div");
        add_call(m, "Exp", "c", "y", has_gap ? "exp_2" : "exp_1");
        model_output(m, "y", "f32");
        /* x, neg, a, y, and the second neg, whether or not what it is made of ran again. */
        assert_int_equal(trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE}),
                         5 * 4 * 8 * 4);
    }
}

/* The first reader names a call that was merged with that of the second one. */
static void readers_have_the_call_that_they_name(void **state)
{
    (void)state;
    model *m = model_new(18);
    model_input(m, "x", "f32[4,8]");
    model_weight(m, "w", "f32[8,8]");
    model_role(m, "w", "PARAMETER");
    add_call(m, "MatMul", "x w", "h", "mm");
    add_call(m, "Exp", "h", "exp", "exp");
    const char *const named[] = {"%mm, %exp_1", "%mul, %exp", "%mul_1, %exp_1"};
    const char *const inputs[] = {"h exp", "a exp", "b exp"}, *const out[] = {"a", "b", "y"};
    for (int i = 0; i < 3; i++) {
        model_call(m, "aten.mul.Tensor", named[i]);
        add_call(m, "Mul", inputs[i], out[i], i == 0 ? "mul" : i == 1 ? "mul_1" : "mul_2");
    }
    model_output(m, "y", "f32");
    /* x, h, both exponentials, a, b */
    assert_int_equal(trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE}), 6 * 4 * 8 * 4);
}

/* Blocks begin with the same activation of what all are given, which the exporter merged. */
static void blocks_begin_with_calls_of_their_own(void **state)
{
    (void)state;
    for (int is_named = 0; is_named < 2; is_named++) {
        model *m = model_new(18);
        model_input(m, "x", "f32[4,8]");
        static const char *const weights[] = {"w", "u", "v"};
        for (int i = 0; i < 3; i++) {
            model_weight(m, weights[i], "f32[8,8]");
            model_role(m, weights[i], "PARAMETER");
        }
        add_call(m, "MatMul", "x w", "h", "mm");
        model_source(m, "blocks.0", "exp");
        model_class(m, "zoo.Block", "aten.exp.default");
        model_node(m, "Exp", "exp", "h", "exp", "");
        model_source(m, "blocks.0.conv", "mm_1");
        model_class(m, "zoo.Product", "aten.mm.default");
        model_node(m, "MatMul", "mm_1", "exp u", "a", "");
        model_source(m, "blocks.1.conv", "mm_2");
        model_class(m, "zoo.Product", "aten.mm.default");
        if (is_named) model_call(m, "aten.mm.default", "%exp_1, %p_v");
        model_node(m, "MatMul", "mm_2", "exp v", "b", "");
        add_call(m, "Add", "a b", "y", "add");
        model_output(m, "y", "f32");
        /* x and one exponential or two */
        assert_int_equal(trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE}),
                         (2 + is_named) * 4 * 8 * 4);
    }
}

/* An argument that the exporter computed may be called like one that the node reads under its own name. */
static void an_index_is_no_other_call(void **state)
{
    (void)state;
    static const char *const arguments[] = {"%exp, [None, %exp_7]", "%exp_7"};
    for (size_t i = 0; i < 2; i++) {
        model *m = model_new(18);
        model_input(m, "x", "f32[4,8]");
        model_weight(m, "w", "f32[8,8]");
        model_role(m, "w", "PARAMETER");
        add_call(m, "MatMul", "x w", "h", "mm");
        add_call(m, "Exp", "h", "exp", "exp");
        add_call(m, "Tanh", "exp", "t", "tanh");
        model_source(m, "net", "sin");
        model_call(m, "aten.index.Tensor", arguments[i]);
        add_call(m, "Sin", "exp", "s", "sin");
        add_call(m, "Mul", "t s", "y", "mul");
        model_output(m, "y", "f32");
        /* x, exp, t, s; and what sin reads, if that is another call. */
        assert_int_equal(trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE}),
                         (4 + i) * 4 * 8 * 4);
    }
}

/* Zeros that two calls add rows to are two tensors, of which exporters write one. */
static void scattered_rows_have_zeros_of_their_own(void **state)
{
    (void)state;
    static const int64_t shape[] = {4, 8};
    pass p;
    model *m = model_new(18);
    model_input(m, "x", "f32[6,8]");
    model_input(m, "at", "i64[6,8]");
    model_ints(m, "shape", 2, shape);
    model_node(m, "ConstantOfShape", "0", "shape", "zeros", "");
    model_node(m, "ScatterElements", "1", "zeros at x", "a", "reduction='add'");
    model_node(m, "Neg", "2", "x", "b", "");
    model_node(m, "ScatterElements", "3", "zeros at b", "c", "reduction='add'");
    model_node(m, "Add", "4", "a c", "y", "");
    model_output(m, "y", "f32");
    pass_run(&p, m, NULL);
    unsigned n = 0;
    for (size_t i = 0; i < p.t.buffers.count; i++) {
        const onv_buffer *b = &p.t.buffers.at[i];
        n += b->kind == ONV_BUFFER_ACTIVATION && b->bytes == 4 * 8 * 4 && b->last == b->first + 1;
    }
    assert_int_equal(n, 2 + 1); /* both, and c */
    pass_drop(&p);
}

/* A convolution whose padding the exporter joined, beside a pooling that reads the padded tensor. */
static void one_padding_is_read_by_two(void **state)
{
    (void)state;
    for (int is_read = 0; is_read < 2; is_read++) {
        model *m = model_new(18);
        static const int64_t pads[] = {0, 0, 0, 0, 0, 0, 1, 1};
        model_input(m, "x", "f32[1,8,6,6]");
        model_weight(m, "w", "f32[8,8,1,1]");
        model_weight(m, "v", "f32[8,8,2,2]");
        model_ints(m, "pads", 8, pads);
        model_node(m, "Conv", "first", "x w", "h", "");
        if (is_read) {
            model_node(m, "Pad", "pad", "h pads", "p", "");
            model_node(m, "MaxPool", "pool", "p", "q", "kernel_shape=[2,2]");
        } else {
            model_node(m, "MaxPool", "pool", "h", "q", "kernel_shape=[2,2] pads=[0,0,1,1]");
        }
        model_node(m, "Conv", "second", "h v", "r", "pads=[0,0,1,1]");
        model_node(m, "Add", "sum", "q r", "y", "");
        model_output(m, "y", "f32");
        uint64_t kept = trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE});
        enum { X = 8 * 36 * 4, PADDED = 8 * 49 * 4, INDICES = 8 * 36 * 8 };
        assert_int_equal(kept, X + PADDED + INDICES + (is_read ? 0 : X));
    }
}

/* The saved bytes of what add_call() wrote. */
static uint64_t saved_of(model *m)
{
    trainer t;
    model_output(m, "y", "f32");
    trainer_open_model(&t, m);
    onv_train_options how = {.optimizer = onv_optimizer_find("sgd"),
                             .lower = {.loss = ONV_LOSS_NONE}};
    uint64_t saved = trainer_run(&t, &how).figures.saved_activation_bytes;
    trainer_close(&t);
    model_free(m);
    return saved;
}

/* Code that has the formula of a layer norm itself calls each part of it. */
static void a_norm_of_code_keeps_its_parts(void **state)
{
    (void)state;
    enum { H = 4 * 8 * 4, ROW = 4 * 4 };
    for (int is_code = 0; is_code < 2; is_code++) {
#define PART(op, in, out, name) add_call(m, op, in, out, is_code ? name : "layer_norm")
        model *m = model_new(13);
        model_input(m, "x", "f32[4,8]");
        model_weight(m, "w", "f32[8,8]");
        model_role(m, "w", "PARAMETER");
        model_float(m, "two", 2);
        model_float(m, "eps", 1e-5F);
        add_call(m, "MatMul", "x w", "h", "mm");
        model_source(m, "net", is_code ? "mean" : "layer_norm");
        model_class(m, "zoo.Net", "aten.op.default");
        model_node(m, "ReduceMean", "mean", "h", "mean", "axes=[-1]");
        PART("Sub", "h mean", "c", "sub");
        PART("Pow", "c two", "p", "pow_1");
        model_source(m, "net", is_code ? "mean_1" : "layer_norm");
        model_class(m, "zoo.Net", "aten.op.default");
        model_node(m, "ReduceMean", "var", "p", "var", "axes=[-1]");
        PART("Add", "var eps", "e", "add");
        PART("Sqrt", "e", "r", "sqrt");
        PART("Div", "c r", "y", "div");
        /* x and, of the kernel, its input, mean and 1 / deviation; else what was centred, and the root. */
        assert_int_equal(saved_of(m), is_code ? H + H + ROW : H + H + 2 * ROW);
    }
}

/* Branches that begin with the same activation have one each: its number is missing. An argument that names the call is not
 * counted again, and where norms ran without a reader, activations beside them may have, too. */
static void activations_whose_numbers_are_missing_run_again(void **state)
{
    (void)state;
    enum { X = 2 * 4 * 10 * 4 };
    static const struct {
        const char *last, *second;
        int calls; /* of the first activation */
    } cases[] = {
        {"relu_2", "%other, %p_w", 2},
        {"relu_1", "%other, %p_w", 1},
        {"relu_2", "%relu_1, %p_w", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        model *m = model_new(17);
        model_input(m, "x", "f32[2,4,10]");
        model_weight(m, "v", "f32[4,4,1]");
        model_weight(m, "w", "f32[4,4,1]");
        model_role(m, "v", "PARAMETER");
        model_role(m, "w", "PARAMETER");
        model_source(m, "stem", "tanh");
        model_class(m, "zoo.Stem", "aten.tanh.default");
        model_node(m, "Tanh", "tanh", "x", "tanh", "");
        model_source(m, "left.act", "relu");
        model_class(m, "zoo.Act", "aten.relu.default");
        model_node(m, "Relu", "relu", "tanh", "relu", "");
        model_source(m, "left.conv", "conv1d");
        model_class(m, "zoo.Conv", "aten.conv1d.default");
        model_call(m, "aten.conv1d.default", "%relu, %p_v");
        model_node(m, "Conv", "conv1d", "relu v", "conv1d", "");
        model_source(m, "right.conv", "conv1d_1");
        model_class(m, "zoo.Conv", "aten.conv1d.default");
        model_call(m, "aten.conv1d.default", cases[i].second);
        model_node(m, "Conv", "conv1d_1", "relu w", "conv1d_1", "");
        model_node(m, "Add", "add", "conv1d conv1d_1", "add", "");
        model_source(m, "last", cases[i].last);
        model_class(m, "zoo.Act", "aten.relu.default");
        model_node(m, "Relu", cases[i].last, "add", "y", "");
        model_output(m, "y", "f32");
        /* What tanh and the first activations give. */
        assert_int_equal(trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE}),
                         (1 + cases[i].calls) * X);
    }
}

static void add_layer(model *m, const char *type, const char *inputs, const char *made)
{
    bool is_conv = strcmp(type, "Conv") == 0;
    char name[16], both[32];
    if (is_conv) {
        snprintf(name, sizeof name, "w_%s", made);
        model_weight(m, name, "f32[4,4,1]");
        model_role(m, name, "PARAMETER");
    }
    snprintf(both, sizeof both, "%s%s%s", inputs, is_conv ? " w_" : "", is_conv ? made : "");
    model_source(m, made, made);
    model_class(m, "zoo.Layer", "aten.layer.default");
    model_node(m, type, made, both, made, "");
    if (!is_conv) return;
    snprintf(name, sizeof name, "s_%s", made);
    model_node(m, "ReduceSum", name, made, name, "keepdims=0");
}

/* A missing activation is of what is read before the next one, though another that branches share has more readers, later. */
static void activations_run_again_where_they_are_read(void **state)
{
    (void)state;
    enum { LONG = 2 * 4 * 10 * 4, SHORT = 2 * 4 * 6 * 4 };
    model *m = model_new(17);
    model_input(m, "x", "f32[2,4,10]");
    model_input(m, "z", "f32[2,4,6]");
    add_layer(m, "Relu", "x", "relu");
    add_layer(m, "Relu", "z", "relu_1");
    add_layer(m, "Conv", "relu", "a");
    add_layer(m, "Conv", "relu_1", "b");
    add_layer(m, "Conv", "relu", "c"); /* of relu_2 */
    model_node(m, "Sum", "sum", "s_a s_b s_c", "sum", "");
    add_layer(m, "Relu", "sum", "relu_3");
    add_layer(m, "Conv", "relu_1", "d"); /* of relu_4 */
    add_layer(m, "Conv", "relu_1", "e");
    model_node(m, "Sum", "all", "relu_3 s_d s_e", "all", "");
    add_layer(m, "Relu", "all", "relu_5");
    model_output(m, "relu_5", "f32");
    assert_int_equal(trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE}),
                     2 * LONG + 2 * SHORT + 2 * 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_compute_what_they_are_given_each),
        cmocka_unit_test(an_argument_is_the_input_in_its_place),
        cmocka_unit_test(what_layers_are_given_is_computed_once),
        cmocka_unit_test(a_layer_may_be_given_what_another_computed),
        cmocka_unit_test(a_loop_makes_again_what_arguments_name),
        cmocka_unit_test(what_arguments_name_is_computed_again),
        cmocka_unit_test(readers_have_the_call_that_they_name),
        cmocka_unit_test(blocks_begin_with_calls_of_their_own),
        cmocka_unit_test(an_index_is_no_other_call),
        cmocka_unit_test(scattered_rows_have_zeros_of_their_own),
        cmocka_unit_test(one_padding_is_read_by_two),
        cmocka_unit_test(a_norm_of_code_keeps_its_parts),
        cmocka_unit_test(activations_whose_numbers_are_missing_run_again),
        cmocka_unit_test(activations_run_again_where_they_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Networks that were never trained: parameters of several modules are equal, and the exporter keeps one of them, drops
 * zeros, and computes what tables of them give. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "eager/noted_network.h"
#include "eager/trainer.h"

#define NORM       "torch.nn.modules.batchnorm.BatchNorm2d"
#define FUNCTIONAL "aten._native_batch_norm_legit_functional.default"

enum { C = 8 * 4, IMAGE = 2 * 8 * 6 * 6 * 4, CONV_BYTES = 8 * 8 * 4 };

static onv_training_figures train(model *m)
{
    trainer t;
    trainer_open_model(&t, m);
    onv_train_options how = {.optimizer = onv_optimizer_find("sgd"),
                             .lower = {.loss = ONV_LOSS_NONE, .reports = true}};
    onv_training_figures f = trainer_run(&t, &how).figures;
    trainer_close(&t);
    model_free(m);
    return f;
}

/* The bias of a convolution before a norm is zeros, and dropped; the node has the norm's name, as the convolution was joined
 * with it. */
static void convolutions_before_norms_have_their_bias(void **state)
{
    (void)state;
    for (int has_bias = 0; has_bias < 2; has_bias++) {
        model *m = model_new(18);
        model_input(m, "x", "f32[2,8,6,6]");
        model_parameters(m, has_bias ? "conv.weight conv.bias bn.weight bn.bias"
                                     : "conv.weight bn.weight bn.bias");
        model_weight(m, "conv.weight", "f32[8,8,1,1]");
        model_source(m, "bn", "_native_batch_norm_legit_functional");
        model_class(m, NORM, FUNCTIONAL);
        model_node(m, "Conv", "c", "x conv.weight", "y", "");
        model_output(m, "y", "f32");
        onv_training_figures f = train(m);
        assert_int_equal(f.parameter_bytes, CONV_BYTES + (2 + has_bias) * C);
        assert_int_equal(f.gradient_bytes, CONV_BYTES + (2 + has_bias) * C);
    }
}

/* Two parameters of one module that begin alike, by which it multiplies. */
static void a_module_may_have_two_scales(void **state)
{
    (void)state;
    static const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    static const char *const arguments[] = {"%x, %p_net_gamma_a", "%mul, %p_net_gamma_b"};
    for (int n = 1; n <= 2; n++) {
        model *m = model_new(18);
        model_input(m, "x", "f32[4,8]");
        model_parameters(m, "net.gamma_a net.gamma_b");
        model_weight_data(m, "net.gamma_a", "f32[8]", ones, sizeof ones);
        model_role(m, "net.gamma_a", "PARAMETER");
        for (int k = 0; k < n; k++) {
            model_source(m, "net", k == 0 ? "mul" : "mul_1");
            model_class(m, "Net", "aten.mul.Tensor");
            model_call(m, "aten.mul.Tensor", arguments[k]);
            model_node(m, "Mul", k == 0 ? "a" : "b", k == 0 ? "x net.gamma_a" : "h net.gamma_a",
                       k == n - 1 ? "y" : "h", "");
        }
        model_output(m, "y", "f32");
        assert_int_equal(train(m).gradient_bytes, n * C);
    }
}

/* Modules of a part of a sequence have the names that they have in all of it. */
static void parts_of_sequences_have_its_names(void **state)
{
    (void)state;
    model *m = model_new(18);
    model_input(m, "x", "f32[4,8]");
    model_parameters(m, "features.fc.weight features.fc.bias");
    model_weight(m, "val_1", "f32[8,8]");
    model_source(m, "features.slice(4, 10, None).fc", "linear");
    model_class(m, LINEAR, "aten.linear.default");
    model_node(m, "MatMul", "product", "x val_1", "y", "");
    model_output(m, "y", "f32");
    assert_int_equal(train(m).gradient_bytes, CONV_BYTES + C);
}

/* Positions along one axis: a row for each distance of queries and keys, which the exporter looked up. */
static void distances_along_an_axis_have_a_row_each(void **state)
{
    (void)state;
    enum { QUERIES = 3, KEYS = 5, WIDTH = 8 };
    model *m = model_new(18);
    model_input(m, "x", "f32[3,5,8]");
    model_parameters(m, "net.rel_pos_h");
    model_weight(m, "index", "f32[3,5,8]");
    model_source(m, "net", "mul");
    model_class(m, "zoo.Attention", "aten.mul.Tensor");
    model_node(m, "Mul", "m", "x index", "y", "");
    model_output(m, "y", "f32");
    onv_training_figures f = train(m);
    assert_int_equal(f.parameter_bytes, (2 * KEYS - 1) * WIDTH * 4);
    /* x, and the indices of rows */
    assert_int_equal(f.saved_activation_bytes, QUERIES * KEYS * (WIDTH * 4 + 8));
}

/* Biases of distances that attention adds to its scores; another layer has its larger table as it is. */
static void biases_of_attention_may_be_looked_up(void **state)
{
    (void)state;
    enum { HEADS = 2, KEYS = 9 };
    model *m = model_new(18);
    model_input(m, "x", "f32[2,9,9]");
    model_parameters(m, "layers.0.attention_biases layers.1.attention_biases");
    model_weight(m, "index", "f32[2,9,9]");
    model_weight(m, "layers.1.attention_biases", "f32[2,81]");
    model_role(m, "layers.1.attention_biases", "PARAMETER");
    model_source(m, "layers.0", "scaled_dot_product_attention");
    model_class(m, "zoo.Attention", "aten.scaled_dot_product_attention.default");
    model_node(m, "Add", "add", "x index", "a", "");
    model_source(m, "layers.1", "sin");
    model_class(m, "zoo.Attention", "aten.sin.default");
    model_node(m, "Sin", "s", "layers.1.attention_biases", "b", "");
    model_source(m, "", "sin_1");
    model_class(m, "Net", "aten.sin.default");
    model_node(m, "Sin", "t", "a", "y", "");
    model_output(m, "y", "f32");
    model_output(m, "b", "f32");
    assert_int_equal(train(m).gradient_bytes, (HEADS * KEYS + 2 * 81) * 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_before_norms_have_their_bias),
        cmocka_unit_test(a_module_may_have_two_scales),
        cmocka_unit_test(parts_of_sequences_have_its_names),
        cmocka_unit_test(distances_along_an_axis_have_a_row_each),
        cmocka_unit_test(biases_of_attention_may_be_looked_up),
    };
    return cmocka_run_group_tests_name("eager.untrained", tests, NULL, NULL);
}

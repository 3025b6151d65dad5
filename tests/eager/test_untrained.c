/* Networks that were never trained: parameters of several modules are equal, and the exporter keeps one of them, drops
 * zeros, and computes what tables of them give. */
#include "eager/noted_network.h"
#include "eager/trainer.h"
#include "support/test.h"

#define NORM       "torch.nn.modules.batchnorm.BatchNorm2d"
#define FUNCTIONAL "aten._native_batch_norm_legit_functional.default"

enum { C = 8 * 4, IMAGE = 2 * 8 * 6 * 6 * 4, CONV_BYTES = 8 * 8 * 4 };

static onv_training_figures train(model *m)
{
    trainer t;
    onv_training_figures f = TRAINED(&t, m, .loss = ONV_LOSS_NONE, .reports = true);
    trainer_close(&t);
    model_free(m);
    return f;
}

/* Two parameters of one module that begin alike, by which it multiplies. */
TEST(a_module_may_have_two_scales)
{
    static const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    static const char *const arguments[] = {"%x, %p_net_gamma_a", "%mul, %p_net_gamma_b"};
    for (int n = 1; n <= 2; n++) {
        model *m = model_read(18, "in x f32[4,8]", "parameters net.gamma_a net.gamma_b");
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
TEST(parts_of_sequences_have_its_names)
{
    model *m = model_read(18, "in x f32[4,8]", "parameters features.fc.weight features.fc.bias",
                          "weight val_1 f32[8,8]");
    model_source(m, "features.slice(4, 10, None).fc", "linear");
    model_class(m, LINEAR, "aten.linear.default");
    model_add(m, "y = MatMul(x val_1) product", "out y f32");
    assert_int_equal(train(m).gradient_bytes, CONV_BYTES + C);
}

/* Weights of modules: those that several share, that hooks compute, and single numbers. */
#include "eager/noted_network.h"
#include "eager/pass.h"
#include "eager/trainer.h"
#include "support/test.h"

enum { W = 8 * 8 * 4 };

/* `self.g = nn.Parameter(torch.tensor(1e-3))`: what it multiplies is kept for its gradient, of each module for its own. */
TEST(numbers_are_trained)
{
    static const float small[] = {1e-3F};
    static const char *const roles[] = {"PARAMETER", "BUFFER"};
    for (int i = 0; i < 2; i++) {
        OWNED_MODEL m = model_read(18, "in x f32[4,8]", "weight val_1 f32[8,8]");
        model_weight_data(m, "a.g", "f32", small, sizeof small);
        model_role(m, "a.g", roles[i]);
        model_parameters(m, i == 0 ? "fc.weight a.g b.g" : "fc.weight ~a.g ~b.g");
        model_source(m, "fc", "linear");
        model_class(m, LINEAR, "aten.linear.default");
        model_node(m, "MatMul", "product", "x val_1", "h", "");
        for (int k = 0; k < 2; k++) {
            model_source(m, k == 0 ? "a" : "b", k == 0 ? "mul" : "mul_1");
            model_class(m, "zoo.Scale", "aten.mul.Tensor");
            model_call(m, "aten.mul.Tensor", k == 0 ? "%linear, %p_a_g" : "%mul, %p_b_g");
            model_node(m, "Mul", k == 0 ? "n" : "o", k == 0 ? "h a.g" : "g a.g", k == 0 ? "g" : "y",
                       "");
        }
        model_output(m, "y", "f32");
        OWNED_TRAINER t;
        onv_training_figures f = TRAINED(&t, m, .loss = ONV_LOSS_NONE);
        assert_int_equal(f.gradient_bytes, W + (i == 0 ? 2 * 4 : 0));
        assert_int_equal(f.saved_activation_bytes, (i == 0 ? 3 : 1) * 4 * 8 * 4);
    }
}

/* What networks of images, videos and diffusion do: layouts of memory, buffers that layers read, calls that were folded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "eager/pass.h"
#include "eager/trainer.h"

#define LINEAR "torch.nn.modules.linear.Linear"

/* A layer of fixed weights, as of a cosine transform, whose transpose the exporter computed. */
static void weights_that_are_buffers_are_not_trained(void **state)
{
    (void)state;
    static const struct {
        const char *arguments;
        bool trains;
    } cases[] = {{"%x, %p_dct_weights", true},
                 {"%x, %b_dct_weights", false},
                 {"%x, %b_dct_weights, %p_dct_bias", true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        model *m = model_new(18);
        model_input(m, "x", "f32[4,8]");
        model_weight(m, "val_1", "f32[8,8]");
        model_weight(m, "val_2", "f32[8,8]");
        model_parameters(m, "dct.weights head.weight");
        for (int k = 0; k < 2; k++) {
            model_source(m, k == 0 ? "dct" : "head", k == 0 ? "linear" : "linear_1");
            model_class(m, k == 0 ? "zoo.Cosines" : LINEAR, "aten.linear.default");
            model_call(m, "aten.linear.default", k == 0 ? cases[i].arguments : "%linear, %p_head_weight");
            model_node(m, "MatMul", k == 0 ? "a" : "b", k == 0 ? "x val_1" : "h val_2",
                       k == 0 ? "h" : "y", "");
        }
        model_output(m, "y", "f32");
        trainer t;
        trainer_open_model(&t, m);
        onv_train_options how = {.optimizer = onv_optimizer_find("sgd"),
                                 .lower = {.loss = ONV_LOSS_NONE}};
        onv_training_figures f = trainer_run(&t, &how).figures;
        enum { W = 8 * 8 * 4, H = 4 * 8 * 4 };
        assert_int_equal(f.gradient_bytes, cases[i].trains ? 2 * W : W);
        assert_int_equal(f.parameter_bytes, cases[i].trains ? 2 * W : W);
        assert_int_equal(f.saved_activation_bytes, cases[i].trains ? H : H);
        trainer_close(&t);
        model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_that_are_buffers_are_not_trained),
    };
    return cmocka_run_group_tests_name("eager.images", tests, NULL, NULL);
}

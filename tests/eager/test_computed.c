/* Constants that the exporter computed of parameters by more than views; a batch of one matrix; a dropout that ran for each reader. */
#include "eager/noted_network.h"
#include "eager/pass.h"
#include "eager/trainer.h"
#include "support/capture.h"
#include "support/test.h"

typedef struct found {
    uint64_t saved;
    bool is_folded;
} found;

static found train(model *m, onv_lower_options how)
{
    trainer t;
    how.reports = true;
    trainer_open_model(&t, m);
    onv_train_options options = {.optimizer = onv_optimizer_find("sgd"), .lower = how};
    onv_training_figures figures = trainer_run(&t, &options).figures;
    found f = {.saved = figures.saved_activation_bytes};
    f.is_folded = diag_of(&t.model, "folded-layers") != NULL;
    trainer_close(&t);
    model_free(m);
    return f;
}

/* `h = x W`, which is trained. */
static model *begin(const char *listed)
{
    model *m =
        model_read(18, "in x f32[4,8]", "weight fc.weight f32[8,8]", "role fc.weight PARAMETER");
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

/* A view of a parameter, or what was computed of a buffer, is no such constant. */
TEST(constants_of_several_calls_are_told)
{
    static const struct {
        const char *from, *listed;
        bool is_folded;
    } cases[] = {
        {"['a', 'b', 'fft_rfft', 'mul']", "a b", true},
        {"['a', 'select']", "a", false},
        {"['mask', 'triu']", "a ~mask", false},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0];
         i++) { /* in training and inference */
        model *m = begin(cases[i / 2].listed);
        add_constant(m, "unsqueeze", "f32[4,8]", cases[i / 2].from);
        add_call(m, "Mul", "h unsqueeze", "y", "mul");
        model_output(m, "y", "f32");
        onv_lower_options how = {.loss = ONV_LOSS_NONE, .inference = i % 2 != 0};
        assert_int_equal(train(m, how).is_folded, cases[i / 2].is_folded);
    }
}

/* (x W)[1, ...] @ w[2, ...]: a batch of one matrix, which has a gradient, is that matrix, times the other batch turned, by a
 * copy. */
TEST(a_batch_of_one_matrix_is_a_matrix)
{
    enum { H = 4 * 8 * 4, V = 2 * 8 * 8 * 4 };
    uint64_t saved[2];
    for (int has_gradient = 0; has_gradient < 2; has_gradient++) {
        model *m = model_read(18, "in x f32[1,4,8]", "weight v f32[2,8,8]", "role v PARAMETER",
                              "weight b f32[8]");
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

/* nn.RNN, of which the newer exporter writes every step: one call of cuDNN on CUDA. */
#include "eager/trainer.h"
#include "support/test.h"

enum { STEPS = 2, BATCH = 4, WIDTH = 8, STATE = BATCH * WIDTH * 4, SEQUENCE = STEPS * STATE };
enum { RESERVE = 256 }; /* of a module, beside those of its layers */

static void add(model *m, const char *op, const char *name, const char *inputs, const char *output,
                const char *attributes)
{
    model_source(m, "rnn", name);
    model_class(m, "torch.nn.modules.rnn.RNN", "aten.linear.default");
    model_node(m, op, name, inputs, output, attributes);
}

/* One step: its projected input, the state before, the state after. */
static void add_step(model *m, int layer, int step, const char *before, const char *after)
{
    char name[32], inputs[64], output[32];
    snprintf(name, sizeof name, "slice_%d_%d", layer, step);
    snprintf(output, sizeof output, "s%d_%d", layer, step);
    snprintf(inputs, sizeof inputs, "p%d from%d to%d axis", layer, step, step);
    add(m, "Slice", name, inputs, output, "");
    snprintf(name, sizeof name, "linear_%d_%d", layer, step);
    snprintf(inputs, sizeof inputs, "%s hh%d", before, layer);
    snprintf(output, sizeof output, "l%d_%d", layer, step);
    add(m, "MatMul", name, inputs, output, "");
    snprintf(name, sizeof name, "add_%d_%d", layer, step);
    snprintf(inputs, sizeof inputs, "l%d_%d s%d_%d", layer, step, layer, step);
    snprintf(output, sizeof output, "a%d_%d", layer, step);
    add(m, "Add", name, inputs, output, "");
    snprintf(name, sizeof name, "tanh_%d_%d", layer, step);
    add(m, "Tanh", name, output, after, "");
}

static void add_layer(model *m, int layer, const char *x, const char *y)
{
    char name[32], inputs[64], output[32], before[32] = "zeros", after[32];
    snprintf(name, sizeof name, "hh%d", layer);
    model_weight(m, name, "f32[8,8]");
    model_role(m, name, "PARAMETER");
    snprintf(name, sizeof name, "ih%d", layer);
    model_weight(m, name, "f32[8,8]");
    model_role(m, name, "PARAMETER");
    snprintf(inputs, sizeof inputs, "%s ih%d", x, layer);
    snprintf(output, sizeof output, "p%d", layer);
    add(m, "MatMul", output, inputs, output, "");
    for (int step = 0; step < STEPS; step++) {
        snprintf(after, sizeof after, "h%d_%d", layer, step);
        add_step(m, layer, step, before, after);
        memcpy(before, after, sizeof before);
    }
    if (y == NULL) return;
    snprintf(inputs, sizeof inputs, "h%d_0 h%d_1", layer, layer);
    add(m, "Concat", y, inputs, y, "axis=0");
}

/* A linear layer before it, so that the input has a gradient; `reads_state`: the last state alone is read. */
static model *network(int layers, bool reads_state)
{
    model *m = model_read(17, "in x f32[2,4,8]", "weight w f32[8,8]", "weight zeros f32[1,4,8]",
                          "role w PARAMETER");
    static const char *const places[] = {"from0", "to0", "from1", "to1", "axis"};
    static const int64_t values[] = {0, 1, 1, 2, 0};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        model_ints(m, places[i], 1, &values[i]);
    model_node(m, "MatMul", "before", "x w", "x0", "");
    for (int i = 0; i < layers; i++) {
        char x[32], y[32];
        snprintf(x, sizeof x, "x%d", i);
        snprintf(y, sizeof y, "x%d", i + 1);
        add_layer(m, i, x, i + 1 == layers && reads_state ? NULL : y);
    }
    if (reads_state)
        add(m, "Squeeze", "squeeze", "h0_1 axis", "last", "");
    else
        model_node(m, "Neg", "behind", layers == 1 ? "x1" : "x2", "last", "");
    model_output(m, "last", "f32");
    return m;
}

static uint64_t kept(model *m, bool on_cpu)
{
    return trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE, .on_cpu = on_cpu});
}

/* The input of the layer before; x, the first state, the output and a reserve of as many values. */
TEST(call_is_one_kernel)
{
    uint64_t one = SEQUENCE + SEQUENCE + STATE + 2 * SEQUENCE + RESERVE;
    assert_int_equal(kept(network(1, false), false), one);
    assert_int_equal(kept(network(2, false), false), one + STATE + 2 * SEQUENCE);
    assert_int_equal(kept(network(1, true), false), one);
}

/* There each step keeps what it gives. */
TEST(steps_run_apart_on_cpu)
{
    assert_true(kept(network(1, false), true) < SEQUENCE + SEQUENCE + STATE + 2 * SEQUENCE);
}

TEST(asks_for_dropout_between_layers)
{
    for (int layers = 1; layers <= 2; layers++) {
        OWNED_TRAINER t;
        OWNED_MODEL m = network(layers, false);
        trainer_open_model(&t, m);
        onv_train_options how = {.optimizer = onv_optimizer_find("sgd")};
        how.lower.loss = ONV_LOSS_MSE;
        how.lower.reports = true;
        assert_true(trainer_run(&t, &how).figures.peak_bytes > 0);
        bool asks = false;
        for (size_t i = 0; i < t.model.diags.count; i++)
            asks |= strcmp(t.model.diags.at[i].code, "recurrent-dropout") == 0;
        assert_int_equal(asks, layers == 2);
    }
}

/* A tanh of a number ends no layer. */
TEST(numbers_are_no_states)
{
    model *m = model_read(17, "in x f32[2,4,8]", "weight ih0 f32[8,8]", "role ih0 PARAMETER");
    add(m, "MatMul", "p", "x ih0", "p", "");
    add(m, "ReduceSum", "sum", "p", "s", "keepdims=0");
    add(m, "Tanh", "tanh", "s", "y", "");
    model_output(m, "y", "f32");
    assert_int_equal(kept(m, false), SEQUENCE + 4);
}

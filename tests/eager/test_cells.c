/* Cells of recurrent networks: one kernel on CUDA for what the newer exporter writes in parts. */
#include "eager/trainer.h"
#include "support/capture.h"
#include "support/test.h"

enum { ROWS = 4, WIDTH = 8, STATE = ROWS * WIDTH * 4, GIVEN = 3 * STATE /* x, h, c */ };

#define GRU  "torch.nn.modules.rnn.GRUCell"
#define LSTM "torch.nn.modules.rnn.LSTMCell"

static void add(model *m, const char *class, const char *op, const char *name, const char *inputs,
                const char *outputs)
{
    bool is_split = strcmp(op, "Split") == 0; /* of several results, which exporters note nowhere */
    if (!is_split) {
        model_source(m, "cell", name);
        model_class(m, class, "aten.add.Tensor");
    }
    model_node(m, op, name, inputs, outputs, is_split ? "axis=1" : "");
}

/* Products of a projected input and of the state with weights, to the gates. */
static model *open_cell(int64_t gates)
{
    char shape[32];
    model *m = model_read(17, "in x f32[4,8]", "weight w f32[8,8]", "role w PARAMETER");
    snprintf(shape, sizeof shape, "f32[8,%d]", (int)(gates * WIDTH));
    model_weight(m, "cell.weight_ih", shape);
    model_weight(m, "cell.weight_hh", shape);
    model_add(m, "h = MatMul(x w) product", "c = Neg(h) negation");
    return m;
}

/* `is_first`: the state's gates are constants. */
static model *gru(const char *class, bool is_first)
{
    model *m = open_cell(3);
    add(m, class, "MatMul", "linear", "h cell.weight_ih", "i");
    add(m, class, "Split", "split", "i", "i0 i1 i2");
    if (is_first) {
        static const char *const constants[] = {"g0", "g1", "g2"};
        for (size_t i = 0; i < 3; i++) model_weight(m, constants[i], "f32[4,8]");
    } else {
        add(m, class, "MatMul", "linear_1", "c cell.weight_hh", "g");
        add(m, class, "Split", "split_1", "g", "g0 g1 g2");
    }
    add(m, class, "Add", "add", "g0 i0", "a0");
    add(m, class, "Sigmoid", "sigmoid", "a0", "r");
    add(m, class, "Add", "add_1", "g1 i1", "a1");
    add(m, class, "Sigmoid", "sigmoid_1", "a1", "z");
    add(m, class, "Mul", "mul", "g2 r", "m");
    add(m, class, "Add", "add_2", "i2 m", "a2");
    add(m, class, "Tanh", "tanh", "a2", "n");
    add(m, class, "Sub", "sub", "c n", "s");
    add(m, class, "Mul", "mul_1", "s z", "d");
    add(m, class, "Add", "add_3", "d n", "y");
    model_output(m, "y", "f32");
    return m;
}

static model *lstm(const char *class)
{
    model *m = open_cell(4);
    add(m, class, "MatMul", "linear", "h cell.weight_ih", "i");
    add(m, class, "MatMul", "linear_1", "c cell.weight_hh", "g");
    add(m, class, "Add", "add", "g i", "a");
    add(m, class, "Split", "split", "a", "a0 a1 a2 a3");
    add(m, class, "Sigmoid", "sigmoid", "a0", "b0");
    add(m, class, "Sigmoid", "sigmoid_1", "a1", "b1");
    add(m, class, "Tanh", "tanh", "a2", "b2");
    add(m, class, "Sigmoid", "sigmoid_2", "a3", "b3");
    add(m, class, "Mul", "mul", "b1 c", "f");
    add(m, class, "Mul", "mul_1", "b0 b2", "k");
    add(m, class, "Add", "add_1", "f k", "next");
    add(m, class, "Tanh", "tanh_1", "next", "t");
    add(m, class, "Mul", "mul_2", "b3 t", "hidden");
    model_add(m, "y = Concat(hidden next) joined axis=1", "out y f32");
    return m;
}

static uint64_t kept(model *m, bool on_cpu)
{
    return trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE, .on_cpu = on_cpu});
}

/* Both kinds of gates and a workspace, the input, the state, and of an LSTM its next state. */
TEST(cells_are_one_kernel)
{
    assert_int_equal(kept(gru(GRU, false), false), GIVEN + (3 + 3 + 5) * STATE);
    assert_int_equal(kept(lstm(LSTM), false), GIVEN + (4 + 4 + 4 + 1) * STATE);
}

/* What backward reads is there: the program says so itself. */
TEST(programs_of_cells_are_whole)
{
    for (int is_lstm = 0; is_lstm < 2; is_lstm++) {
        OWNED_TRAINER t;
        OWNED_MODEL m = is_lstm ? lstm(LSTM) : gru(GRU, false);
        assert_true(TRAINED(&t, m, .loss = ONV_LOSS_MSE).peak_bytes > 0);
    }
}

/* A first state of zeros: the exporter computes its product, and the kernel has one all the same. */
TEST(gates_of_a_constant_state_count)
{
    assert_int_equal(kept(gru(GRU, true), false), GIVEN + (3 + 3 + 5) * STATE);
}

TEST(cells_of_other_classes_and_processors_have_parts)
{
    uint64_t parts = kept(gru("zoo.Cell", false), false);
    assert_int_equal(kept(gru(GRU, false), true), parts);
    assert_true(parts < (3 + 3 + 3 + 5) * STATE);
}

/* Of calls that have other parts a warning says what the kernel keeps beside them. */
TEST(other_parts_are_reported)
{
    static const struct {
        const char *class;
        const char *bytes; /* of the report; NULL: none */
        const char *code;
    } cases[] = {{GRU, "512 bytes", "fused-cells"},
                 {LSTM, "448 bytes", "fused-cells"},
                 {"torch.nn.modules.rnn.RNN", "128 bytes", "recurrent-steps"},
                 {"torch.nn.modules.rnn.RNNCell", NULL, "recurrent-steps"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int on_cpu = 0; on_cpu < 2; on_cpu++) {
            OWNED_TRAINER t;
            OWNED_MODEL m = open_cell(3);
            add(m, cases[i].class, "Tanh", "tanh", "c", "y");
            model_output(m, "y", "f32");
            trainer_open_model(&t, m);
            onv_train_options how = {.optimizer = onv_optimizer_find("sgd")};
            how.lower =
                (onv_lower_options){.loss = ONV_LOSS_NONE, .on_cpu = on_cpu, .reports = true};
            trainer_run(&t, &how);
            const onv_diag *found = diag_of(&t.model, cases[i].code);
            bool wanted = cases[i].bytes != NULL && !on_cpu;
            if ((found != NULL) != wanted) fail_msg("%s: %d", cases[i].class, on_cpu);
            if (found != NULL) assert_non_null(strstr(found->message, cases[i].bytes));
        }
}

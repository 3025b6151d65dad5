/* Recurrent layers with cuDNN, and cells. */
#include <string.h>

#include "base/fail.h"
#include "emit/product.h"
#include "emit/rnn.h"
#include "tape/state.h"

enum { MOST_OF_DIRECTION = 5, LEAST_WITH_BIASES = 4 }; /* weights of a layer's direction */

/* A call of aten.lstm.input, gru.input, rnn_tanh.input: all layers of a module. */
typedef struct module {
    onv_rnn_problem problem;
    const onv_argument *params;
    uint32_t *weights; /* as they are read */
    uint32_t x, h, c;
    int64_t width;
    double dropout;
    bool batch_first, has_biases;
} module;

static onv_rnn_cell cell_of(onv_tape *t, const onv_program_call *c)
{
    enum { LSTM = 2, GRU = 3 }; /* modes of _cudnn_rnn */
    int64_t mode = onv_call_int(t, c, "mode", -1);
    if (mode >= 0) return mode == LSTM ? ONV_RNN_LSTM : mode == GRU ? ONV_RNN_GRU : ONV_RNN_PLAIN;
    return strstr(c->op_name, "lstm") != NULL  ? ONV_RNN_LSTM
           : strstr(c->op_name, "gru") != NULL ? ONV_RNN_GRU
                                               : ONV_RNN_PLAIN;
}

static uint32_t nth_of(const onv_argument *a, uint32_t n)
{
    if (a == NULL) return ONV_NO_PROGRAM_VALUE;
    if (a->kind == ONV_ARGUMENT_TENSOR) return n == 0 ? a->value : ONV_NO_PROGRAM_VALUE;
    return a->kind == ONV_ARGUMENT_TENSORS && n < a->count ? a->values[n] : ONV_NO_PROGRAM_VALUE;
}

static bool cast_weights(onv_tape *t, module *m)
{
    m->weights = ONV_EMIT_ARRAY(&t->emit, uint32_t, m->params->count);
    for (uint32_t i = 0; m->weights != NULL && i < m->params->count; i++)
        m->weights[i] = onv_tape_tensor(t, m->params->values[i]);
    if (m->weights != NULL) onv_amp_rnn_weights(&t->emit, m->weights, m->params->count);
    return m->weights != NULL;
}

static bool describe(onv_tape *t, const onv_program_call *c, module *m)
{
    const onv_argument *hx = onv_call_argument(c, "hx");
    int64_t n_layers = onv_call_int(t, c, "num_layers", 1);
    *m = (module){.params = onv_call_argument(c, "params"),
                  .dropout = t->emit.options->inference ? 0 : onv_call_real(c, "dropout", 0),
                  .batch_first = onv_call_flag(c, "batch_first", false),
                  .has_biases = onv_call_flag(c, "has_biases", true)};
    uint32_t cx = onv_call_value(c, "cx");
    if (m->params == NULL) m->params = onv_call_argument(c, "weight"); /* of _cudnn_rnn */
    m->has_biases &=
        onv_call_int(t, c, "weight_stride0", MOST_OF_DIRECTION) > LEAST_WITH_BIASES - 1;
    if (m->params == NULL || m->params->kind != ONV_ARGUMENT_TENSORS || !cast_weights(t, m))
        return false;
    m->c =
        onv_amp_rnn(&t->emit, onv_tape_tensor(t, cx != ONV_NO_PROGRAM_VALUE ? cx : nth_of(hx, 1)));
    m->h = onv_amp_rnn(&t->emit, onv_tape_tensor(t, nth_of(hx, 0)));
    m->x = onv_amp_rnn(&t->emit, onv_call_tensor(t, c, "input"));
    onv_eager_tensor in = onv_tensor_at(&t->emit, m->x), h = onv_tensor_at(&t->emit, m->h),
                     cell = onv_tensor_at(&t->emit, m->c);
    if (in.rank != 3 || h.rank != 3 || n_layers < 1 || n_layers > m->params->count) return false;
    if (m->c != ONV_NO_TENSOR && cell.rank == 3 && cell.dims[2] != h.dims[2])
        m->width = cell.dims[2];
    m->problem = (onv_rnn_problem){.cell = cell_of(t, c),
                                   .dtype = (onv_dtype)in.dtype,
                                   .steps = in.dims[m->batch_first],
                                   .batch = in.dims[!m->batch_first],
                                   .input = in.dims[2],
                                   .hidden = h.dims[2],
                                   .layers = (uint32_t)n_layers,
                                   .bidirectional = onv_call_flag(c, "bidirectional", false)};
    return true;
}

static uint32_t turned(onv_tape *t, uint32_t x)
{
    static const uint32_t order[] = {1, 0, 2};
    if (onv_tensor_at(&t->emit, x).rank != 3) return x;
    return onv_emit_permuted(&t->emit, "transpose", x, order);
}

void onv_tape_recurrent(onv_tape *t, const onv_program_call *c)
{
    module m;
    if (!describe(t, c, &m)) {
        onv_tape_by_row(t, c);
        return;
    }
    const onv_rnn_layer layers = {.x = m.batch_first ? turned(t, m.x) : m.x,
                                  .h = m.h,
                                  .c = m.c,
                                  .lengths = ONV_NO_TENSOR,
                                  .out = onv_emit_rnn_output(&t->emit, &m.problem),
                                  .weights = m.weights,
                                  .n_weights = m.params->count,
                                  .problem = m.problem,
                                  .width = m.width,
                                  .begins = true,
                                  .drops = m.dropout > 0,
                                  .lacks_bias = !m.has_biases};
    uint64_t reserve = onv_emit_rnn_begin(&t->emit, &layers);
    uint32_t n_states = m.problem.cell == ONV_RNN_LSTM ? 2 : 1;
    for (uint32_t k = 1; k < c->n_results && k <= n_states; k++)
        onv_tape_give(
            t, c, k,
            onv_emit_out(&t->emit, onv_tape_new(t, c->results[k], (uint8_t)m.problem.dtype)));
    onv_emit_rnn_end(&t->emit, reserve);
    uint32_t all = onv_emit_rnn_sequence(&t->emit, layers.out);
    onv_tape_give(t, c, 0, m.batch_first ? turned(t, all) : all);
}

static uint32_t gates_of(onv_tape *t, uint32_t x, uint32_t weight)
{
    if (x == ONV_NO_TENSOR || weight == ONV_NO_TENSOR) return ONV_NO_TENSOR;
    x = onv_amp_low(&t->emit, x);
    weight = onv_amp_low(&t->emit, weight);
    t->emit.is_linear = true;
    uint32_t out = onv_emit_matmul(&t->emit, x, onv_emit_swapped(&t->emit, weight));
    t->emit.is_linear = false;
    return out;
}

/* linear_hh(hx).add_(linear_ih(input)), and tanh() or relu() of it (RNN.cpp). */
static uint32_t plain_cell(onv_tape *t, const onv_program_call *c)
{
    onv_emitter *e = &t->emit;
    const onv_aten_id id = strstr(c->op_name, "tanh") != NULL ? ONV_ATEN_tanh : ONV_ATEN_relu;
    static const char *const operands[2][3] = {{"hx", "w_hh", "b_hh"}, {"input", "w_ih", "b_ih"}};
    uint32_t sums[2];
    onv_shape shape;
    for (int i = 0; i < 2; i++)
        sums[i] = onv_emit_linear(
            e, onv_call_tensor(t, c, operands[i][0]),
            onv_emit_swapped(e, onv_amp_low(e, onv_call_tensor(t, c, operands[i][1]))),
            onv_call_tensor(t, c, operands[i][2]));
    uint32_t sum = onv_emit_add_to(e, sums[0], sums[1], ONV_GRAD_ALIAS);
    if (!onv_tape_shape(t, onv_call_result(c, 0), &shape)) return ONV_NO_TENSOR;
    return onv_emit_step(&t->emit, id, sum, ONV_NO_TENSOR, ONV_SAVE_OUT, &shape);
}

/* An archive has the call with its weights, a recording the kernel, behind the products with them. */
void onv_tape_cell(onv_tape *t, const onv_program_call *c)
{
    static const char *const biases[2][2] = {{"b_ih", "b_hh"}, {"input_bias", "hidden_bias"}};
    const onv_argument *hx = onv_call_argument(c, "hx");
    bool is_kernel = onv_call_argument(c, "input_gates") != NULL;
    onv_cell cell = {.is_lstm = cell_of(t, c) == ONV_RNN_LSTM};
    uint32_t after;
    onv_shape shape;
    if (cell_of(t, c) == ONV_RNN_PLAIN) {
        onv_tape_give(t, c, 0, plain_cell(t, c));
        return;
    }
    if (is_kernel) {
        cell.input = onv_call_tensor(t, c, "input_gates");
        cell.own = onv_call_tensor(t, c, "hidden_gates");
        cell.before = onv_call_tensor(t, c, cell.is_lstm ? "cx" : "hx");
    } else {
        uint32_t h = onv_amp_low(&t->emit, onv_tape_tensor(t, nth_of(hx, 0)));
        cell.input = gates_of(t, onv_call_tensor(t, c, "input"), onv_call_tensor(t, c, "w_ih"));
        cell.own = gates_of(t, h, onv_call_tensor(t, c, "w_hh"));
        cell.before = cell.is_lstm ? onv_amp_low(&t->emit, onv_tape_tensor(t, nth_of(hx, 1))) : h;
    }
    for (int i = 0; i < 2; i++)
        cell.biases[i] = onv_amp_low(&t->emit, onv_call_tensor(t, c, biases[is_kernel][i]));
    if (cell.input == ONV_NO_TENSOR || cell.own == ONV_NO_TENSOR ||
        !onv_tape_shape(t, onv_call_result(c, 0), &shape))
        return;
    onv_tape_give(t, c, 0, onv_emit_cell(&t->emit, &cell, &shape, &after));
    if (cell.is_lstm) onv_tape_give(t, c, 1, after);
}

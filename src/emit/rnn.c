#include "emit/rnn.h"

#include "base/checked.h"
#include "kernels/cudnn.h"

/* Values that cuDNN keeps for backward, by value of the output. Measured with cuDNN 9 of PyTorch 2.15, 27 shapes: gates and
 * the cell of an LSTM, gates and what they are made of in a GRU, and one more value for the output between layers, which
 * stands in a graph of its own here. */
static const struct {
    const char *name; /* PyTorch's */
    uint64_t reserve;
} kinds[] = {
    [ONV_RNN_LSTM] = {"lstm", 5}, [ONV_RNN_GRU] = {"gru", 6}, [ONV_RNN_PLAIN] = {"rnn", 1}};

enum { RESERVE_OF_MODULE = 256 }; /* beside the layers', however many there are */

static uint64_t layers_of(const onv_rnn_layer *r)
{
    return r->problem.layers > 1 ? r->problem.layers : 1;
}

/* Of a cell that is projected: 6 values for each of its own, and the result; between layers one more, and not the result. What goes
 * from a layer to the next is in the reserve where one operation has both, and else stands in the graph. */
static uint64_t reserve_of(onv_emitter *e, const onv_rnn_layer *r)
{
    uint64_t out = onv_tensor_at(e, r->out).bytes, cells = out, layers = layers_of(r);
    uint64_t each = onv_u64_times(out, kinds[r->problem.cell].reserve);
    if (r->width > 0 && r->problem.hidden > 0) {
        cells = onv_u64_times(out / (uint64_t)r->problem.hidden, (uint64_t)r->width);
        each = onv_u64_plus(onv_u64_times(cells, kinds[r->problem.cell].reserve + 1), out);
    }
    uint64_t between = cells > out ? cells - out : 0;
    if (r->begins)
        return onv_u64_plus(onv_u64_times(each, layers),
                            onv_u64_times(onv_u64_plus(between, out), layers - 1));
    return onv_u64_plus(each, between);
}

/* What backward makes for the states of a layer beside their gradients, where nothing asks for those: zeros for what comes in,
 * and what the kernel gives. Without biases it makes the gradients of weights with room for those, and copies them. */
static uint64_t layer_temps(onv_emitter *e, const onv_rnn_layer *r)
{
    static const uint64_t gates[] = {[ONV_RNN_LSTM] = 4, [ONV_RNN_GRU] = 3, [ONV_RNN_PLAIN] = 1};
    const onv_rnn_problem *p = &r->problem;
    onv_eager_tensor t = onv_tensor_at(e, r->out);
    bool has_cell = p->cell == ONV_RNN_LSTM;
    uint64_t state = p->steps > 0 ? onv_u64_times(t.bytes / (uint64_t)p->steps, layers_of(r)) : 0;
    uint64_t cell = state;
    if (r->width > 0 && p->hidden > 0)
        cell = onv_u64_times(state / (uint64_t)p->hidden, (uint64_t)r->width);
    uint64_t all = onv_u64_times(state, 2 - onv_tensor_needs_grad(e, r->h));
    if (has_cell) all = onv_u64_plus(all, onv_u64_times(cell, 2 - onv_tensor_needs_grad(e, r->c)));
    if (!r->lacks_bias || p->batch <= 0) return all;
    for (size_t i = 0; i < r->n_weights; i++)
        all = onv_u64_plus(all, onv_tensor_at(e, r->weights[i]).bytes);
    return onv_u64_plus(all, onv_u64_times(cell / (uint64_t)p->batch, 2 * gates[p->cell]));
}

uint32_t onv_amp_rnn(onv_emitter *e, uint32_t x)
{
    bool casts = e->amp != ONV_UNDEFINED && onv_tensor_is_float(e, x);
    return casts ? onv_emit_cast(e, x, ONV_FLOAT16) : x;
}

void onv_amp_rnn_weights(onv_emitter *e, uint32_t *weights, size_t count)
{
    uint32_t flat = UINT32_MAX;
    uint64_t bytes = 0;
    if (e->amp == ONV_UNDEFINED) return;
    for (size_t i = 0; i < count && e->status == ONV_OK; i++) {
        onv_eager_tensor t = onv_tensor_at(e, weights[i]);
        if (weights[i] == ONV_NO_TENSOR || t.dtype == ONV_FLOAT16) continue;
        uint32_t low = onv_tensor_new(e, ONV_FLOAT16, t.rank, t.dims, NULL);
        if (low == ONV_NO_TENSOR) return;
        onv_eager_tensor *made = &e->eager->tensors.at[low];
        if (flat == UINT32_MAX) flat = made->storage;
        made->storage = flat;
        bytes = onv_u64_plus(bytes, made->bytes);
        weights[i] = onv_emit_one(e, "to", weights[i], ONV_GRAD_NEW, low);
    }
    if (flat != UINT32_MAX) e->eager->storages.at[flat].bytes = bytes;
}

uint32_t onv_emit_rnn_output(onv_emitter *e, const onv_rnn_problem *p)
{
    const int64_t dims[] = {p->steps, p->batch, p->bidirectional ? 2 : 1, p->hidden};
    return onv_tensor_new(e, (uint8_t)p->dtype, 4, dims, NULL);
}

uint32_t onv_emit_rnn_result(onv_emitter *e, uint32_t out, bool batch_first)
{
    static const uint32_t orders[2][4] = {{0, 2, 1, 3}, {1, 0, 2, 3}};
    return onv_emit_permuted(e, "transpose", out, orders[batch_first]);
}

/* cuDNN runs all layers of a module in one call: what it takes stands at the last one, which backward
 * runs first, and that makes the gradients of all weights. */
static void describe_module(onv_emitter *e, const onv_rnn_layer *r)
{
    e->recurrent.has_dropout =
        (!r->begins && e->recurrent.has_dropout) || e->recurrent.mask_bytes > 0;
    if (r->begins) {
        e->recurrent.op = SIZE_MAX;
        e->recurrent.module = r->problem;
        e->recurrent.module.layers = 0;
    }
    e->recurrent.module.layers += (uint32_t)layers_of(r);
    if (e->recurrent.op >= e->eager->ops.count) return;
    onv_eager_op *before = &e->eager->ops.at[e->recurrent.op];
    before->backward_temp_bytes -= e->recurrent.temps; /* which are this one's now */
    before->workspace = (onv_eager_workspace){0};
    before->rnn = 0;
    for (uint32_t k = e->eager->rnns.at[e->eager->rnns.count - 1].first_weight; k < before->n_in;
         k++) {
        if (before->in[k].grad == ONV_GRAD_NONE) continue;
        onv_emit_in(e, before->in[k].tensor, ONV_GRAD_NEW);
        before->in[k].grad = ONV_GRAD_NONE;
    }
}

/* Forward, and both kernels of backward. */
static void emit_workspaces(onv_emitter *e, const onv_rnn_layer *r)
{
    const onv_cuda_library_settings *cuda = &e->options->cuda;
    onv_eager_workspace w = {.library = "cuDNN", .stands_long = !e->options->inference};
    if (cuda->compute_capability == 0) return;
    w.bytes = onv_cudnn_rnn_workspace(&e->recurrent.module, !e->options->inference, cuda);
    e->eager->rnns.at[e->op.rnn - 1].workspace_bytes = w.bytes;
    if (r->width > 0 && r->begins) onv_say(e, ONV_SAID_projected, e->op.name, w.bytes, NULL);
    if (e->recurrent.has_dropout) w.state_bytes = onv_cudnn_dropout_state(cuda);
    onv_emit_workspace(e, w);
    e->eager->uses_cudnn = true;
}

/* The first layer's input is what the module's backward copies, and makes a gradient of. */
static void describe_backward(onv_emitter *e, const onv_rnn_layer *r, uint32_t first_weight,
                              uint64_t copy)
{
    onv_eager_tensor x = onv_tensor_at(e, r->x);
    if (r->begins || e->eager->rnns.count == 0) {
        onv_rnn_backward made = {.input_copy = copy,
                                 .input_grad = onv_tensor_needs_grad(e, r->x) ? 0 : x.bytes,
                                 .copies_zeros = x.rank > 1 && x.strides[0] < x.strides[1]};
        if (!onv_vec_push(&e->eager->rnns, made)) {
            onv_emit_fail_memory(e);
            return;
        }
    }
    e->eager->rnns.at[e->eager->rnns.count - 1].first_weight = first_weight;
    e->op.rnn = (uint32_t)e->eager->rnns.count;
    emit_workspaces(e, r);
    e->recurrent.op = e->eager->ops.count;
}

/* Products of each step's input and of the state before it, for all gates, and that of a projection. */
static uint64_t count_macs(const onv_rnn_layer *r)
{
    static const int64_t gates[] = {[ONV_RNN_LSTM] = 4, [ONV_RNN_GRU] = 3, [ONV_RNN_PLAIN] = 1};
    const onv_rnn_problem *p = &r->problem;
    int64_t each;
    uint64_t macs = p->bidirectional ? 2 : 1;
    int64_t layers = (int64_t)layers_of(r), inner = p->hidden * (int64_t)macs, inputs;
    if (__builtin_mul_overflow(inner, layers - 1, &inputs) ||
        __builtin_add_overflow(inputs, p->input, &inputs) ||
        __builtin_mul_overflow(gates[p->cell], inputs, &each) ||
        __builtin_add_overflow(each, (gates[p->cell] + (r->width > 0)) * p->hidden * layers, &each))
        return 0;
    const int64_t factors[] = {p->steps, p->batch, r->width > 0 ? r->width : p->hidden, each};
    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++)
        if (!onv_u64_mul(macs, (uint64_t)factors[i], &macs)) return 0;
    return macs;
}

uint64_t onv_emit_rnn_begin(onv_emitter *e, const onv_rnn_layer *r)
{
    onv_emit_begin(e, kinds[r->problem.cell].name);
    if (r->drops)
        e->recurrent.mask_bytes = onv_u64_times(
            layers_of(r) - 1,
            onv_cudnn_rnn_dropout_bytes(onv_tensor_at(e, r->out).elems, r->problem.bidirectional));
    onv_emit_in(e, r->x, ONV_GRAD_NEW);
    onv_emit_in(e, r->h, ONV_GRAD_NEW);
    onv_emit_in(e, r->c, ONV_GRAD_NEW);
    onv_emit_in(e, r->lengths, ONV_GRAD_NONE);
    uint32_t n_states = (uint32_t)e->in.count;
    describe_module(e, r);
    for (size_t i = 0; i < r->n_weights; i++) onv_emit_in_saved(e, r->weights[i], ONV_GRAD_NEW);
    /* cuDNN makes the gradients of all weights as one tensor; without biases they are copied out of it. */
    for (size_t i = n_states; i < e->in.count; i++) e->in.at[i].is_joined = !r->lacks_bias;
    onv_emit_save(e, r->x);
    onv_emit_save(e, r->h);
    onv_emit_save(e, r->c);
    onv_emit_save(e, r->out);
    bool joins = e->recurrent.op < e->eager->ops.count; /* the module's other layers */
    uint64_t reserve = onv_u64_plus(
        reserve_of(e, r), onv_u64_plus(r->begins ? RESERVE_OF_MODULE : 0, e->recurrent.mask_bytes));
    e->recurrent.mask_bytes = 0;
    onv_emit_extra(e, reserve, 1, "cuDNN's reserve");
    const onv_eager_tensor t = onv_tensor_at(e, r->x);
    uint64_t copy = r->x != ONV_NO_TENSOR && !onv_tensor_is_contiguous(&t) ? t.bytes : 0;
    describe_backward(e, r, n_states, copy);
    e->op.copies_first = true;
    e->op.macs = count_macs(r);
    e->recurrent.temps = onv_u64_plus(layer_temps(e, r), joins ? e->recurrent.temps : 0);
    onv_emit_temps(e, copy, e->recurrent.temps);
    onv_emit_out(e, r->out);
    return reserve;
}

void onv_emit_rnn_end(onv_emitter *e, uint64_t reserve)
{
    onv_emit_end(e);
    if (e->status != ONV_OK || !e->op.has_backward) return;
    uint64_t *sum = &e->eager->reserve_bytes;
    e->eager->recurrent++;
    *sum = onv_u64_plus(*sum, reserve);
}

/* The gradients of both products are one tensor in an LSTM. Beside them backward reads a workspace, of 5 states or 4, and the
 * states; it adds up gradients of biases by rows. */
uint32_t onv_emit_cell(onv_emitter *e, const onv_cell *cell, const onv_shape *shape,
                       uint32_t *after)
{
    const bool is_lstm = cell->is_lstm;
    onv_eager_tensor gates = onv_tensor_at(e, cell->input);
    uint32_t out = onv_tensor_new(e, gates.dtype, shape->rank, shape->dims, NULL);
    *after =
        is_lstm ? onv_tensor_new(e, gates.dtype, shape->rank, shape->dims, NULL) : ONV_NO_TENSOR;
    uint64_t workspace = onv_u64_times(onv_tensor_at(e, out).bytes, is_lstm ? 4 : 5);
    uint32_t both =
        is_lstm ? onv_emit_add_to(e, cell->input, cell->own, ONV_GRAD_ALIAS) : cell->input;
    onv_emit_begin(e, is_lstm ? "lstm_cell" : "gru_cell");
    onv_emit_in(e, both, ONV_GRAD_NEW);
    onv_emit_in(e, cell->own, is_lstm ? ONV_GRAD_NONE : ONV_GRAD_NEW);
    onv_emit_in(e, cell->before, ONV_GRAD_NEW);
    for (int i = 0; i < 2; i++) onv_emit_in_saved(e, cell->biases[i], ONV_GRAD_NEW);
    onv_emit_save(e, cell->input);
    onv_emit_save(e, cell->own);
    onv_emit_save(e, cell->before);
    onv_emit_save(e, *after);
    bool has_state_grad =
        onv_tensor_needs_grad(e, cell->before); /* the kernel makes it in any case */
    if (e->op.has_backward) onv_emit_extra(e, workspace, 1, "workspace of a cell");
    onv_emit_extras_come_first(e);
    onv_emit_temps(e, e->op.has_backward ? 0 : workspace,
                   has_state_grad ? 0 : onv_tensor_at(e, out).bytes);
    /* The exporter has computed the gates of a constant state. */
    if (cell->own == ONV_NO_TENSOR) onv_emit_extra(e, gates.bytes, 1, "gates of a state");
    onv_emit_out(e, out);
    onv_emit_out(e, *after);
    onv_emit_end(e);
    return out;
}

uint32_t onv_emit_rnn_sequence(onv_emitter *e, uint32_t out)
{
    const onv_eager_tensor t = onv_tensor_at(e, out);
    if (out == ONV_NO_TENSOR) return out;
    const int64_t dims[] = {t.dims[0], t.dims[1], t.dims[2] * t.dims[3]};
    return onv_emit_reshape(e, out, 3, dims);
}

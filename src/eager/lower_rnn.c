/* Recurrent layers, as PyTorch runs them with cuDNN: one operation for a layer in all its directions. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "eager/lower.h"
#include "kernels/cudnn.h"

enum { X, W, R, B, SEQUENCE_LENS, INITIAL_H, INITIAL_C, P };

typedef struct layer {
    const char *op_type;
    const char *name; /* PyTorch's */
    uint64_t reserve; /* values that cuDNN keeps for backward, by value of the output */
    onv_rnn_cell cell;
} layer;

/* Measured with cuDNN 9 of PyTorch 2.15, 27 shapes: gates and the cell of an LSTM, gates and what they are made
 * of in a GRU, and one more value for the output between layers, which stands in a graph of its own here. */
static const layer layers[] = {{"LSTM", "lstm", 5, ONV_RNN_LSTM},
                               {"GRU", "gru", 6, ONV_RNN_GRU},
                               {"RNN", "rnn", 1, ONV_RNN_PLAIN}};

typedef ONV_VEC(uint32_t) tensors;

enum { RESERVE_OF_MODULE = 256 }; /* beside the layers', however many there are */

/* Is it the module of the last recurrent layer? */
static bool is_same_module(const onv_lowering *l, onv_origin at)
{
    onv_origin last = l->recurrent;
    return at.path != NULL && last.path != NULL && at.length == last.length &&
           memcmp(at.path, last.path, at.length) == 0;
}

/* Is it the first layer of a module? */
static bool begins_module(onv_lowering *l, const onv_node *node)
{
    onv_origin at = onv_node_origin(l->model, node);
    bool begins = !is_same_module(l, at);
    l->recurrent = at;
    return begins;
}

bool onv_recurrent_dropout(onv_lowering *l, const onv_node *node)
{
    onv_origin at = onv_node_origin(l->model, node);
    uint32_t x = onv_node_in(l, node, 0);
    /* The whole model is a module, too, but may hold dropout of its own. */
    if (x == ONV_NO_TENSOR || at.length == 0 || l->options->on_cpu || !is_same_module(l, at))
        return false;
    l->recurrent_mask =
        onv_cudnn_rnn_dropout_bytes(onv_tensor_at(l, x).elems, l->recurrent_module.bidirectional);
    onv_node_set(l, node, 0, x);
    return true;
}

/* The parameters that a weight of the node is arranged of, each once. The nodes that do it belong to
 * the fusion that this one ends. */
static void gather_weights(onv_lowering *l, onv_value_id id, uint32_t fusion, tensors *weights)
{
    if (!onv_is_value(id)) return;
    onv_node_id from = onv_model_value(l->model, id)->producer;
    if (fusion != 0 && onv_is_node(from) && l->fusions.of_node[from.index] == fusion) {
        const onv_node *node = onv_model_node(l->model, from);
        for (uint32_t k = 0; k < node->n_inputs; k++)
            gather_weights(l, node->inputs[k], fusion, weights);
        return;
    }
    uint32_t tensor = onv_value_tensor(l, id);
    if (!onv_tensor_is_float(l, tensor)) return;
    tensor = onv_amp_low(l, tensor);
    for (size_t i = 0; i < weights->count; i++)
        if (weights->at[i] == tensor) return;
    if (!onv_vec_push(weights, tensor)) l->status = onv_fail_memory(l->err);
}

/* What the layer computes: [seq, batch, directions, hidden], contiguous, whatever the node's layout. */
static uint32_t new_output(onv_lowering *l, const onv_node *node, uint8_t dtype, bool batch_first)
{
    onv_shape x, r;
    if (!onv_value_shape(l, node->inputs[X], &x) || !onv_value_shape(l, node->inputs[R], &r))
        return ONV_NO_TENSOR;
    if (x.rank != 3 || r.rank != 3) {
        l->status = onv_fail(l->err, ONV_ERR_MODEL, "input and recurrence weights need rank 3");
        return ONV_NO_TENSOR;
    }
    const int64_t dims[] = {x.dims[batch_first], x.dims[!batch_first], r.dims[0], r.dims[2]};
    return onv_tensor_new(l, dtype, 4, dims, NULL);
}

/* Y: the output with the directions before the batch (layout 0), or the batch before all. */
static uint32_t emit_result(onv_lowering *l, uint32_t out, bool batch_first)
{
    onv_eager_tensor t = onv_tensor_at(l, out);
    if (out == ONV_NO_TENSOR) return out;
    static const uint32_t orders[2][4] = {{0, 2, 1, 3}, {1, 0, 2, 3}};
    int64_t dims[4], strides[4];
    for (uint32_t i = 0; i < 4; i++) {
        dims[i] = t.dims[orders[batch_first][i]];
        strides[i] = t.strides[orders[batch_first][i]];
    }
    return onv_emit_view(l, "transpose", out, 4, dims, strides, ONV_GRAD_ALIAS);
}

/* cuDNN runs all layers of a module in one call: what it takes stands at the last one, which backward
 * runs first. */
static void describe_module(onv_lowering *l, const onv_node *node, const layer *kind, uint8_t dtype,
                            bool batch_first, bool begins)
{
    onv_shape x, r;
    if (!onv_value_shape(l, node->inputs[X], &x) || !onv_value_shape(l, node->inputs[R], &r))
        return;
    l->recurrent_drops = !begins && (l->recurrent_drops || l->recurrent_mask > 0);
    if (begins) {
        l->recurrent_op = SIZE_MAX;
        l->recurrent_module = (onv_rnn_problem){.cell = kind->cell,
                                                .dtype = (onv_dtype)dtype,
                                                .steps = x.dims[batch_first],
                                                .batch = x.dims[!batch_first],
                                                .input = x.dims[2],
                                                .hidden = r.dims[2],
                                                .bidirectional = r.dims[0] == 2};
    }
    l->recurrent_module.layers++;
    if (l->recurrent_op >= l->eager->ops.count) return;
    onv_eager_op *before = &l->eager->ops.at[l->recurrent_op];
    before->workspace = (onv_eager_workspace){0};
    for (uint32_t k = 0; k < before->n_in; k++) before->in[k].workspace = (onv_eager_workspace){0};
}

/* One pass of backward makes the gradients of x and the states, the other those of the weights. */
static void emit_workspaces(onv_lowering *l, const uint32_t inputs[3], const tensors *weights)
{
    const onv_cuda_library_settings *cuda = &l->options->cuda;
    onv_eager_workspace w = {.library = "cuDNN"};
    if (cuda->compute_capability == 0) return;
    w.bytes = onv_cudnn_rnn_workspace(&l->recurrent_module, !l->options->inference, cuda);
    uint32_t last = ONV_NO_TENSOR;
    for (uint32_t i = 0; i < 3; i++)
        if (onv_tensor_needs_grad(l, inputs[i])) last = inputs[i];
    onv_emit_grad_workspace(l, last, w);
    last = ONV_NO_TENSOR;
    for (size_t i = 0; i < weights->count; i++)
        if (onv_tensor_needs_grad(l, weights->at[i])) last = weights->at[i];
    onv_emit_grad_workspace(l, last, w);
    w.stands_long = !l->options->inference;
    if (l->recurrent_drops) w.state_bytes = onv_cudnn_dropout_state(cuda);
    onv_emit_workspace(l, w);
    l->eager->uses_cudnn = true;
    l->recurrent_op = l->eager->ops.count;
}

static void emit_layer(onv_lowering *l, const onv_node *node, const layer *kind,
                       const tensors *weights)
{
    bool batch_first = onv_node_int(node, "layout", 0) != 0;
    uint32_t x = onv_amp_low(l, onv_node_in(l, node, X));
    uint32_t h = onv_amp_low(l, onv_node_in(l, node, INITIAL_H));
    /* Both states are zeros of their own, which exporters write once. */
    if (node->n_inputs > INITIAL_C &&
        node->inputs[INITIAL_C].index == node->inputs[INITIAL_H].index)
        onv_fill_again(l, node->inputs[INITIAL_C]);
    uint32_t c = onv_amp_low(l, onv_node_in(l, node, INITIAL_C));
    onv_eager_tensor t = onv_tensor_at(l, x);
    uint8_t dtype = x != ONV_NO_TENSOR ? t.dtype : onv_promoted(l, node);
    uint32_t out = new_output(l, node, dtype, batch_first);
    onv_emit_begin(l, kind->name);
    onv_emit_in(l, x, ONV_GRAD_NEW);
    onv_emit_in(l, h, ONV_GRAD_NEW);
    onv_emit_in(l, c, ONV_GRAD_NEW);
    onv_emit_in(l, onv_node_in(l, node, SEQUENCE_LENS), ONV_GRAD_NONE);
    for (size_t i = 0; i < weights->count; i++) {
        onv_emit_in(l, weights->at[i], ONV_GRAD_NEW);
        onv_emit_save(l, weights->at[i]);
    }
    onv_emit_save(l, x);
    onv_emit_save(l, h);
    onv_emit_save(l, c);
    onv_emit_save(l, out);
    uint64_t reserve = UINT64_MAX;
    bool fits = onv_u64_mul(onv_tensor_at(l, out).bytes, kind->reserve, &reserve);
    bool begins = begins_module(l, node);
    describe_module(l, node, kind, dtype, batch_first, begins);
    emit_workspaces(l, (const uint32_t[]){x, h, c}, weights);
    fits = fits && onv_u64_add(reserve, begins ? RESERVE_OF_MODULE : l->recurrent_mask, &reserve);
    if (!fits) reserve = UINT64_MAX;
    l->recurrent_mask = 0;
    onv_emit_extra(l, reserve, 1, "cuDNN's reserve");
    if (x != ONV_NO_TENSOR && !onv_tensor_is_contiguous(&t)) onv_emit_temps(l, t.bytes, t.bytes);
    onv_emit_out(l, out);
    for (uint32_t k = 1; k < node->n_outputs; k++)
        onv_node_set(l, node, k, onv_emit_out(l, onv_node_new(l, node, k, dtype)));
    onv_emit_end(l);
    if (l->status != ONV_OK) return;
    if (l->op.has_backward) {
        uint64_t *sum = &l->eager->reserve_bytes;
        l->eager->recurrent++;
        if (!onv_u64_add(*sum, reserve, sum)) *sum = UINT64_MAX;
    }
    onv_node_set(l, node, 0, emit_result(l, out, batch_first));
}

void onv_lower_recurrent(onv_lowering *l, const onv_node *node)
{
    static const uint32_t arranged[] = {W, R, B, P};
    const layer *kind = layers;
    while (strcmp(kind->op_type, node->op_type) != 0) kind++;
    uint32_t fusion = l->fusions.of_node[node - l->model->nodes.at];
    tensors weights = {0};
    for (size_t i = 0; i < sizeof arranged / sizeof arranged[0]; i++)
        if (arranged[i] < node->n_inputs)
            gather_weights(l, node->inputs[arranged[i]], fusion, &weights);
    if (l->status == ONV_OK) emit_layer(l, node, kind, &weights);
    onv_vec_cleanup(&weights);
}

/* --- Cells ------------------------------------------------------------------------------------- */

/* _thnn_fused_gru_cell and _thnn_fused_lstm_cell: of the products with input and state, whose gradients are one
 * tensor in an LSTM. Beside them backward reads a workspace, of 5 states or 4, and the states. */
void onv_lower_cell(onv_lowering *l, const onv_fusion *f)
{
    bool is_lstm = onv_is_value(f->state);
    onv_shape shape;
    uint32_t input = onv_amp_low(l, onv_value_tensor(l, f->x));
    uint32_t own = onv_amp_low(l, onv_value_tensor(l, f->key));
    uint32_t before = onv_amp_low(l, onv_value_tensor(l, f->value));
    if (input == ONV_NO_TENSOR || !onv_value_shape(l, f->out, &shape)) return;
    onv_eager_tensor gates = onv_tensor_at(l, input);
    uint32_t out = onv_tensor_new(l, gates.dtype, shape.rank, shape.dims, NULL);
    uint32_t after =
        is_lstm ? onv_tensor_new(l, gates.dtype, shape.rank, shape.dims, NULL) : ONV_NO_TENSOR;
    uint64_t workspace = UINT64_MAX;
    bool fits = onv_u64_mul(onv_tensor_at(l, out).bytes, is_lstm ? 4 : 5, &workspace);
    uint32_t both = is_lstm ? onv_emit_add_to(l, input, own, ONV_GRAD_ALIAS) : input;
    onv_emit_begin(l, is_lstm ? "lstm_cell" : "gru_cell");
    onv_emit_in(l, both, ONV_GRAD_NEW);
    onv_emit_in(l, own, is_lstm ? ONV_GRAD_NONE : ONV_GRAD_NEW);
    onv_emit_in(l, before, ONV_GRAD_NEW);
    onv_emit_save(l, input);
    onv_emit_save(l, own);
    onv_emit_save(l, before);
    onv_emit_save(l, after);
    if (l->op.has_backward)
        onv_emit_extra(l, workspace, fits ? 1 : UINT64_MAX, "workspace of a cell");
    else
        onv_emit_temps(l, workspace, 0);
    /* The exporter has computed the gates of a constant state. */
    if (own == ONV_NO_TENSOR) onv_emit_extra(l, gates.bytes, 1, "gates of a state");
    onv_emit_out(l, out);
    onv_emit_out(l, after);
    onv_emit_end(l);
    onv_value_set(l, f->out, out);
    if (is_lstm) onv_value_set(l, f->state, after);
}

void onv_cells_report(onv_lowering *l)
{
    /* What the kernel keeps beside what the parts do, in halves of the state for each tanh: both gates, from the
     * input and the state, and a workspace of 5 (4) states; measured with PyTorch 2.15. */
    static const struct {
        const char *class;
        uint64_t halves, tanhs;
    } cells[] = {{"torch.nn.modules.rnn.GRUCell", 8, 1}, {"torch.nn.modules.rnn.LSTMCell", 7, 2}};
    uint64_t bytes = 0, calls[2] = {0};
    for (size_t i = 0; i < l->model->nodes.count && !l->options->on_cpu; i++) {
        const onv_node *node = &l->model->nodes.at[i];
        if (node->module_class == NULL || strcmp(node->op_type, "Tanh") != 0) continue;
        if (l->fusions.of_node[i] != 0) continue;
        for (size_t k = 0; k < 2; k++) {
            if (strcmp(node->module_class, cells[k].class) != 0) continue;
            uint64_t more;
            uint64_t state = onv_tensor_at(l, onv_value_tensor(l, node->outputs[0])).bytes;
            if (!onv_u64_mul(state, cells[k].halves, &more) ||
                !onv_u64_add(bytes, more / 2, &bytes))
                bytes = UINT64_MAX;
            calls[k]++;
        }
    }
    uint64_t all = calls[0] / cells[0].tanhs + calls[1] / cells[1].tanhs + calls[1] % 2;
    if (all > 0)
        onv_model_diag(
            l->model, ONV_WARNING, "fused-cells", NULL,
            "%llu calls of nn.GRUCell or nn.LSTMCell are counted as the operations of the "
            "export; on CUDA each is one kernel, which keeps up to %llu bytes more in all",
            (unsigned long long)all, (unsigned long long)bytes);
}

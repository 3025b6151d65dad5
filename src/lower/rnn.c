/* Recurrent layers, as PyTorch runs them with cuDNN: one operation for a layer in all its directions. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "emit/rnn.h"
#include "kernels/cudnn.h"
#include "lower/lowering.h"

enum { X, W, R, B, SEQUENCE_LENS, INITIAL_H, INITIAL_C, P };

typedef ONV_VEC(uint32_t) tensors;

/* Is it part of the last recurrent layer's call? Calls of one module have names of their own, where the export notes any. */
static bool is_same_call(const onv_lowering *l, const onv_node *node, onv_origin at)
{
    onv_origin last = l->recurrent.origin;
    const char *call = onv_noted(node)->source_op, *before = l->recurrent.call;
    if (call != NULL && before != NULL && strcmp(call, before) != 0) return false;
    return at.path != NULL && last.path != NULL && at.length == last.length &&
           memcmp(at.path, last.path, at.length) == 0;
}

/* Is it the first layer of a call? */
static bool begins_module(onv_lowering *l, const onv_node *node)
{
    onv_origin at = onv_node_origin(l->emit.model, node);
    bool begins = !is_same_call(l, node, at);
    l->recurrent.origin = at;
    l->recurrent.call = onv_noted(node)->source_op;
    return begins;
}

bool onv_recurrent_dropout(onv_lowering *l, const onv_node *node, uint32_t x)
{
    onv_origin at = onv_node_origin(l->emit.model, node);
    /* The whole model is a module, too, but may hold dropout of its own. */
    if (x == ONV_NO_TENSOR || at.length == 0 || l->emit.options->on_cpu ||
        !is_same_call(l, node, at))
        return false;
    l->emit.recurrent.mask_bytes = onv_cudnn_rnn_dropout_bytes(
        onv_tensor_at(&l->emit, x).elems, l->emit.recurrent.module.bidirectional);
    return true;
}

/* The parameters that a weight of the node is arranged of, each once. The nodes that do it belong to
 * the fusion that this one ends, or to that of another call. */
static void gather_weights(onv_lowering *l, onv_value_id id, tensors *weights)
{
    if (!onv_is_value(id)) return;
    onv_node_id from = onv_model_value(l->emit.model, id)->producer;
    if (onv_is_node(from) && onv_fusions_arrange(l->fusions, from)) {
        const onv_node *node = onv_model_node(l->emit.model, from);
        for (uint32_t k = 0; k < node->n_inputs; k++) gather_weights(l, node->inputs[k], weights);
        return;
    }
    uint32_t tensor = onv_value_tensor(l, id);
    if (!onv_tensor_is_float(&l->emit, tensor)) return;
    for (size_t i = 0; i < weights->count; i++)
        if (weights->at[i] == tensor) return;
    if (!onv_vec_push(weights, tensor)) l->emit.status = onv_fail_memory(l->emit.err);
}

/* False where the shapes are not known. */
static bool describe_node(onv_lowering *l, const onv_node *node, onv_rnn_cell cell,
                          onv_rnn_layer *r)
{
    bool batch_first = onv_node_int(node, "layout", 0) != 0;
    onv_shape x, w;
    if (!onv_value_shape(l, node->inputs[X], &x) || !onv_value_shape(l, node->inputs[R], &w))
        return false;
    if (x.rank != 3 || w.rank != 3) {
        l->emit.status =
            onv_fail(l->emit.err, ONV_ERR_MODEL, "input and recurrence weights need rank 3");
        return false;
    }
    uint8_t dtype =
        r->x != ONV_NO_TENSOR ? onv_tensor_at(&l->emit, r->x).dtype : onv_promoted(l, node);
    r->problem = (onv_rnn_problem){.cell = cell,
                                   .dtype = (onv_dtype)dtype,
                                   .steps = x.dims[batch_first],
                                   .batch = x.dims[!batch_first],
                                   .input = x.dims[2],
                                   .hidden = w.dims[2],
                                   .bidirectional = w.dims[0] == 2};
    onv_shape c;
    bool has_cell = node->n_inputs > INITIAL_C && onv_is_value(node->inputs[INITIAL_C]) &&
                    onv_value_shape(l, node->inputs[INITIAL_C], &c) && c.rank == 3;
    if (has_cell && c.dims[2] != r->problem.hidden) r->width = c.dims[2];
    return true;
}

static uint32_t emit_node(onv_lowering *l, const onv_node *node, onv_rnn_cell cell,
                          const tensors *weights)
{
    bool has_bias = node->n_inputs > B && onv_is_value(node->inputs[B]);
    onv_rnn_layer r = {.weights = weights->at,
                       .n_weights = weights->count,
                       .lacks_bias = !has_bias && onv_noted(node)->n_parameters > 0};
    onv_amp_rnn_weights(&l->emit, weights->at, weights->count);
    r.x = onv_amp_rnn(&l->emit, onv_node_in(l, node, X));
    r.h = onv_amp_rnn(&l->emit, onv_node_in(l, node, INITIAL_H));
    /* Both states are zeros of their own, which exporters write once. */
    if (node->n_inputs > INITIAL_C &&
        node->inputs[INITIAL_C].index == node->inputs[INITIAL_H].index)
        onv_fill_again(l, node->inputs[INITIAL_C]);
    r.c = onv_amp_rnn(&l->emit, onv_node_in(l, node, INITIAL_C));
    r.lengths = onv_node_in(l, node, SEQUENCE_LENS);
    if (!describe_node(l, node, cell, &r)) return ONV_NO_TENSOR;
    r.begins = begins_module(l, node);
    r.out = onv_emit_rnn_output(&l->emit, &r.problem);
    uint64_t reserve = onv_emit_rnn_begin(&l->emit, &r);
    for (uint32_t k = 1; k < node->n_outputs; k++)
        onv_node_set(l, node, k,
                     onv_emit_out(&l->emit, onv_node_new(l, node, k, (uint8_t)r.problem.dtype)));
    onv_emit_rnn_end(&l->emit, reserve);
    return onv_emit_rnn_result(&l->emit, r.out, onv_node_int(node, "layout", 0) != 0);
}

static onv_rnn_cell cell_of(const onv_node *node)
{
    return node->code == ONV_OP_LSTM  ? ONV_RNN_LSTM
           : node->code == ONV_OP_GRU ? ONV_RNN_GRU
                                      : ONV_RNN_PLAIN;
}

uint32_t onv_lower_recurrent(onv_lowering *l, const onv_node *node)
{
    static const uint32_t arranged[] = {W, R, B, P};
    tensors weights = {0};
    uint32_t out = ONV_NO_TENSOR;
    for (size_t i = 0; i < sizeof arranged / sizeof arranged[0]; i++)
        if (arranged[i] < node->n_inputs) gather_weights(l, node->inputs[arranged[i]], &weights);
    if (l->emit.status == ONV_OK) out = emit_node(l, node, cell_of(node), &weights);
    onv_vec_cleanup(&weights);
    return out;
}

/* --- Cells ------------------------------------------------------------------------------------- */

/* The product that gates are: its bias is the kernel's. */
static const onv_node *product_of(const onv_lowering *l, onv_value_id gates)
{
    const onv_node *node = onv_model_maker(l->emit.model, gates);
    return node != NULL && node->code == ONV_OP_Gemm ? node : NULL;
}

bool onv_feeds_cell(const onv_lowering *l, const onv_node *node)
{
    onv_node_id user = l->fusions->user[node->outputs[0].index];
    uint32_t fusion = onv_is_node(user) ? l->fusions->of_node[user.index] : 0;
    const onv_fusion *f = fusion != 0 ? &l->fusions->at[fusion - 1] : NULL;
    return f != NULL && f->kind == ONV_FUSION_CELL &&
           (product_of(l, f->x) == node || product_of(l, f->key) == node);
}

uint32_t onv_lower_cell(onv_lowering *l, const onv_fusion *f)
{
    enum { C = 2 };
    const onv_node *products[] = {product_of(l, f->x), product_of(l, f->key)};
    onv_cell cell = {.is_lstm = onv_is_value(f->state)};
    uint32_t after;
    onv_shape shape;
    cell.input = onv_amp_low(&l->emit, onv_value_tensor(l, f->x));
    cell.own = onv_amp_low(&l->emit, onv_value_tensor(l, f->key));
    cell.before = onv_amp_low(&l->emit, onv_value_tensor(l, f->value));
    for (int i = 0; i < 2; i++)
        cell.biases[i] = products[i] != NULL ? onv_amp_low(&l->emit, onv_node_in(l, products[i], C))
                                             : ONV_NO_TENSOR;
    if (cell.input == ONV_NO_TENSOR || !onv_value_shape(l, f->out, &shape)) return ONV_NO_TENSOR;
    uint32_t out = onv_emit_cell(&l->emit, &cell, &shape, &after);
    if (cell.is_lstm) onv_value_set(l, f->state, after);
    return out;
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
    for (size_t i = 0; i < l->emit.model->nodes.count && !l->emit.options->on_cpu; i++) {
        const onv_node *node = &l->emit.model->nodes.at[i];
        const char *class = onv_noted(node)->module_class;
        if (!ONV_IS_ANY(node, ONV_OP_Tanh, ONV_OP_Relu) || l->fusions->of_node[i] != 0) continue;
        uint64_t state = onv_tensor_at(&l->emit, onv_value_tensor(l, node->outputs[0])).bytes;
        if (strcmp(class, "torch.nn.modules.rnn.RNN") == 0)
            onv_say(&l->emit, ONV_SAID_steps, NULL, state, NULL);
        for (size_t k = 0; k < 2 && node->code == ONV_OP_Tanh; k++) {
            if (strcmp(class, cells[k].class) != 0) continue;
            bytes = onv_u64_plus(bytes, onv_u64_times(state, cells[k].halves) / 2);
            calls[k]++;
        }
    }
    uint64_t all = calls[0] / cells[0].tanhs + calls[1] / cells[1].tanhs + calls[1] % 2;
    if (!l->emit.options->inference)
        l->emit.said[ONV_SAID_cells].of = (onv_tally){.count = (uint32_t)all, .bytes = bytes};
}

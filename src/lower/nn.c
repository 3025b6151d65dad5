/* Layers: convolution, normalisation, pooling, dropout, what was fused, and the loss. */
#include <string.h>

#include "base/checked.h"
#include "emit/layers.h"
#include "kernels/cudnn.h"
#include "lower/lowering.h"

/* --- Normalisation ----------------------------------------------------------------------------- */

/* Of an input, a weight and a bias. */
static uint32_t recover_layer(onv_lowering *l, onv_aten_id op, uint32_t x, uint32_t w, uint32_t b,
                              onv_value_id out)
{
    onv_recover_tensor(l, "input", x);
    onv_recover_tensor(l, "weight", w);
    onv_recover_tensor(l, "bias", b);
    return onv_recover_call(l, op, out);
}

/* Whatever the export says, its mode is that of the run: the running statistics are read by nobody
 * else. */
uint32_t onv_lower_batch_norm(onv_lowering *l, const onv_node *node)
{
    uint32_t out =
        recover_layer(l, ONV_ATEN_batch_norm, onv_node_in(l, node, 0), onv_node_in(l, node, 1),
                      onv_node_in(l, node, 2), node->outputs[0]);
    /* num_batches_tracked, which exports leave out. */
    onv_storage_new(&l->emit, sizeof(int64_t), ONV_STORAGE_BUFFER, node->name);
    return out;
}

static bool has_folded_norm(const onv_emitter *e, const onv_node *node)
{
    return node->code == ONV_OP_Conv && node->n_inputs > 2 &&
           onv_is_computed_conv(e, node->inputs[1]) && onv_is_computed_conv(e, node->inputs[2]);
}

/* Where an operation had no bias, the bias of what was folded is called after its weight, and stands
 * for the norm's. */
bool onv_node_unfolds(const onv_emitter *e, const onv_node *node, uint32_t *bias,
                      uint32_t *norm_bias)
{
    static const char suffix[] = "_bias";
    *norm_bias = ONV_NO_TENSOR;
    if (e->options->as_exported || e->options->folded_norms) return false;
    if (e->options->inference && has_folded_norm(e, node)) {
        *norm_bias = *bias;
        *bias = ONV_NO_TENSOR;
        return true;
    }
    if (strstr(onv_noted(node)->source_op, "batch_norm") == NULL) return false;
    if (node->n_inputs < 3 || !onv_is_value(node->inputs[2])) return true;
    const char *weight_name = onv_model_value(e->model, node->inputs[1])->name;
    const char *bias_name = onv_model_value(e->model, node->inputs[2])->name;
    size_t length = strlen(weight_name);
    if (strncmp(bias_name, weight_name, length) == 0 && strcmp(bias_name + length, suffix) == 0) {
        *norm_bias = *bias;
        *bias = ONV_NO_TENSOR;
    }
    return true;
}

uint32_t onv_emit_unfolded_norm(onv_emitter *e, const onv_node *node, uint32_t x, uint32_t bias)
{
    onv_eager_tensor t = onv_tensor_at(e, x);
    if (x == ONV_NO_TENSOR || t.rank < 2) return x;
    /* The older exporter leaves the name of the convolution alone. */
    const char *module = onv_noted(node)->scope[0] != '\0' ? onv_noted(node)->scope : node->name;
    uint32_t w = onv_lost_parameter(e, ONV_FLOAT, t.dims[1], module, "weight");
    if (bias == ONV_NO_TENSOR) bias = onv_lost_parameter(e, ONV_FLOAT, t.dims[1], module, "bias");
    uint64_t channels = (uint64_t)t.dims[1];
    uint32_t out = onv_tensor_new(e, t.dtype, t.rank, t.dims, t.strides);
    for (uint32_t i = 0; i < 2; i++) /* running mean and variance */
        onv_storage_new(e, channels * sizeof(float), ONV_STORAGE_BUFFER, module);
    onv_storage_new(e, sizeof(int64_t), ONV_STORAGE_BUFFER, module);
    if (e->eager->restored_norms++ == 0) e->eager->first_restored = node;
    e->eager->restored_bytes = onv_u64_plus(e->eager->restored_bytes, t.bytes);
    e->part = module;
    onv_emit_norm(e, "batch_norm", x, w, bias, channels, true, out);
    e->part = NULL;
    return out;
}

/* Exporters write one without parameters with ones and zeros. */
static uint32_t parameter(onv_lowering *l, const onv_node *node, uint32_t k)
{
    uint32_t w = onv_node_in(l, node, k);
    bool is_one = w != ONV_NO_TENSOR && onv_storage_of(&l->emit, w)->kind == ONV_STORAGE_PARAMETER;
    return is_one ? w : ONV_NO_TENSOR;
}

uint32_t onv_lower_instance_norm(onv_lowering *l, const onv_node *node)
{
    return recover_layer(l, ONV_ATEN_instance_norm, onv_node_in(l, node, 0), parameter(l, node, 1),
                         parameter(l, node, 2), node->outputs[0]);
}

static uint32_t recover_group_norm(onv_lowering *l, uint32_t x, uint32_t w, uint32_t b,
                                   int64_t groups, onv_value_id result)
{
    onv_shape shape;
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    if (t.rank == 0 || !onv_value_shape(l, result, &shape)) return ONV_NO_TENSOR;
    /* A view before the call that the exporter joined with the one into groups. */
    if (shape.rank != t.rank) x = onv_emit_reshape(&l->emit, x, shape.rank, shape.dims);
    onv_recover_int(l, "num_groups", groups);
    return recover_layer(l, ONV_ATEN_group_norm, x, w, b, result);
}

uint32_t onv_lower_group_norm(onv_lowering *l, const onv_node *node)
{
    return recover_group_norm(l, onv_node_in(l, node, 0), onv_node_in(l, node, 1),
                              onv_node_in(l, node, 2), onv_node_int(node, "num_groups", 1),
                              node->outputs[0]);
}

/* Over the dims from `axis` on. */
static uint32_t recover_layer_norm(onv_lowering *l, uint32_t x, uint32_t w, uint32_t b,
                                   int64_t axis, bool centres, onv_value_id result)
{
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    if (x == ONV_NO_TENSOR) return x;
    if (axis < 0) axis += t.rank;
    if (axis < 0 || axis > (int64_t)t.rank) axis = 0;
    onv_recover_ints(l, "normalized_shape", t.dims + axis, t.rank - (uint32_t)axis);
    onv_aten_id name = centres ? ONV_ATEN_layer_norm : ONV_ATEN_rms_norm;
    return recover_layer(l, name, x, w, b, result);
}

/* And RMSNormalization, which has no third operand. */
uint32_t onv_lower_layer_norm(onv_lowering *l, const onv_node *node)
{
    bool centres = node->code == ONV_OP_LayerNormalization;
    return recover_layer_norm(l, onv_node_in(l, node, 0), onv_node_in(l, node, 1),
                              onv_node_in(l, node, 2), onv_node_int(node, "axis", -1), centres,
                              node->outputs[0]);
}

/* --- Pooling, dropout -------------------------------------------------------------------------- */

uint32_t onv_lower_max_pool(onv_lowering *l, const onv_node *node)
{
    uint32_t x = onv_node_in(l, node, 0);
    bool has_indices = node->n_outputs > 1 && onv_is_value(node->outputs[1]);
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    l->recovery.has_second = has_indices;
    if (onv_tensor_is_channels_last(&t)) l->recovery.like = x;
    onv_aten_id op = t.rank == 5 ? ONV_ATEN_max_pool3d : ONV_ATEN_max_pool2d;
    uint32_t out = onv_recover_unary(l, op, x, node->outputs[0]);
    if (has_indices) onv_node_set(l, node, 1, l->recovery.second);
    return out;
}

uint32_t onv_lower_dropout(onv_lowering *l, const onv_node *node)
{
    uint32_t x = onv_node_in(l, node, 0);
    bool is_live = node->traits.view_of == 0 ||
                   l->fusions->attention[node - l->emit.model->nodes.at].live_dropout;
    if (!is_live || l->emit.options->inference || onv_recurrent_dropout(l, node, x)) return x;
    l->recovery.in_place = onv_is_inplace(l, node, false) && !l->emit.options->no_inplace &&
                           onv_may_overwrite(l, node, 0);
    return onv_recover_unary(l, ONV_ATEN_dropout, x, node->outputs[0]);
}

/* --- What was fused ---------------------------------------------------------------------------- */

/* Without notes of its call nothing says that it is one function, even in a module of its own: as a formula it would keep
 * so many tensors more. */
static void count_formula(onv_lowering *l, const onv_fusion *f, uint32_t x, uint64_t more,
                          onv_said row)
{
    const onv_node *node = onv_model_node(l->emit.model, f->last);
    if (x == ONV_NO_TENSOR || !onv_tensor_needs_grad(&l->emit, x) || onv_node_is_noted(node))
        return;
    onv_say(&l->emit, row, NULL, onv_u64_times(onv_tensor_at(&l->emit, x).bytes, more), NULL);
}

/* x times a function of x, of which a module may overwrite x. */
static bool is_gate(onv_aten_id call)
{
    return call == ONV_ATEN_silu || call == ONV_ATEN_hardswish || call == ONV_ATEN_mish;
}

/* What notes, or a form, tell to be one call of up to three tensors. */
static uint32_t recover_fused(onv_lowering *l, const onv_fusion *f)
{
    onv_aten_id call = onv_aten_named(f->name);
    const onv_node *last = onv_model_node(l->emit.model, f->last);
    bool in_place = is_gate(call) && onv_overwrites(l, last, f->x, 2);
    const onv_value_id operands[3] = {f->x, f->key, f->value};
    uint32_t in[3];
    for (uint32_t k = 0; k < 3; k++) in[k] = onv_value_tensor(l, operands[k]);
    onv_eager_tensor t = onv_tensor_at(&l->emit, in[0]);
    if (in[0] == ONV_NO_TENSOR) return in[0];
    if (call == ONV_ATEN_gelu) count_formula(l, f, in[0], (uint64_t)f->groups, ONV_SAID_gelus);
    if (call == ONV_ATEN_silu) count_formula(l, f, in[0], 1, ONV_SAID_gates);
    for (uint32_t k = 0; k < 3; k++) onv_recover_tensor(l, "", in[k]);
    if (call == ONV_ATEN_bce_with_logits_weighted) {
        call = ONV_ATEN_binary_cross_entropy_with_logits;
        onv_recover_real(l, "pos_weight",
                         1); /* of the exporter's own form, which has no tensor of it */
    }
    if (call ==
        ONV_ATEN_linalg_vector_norm) /* of 1 and 2 it is one node, of infinity another row */
        onv_recover_real(l, "ord", 3);
    if (call == ONV_ATEN_roll)
        onv_recover_ints(l, "dims", t.dims, f->groups < t.rank ? (uint32_t)f->groups : t.rank);
    l->recovery.in_place = in_place;
    return onv_recover_call(l, call, f->out);
}

static uint32_t unpack(onv_lowering *l, const onv_fusion *f, uint32_t x)
{
    onv_shape shape;
    if (!onv_value_shape(l, f->out, &shape)) return ONV_NO_TENSOR;
    x = onv_emit_reshape(&l->emit, x, shape.rank, shape.dims);
    return onv_emit_contiguous(&l->emit, x);
}

static uint32_t lower_fused(onv_lowering *l, const onv_fusion *f)
{
    const uint32_t x = onv_value_tensor(l, f->x), w = onv_value_tensor(l, f->weight),
                   b = onv_value_tensor(l, f->bias);
    switch (f->kind) {
    case ONV_FUSION_LINEAR: return onv_emit_linear(&l->emit, x, w, b);
    case ONV_FUSION_LAYER_NORM: return recover_layer_norm(l, x, w, b, -1, true, f->out);
    case ONV_FUSION_GROUP_NORM: return recover_group_norm(l, x, w, b, f->groups, f->out);
    case ONV_FUSION_RMS_NORM: return recover_layer_norm(l, x, w, b, f->groups, false, f->out);
    case ONV_FUSION_POINTWISE: return recover_fused(l, f);
    case ONV_FUSION_ADAPTIVE_POOL:
        return onv_recover_unary(l, ONV_ATEN_adaptive_avg_pool2d, x, f->out);
    case ONV_FUSION_ATTENTION: return onv_lower_attention(l, f);
    case ONV_FUSION_ENCODER_LAYER: return onv_lower_encoder_layer(l, f);
    case ONV_FUSION_RECURRENT:
        return onv_lower_recurrent(l, onv_model_node(l->emit.model, f->last));
    case ONV_FUSION_CELL: return onv_lower_cell(l, f);
    case ONV_FUSION_PACKED: return unpack(l, f, x);
    }
    return ONV_NO_TENSOR;
}

void onv_lower_fusion(onv_lowering *l, const onv_fusion *f)
{
    uint32_t out = lower_fused(l, f);
    if (out != ONV_NO_TENSOR) onv_value_set(l, f->out, out);
}

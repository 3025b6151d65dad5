/* Operators that the table's traits describe. */
#include <string.h>

#include "lower/lowering.h"
#include "ops/op.h"

/* Rows that say all of it: places of GatherND are one tensor, those of an index several. */
static bool is_call(const onv_node *node, onv_aten_id aten)
{
    return aten != ONV_ATEN_NONE && aten != ONV_ATEN_index && node->n_outputs == 1 &&
           onv_aten_ops[aten].form != ONV_ATEN_SHARED;
}

static uint32_t recover(onv_lowering *l, const onv_node *node, onv_aten_id aten)
{
    uint32_t x = onv_node_in(l, node, 0);
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    bool is_image = aten == ONV_ATEN_upsample_bilinear2d || aten == ONV_ATEN_avg_pool2d;
    const onv_attr *mode = onv_node_attr(node, "mode");
    bool repeats = aten == ONV_ATEN_pad && mode != NULL && mode->kind == ONV_ATTR_STRING &&
                   (strcmp(mode->s, "reflect") == 0 || strcmp(mode->s, "edge") == 0);
    for (uint32_t k = 0; k < node->n_inputs; k++)
        onv_recover_tensor(l, "", onv_node_in(l, node, k));
    if (repeats) onv_recover_text(l, "mode", mode->s);
    if (is_image && onv_tensor_is_channels_last(&t)) l->recovery.like = x;
    return onv_recover_call(l, aten, node->outputs[0]);
}

uint32_t onv_lower_by_traits(onv_lowering *l, const onv_node *node)
{
    /* torch.bernoulli has a gradient, of zeros. */
    bool is_random = node->op != NULL && (node->op->flags & ONV_OP_RANDOM) != 0 &&
                     node->code != ONV_OP_Bernoulli;
    uint32_t first = onv_node_in(l, node, 0);
    uint8_t dtype = onv_promoted(l, node);
    onv_aten_id aten = (onv_aten_id)onv_lower_rows[node->code].traits;
    if (is_call(node, aten) && first != ONV_NO_TENSOR && !is_random) return recover(l, node, aten);
    uint32_t out = onv_node_new(l, node, 0, dtype);
    for (uint32_t k = 0; k < node->n_inputs; k++) onv_node_in(l, node, k); /* which may make it */
    if (aten != ONV_ATEN_NONE)
        onv_emit_begin_op(&l->emit, aten);
    else
        onv_emit_begin(&l->emit, node->op_type);
    onv_dim macs = onv_dim_substitute_bounds(&l->emit.model->dims, node->macs);
    if (onv_dim_is_const(macs) && macs.raw > 0) l->emit.op.macs = (uint64_t)macs.raw;
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        uint32_t x = onv_node_in(l, node, k);
        bool has_grad = onv_tensor_is_float(&l->emit, x) && !is_random;
        onv_emit_in(&l->emit, x, has_grad ? ONV_GRAD_NEW : ONV_GRAD_NONE);
        if (k < 32 && (node->traits.save_in & ONV_BIT(k)) != 0) onv_emit_save(&l->emit, x);
    }
    for (uint32_t k = 0; k < node->n_outputs; k++) {
        uint32_t made = k == 0 ? out : onv_node_new(l, node, k, dtype);
        onv_emit_out(&l->emit, made);
        if (k > 0) onv_node_set(l, node, k, made);
        if (k < 32 && (node->traits.save_out & ONV_BIT(k)) != 0) onv_emit_save(&l->emit, made);
    }
    onv_emit_end(&l->emit);
    return out;
}

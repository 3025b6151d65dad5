/* Rewrites of ONNX Runtime that are not modelled: whether one would apply, told by the operators around a
 * node. Nothing is rewritten. */
#include "rewrite/fuse.h"
#include "rewrite/kernels.h"
#include "rewrite/rules.h"

/* --- Quantized graphs ---------------------------------------------------------------------------- */

static bool is_quantized(const onv_edit *e, onv_node_id node)
{
    return onv_edit_is(e, onv_edit_only_user(e, onv_edit_out(e, node, 0)), ONV_OP_QuantizeLinear);
}

/* What moves elements alone has a quantized neighbour on one side and none on the other. */
bool onv_would_propagate_qdq(onv_edit *e, onv_node_id node)
{
    return onv_is_node(onv_fuse_dequantize(e, node, 0)) != is_quantized(e, node);
}

static bool is_of_4_bits(const onv_edit *e, onv_value_id value)
{
    const onv_type *type = onv_edit_seen(e, value);
    return type->dtype == ONV_INT4 || type->dtype == ONV_UINT4;
}

/* A product with a weight of 4 bits in blocks becomes MatMulNBits. */
bool onv_would_select_qdq(onv_edit *e, onv_node_id matmul)
{
    onv_node_id weight = onv_fuse_dequantize(e, matmul, 1);
    if (!onv_is_node(weight) || onv_edit_int(e, weight, "block_size", 0) < 16) return false;
    onv_value_id packed = onv_edit_in(e, weight, 0);
    return is_of_4_bits(e, packed) && onv_edit_is_constant(e, packed);
}

/* --- Others -------------------------------------------------------------------------------------- */

/* A bias in front of what drops elements in training. */
bool onv_would_fuse_bias_dropout(onv_edit *e, onv_node_id dropout)
{
    onv_form_match m;
    return onv_fuse_form(e, dropout, "^Dropout(Add(xy))", &m) &&
           (onv_fuse_rank(e, onv_form_value(&m, 'x')) == 1 ||
            onv_fuse_rank(e, onv_form_value(&m, 'y')) == 1);
}

/* Four slices of every other row and column, one after the other along the channels. */
bool onv_would_fuse_space_to_depth(onv_edit *e, onv_node_id concat)
{
    const onv_node *node = onv_edit_node_at(e, concat);
    if (node->n_inputs != 4 || onv_edit_int(e, concat, "axis", 0) != 1) return false;
    onv_value_id source = ONV_NO_VALUE;
    for (uint32_t k = 0; k < 4; k++) {
        onv_node_id slice = onv_edit_in_node(e, concat, k);
        if (!onv_edit_is(e, slice, ONV_OP_Slice)) return false;
        onv_node_id outer = onv_edit_in_node(e, slice, 0);
        if (onv_edit_is(e, outer, ONV_OP_Slice)) slice = outer;
        onv_value_id in = onv_edit_in(e, slice, 0);
        const onv_scalar *steps;
        uint32_t n_steps;
        if (!onv_edit_ints(e, onv_edit_in(e, slice, 4), &steps, &n_steps) || n_steps == 0)
            return false;
        if (k > 0 && in.index != source.index) return false;
        source = in;
    }
    return true;
}

/* Half precision that no kernel of the node takes: it gets casts around it. */
bool onv_would_cast_float16(onv_edit *e, onv_node_id node)
{
    const onv_node *n = onv_edit_node_at(e, node);
    if (n->provider != ONV_PROVIDER_CPU || onv_kernel_find(e, node) != NULL) return false;
    for (uint32_t k = 0; k < n->n_inputs; k++)
        if (onv_edit_seen(e, n->inputs[k])->dtype == ONV_FLOAT16) return true;
    return false;
}

/* Constant folding: what is computed from constants alone becomes a constant. Its contents are known where
 * inference followed them; of larger ones only the size counts here. */
#include <string.h>

#include "rewrite/rules.h"
#include "rewrite/seen.h"

/* The shape of what the runtime knows the shape of. */
static bool is_known_shape(const onv_edit *e, onv_node_id node)
{
    const onv_type *seen = onv_edit_seen(e, onv_edit_in(e, node, 0));
    return onv_edit_is(e, node, ONV_OP_Shape) && seen->kind == ONV_TYPE_TENSOR && seen->rank >= 0 &&
           onv_type_is_static(seen);
}

static bool has_constant_inputs(const onv_edit *e, onv_node_id id)
{
    const onv_node *node = onv_edit_node_at(e, id);
    for (uint32_t k = 0; k < node->n_inputs; k++)
        if (onv_is_value(node->inputs[k]) && !onv_edit_is_constant(e, node->inputs[k]))
            return false;
    return true;
}

static bool has_sized_outputs(const onv_edit *e, onv_node_id id)
{
    const onv_node *node = onv_edit_node_at(e, id);
    for (uint32_t k = 0; k < node->n_outputs; k++) {
        if (!onv_is_value(node->outputs[k])) continue;
        const onv_value *value = onv_edit_value_at(e, node->outputs[k]);
        if (value->type.kind != ONV_TYPE_TENSOR || value->bound_used ||
            !onv_type_is_static(&value->type) || value->type.dtype == ONV_UNDEFINED)
            return false;
    }
    return true;
}

/* The CPU computes with float16 and bfloat16 hardly anywhere: it moves them. */
static bool has_cpu_kernel(const onv_edit *e, onv_node_id id)
{
    const onv_node *node = onv_edit_node_at(e, id);
    bool is_half = false;
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        if (!onv_is_value(node->inputs[k])) continue;
        onv_dtype dtype = onv_edit_dtype(e, node->inputs[k]);
        is_half |= dtype == ONV_FLOAT16 || dtype == ONV_BFLOAT16;
    }
    return !is_half ||
           ONV_IS_ANY(node, ONV_OP_Cast, ONV_OP_Compress, ONV_OP_Concat, ONV_OP_ConstantOfShape,
                      ONV_OP_Expand, ONV_OP_Flatten, ONV_OP_Gather, ONV_OP_GatherElements,
                      ONV_OP_GatherND, ONV_OP_Identity, ONV_OP_Reshape, ONV_OP_ScatterElements,
                      ONV_OP_ScatterND, ONV_OP_Slice, ONV_OP_Split, ONV_OP_Squeeze,
                      ONV_OP_Transpose, ONV_OP_Unsqueeze, ONV_OP_Tile, ONV_OP_Clip);
}

bool onv_edit_can_fold(const onv_edit *e, onv_node_id id)
{
    const onv_node *node = onv_edit_node_at(e, id);
    if (node->op == NULL || (node->op->flags & (ONV_OP_SUBGRAPH | ONV_OP_RANDOM)) != 0)
        return false;
    if (!has_sized_outputs(e, id)) return false;
    if (is_known_shape(e, id)) return true;
    /* The CPU folds; before nodes are assigned to it, ONNX's operators alone. */
    return node->domain[0] == '\0' && has_constant_inputs(e, id) && has_cpu_kernel(e, id) &&
           node->code != ONV_OP_DequantizeLinear;
}

bool onv_rule_constant_folding(onv_edit *e, onv_node_id id)
{
    if (!e->is_seen) onv_seen_node(e, id);
    if (!onv_edit_can_fold(e, id)) return false;
    const onv_node *node = onv_edit_node_at(e, id);
    for (uint32_t k = 0; k < node->n_outputs; k++)
        if (onv_is_value(node->outputs[k])) onv_edit_fold(e, node->outputs[k]);
    onv_edit_remove_with_inputs(e, id);
    return true;
}

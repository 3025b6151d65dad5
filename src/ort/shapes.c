/* Which shapes ONNX Runtime knows when it plans buffers.
 *
 * Its shape inference carries shapes from node to node but follows few numbers: a Reshape to a shape
 * that is put together with Concat has dims it does not know, and so has what comes after, up to an
 * operator that pins them again or a value whose shape the file states. Measured, version 1.31, with the optimizer off; where it is on and
 * every dim of the inputs is fixed, constant folding removes such computations and more is known.
 * Weights count as known. */
#include <string.h>

#include "base/fail.h"
#include "ops/op.h"
#include "ort/ort.h"

typedef struct shapes {
    bool *is_known;     /* by value */
    bool *has_contents; /* by value: its elements are known, too */
} shapes;

/* Inputs whose contents decide the shape of the output. */
static uint32_t shaping_inputs(const onv_node *node)
{
    static const uint8_t shaped[ONV_N_OP_NAMES] = {
        [ONV_OP_Reshape] = ONV_BIT(1),
        [ONV_OP_Expand] = ONV_BIT(1),
        [ONV_OP_ConstantOfShape] = ONV_BIT(0),
        [ONV_OP_Range] = ONV_BIT(0) | ONV_BIT(1) | ONV_BIT(2),
        [ONV_OP_Slice] = ONV_BIT(1) | ONV_BIT(2) | ONV_BIT(3) | ONV_BIT(4),
        [ONV_OP_Tile] = ONV_BIT(1),
        [ONV_OP_Resize] = ONV_BIT(1) | ONV_BIT(2) | ONV_BIT(3),
        [ONV_OP_Upsample] = ONV_BIT(1),
        [ONV_OP_Pad] = ONV_BIT(1) | ONV_BIT(3),
        [ONV_OP_Squeeze] = ONV_BIT(1),
        [ONV_OP_Unsqueeze] = ONV_BIT(1),
        [ONV_OP_Split] = ONV_BIT(1),
        [ONV_OP_OneHot] = ONV_BIT(1),
        [ONV_OP_TopK] = ONV_BIT(1),
        [ONV_OP_CenterCropPad] = ONV_BIT(1),
        [ONV_OP_MaxUnpool] = ONV_BIT(2),
        [ONV_OP_AffineGrid] = ONV_BIT(1),
    };
    if (strncmp(node->op_type, "Reduce", 6) == 0) return ONV_BIT(1); /* axes, since 13 or 18 */
    return shaped[node->code];
}

/* A broadcast takes a dim that is not 1 from the operand that knows it. */
static bool is_pinned(const onv_model *model, const onv_node *node, const onv_type *out, uint32_t k)
{
    const onv_type *in = &onv_model_value(model, node->inputs[k])->type;
    if (node->traits.inplace == 0 || in->rank != out->rank || in->rank <= 0) return false;
    for (int i = 0; i < in->rank; i++)
        if (onv_dim_is(in->dims[i], 1) || !onv_dim_same(in->dims[i], out->dims[i])) return false;
    return true;
}

/* A Reshape to constant dims of which none is copied or left to be worked out. */
static bool is_reshape_to_numbers(const onv_model *model, const onv_node *node)
{
    if (node->code != ONV_OP_Reshape || node->n_inputs < 2) return false;
    const onv_known *known = onv_model_value(model, node->inputs[1])->known;
    if (known == NULL) return false;
    for (uint32_t i = 0; i < known->count; i++)
        if (!onv_dim_is_const(known->elems[i].i) || known->elems[i].i.raw <= 0) return false;
    return true;
}

/* The file states the shape: of a graph output, or as value_info. */
static bool is_declared(const onv_value *value)
{
    const onv_type *type = value->declared;
    if (type == NULL || type->kind != ONV_TYPE_TENSOR || type->rank < 0) return false;
    for (int i = 0; i < type->rank; i++)
        if (!onv_dim_is_known(type->dims[i])) return false;
    return true;
}

/* Which numbers are followed: what Shape says of a known shape, and what these make of it. */
static bool knows_contents(const onv_model *model, const onv_node *node, const shapes *s)
{
    if (node->n_inputs == 0 || !onv_is_value(node->inputs[0])) return false;
    if (node->code == ONV_OP_Shape || node->code == ONV_OP_Size)
        return s->is_known[node->inputs[0].index];
    bool listed = ONV_IS_ANY(node, ONV_OP_Gather, ONV_OP_Squeeze, ONV_OP_Unsqueeze, ONV_OP_Add,
                             ONV_OP_Sub, ONV_OP_Mul, ONV_OP_Div);
    for (uint32_t k = 0; k < node->n_inputs && listed; k++)
        listed = onv_is_value(node->inputs[k]) &&
                 (s->has_contents[node->inputs[k].index] ||
                  onv_value_is_weight(onv_model_value(model, node->inputs[k])));
    return listed;
}

static bool knows_output(const onv_model *model, const onv_node *node, const shapes *s)
{
    const uint32_t barred = ONV_OP_SUBGRAPH | ONV_OP_DATA_DEPENDENT;
    if (node->op == NULL || (node->op->flags & barred) != 0) return false;
    if (node->code == ONV_OP_Shape || node->code == ONV_OP_Size) return true;
    const onv_type *out = &onv_model_value(model, node->outputs[0])->type;
    if (out->kind == ONV_TYPE_TENSOR && out->rank == 0) return true; /* ranks are followed */
    uint32_t shaping = shaping_inputs(node);
    bool known = true, pinned = false;
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        if (!onv_is_value(node->inputs[k])) continue;
        bool is_weight = onv_value_is_weight(onv_model_value(model, node->inputs[k]));
        bool is_shape = k < 32 && (shaping & ONV_BIT(k)) != 0;
        if (is_shape && !is_weight && !s->has_contents[node->inputs[k].index]) return false;
        bool in_known = is_weight || s->is_known[node->inputs[k].index];
        known &= in_known;
        pinned |= in_known && is_pinned(model, node, out, k);
    }
    return known || pinned || is_reshape_to_numbers(model, node);
}

onv_status onv_ort_known_shapes(onv_model *model, const onv_live *live, bool **is_known,
                                onv_error *err)
{
    shapes s = {.is_known = ONV_ARENA_ARRAY(&model->arena, bool, model->values.count),
                .has_contents = ONV_ARENA_ARRAY(&model->arena, bool, model->values.count)};
    *is_known = s.is_known;
    if (s.is_known == NULL || s.has_contents == NULL) return onv_fail_memory(err);
    const onv_graph *top = onv_model_graph(model, (onv_graph_id){0});
    for (uint32_t i = 0; i < top->n_inputs; i++) s.is_known[top->inputs[i].index] = true;
    for (uint32_t step = 0; step < live->timeline.steps.count; step++) {
        const onv_node *node = onv_model_node(model, live->timeline.steps.at[step].node);
        if (node->n_outputs == 0 || !onv_is_value(node->outputs[0])) continue;
        bool known = knows_output(model, node, &s);
        for (uint32_t k = 0; k < node->n_outputs; k++)
            if (onv_is_value(node->outputs[k]))
                s.is_known[node->outputs[k].index] =
                    known || is_declared(onv_model_value(model, node->outputs[k]));
        s.has_contents[node->outputs[0].index] = known && knows_contents(model, node, &s);
    }
    return ONV_OK;
}

/* Reciprocals, and quotients that the exporter writes as one. */
#include "lower/lowering.h"

/* Does a product by a number of the file alone read the value? */
static bool is_multiplied(const onv_lowering *l, onv_value_id value)
{
    onv_node_id user = l->fusions->user[value.index];
    if (!onv_is_node(user) || l->fusions->n_uses[value.index] != 1) return false;
    const onv_node *node = onv_model_node(l->emit.model, user);
    if (node->code != ONV_OP_Mul || !onv_node_is_aten(node, "mul")) return false;
    onv_value_id other = node->inputs[node->inputs[0].index == value.index];
    const onv_value *number = onv_is_value(other) ? onv_model_value(l->emit.model, other) : NULL;
    return number != NULL && number->tensor != NULL && number->tensor->elems == 1;
}

/* PyTorch multiplies the reciprocal by the number. */
static uint32_t multiplied(onv_lowering *l, const onv_node *node, uint32_t inverse)
{
    return onv_recover_unary(l, ONV_ATEN_mul, inverse, node->outputs[0]);
}

/* `1 / x`, of which the exporter leaves out the number. */
uint32_t onv_lower_reciprocal(onv_lowering *l, const onv_node *node)
{
    uint32_t inverse =
        onv_recover_unary(l, ONV_ATEN_reciprocal, onv_node_in(l, node, 0), node->outputs[0]);
    bool is_whole = is_multiplied(l, node->outputs[0]);
    bool calls =
        onv_noted(node)->in_place == ONV_IN_PLACE_NO || onv_noted(node)->statements[0] == '\0';
    if (inverse == ONV_NO_TENSOR || is_whole || calls || !onv_node_is_aten(node, "reciprocal"))
        return inverse;
    uint32_t out = multiplied(l, node, inverse);
    bool is_told = onv_noted(node)->in_place != ONV_IN_PLACE_UNTOLD; /* by its line */
    if (!is_told && onv_tensor_needs_grad(&l->emit, out))
        onv_say(&l->emit, ONV_SAID_quotients, NULL, onv_tensor_at(&l->emit, out).bytes, NULL);
    return out;
}

uint32_t onv_lower_quotient_of_number(onv_lowering *l, const onv_node *node)
{
    uint32_t inverse =
        onv_recover_unary(l, ONV_ATEN_reciprocal, onv_node_in(l, node, 1), node->outputs[0]);
    return multiplied(l, node, inverse);
}

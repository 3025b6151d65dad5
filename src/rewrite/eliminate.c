/* Nodes that do nothing. */
#include "rewrite/fuse.h"

#include <string.h>

/* --- What may go ------------------------------------------------------------------------------- */

bool onv_edit_can_remove(const onv_edit *e, onv_node_id node)
{
    const onv_node *at = onv_edit_node_at(e, node);
    uint32_t n_made = 0; /* inputs that other nodes make */
    if (onv_edit_makes_result(e, node)) return false;
    for (uint32_t k = 1; k < at->n_outputs; k++)
        if (onv_edit_n_uses(e, at->outputs[k]) > 0) return false;
    for (uint32_t k = 0; k < at->n_inputs; k++) n_made += onv_is_node(onv_edit_in_node(e, node, k));
    return n_made == 1 || at->n_inputs == 1;
}

/* What follows reads the one input that a node makes, or the only one. */
bool onv_edit_remove_single(onv_edit *e, onv_node_id node)
{
    uint32_t k = 0;
    if (!onv_edit_can_remove(e, node)) return false;
    while (onv_edit_node_at(e, node)->n_inputs > 1 && !onv_is_node(onv_edit_in_node(e, node, k)))
        k++;
    return onv_edit_bypass(e, node, k);
}

/* --- Rules ------------------------------------------------------------------------------------- */

/* One that makes a result goes where what it reads is read by nobody else. */
bool onv_rule_eliminate_identity(onv_edit *e, onv_node_id node)
{
    if (onv_edit_remove_single(e, node)) return true;
    onv_value_id in = onv_edit_in(e, node, 0), out = onv_edit_out(e, node, 0);
    bool is_last = onv_edit_is_result(e, out) && onv_edit_n_uses(e, out) == 0;
    return is_last && onv_edit_n_uses(e, in) == 1 && onv_edit_bypass(e, node, 0);
}

static bool is_from_start_to_end(onv_edit *e, onv_node_id node)
{
    const onv_scalar *starts, *ends, *steps, *axes;
    uint32_t n_starts, n_ends, n;
    if (onv_edit_node_at(e, node)->n_inputs < 3) return false;
    if (!onv_edit_ints(e, onv_edit_in(e, node, 1), &starts, &n_starts) ||
        !onv_edit_ints(e, onv_edit_in(e, node, 2), &ends, &n_ends) || n_starts == 0 ||
        n_starts != n_ends)
        return false;
    onv_value_id axes_in = onv_edit_in(e, node, 3), steps_in = onv_edit_in(e, node, 4);
    if (onv_is_value(axes_in) && (!onv_edit_ints(e, axes_in, &axes, &n) || n != n_starts))
        return false;
    if (onv_is_value(steps_in)) {
        if (!onv_edit_ints(e, steps_in, &steps, &n) || n != n_starts) return false;
        for (uint32_t i = 0; i < n; i++)
            if (!onv_dim_is(steps[i].i, 1)) return false;
    }
    for (uint32_t i = 0; i < n_starts; i++)
        if (!onv_dim_is(starts[i].i, 0) || ends[i].i.raw != ONV_DIM_INFINITY_RAW) return false;
    return true;
}

bool onv_rule_eliminate_slice(onv_edit *e, onv_node_id node)
{
    return is_from_start_to_end(e, node) && onv_edit_remove_single(e, node);
}

/* Of a constant: a constant of another shape. */
bool onv_rule_eliminate_unsqueeze(onv_edit *e, onv_node_id node)
{
    onv_value_id axes = onv_edit_in(e, node, 1), out = onv_edit_out(e, node, 0);
    if (!onv_edit_is_constant(e, onv_edit_in(e, node, 0)) || onv_edit_is_result(e, out))
        return false;
    if (onv_is_value(axes) && !onv_edit_is_constant(e, axes)) return false;
    if (!onv_edit_can_fold(e, node)) return false;
    onv_edit_fold(e, out);
    onv_edit_remove(e, node);
    return true;
}

bool onv_rule_eliminate_expand(onv_edit *e, onv_node_id node)
{
    const onv_type *in = onv_edit_seen(e, onv_edit_in(e, node, 0));
    const onv_scalar *shape;
    uint32_t n;
    if (!onv_type_has_rank(in)) return false;
    if (!onv_edit_ints(e, onv_edit_in(e, node, 1), &shape, &n) || n == 0) return false;
    if (in->rank < (int)n) return false;
    for (uint32_t i = 1; i <= n; i++) {
        int64_t to = shape[n - i].i.raw;
        if (to > 1 && !onv_dim_is(in->dims[in->rank - (int)i], to)) return false;
    }
    return onv_edit_remove_single(e, node);
}

bool onv_rule_eliminate_cast(onv_edit *e, onv_node_id node)
{
    const onv_type *in = onv_edit_seen(e, onv_edit_in(e, node, 0));
    if (in->kind != ONV_TYPE_TENSOR || in->dtype == ONV_UNDEFINED) return false;
    return onv_edit_int(e, node, "to", -1) == in->dtype && onv_edit_remove_single(e, node);
}

/* A Cast of which nothing but the shape is asked. */
bool onv_rule_eliminate_before_shape(onv_edit *e, onv_node_id node)
{
    onv_value_id out = onv_edit_out(e, node, 0);
    if (!onv_is_node(onv_edit_in_node(e, node, 0)) || onv_edit_n_uses(e, out) == 0) return false;
    ONV_EACH_USE(e, out, u)
    if (onv_edit_node_at(e, u->node)->code != ONV_OP_Shape) return false;
    return onv_edit_remove_single(e, node);
}

/* x + 0, 0 + x, x - 0, x * 1, 1 * x, x / 1 */
bool onv_rule_eliminate_noop(onv_edit *e, onv_node_id node)
{
    uint16_t op = onv_edit_node_at(e, node)->code;
    bool is_sum = op == ONV_OP_Add || op == ONV_OP_Sub;
    bool is_ordered = op == ONV_OP_Sub || op == ONV_OP_Div;
    double number;
    if (onv_edit_node_at(e, node)->n_inputs != 2) return false;
    bool constant0 = onv_edit_is_constant(e, onv_edit_in(e, node, 0));
    bool constant1 = onv_edit_is_constant(e, onv_edit_in(e, node, 1));
    if (constant0 == constant1 || (is_ordered && !constant1)) return false;
    onv_value_id constant = onv_edit_in(e, node, constant0 ? 0 : 1);
    const onv_type *other = onv_edit_seen(e, onv_edit_in(e, node, constant0 ? 1 : 0));
    if (!onv_type_has_rank(other) || onv_edit_seen(e, constant)->rank > other->rank) return false;
    if (!onv_edit_scalar(e, constant, &number) || number != (is_sum ? 0 : 1)) return false;
    return onv_edit_remove_single(e, node);
}

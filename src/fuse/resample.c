/* Resampling that the newer exporter takes apart: interpolation along one dim, and to the nearest place as
 * "nearest-exact" has it. Each is one kernel of PyTorch. */
#include <string.h>

#include "fuse/find.h"

static bool is_taken(const onv_finder *s, const onv_group *g, const onv_node *node)
{
    uint32_t index = onv_find_id(s, node).index;
    for (uint32_t i = 0; i < g->count; i++)
        if (g->nodes[i].index == index) return true;
    return false;
}

static bool take(onv_finder *s, onv_group *g, const onv_node *node)
{
    return node != NULL && (is_taken(s, g, node) || onv_find_take(s, g, node));
}

static const onv_node *producer_of(const onv_finder *s, onv_value_id value)
{
    if (!onv_is_value(value)) return NULL;
    return onv_find_node(s, onv_model_value(s->model, value)->producer);
}

/* What the places are picked of; no value where the nodes are not free. Calls of one tensor share its transposition. */
static onv_value_id take_index(onv_finder *s, onv_group *g, onv_value_id value, const char *call)
{
    const onv_node *node = producer_of(s, value);
    bool any = false;
    for (; node != NULL && onv_node_is_aten(node, call); node = producer_of(s, value)) {
        if (!take(s, g, node)) return ONV_NO_VALUE;
        any = true;
        value = node->inputs[0];
    }
    return any ? value : ONV_NO_VALUE;
}

/* --- Interpolation ----------------------------------------------------------------------------- */

static bool is_index(const onv_node *node)
{
    return onv_node_is_aten(node, "_unsafe_index");
}

/* before + (after - before) * weights, whose weights the exporter computed. */
static const onv_node *take_mix(onv_finder *s, onv_group *g, onv_value_id before,
                                onv_value_id *after)
{
    const onv_node *sub = onv_find_node(s, s->f->user[before.index]);
    if (s->f->n_uses[before.index] != 2 || !onv_find_is_op(sub, "Sub") ||
        !onv_find_same(sub->inputs[1], before))
        return NULL;
    const onv_node *mul = onv_find_reader(s, sub->outputs[0], "Mul");
    const onv_node *add = mul != NULL ? onv_find_reader(s, mul->outputs[0], "Add") : NULL;
    if (add == NULL || !onv_find_same(onv_find_other(add, mul->outputs[0]), before)) return NULL;
    *after = sub->inputs[0];
    return take(s, g, sub) && take(s, g, mul) && take(s, g, add) ? add : NULL;
}

/* From the last node of the first index on. */
void onv_find_upsample(onv_finder *s, const onv_node *node)
{
    onv_group g = {0};
    if (!is_index(node) || node->n_outputs == 0 || !onv_is_value(node->outputs[0])) return;
    const onv_node *reader = onv_find_node(s, s->f->user[node->outputs[0].index]);
    if (reader != NULL && is_index(reader)) return; /* a later node is the last one */
    onv_value_id after = ONV_NO_VALUE, x = take_index(s, &g, node->outputs[0], "_unsafe_index");
    if (!onv_is_value(x)) return;
    const onv_node *last = take_mix(s, &g, node->outputs[0], &after);
    if (last != NULL && !onv_find_same(take_index(s, &g, after, "_unsafe_index"), x)) return;
    if (last == NULL) last = node;
    onv_fusion fusion = onv_find_unary(s, ONV_FUSION_POINTWISE, x, last);
    fusion.name = "upsample";
    fusion.saves = ONV_SAVES_NOTHING;
    onv_find_publish(s, &g, fusion);
}

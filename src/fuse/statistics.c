/* Statistics of a tensor: var and std, which exporters write down as formulas. */
#include <string.h>

#include "fuse/find.h"

/* Nodes that are noted as two calls. */
static bool is_other_call(const onv_node *a, const onv_node *b)
{
    const onv_node *const nodes[] = {a, b};
    for (size_t i = 0; i < 2; i++)
        if (nodes[i]->aten_op == NULL || nodes[i]->aten_op[0] == '\0' ||
            nodes[i]->source_op[0] == '\0')
            return false;
    return a->source_op != b->source_op || a->scope != b->scope || a->aten_op != b->aten_op;
}

/* A number that the graph computes from a shape, or that the exporter computed. */
static bool is_count(const onv_finder *s, onv_value_id value, onv_op_name op)
{
    return onv_find_is_number(s, value) || onv_find_producer(s, value, op) != NULL;
}

/* mean((x - mean)(x - mean)) n / (n - 1), and its root. */
void onv_find_variance(onv_finder *s, const onv_node *square)
{
    onv_group g = {0};
    if (square->n_inputs != 2 || !onv_find_same(square->inputs[0], square->inputs[1])) return;
    const onv_node *sub = onv_find_producer(s, square->inputs[0], ONV_OP_Sub);
    if (sub == NULL || s->f->n_uses[square->inputs[0].index] != 2) return;
    onv_value_id x = sub->inputs[0];
    const onv_node *mean = onv_find_producer(s, sub->inputs[1], ONV_OP_ReduceMean);
    if (mean == NULL || !onv_find_same(mean->inputs[0], x)) return;
    /* That of a call of mean() beside it, with which the exporter merged its own. */
    bool is_other = is_other_call(sub, mean);
    if (!is_other && s->f->n_uses[sub->inputs[1].index] != 1) return;
    const onv_node *sum = onv_find_reader(s, square->outputs[0], ONV_OP_ReduceMean);
    const onv_node *times = sum != NULL ? onv_find_reader(s, sum->outputs[0], ONV_OP_Mul) : NULL;
    if (times == NULL || !is_count(s, onv_find_other(times, sum->outputs[0]), ONV_OP_Cast)) return;
    const onv_node *last = onv_find_reader(s, times->outputs[0], ONV_OP_Div);
    if (last == NULL || !onv_find_same(last->inputs[0], times->outputs[0]) ||
        !is_count(s, last->inputs[1], ONV_OP_Sub))
        return;
    if (!onv_find_take(s, &g, square) || !onv_find_take(s, &g, sub) ||
        (!is_other && !onv_find_take(s, &g, mean)) || !onv_find_take(s, &g, sum) ||
        !onv_find_take(s, &g, times) || !onv_find_take(s, &g, last))
        return;
    const onv_node *root = onv_find_reader(s, last->outputs[0], ONV_OP_Sqrt);
    bool is_std = root != NULL && onv_find_reader(s, root->outputs[0], ONV_OP_Reciprocal) == NULL;
    if (is_std && !onv_find_take(s, &g, root)) return;
    if (!onv_find_same_call(s, &g)) return;
    onv_fusion fusion = onv_find_unary(s, ONV_FUSION_POINTWISE, x, is_std ? root : last);
    fusion.name = is_std ? "std" : "var";
    onv_find_publish(s, &g, fusion);
}

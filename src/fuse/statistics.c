/* Statistics of a tensor: var, std, var_mean and std_mean, which exporters write down as formulas. */
#include <string.h>

#include "fuse/find.h"

static bool is_named(const onv_node *node, const char *aten_op)
{
    return node->aten_op != NULL && strcmp(node->aten_op, aten_op) == 0;
}

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
static bool is_count(const onv_finder *s, onv_value_id value, const char *op_type)
{
    return onv_find_is_number(s, value) || onv_find_producer(s, value, op_type) != NULL;
}

/* mean((x - mean)(x - mean)) n / (n - 1), and its root. */
void onv_find_variance(onv_finder *s, const onv_node *square)
{
    onv_group g = {0};
    if (square->n_inputs != 2 || !onv_find_same(square->inputs[0], square->inputs[1])) return;
    const onv_node *sub = onv_find_producer(s, square->inputs[0], "Sub");
    if (sub == NULL || s->f->n_uses[square->inputs[0].index] != 2) return;
    onv_value_id x = sub->inputs[0];
    const onv_node *mean = onv_find_producer(s, sub->inputs[1], "ReduceMean");
    if (mean == NULL || !onv_find_same(mean->inputs[0], x)) return;
    /* That of a call of mean() beside it, with which the exporter merged its own. */
    bool is_other = is_other_call(sub, mean);
    if (!is_other && s->f->n_uses[sub->inputs[1].index] != 1) return;
    const onv_node *sum = onv_find_reader(s, square->outputs[0], "ReduceMean");
    const onv_node *times = sum != NULL ? onv_find_reader(s, sum->outputs[0], "Mul") : NULL;
    if (times == NULL || !is_count(s, onv_find_other(times, sum->outputs[0]), "Cast")) return;
    const onv_node *last = onv_find_reader(s, times->outputs[0], "Div");
    if (last == NULL || !onv_find_same(last->inputs[0], times->outputs[0]) ||
        !is_count(s, last->inputs[1], "Sub"))
        return;
    if (!onv_find_take(s, &g, square) || !onv_find_take(s, &g, sub) ||
        (!is_other && !onv_find_take(s, &g, mean)) || !onv_find_take(s, &g, sum) ||
        !onv_find_take(s, &g, times) || !onv_find_take(s, &g, last))
        return;
    const onv_node *root = onv_find_reader(s, last->outputs[0], "Sqrt");
    bool is_std = root != NULL && onv_find_reader(s, root->outputs[0], "Reciprocal") == NULL;
    if (is_std && !onv_find_take(s, &g, root)) return;
    if (!onv_find_same_call(s, &g)) return;
    onv_fusion fusion = onv_find_unary(s, ONV_FUSION_POINTWISE, x, is_std ? root : last);
    fusion.name = is_std ? "std" : "var";
    fusion.saves = is_std ? ONV_SAVES_IN | ONV_SAVES_OUT : ONV_SAVES_IN;
    onv_find_publish(s, &g, fusion);
}

/* The variance of x that was found last, if nothing has read it so far. */
static onv_fusion *variance_before(const onv_finder *s, onv_value_id x, onv_node_id before)
{
    if (s->f->at.count == 0) return NULL;
    onv_fusion *last = &s->f->at.at[s->f->at.count - 1];
    bool is_other = last->kind != ONV_FUSION_POINTWISE || strcmp(last->name, "var") != 0 ||
                    !onv_find_same(last->x, x) || last->last.index >= before.index;
    return is_other ? NULL : last;
}

/* The sum over dims that stay as 1 is a call, and so are these. */
static const onv_node *find_mean(onv_finder *s, onv_group *g, const onv_node *sum)
{
    const onv_node *shaped = onv_find_reader(s, sum->outputs[0], "Reshape");
    bool is_own = shaped != NULL && is_named(shaped, "prims.broadcast_in_dim.default");
    const onv_node *mean = onv_find_reader(s, is_own ? shaped->outputs[0] : sum->outputs[0], "Div");
    if (mean == NULL || !is_named(mean, "prims.div.default") ||
        !onv_find_is_number(s, mean->inputs[1]) || !onv_find_take(s, g, sum) ||
        (is_own && !onv_find_take(s, g, shaped)) || !onv_find_take(s, g, mean))
        return NULL;
    return mean;
}

/* torch.var_mean and std_mean of which the mean alone is read; the export lacks the rest. */
static void find_mean_alone(onv_finder *s, const onv_group *g, const onv_node *sum,
                            const onv_node *mean)
{
    bool of_std = (sum->line_calls & ONV_LINE_CALLS_STD_MEAN) != 0;
    if (!of_std && (sum->line_calls & ONV_LINE_CALLS_VAR_MEAN) == 0) return;
    onv_fusion fusion = onv_find_unary(s, ONV_FUSION_POINTWISE, sum->inputs[0], mean);
    fusion.name = of_std ? "mean_of_std" : "mean_of_var";
    fusion.saves = ONV_SAVES_IN;
    onv_find_publish(s, g, fusion);
}

/* torch.var_mean and std_mean, which torch.export takes apart: the sum and its quotient are behind the variance, the root
 * behind them. */
void onv_find_var_mean(onv_finder *s, const onv_node *sum)
{
    onv_group g = {0};
    if (!is_named(sum, "prims.sum.default") || sum->n_inputs == 0) return;
    onv_fusion *fusion = variance_before(s, sum->inputs[0], onv_find_id(s, sum));
    const onv_node *mean = find_mean(s, &g, sum);
    if (mean == NULL) return;
    if (fusion == NULL) {
        find_mean_alone(s, &g, sum, mean);
        return;
    }
    const onv_node *root = onv_find_reader(s, fusion->out, "Sqrt");
    bool is_std = root != NULL && root->scope == sum->scope &&
                  is_named(root, "aten.sqrt.default") &&
                  onv_find_id(s, root).index == onv_find_id(s, mean).index + 1;
    const onv_node *end = is_std ? root : mean;
    onv_node_id reader = s->f->user[fusion->out.index];
    if (!is_std && onv_is_node(reader) && reader.index < onv_find_id(s, mean).index) return;
    if (is_std && !onv_find_take(s, &g, root)) return;
    for (uint32_t i = 0; i < g.count; i++)
        s->f->of_node[g.nodes[i].index] = (uint32_t)s->f->at.count;
    fusion->last = onv_find_id(s, end);
    fusion->state = mean->outputs[0];
    fusion->name = is_std ? "std_mean" : "var_mean";
    if (is_std) fusion->out = root->outputs[0];
    if (is_std) fusion->saves = ONV_SAVES_IN | ONV_SAVES_OUT;
}

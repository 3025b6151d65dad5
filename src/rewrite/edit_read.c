/* What rules ask of the graph that is edited. */
#include <string.h>

#include "rewrite/edit.h"

onv_node_id onv_edit_first(const onv_edit *e, onv_graph_id graph)
{
    return e->graphs.at[graph.index].first;
}

onv_node_id onv_edit_next(const onv_edit *e, onv_node_id node)
{
    do node = e->nodes.at[node.index].next;
    while (onv_is_node(node) && e->nodes.at[node.index].is_removed);
    return node;
}

uint32_t onv_edit_n_nodes(const onv_edit *e, onv_graph_id graph)
{
    return e->graphs.at[graph.index].n_nodes;
}

bool onv_edit_is(const onv_edit *e, onv_node_id node, onv_op_name op)
{
    return onv_edit_is_of(e, node, "", op);
}

bool onv_edit_is_of(const onv_edit *e, onv_node_id node, const char *domain, onv_op_name op)
{
    if (!onv_edit_is_there(e, node)) return false;
    const onv_node *at = onv_edit_node_at(e, node);
    return at->code == op && strcmp(at->domain, domain) == 0;
}

onv_value_id onv_edit_in(const onv_edit *e, onv_node_id node, uint32_t k)
{
    const onv_node *at = onv_edit_node_at(e, node);
    return k < at->n_inputs ? at->inputs[k] : ONV_NO_VALUE;
}

onv_value_id onv_edit_out(const onv_edit *e, onv_node_id node, uint32_t k)
{
    const onv_node *at = onv_edit_node_at(e, node);
    return k < at->n_outputs ? at->outputs[k] : ONV_NO_VALUE;
}

onv_node_id onv_edit_producer(const onv_edit *e, onv_value_id value)
{
    return onv_is_value(value) ? onv_edit_value_at(e, value)->producer : ONV_NO_NODE;
}

onv_node_id onv_edit_in_node(const onv_edit *e, onv_node_id node, uint32_t k)
{
    return onv_edit_producer(e, onv_edit_in(e, node, k));
}

uint32_t onv_edit_n_uses(const onv_edit *e, onv_value_id value)
{
    return onv_is_value(value) ? e->values.at[value.index].n_uses : 0;
}

const onv_use *onv_edit_first_use(const onv_edit *e, onv_value_id value)
{
    uint32_t first = onv_is_value(value) ? e->values.at[value.index].first_use : ONV_NO_USE;
    return first != ONV_NO_USE ? &e->uses.at[first] : NULL;
}

const onv_use *onv_edit_next_use(const onv_edit *e, const onv_use *use)
{
    return use->next != ONV_NO_USE ? &e->uses.at[use->next] : NULL;
}

bool onv_edit_is_result(const onv_edit *e, onv_value_id value)
{
    return onv_is_value(value) && onv_edit_value_at(e, value)->is_output;
}

bool onv_edit_is_read_inside(const onv_edit *e, onv_value_id value)
{
    if (!onv_is_value(value)) return false;
    uint32_t graph = onv_edit_value_at(e, value)->graph.index;
    ONV_EACH_USE(e, value, u)
    if (onv_edit_node_at(e, u->node)->graph.index != graph) return true;
    return false;
}

uint32_t onv_edit_n_output_uses(const onv_edit *e, onv_node_id node)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < onv_edit_node_at(e, node)->n_outputs; k++)
        n += onv_edit_n_uses(e, onv_edit_out(e, node, k));
    return n;
}

bool onv_edit_makes_result(const onv_edit *e, onv_node_id node)
{
    for (uint32_t k = 0; k < onv_edit_node_at(e, node)->n_outputs; k++)
        if (onv_edit_is_result(e, onv_edit_out(e, node, k))) return true;
    return false;
}

bool onv_edit_is_unread(const onv_edit *e, onv_node_id node)
{
    return onv_edit_is_there(e, node) && onv_edit_n_output_uses(e, node) == 0 &&
           !onv_edit_makes_result(e, node);
}

onv_node_id onv_edit_only_user(const onv_edit *e, onv_value_id value)
{
    if (onv_edit_n_uses(e, value) != 1 || onv_edit_is_result(e, value)) return ONV_NO_NODE;
    onv_node_id user = onv_edit_first_use(e, value)->node;
    bool is_here =
        onv_edit_node_at(e, user)->graph.index == onv_edit_value_at(e, value)->graph.index;
    return is_here ? user : ONV_NO_NODE;
}

int64_t onv_edit_int(const onv_edit *e, onv_node_id node, const char *name, int64_t fallback)
{
    return onv_node_int(onv_edit_node_at(e, node), name, fallback);
}

double onv_edit_float(const onv_edit *e, onv_node_id node, const char *name, double fallback)
{
    const onv_attr *attr = onv_node_attr(onv_edit_node_at(e, node), name);
    return attr != NULL && attr->kind == ONV_ATTR_FLOAT ? (double)attr->f : fallback;
}

int32_t onv_edit_opset(const onv_edit *e)
{
    for (size_t i = 0; i < e->model->opsets.count; i++)
        if (e->model->opsets.at[i].domain[0] == '\0') return e->model->opsets.at[i].version;
    return 0;
}

bool onv_edit_is_constant(const onv_edit *e, onv_value_id value)
{
    if (!onv_is_value(value)) return false;
    const onv_value *at = onv_edit_value_at(e, value);
    return onv_value_is_weight(at) && !at->overridable;
}

const onv_known *onv_edit_constant(onv_edit *e, onv_value_id value)
{
    const onv_known *known = NULL;
    if (!onv_edit_is_constant(e, value) || e->status != ONV_OK) return NULL;
    onv_edit_fail(e, onv_driver_constant(&e->driver, onv_edit_value_at(e, value), &known));
    return known;
}

bool onv_edit_scalar(onv_edit *e, onv_value_id value, double *number)
{
    const onv_known *known = onv_edit_constant(e, value);
    if (known == NULL || known->count != 1) return false;
    onv_scalar s = known->elems[0];
    if (!onv_dim_is_const(s.i) || !onv_scalar_is_known((onv_dtype)known->dtype, s)) return false;
    *number = onv_dtype_is_float((onv_dtype)known->dtype) ? s.f * (double)s.i.raw : (double)s.i.raw;
    return true;
}

bool onv_edit_ints(onv_edit *e, onv_value_id value, const onv_scalar **list, uint32_t *count)
{
    const onv_known *known = onv_edit_constant(e, value);
    if (known == NULL || onv_dtype_is_float((onv_dtype)known->dtype)) return false;
    for (uint32_t i = 0; i < known->count; i++)
        if (!onv_dim_is_known(known->elems[i].i) || onv_dim_is_expr(known->elems[i].i))
            return false;
    *list = known->elems;
    *count = known->count;
    return true;
}

const onv_type *onv_edit_seen(const onv_edit *e, onv_value_id value)
{
    static const onv_type none = {.rank = -1};
    return onv_is_value(value) ? &e->values.at[value.index].seen : &none;
}

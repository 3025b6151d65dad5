#include "rewrite/fuse.h"

#include <math.h>
#include <string.h>

bool onv_fuse_same_value(onv_value_id a, onv_value_id b)
{
    return a.index == b.index && onv_is_value(a);
}

bool onv_fuse_same_provider(const onv_edit *e, onv_node_id a, onv_node_id b)
{
    return onv_edit_node_at(e, a)->provider == onv_edit_node_at(e, b)->provider;
}

bool onv_fuse_is_float(const onv_edit *e, onv_value_id value)
{
    if (!onv_is_value(value)) return false;
    const onv_type *type = &onv_edit_value_at(e, value)->type;
    if (type->kind != ONV_TYPE_TENSOR) return false;
    return type->dtype == ONV_FLOAT16 || type->dtype == ONV_FLOAT || type->dtype == ONV_DOUBLE ||
           type->dtype == ONV_BFLOAT16;
}

bool onv_fuse_is_float_op(const onv_edit *e, onv_node_id node, const char *op_type,
                          onv_node_id with, uint32_t n)
{
    if (!onv_fuse_is(e, node, op_type) || !onv_fuse_same_provider(e, node, with)) return false;
    uint32_t n_inputs = onv_edit_node_at(e, node)->n_inputs;
    for (uint32_t k = 0; k < n_inputs && (n == 0 || k < n); k++)
        if (!onv_fuse_is_float(e, onv_edit_in(e, node, k))) return false;
    return true;
}

bool onv_fuse_has_uses(const onv_edit *e, onv_node_id node, uint32_t n)
{
    return !onv_edit_makes_result(e, node) && onv_edit_n_output_uses(e, node) == n;
}

/* Uses are in no particular order; the node made first stands for the first. Subgraphs read through the
 * node that owns them, which no fusion takes. */
onv_node_id onv_fuse_reader(const onv_edit *e, onv_node_id node)
{
    onv_node_id found = ONV_NO_NODE;
    onv_value_id out = onv_is_node(node) ? onv_edit_out(e, node, 0) : ONV_NO_VALUE;
    if (!onv_is_value(out)) return found;
    uint32_t graph = onv_edit_node_at(e, node)->graph.index;
    for (const onv_use *use = onv_edit_first_use(e, out); use != NULL;
         use = onv_edit_next_use(e, use)) {
        if (onv_edit_node_at(e, use->node)->graph.index != graph) continue;
        if (!onv_is_node(found) || use->node.index < found.index) found = use->node;
    }
    return found;
}

onv_node_id onv_fuse_parent(const onv_edit *e, onv_node_id node, const char *op_type)
{
    for (uint32_t k = 0; k < onv_edit_node_at(e, node)->n_inputs; k++) {
        onv_node_id parent = onv_edit_in_node(e, node, k);
        if (onv_is_node(parent) && onv_fuse_is(e, parent, op_type)) return parent;
    }
    return ONV_NO_NODE;
}

int onv_fuse_rank(const onv_edit *e, onv_value_id value)
{
    const onv_type *type = onv_edit_seen(e, value);
    return onv_type_has_rank(type) ? type->rank : -1;
}

onv_dim onv_fuse_dim(const onv_edit *e, onv_value_id value, int axis)
{
    const onv_type *type = onv_edit_seen(e, value);
    if (!onv_type_has_rank(type)) return ONV_DIM_UNKNOWN;
    if (axis < 0) axis += type->rank;
    return axis >= 0 && axis < type->rank ? type->dims[axis] : ONV_DIM_UNKNOWN;
}

bool onv_fuse_is_number(onv_edit *e, onv_value_id value, double number)
{
    double is;
    if (!onv_is_value(value) || !onv_edit_is_constant(e, value)) return false;
    const onv_type *type = &onv_edit_value_at(e, value)->type;
    if (!onv_type_has_rank(type) || type->rank > 1 || !onv_edit_scalar(e, value, &is)) return false;
    /* A number of 16 bits is compared with the number that its type has for it. */
    double step = type->dtype == ONV_FLOAT16 ? 0x1p-11 : type->dtype == ONV_BFLOAT16 ? 0x1p-8 : 0;
    return fabs(is - number) <= 1e-8 + (1e-5 + step) * fabs(number);
}

onv_value_id onv_fuse_other_input(const onv_edit *e, onv_node_id node, onv_value_id value)
{
    onv_value_id a = onv_edit_in(e, node, 0), b = onv_edit_in(e, node, 1);
    if (onv_fuse_same_value(a, value)) return b;
    return onv_fuse_same_value(b, value) ? a : ONV_NO_VALUE;
}

bool onv_fuse_replace(onv_edit *e, const onv_fused *fused)
{
    onv_value_id out = onv_edit_out(e, fused->last, 0);
    onv_edit_add(e, &ONV_NEW_NODE(.op_type = fused->op_type, .domain = fused->domain,
                                  .version = fused->version, .inputs = fused->inputs,
                                  .n_inputs = fused->n_inputs, .outputs = &out, .n_outputs = 1,
                                  .attrs = fused->attrs, .n_attrs = fused->n_attrs,
                                  .at = fused->last));
    if (e->status != ONV_OK) return false;
    onv_edit_remove(e, fused->last);
    for (bool again = true; again && e->status == ONV_OK;) {
        again = false;
        for (uint32_t i = 0; i < fused->n_nodes; i++) {
            onv_node_id node = fused->nodes[i];
            if (!onv_edit_is_there(e, node) || onv_edit_n_output_uses(e, node) > 0 ||
                onv_edit_makes_result(e, node))
                continue;
            onv_edit_remove(e, node);
            again = true;
        }
    }
    return e->status == ONV_OK;
}

onv_attr onv_fuse_int(onv_edit *e, const char *name, int64_t value)
{
    return (onv_attr){.name = onv_edit_intern(e, name), .kind = ONV_ATTR_INT, .i = value};
}

onv_attr onv_fuse_float(onv_edit *e, const char *name, double value)
{
    return (onv_attr){.name = onv_edit_intern(e, name), .kind = ONV_ATTR_FLOAT, .f = (float)value};
}

onv_attr onv_fuse_ints(onv_edit *e, const char *name, const int64_t *list, uint32_t count)
{
    int64_t *own = onv_arena_copy(&e->model->arena, list, count * sizeof *list);
    if (own == NULL && count > 0) onv_edit_fail(e, ONV_ERR_MEMORY);
    return (onv_attr){
        .name = onv_edit_intern(e, name), .kind = ONV_ATTR_INTS, .count = count, .ints = own};
}

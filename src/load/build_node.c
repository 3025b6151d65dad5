#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "load/build.h"
#include "load/limits.h"

uint64_t onv_build_cost(uint64_t items, bool in_function)
{
    enum { ITEMS_PER_NODE = 16 };
    return in_function ? items / ITEMS_PER_NODE : 0;
}

onv_status onv_build_work(onv_builder *b, uint64_t amount)
{
    ONV_WORK(amount);
    b->work += amount; /* each amount is bounded by the file, so this ends before it wraps */
    if (b->work <= b->most_expanded) return ONV_OK;
    return onv_fail(b->err, ONV_ERR_LIMIT,
                    "the model has more than %" PRIu64
                    " nodes once its functions are expanded, the limit" ONV_RAISE("nodes"),
                    b->most_expanded);
}

static onv_status node_values(onv_builder *b, const onv_scope *scope, const onv_scan_node *record,
                              onv_node *node)
{
    const onv_name *inputs = onv_build_inputs(b, record), *outputs = inputs + record->n_inputs;
    onv_value_id *ids = ONV_ARENA_ARRAY(&b->model->arena, onv_value_id,
                                        (size_t)record->n_inputs + record->n_outputs);
    if (ids == NULL) return onv_fail_memory(b->err);
    node->inputs = ids;
    node->n_inputs = record->n_inputs;
    node->outputs = ids + record->n_inputs;
    node->n_outputs = record->n_outputs;
    for (uint32_t i = 0; i < record->n_inputs; i++) {
        ids[i] = ONV_NO_VALUE;
        if (inputs[i] != 0 && !onv_scope_find(scope, inputs[i], &ids[i]))
            return onv_fail(b->err, ONV_ERR_MODEL,
                            "input %" PRIu32 ", '%s', is not defined anywhere", i,
                            onv_build_name(b, inputs[i]));
    }
    for (uint32_t i = 0; i < record->n_outputs; i++) {
        node->outputs[i] = ONV_NO_VALUE;
        if (outputs[i] != 0) onv_name_get(&scope->names, outputs[i], &node->outputs[i]);
    }
    return ONV_OK;
}

static onv_status add_node(onv_builder *b, const onv_scope *scope, const onv_node *node,
                           onv_node_id *id)
{
    id->index = (uint32_t)b->model->nodes.count;
    if (!onv_vec_push(&b->model->nodes, *node)) return onv_fail_memory(b->err);
    onv_model_node(b->model, *id)->place = b->place;
    if (!onv_vec_push(scope->nodes, *id)) return onv_fail_memory(b->err);
    for (uint32_t i = 0; i < node->n_outputs; i++) {
        if (!onv_is_value(node->outputs[i])) continue;
        onv_value *value = onv_model_value(b->model, node->outputs[i]);
        value->producer = *id;
        value->output_index = i;
    }
    return ONV_OK;
}

/* --- Constant ---------------------------------------------------------------------------------- */

static onv_status constant_tensor(onv_builder *b, const onv_attr *attr, onv_tensor *tensor)
{
    switch ((onv_attr_kind)attr->kind) {
    case ONV_ATTR_TENSOR:
    case ONV_ATTR_SPARSE_TENSOR: *tensor = *attr->tensor; return ONV_OK;
    /* The list of the node, where the attribute stands, stays. */
    case ONV_ATTR_INT: return onv_build_list_tensor(b, ONV_INT64, 0, &attr->i, 1, tensor);
    case ONV_ATTR_FLOAT: return onv_build_list_tensor(b, ONV_FLOAT, 0, &attr->f, 1, tensor);
    case ONV_ATTR_INTS:
        return onv_build_list_tensor(b, ONV_INT64, 1, attr->ints, attr->count, tensor);
    case ONV_ATTR_FLOATS:
        return onv_build_list_tensor(b, ONV_FLOAT, 1, attr->floats, attr->count, tensor);
    case ONV_ATTR_STRING: return onv_build_list_tensor(b, ONV_STRING, 0, NULL, 1, tensor);
    case ONV_ATTR_STRINGS:
        return onv_build_list_tensor(b, ONV_STRING, 1, NULL, attr->count, tensor);
    default:
        return onv_fail(b->err, ONV_ERR_MODEL, "attribute '%s' is not a value for a Constant",
                        attr->name);
    }
}

/* The output of a Constant node is a weight from the start. */
static onv_status set_constant(onv_builder *b, onv_node_id id)
{
    static const char *const names[] = {"value",        "sparse_value", "value_int",
                                        "value_ints",   "value_float",  "value_floats",
                                        "value_string", "value_strings"};
    const onv_node *node = onv_model_node(b->model, id);
    const onv_attr *attr = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && attr == NULL; i++)
        attr = onv_node_attr(node, names[i]);
    if (attr == NULL) return onv_fail(b->err, ONV_ERR_MODEL, "a Constant without a value");
    if (node->n_outputs != 1 || !onv_is_value(node->outputs[0])) return ONV_OK;
    onv_tensor *tensor = ONV_ARENA_ARRAY(&b->model->arena, onv_tensor, 1);
    if (tensor == NULL) return onv_fail_memory(b->err);
    ONV_TRY(constant_tensor(b, attr, tensor));
    onv_value *value = onv_model_value(b->model, node->outputs[0]);
    value->kind = ONV_VALUE_CONSTANT;
    value->tensor = tensor;
    value->type = tensor->type;
    return ONV_OK;
}

/* --- Nodes ------------------------------------------------------------------------------------- */

/* What a node is called in paths: its name, or the operator and its place. */
static onv_status node_path(onv_builder *b, const onv_scope *scope, const onv_scan_node *record,
                            size_t index, const char **path)
{
    if (record->name[0] != '\0') {
        *path = record->name;
        return scope->prefix[0] != '\0' ? onv_build_join(b, scope->prefix, record->name, path)
                                        : ONV_OK;
    }
    char place[300];
    snprintf(place, sizeof place, "%.255s_%zu", onv_build_name(b, record->op_type), index);
    return onv_build_join(b, scope->prefix, place, path);
}

static onv_status build(onv_builder *b, const onv_scope *scope, const onv_scan_node *record,
                        size_t index)
{
    onv_node node = {
        .graph = scope->graph,
        .domain = onv_build_name(b, record->domain),
        .macs = ONV_DIM_UNKNOWN,
        .element_ops = ONV_DIM_UNKNOWN,
    };
    const uint64_t items = (uint64_t)record->n_inputs + record->n_outputs + record->attrs.count;
    const char *path;
    if (record->op_type == 0)
        return onv_fail(b->err, ONV_ERR_MODEL, "node %zu has no operator", index);
    onv_node_set_op(&node, onv_build_name(b, record->op_type));
    ONV_TRY(onv_build_work(b, 1 + onv_build_cost(items, scope->calls > 0)));
    ONV_TRY(node_path(b, scope, record, index, &path));

    const onv_function *function = onv_build_find_function(b, record);
    if (function != NULL) return onv_build_call(b, scope, record, function, path);

    bool named = record->name[0] != '\0' || scope->prefix[0] != '\0';
    node.name = named ? path : "";
    ONV_TRY(onv_build_notes(b, record, &node));
    ONV_TRY(onv_build_version(b, scope, node.domain, &node.version));
    ONV_TRY(node_values(b, scope, record, &node));
    onv_node_id id;
    ONV_TRY(add_node(b, scope, &node, &id));
    ONV_TRY(onv_build_attrs(b, scope, record, path, id));
    bool constant = node.domain[0] == '\0' && node.code == ONV_OP_Constant;
    return constant ? set_constant(b, id) : ONV_OK;
}

onv_status onv_build_node(onv_builder *b, const onv_scope *scope, const onv_scan_node *record,
                          size_t index)
{
    ONV_WORK((uint64_t)4 + record->n_inputs + record->n_outputs + record->attrs.count);
    onv_status status = build(b, scope, record, index);
    if (status == ONV_OK || b->err == NULL) return status;
    char name[sizeof b->err->node];
    if (record->name[0] != '\0')
        snprintf(name, sizeof name, "%s%s", scope->prefix, record->name);
    else
        snprintf(name, sizeof name, "%s#%zu", scope->prefix, index);
    onv_error_at(b->err, name, onv_build_name(b, record->op_type));
    return status;
}

onv_status onv_build_identity(onv_builder *b, const onv_scope *scope, const char *name,
                              onv_value_id input, onv_value_id output)
{
    onv_value_id *ids = ONV_ARENA_ARRAY(&b->model->arena, onv_value_id, 2);
    if (ids == NULL) return onv_fail_memory(b->err);
    ids[0] = input;
    ids[1] = output;
    onv_node node = {
        .name = name,
        .graph = scope->graph,
        .domain = "",
        .n_inputs = 1,
        .n_outputs = 1,
        .inputs = &ids[0],
        .outputs = &ids[1],
        .macs = ONV_DIM_UNKNOWN,
        .element_ops = ONV_DIM_UNKNOWN,
    };
    ONV_TRY(onv_build_work(b, 1));
    ONV_TRY(onv_build_intern(b, "Identity", &node.op_type));
    ONV_TRY(onv_build_intern(b, "", &node.domain));
    ONV_TRY(onv_build_version(b, scope, node.domain, &node.version));
    onv_node_id id;
    return add_node(b, scope, &node, &id);
}

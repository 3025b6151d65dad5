#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/quota.h"
#include "load/build.h"
#include "load/fields.h"
#include "load/limits.h"
#include "load/statements.h"

uint64_t onv_build_cost(uint64_t items, bool in_function)
{
    enum { ITEMS_PER_NODE = 16 };
    return in_function ? items / ITEMS_PER_NODE : 0;
}

onv_status onv_build_work(onv_builder *b, uint64_t amount)
{
    b->work += amount; /* each amount is bounded by the file, so this ends before it wraps */
    if (b->work <= b->most_expanded) return ONV_OK;
    return onv_fail(b->err, ONV_ERR_LIMIT,
                    "the model has more than %" PRIu64
                    " nodes once its functions are expanded, the limit" ONV_RAISE("nodes"),
                    b->most_expanded);
}

static onv_status node_values(onv_builder *b, const onv_scope *scope, const Onnx__NodeProto *pb,
                              onv_node *node)
{
    onv_value_id *ids = ONV_ARENA_ARRAY(&b->model->arena, onv_value_id, pb->n_input + pb->n_output);
    if (ids == NULL) return onv_fail_memory(b->err);
    node->inputs = ids;
    node->n_inputs = (uint32_t)pb->n_input;
    node->outputs = ids + pb->n_input;
    node->n_outputs = (uint32_t)pb->n_output;
    for (size_t i = 0; i < pb->n_input; i++) {
        const char *name;
        ONV_TRY(onv_build_intern(b, pb->input[i], &name));
        ids[i] = ONV_NO_VALUE;
        if (name[0] != '\0' && !onv_scope_find(scope, name, &ids[i]))
            return onv_fail(b->err, ONV_ERR_MODEL, "input %zu, '%s', is not defined anywhere", i,
                            name);
    }
    for (size_t i = 0; i < pb->n_output; i++) {
        const char *name;
        ONV_TRY(onv_build_intern(b, pb->output[i], &name));
        node->outputs[i] = ONV_NO_VALUE;
        if (name[0] != '\0') onv_ptr_map_get(&scope->names, name, &node->outputs[i].index);
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
    case ONV_ATTR_INT: {
        const void *copy = onv_arena_copy(&b->model->arena, &attr->i, sizeof attr->i);
        if (copy == NULL) return onv_fail_memory(b->err);
        return onv_build_list_tensor(b, ONV_INT64, 0, copy, 1, tensor);
    }
    case ONV_ATTR_FLOAT: {
        const void *copy = onv_arena_copy(&b->model->arena, &attr->f, sizeof attr->f);
        if (copy == NULL) return onv_fail_memory(b->err);
        return onv_build_list_tensor(b, ONV_FLOAT, 0, copy, 1, tensor);
    }
    case ONV_ATTR_INTS:
        return onv_build_list_tensor(b, ONV_INT64, 1, attr->ints, attr->count, tensor);
    case ONV_ATTR_FLOATS:
        return onv_build_list_tensor(b, ONV_FLOAT, 1, attr->floats, attr->count, tensor);
    case ONV_ATTR_STRING: return onv_build_list_tensor(b, ONV_STRING, 0, NULL, 1, tensor);
    case ONV_ATTR_STRINGS:
        return onv_build_list_tensor(b, ONV_STRING, 1, NULL, attr->count, tensor);
    default:
        return onv_fail(b->err, ONV_ERR_MODEL, "attribute '%s' is no value for a Constant",
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
static onv_status node_path(onv_builder *b, const onv_scope *scope, const Onnx__NodeProto *pb,
                            size_t index, const char **path)
{
    if (pb->name != NULL && pb->name[0] != '\0')
        return onv_build_join(b, scope->prefix, pb->name, path);
    char place[300];
    snprintf(place, sizeof place, "%.255s_%zu", pb->op_type, index);
    return onv_build_join(b, scope->prefix, place, path);
}

/* The text is of no use where the exporter says that it does not know. */
static onv_status intern_part(onv_builder *b, const char *at, size_t length, const char **part)
{
    static const char none[] = "_empty_nn_module_stack";
    if (strncmp(at, none, sizeof none - 1) == 0) length = 0;
    *part = onv_intern_n(&b->model->strings, at, length);
    return *part != NULL ? ONV_OK : onv_fail_memory(b->err);
}

/* The last two elements of a list that Python wrote, ['', 'layer1', 'layer1.0', 'conv2d']: from the
 * model itself down to the operation; and all before the last one, up to a quotation mark. Empty where
 * the note is absent. */
static onv_status node_note(onv_builder *b, const Onnx__NodeProto *pb, const char *key,
                            const char **parent, const char **self, const char **around)
{
    const char *scope = "", *last = "", *list = "";
    size_t scope_length = 0, last_length = 0, before = 0; /* of the list, up to the last element */
    for (size_t i = 0; i < pb->n_metadata_props; i++) {
        const Onnx__StringStringEntryProto *note = pb->metadata_props[i];
        if (strcmp(note->key, key) != 0) continue;
        const char *at = list = note->value;
        while (*(at += strcspn(at, "'\"")) != '\0') {
            const char *end = strchr(at + 1, *at);
            if (end == NULL) break;
            scope = last;
            scope_length = last_length;
            before =
                last_length > 0 || last[0] != '\0' ? (size_t)(last + last_length + 1 - list) : 0;
            last = at + 1;
            last_length = (size_t)(end - last);
            at = end + 1;
        }
    }
    ONV_TRY(intern_part(b, scope, scope_length, parent));
    ONV_TRY(intern_part(b, last, last_length, self));
    bool is_known = scope_length == 0 || (*parent)[0] != '\0';
    return intern_part(b, list, is_known ? before : 0, around);
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The innermost `Name.apply(` of the lines of Python that called the operation. Classes begin with a
 * capital; nn.Module.apply, a method, does not run in forward passes. */
static onv_status function_note(onv_builder *b, const Onnx__NodeProto *pb, const char **function)
{
    const char *found = "";
    size_t length = 0;
    for (size_t i = 0; i < pb->n_metadata_props; i++) {
        const Onnx__StringStringEntryProto *note = pb->metadata_props[i];
        if (strcmp(note->key, ONV_NOTE_TRACE) != 0) continue;
        for (const char *at = note->value; (at = strstr(at, ONV_NOTE_APPLY)) != NULL; at++) {
            const char *begin = at;
            while (begin > note->value && is_word(begin[-1])) begin--;
            if (begin == at || *begin < 'A' || *begin > 'Z') continue;
            found = begin;
            length = (size_t)(at - begin);
        }
    }
    *function = onv_intern_n(&b->model->strings, found, length);
    return *function != NULL ? ONV_OK : onv_fail_memory(b->err);
}

static onv_status statements_note(onv_builder *b, const Onnx__NodeProto *pb, onv_node *node)
{
    bool has_norm = pb->n_input > 1 && strcmp(pb->op_type, "BatchNormalization") != 0 &&
                    strstr(node->aten_op, "batch_norm") != NULL;
    for (size_t i = 0; i < pb->n_metadata_props && node->calls[0] != '\0'; i++) {
        const Onnx__StringStringEntryProto *note = pb->metadata_props[i];
        if (strcmp(note->key, ONV_NOTE_TRACE) == 0)
            return onv_build_statements(b, note->value, node, has_norm ? pb->input[1] : NULL,
                                        &node->statements, &node->overwrites);
    }
    return ONV_OK;
}

/* Whether the call of a linear layer has a third argument, its bias. */
static bool has_bias(const Onnx__NodeProto *pb)
{
    for (size_t i = 0; i < pb->n_metadata_props; i++) {
        const Onnx__StringStringEntryProto *note = pb->metadata_props[i];
        const char *at;
        if (strcmp(note->key, ONV_NOTE_CALL) != 0 ||
            (at = strstr(note->value, ONV_NOTE_LINEAR)) == NULL)
            continue;
        uint32_t n_args = 1;
        for (at += sizeof ONV_NOTE_LINEAR - 1; *at != '\0' && *at != ')'; at++)
            n_args += *at == ',';
        size_t last = (size_t)(at - note->value);
        bool is_none = last >= 4 && memcmp(note->value + last - 4, "None", 4) == 0;
        if (n_args >= 3 && !is_none) return true;
    }
    return false;
}

static bool has_argument(const char *args, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = args; (at = strchr(at, '%')) != NULL; at++)
        if (strncmp(at + 1, name, length) == 0 && !is_word(at[1 + length])) return true;
    return false;
}

/* Whether the name of tensor `k` of the arguments begins so. */
static bool is_named(const char *args, size_t k, const char *prefix)
{
    const char *at = strchr(args, '%');
    while (at != NULL && k-- > 0) at = strchr(at + 1, '%');
    return at != NULL && strncmp(at, prefix, strlen(prefix)) == 0;
}

static uint32_t count_clones(const char *args)
{
    uint32_t n = 0;
    for (; (args = strstr(args, ONV_NOTE_CLONE)) != NULL; args++) n++;
    return n;
}

/* The exporter leaves clones out, contiguous() among them: what a call reads is what was cloned, but its note
 * says "%clone_1". Values that the exporter made up, `val_7`, are no arguments, and merged ones have other
 * names, too: where there are more than clones, places decide. */
static uint32_t clones(const Onnx__NodeProto *pb)
{
    static const char made_up[] = "val_";
    const char *args = NULL;
    uint32_t found = 0, placed = 0, n = 0;
    for (size_t i = 0; i < pb->n_metadata_props; i++)
        if (strcmp(pb->metadata_props[i]->key, ONV_NOTE_CALL) == 0)
            args = strstr(pb->metadata_props[i]->value, ONV_NOTE_ARGS);
    if (args == NULL || strstr(args, ONV_NOTE_CLONE) == NULL) return 0;
    for (size_t k = 0; k < pb->n_input && k < 32; k++) {
        if (strncmp(pb->input[k], made_up, sizeof made_up - 1) == 0 || pb->input[k][0] == '\0' ||
            has_argument(args, pb->input[k]) ||
            is_named(args, k, ONV_NOTE_DIV)) /* a quotient by 1, which was removed */
            continue;
        found |= UINT32_C(1) << k;
        placed |= (uint32_t)is_named(args, k, ONV_NOTE_CLONE) << k;
        n++;
    }
    return n > count_clones(args) ? placed : found;
}

/* Whether a softmax was asked for float32. */
static bool asks_for_float32(const Onnx__NodeProto *pb)
{
    for (size_t i = 0; i < pb->n_metadata_props; i++) {
        const Onnx__StringStringEntryProto *note = pb->metadata_props[i];
        if (strcmp(note->key, ONV_NOTE_CALL) == 0 &&
            strstr(note->value, ONV_NOTE_SOFTMAX) != NULL &&
            strstr(note->value, ONV_NOTE_FLOAT32) != NULL)
            return true;
    }
    return false;
}

/* The call, where it or an argument of it is a slice or a quotient. */
static onv_status call_note(onv_builder *b, const Onnx__NodeProto *pb, const char **call)
{
    for (size_t i = 0; i < pb->n_metadata_props; i++) {
        const Onnx__StringStringEntryProto *note = pb->metadata_props[i];
        if (strcmp(note->key, ONV_NOTE_CALL) != 0) continue;
        if (strstr(note->value, ONV_NOTE_ARGS) == NULL ||
            (strstr(note->value, ONV_NOTE_SLICE) == NULL &&
             strstr(note->value, ONV_NOTE_DIV) == NULL))
            continue;
        *call = onv_intern(&b->model->strings, note->value);
        if (*call == NULL) return onv_fail_memory(b->err);
    }
    return ONV_OK;
}

static onv_status build(onv_builder *b, const onv_scope *scope, const Onnx__NodeProto *pb,
                        size_t index)
{
    onv_node node = {
        .graph = scope->graph, .macs = ONV_DIM_UNKNOWN, .element_ops = ONV_DIM_UNKNOWN};
    const char *overload, *path;
    if (pb->op_type == NULL || pb->op_type[0] == '\0')
        return onv_fail(b->err, ONV_ERR_MODEL, "node %zu has no operator", index);
    ONV_TRY(onv_build_work(
        b, 1 + onv_build_cost(pb->n_input + pb->n_output + pb->n_attribute, scope->calls > 0)));
    ONV_TRY(onv_build_intern(b, pb->op_type, &node.op_type));
    ONV_TRY(onv_build_intern(b, pb->overload, &overload));
    ONV_TRY(onv_build_domain(b, pb->domain, &node.domain));
    ONV_TRY(node_path(b, scope, pb, index, &path));

    const onv_function *function = onv_build_find_function(b, node.domain, node.op_type, overload);
    if (function != NULL) return onv_build_call(b, scope, pb, function, path);

    bool named = (pb->name != NULL && pb->name[0] != '\0') || scope->prefix[0] != '\0';
    node.name = named ? path : "";
    ONV_TRY(node_note(b, pb, ONV_NOTE_SCOPES, &node.scope, &node.source_op, &node.calls));
    ONV_TRY(
        node_note(b, pb, ONV_NOTE_CLASSES, &node.module_class, &node.aten_op, &node.call_classes));
    ONV_TRY(function_note(b, pb, &node.function));
    ONV_TRY(statements_note(b, pb, &node));
    node.has_bias = has_bias(pb);
    node.clones = clones(pb);
    node.asks_for_float32 = asks_for_float32(pb);
    for (size_t i = 0; i < pb->n_metadata_props; i++)
        node.has_pad |= strcmp(pb->metadata_props[i]->key, ONV_NOTE_RULES) == 0; /* kept for it */
    ONV_TRY(call_note(b, pb, &node.call));
    ONV_TRY(onv_build_merged(b, pb, &node.merged_call));
    ONV_TRY(onv_build_version(b, scope, node.domain, &node.version));
    ONV_TRY(node_values(b, scope, pb, &node));
    onv_node_id id;
    ONV_TRY(add_node(b, scope, &node, &id));
    ONV_TRY(onv_build_attrs(b, scope, pb, path, id));
    bool constant = node.domain[0] == '\0' && strcmp(node.op_type, "Constant") == 0;
    return constant ? set_constant(b, id) : ONV_OK;
}

onv_status onv_build_node(onv_builder *b, const onv_scope *scope, const Onnx__NodeProto *pb,
                          size_t index)
{
    ONV_WORK(1 + pb->n_input + pb->n_output + pb->n_attribute);
    onv_status status = build(b, scope, pb, index);
    if (status == ONV_OK || b->err == NULL) return status;
    char name[sizeof b->err->node];
    if (pb->name != NULL && pb->name[0] != '\0')
        snprintf(name, sizeof name, "%s%s", scope->prefix, pb->name);
    else
        snprintf(name, sizeof name, "%s#%zu", scope->prefix, index);
    onv_error_at(b->err, name, pb->op_type);
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
        .scope = "",
        .source_op = "",
        .module_class = "",
        .aten_op = "",
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

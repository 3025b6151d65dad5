#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/quota.h"
#include "load/build.h"
#include "load/limits.h"

/* --- Names ------------------------------------------------------------------------------------- */

bool onv_scope_find(const onv_scope *scope, onv_name name, onv_value_id *id)
{
    for (; scope != NULL; scope = scope->outer)
        if (onv_name_get(&scope->names, name, id)) return true;
    return false;
}

onv_status onv_build_prefix(onv_builder *b, const char *path, const char **prefix)
{
    if (strlen(path) <= ONV_MOST_PATH_BYTES) return onv_build_join(b, path, "/", prefix);
    char number[40];
    snprintf(number, sizeof number, "#%zu.%zu/", b->model->graphs.count, b->model->nodes.count);
    return onv_build_intern(b, number, prefix);
}

static onv_status bind(onv_builder *b, onv_scope *scope, onv_name name, onv_value_id id)
{
    onv_value_id outer;
    if (onv_name_get(&scope->names, name, NULL))
        return onv_fail(b->err, ONV_ERR_MODEL, "value '%s' is defined twice",
                        onv_build_name(b, name));
    if (onv_scope_find(scope->outer, name, &outer))
        onv_model_diag(b->model, ONV_NOTE, "shadowed-name", NULL,
                       "'%s%s' has the name of a value of an outer graph, which it hides",
                       scope->prefix, onv_build_name(b, name));
    return onv_name_set(&scope->names, name, id) ? ONV_OK : onv_fail_memory(b->err);
}

static onv_status define(onv_builder *b, onv_scope *scope, onv_name name, onv_value_kind kind,
                         onv_value_id *id)
{
    onv_model *model = b->model;
    ONV_WORK(1);
    if (model->values.count >= b->limits->values)
        return onv_fail(b->err, ONV_ERR_LIMIT,
                        "the model has more than %" PRIu64 " values, the limit" ONV_RAISE("values"),
                        b->limits->values);
    onv_value value = {
        .name = onv_build_name(b, name),
        .kind = (uint8_t)kind,
        .graph = scope->graph,
        .producer = ONV_NO_NODE,
        .type = {.kind = ONV_TYPE_UNKNOWN, .rank = -1},
    };
    if (scope->prefix[0] != '\0')
        ONV_TRY(onv_build_join(b, scope->prefix, value.name, &value.name));
    id->index = (uint32_t)model->values.count;
    ONV_TRY(bind(b, scope, name, *id));
    return onv_vec_push(&model->values, value) ? ONV_OK : onv_fail_memory(b->err);
}

/* --- First pass: every name gets an id --------------------------------------------------------- */

static onv_status define_initializer(onv_builder *b, onv_scope *scope, onv_tensor *tensor)
{
    onv_value_id id;
    if (tensor->name[0] == '\0')
        return onv_fail(b->err, ONV_ERR_MODEL, "an initializer has no name");
    ONV_TRY(define(b, scope, onv_string_number(tensor->name), ONV_VALUE_INITIALIZER, &id));
    onv_value *value = onv_model_value(b->model, id);
    value->tensor = tensor;
    value->type = tensor->type;
    return ONV_OK;
}

static onv_status define_initializers(onv_builder *b, onv_scope *scope,
                                      const onv_scan_graph *record)
{
    const onv_record_list dense = record->initializers, sparse = record->sparse_initializers;
    onv_tensor *tensor =
        ONV_ARENA_ARRAY(&b->model->arena, onv_tensor, (size_t)dense.count + sparse.count);
    if (tensor == NULL) return onv_fail_memory(b->err);
    ONV_EACH_RECORD(one, b->scan->tensors, dense)
    {
        ONV_TRY(onv_build_tensor(b, one, tensor));
        ONV_TRY(define_initializer(b, scope, tensor++));
    }
    ONV_EACH_RECORD(one, b->scan->tensors, sparse)
    {
        ONV_TRY(onv_build_sparse(b, one, tensor));
        ONV_TRY(define_initializer(b, scope, tensor++));
    }
    return ONV_OK;
}

static onv_status define_input(onv_builder *b, onv_scope *scope, const onv_scan_value *record,
                               size_t index, onv_graph *graph)
{
    onv_value_id id;
    onv_type type;
    if (record->name == 0)
        return onv_fail(b->err, ONV_ERR_MODEL, "input %zu of graph '%s' has no name", index,
                        graph->name);
    if (onv_name_get(&scope->names, record->name, &id)) {
        onv_value *value = onv_model_value(b->model, id);
        if (value->kind == ONV_VALUE_INITIALIZER && !value->overridable) {
            value->overridable = true;
            return ONV_OK;
        }
    }
    ONV_TRY(define(b, scope, record->name, ONV_VALUE_INPUT, &id));
    ONV_TRY(onv_build_value_type(b, record, onv_model_value(b->model, id)->name,
                                 scope->outer == NULL ? ONV_FREE_SYMBOL : ONV_FREE_UNKNOWN, &type));
    onv_model_value(b->model, id)->type = type;
    graph->inputs[graph->n_inputs++] = id;
    return ONV_OK;
}

static onv_status define_inputs(onv_builder *b, onv_scope *scope, const onv_scan_graph *record,
                                onv_graph *graph)
{
    size_t index = 0;
    graph->inputs = ONV_ARENA_ARRAY(&b->model->arena, onv_value_id, record->inputs.count);
    if (graph->inputs == NULL) return onv_fail_memory(b->err);
    ONV_EACH_RECORD(input, b->scan->values, record->inputs)
    ONV_TRY(define_input(b, scope, input, index++, graph));
    return ONV_OK;
}

static onv_status define_output(onv_builder *b, onv_scope *scope, onv_name name)
{
    onv_value_id id;
    if (name == 0) return ONV_OK;
    if (scope->results != NULL && onv_name_get(scope->results, name, &id))
        return bind(b, scope, name, id);
    return define(b, scope, name, ONV_VALUE_ACTIVATION, &id);
}

onv_status onv_build_outputs(onv_builder *b, onv_scope *scope, onv_record_list nodes)
{
    ONV_EACH_RECORD(node, b->scan->nodes, nodes)
    {
        const onv_name *outputs = onv_build_inputs(b, node) + node->n_inputs;
        for (uint32_t k = 0; k < node->n_outputs; k++) {
            onv_status status = define_output(b, scope, outputs[k]);
            if (status == ONV_OK) continue;
            onv_error_at(b->err, node->name, onv_build_name(b, node->op_type));
            return status;
        }
    }
    return ONV_OK;
}

/* The note of which values the exporter computed an initializer; it says nothing of any other value. */
static onv_status read_folded(onv_builder *b, const onv_scan_value *record, onv_value *value)
{
    const unsigned char *text;
    if (record->folded_bytes == 0 || value->tensor == NULL || value->tensor->folded_from != NULL)
        return ONV_OK;
    ONV_TRY(onv_source_view(b->scan->source, record->folded_offset, record->folded_bytes, &text,
                            b->err));
    onv_tensor *noted = onv_arena_copy(&b->model->arena, value->tensor, sizeof *noted);
    if (noted == NULL) return onv_fail_memory(b->err);
    noted->folded_from =
        onv_arena_strndup(&b->model->arena, (const char *)text, record->folded_bytes);
    value->tensor = noted;
    return noted->folded_from != NULL ? ONV_OK : onv_fail_memory(b->err);
}

onv_status onv_build_declared(onv_builder *b, const onv_scope *scope, onv_record_list values,
                              onv_free_dims free_dims, size_t first_value)
{
    ONV_EACH_RECORD(record, b->scan->values, values)
    {
        onv_value_id id;
        ONV_WORK(1);
        if (!onv_name_get(&scope->names, record->name, &id)) continue;
        if (!onv_is_value(id) || id.index < first_value) continue;
        if (record->role != ONV_ROLE_NOT_NOTED) onv_model_value(b->model, id)->role = record->role;
        ONV_TRY(read_folded(b, record, onv_model_value(b->model, id)));
        if (onv_model_value(b->model, id)->declared != NULL) continue;
        onv_type *type = ONV_ARENA_ARRAY(&b->model->arena, onv_type, 1);
        if (type == NULL) return onv_fail_memory(b->err);
        ONV_TRY(onv_build_value_type(b, record, onv_build_name(b, record->name), free_dims, type));
        if (type->kind != ONV_TYPE_UNKNOWN) onv_model_value(b->model, id)->declared = type;
    }
    return ONV_OK;
}

/* --- Second pass: nodes ------------------------------------------------------------------------ */

onv_status onv_build_nodes(onv_builder *b, const onv_scope *scope, onv_record_list nodes)
{
    bool is_main = scope->graph.index == 0 && scope->calls == 0;
    size_t index = 0;
    ONV_EACH_RECORD(node, b->scan->nodes, nodes)
    {
        if (is_main) b->place = (uint32_t)index;
        ONV_TRY(onv_build_node(b, scope, node, index++));
    }
    return ONV_OK;
}

static onv_status find_outputs(onv_builder *b, const onv_scope *scope, const onv_scan_graph *record,
                               onv_graph *graph)
{
    graph->outputs = ONV_ARENA_ARRAY(&b->model->arena, onv_value_id, record->outputs.count);
    if (graph->outputs == NULL) return onv_fail_memory(b->err);
    ONV_EACH_RECORD(output, b->scan->values, record->outputs)
    {
        onv_value_id id;
        if (!onv_scope_find(scope, output->name, &id) || !onv_is_value(id))
            return onv_fail(b->err, ONV_ERR_MODEL, "output '%s' of graph '%s' is not defined",
                            onv_build_name(b, output->name), graph->name);
        onv_value *value = onv_model_value(b->model, id);
        if (value->graph.index == scope->graph.index) value->is_output = true;
        graph->outputs[graph->n_outputs++] = id;
    }
    return ONV_OK;
}

uint64_t onv_build_graph_items(const onv_scan_graph *record)
{
    return (uint64_t)record->inputs.count + record->outputs.count + record->initializers.count +
           record->sparse_initializers.count + record->declared.count;
}

static onv_status build_scope(onv_builder *b, onv_scope *scope, const onv_scan_graph *record,
                              onv_graph *graph)
{
    ONV_TRY(onv_build_work(b, onv_build_cost(onv_build_graph_items(record), scope->calls > 0)));
    size_t n_names =
        (size_t)record->initializers.count + record->inputs.count + record->nodes.count;
    if (scope->outer == NULL) /* all names of the file are interned */
        scope->names.all = onv_heap_calloc(b->model->strings.count, sizeof *scope->names.all);
    if (scope->outer == NULL ? scope->names.all == NULL
                             : !onv_ptr_map_reserve(&scope->names.some, n_names))
        return onv_fail_memory(b->err);
    ONV_TRY(define_initializers(b, scope, record));
    ONV_TRY(define_inputs(b, scope, record, graph));
    ONV_TRY(onv_build_outputs(b, scope, record->nodes));
    if (scope->outer != NULL) /* the main graph's get sizes by name (infer/bind.c) */
        ONV_TRY(onv_build_declared(b, scope, record->inputs, ONV_FREE_UNKNOWN, 0));
    /* What the graph says of its outputs goes before what it says of values on the way. */
    ONV_TRY(onv_build_declared(b, scope, record->outputs, ONV_FREE_UNKNOWN, 0));
    ONV_TRY(onv_build_declared(b, scope, record->declared, ONV_FREE_UNKNOWN, 0));
    ONV_TRY(onv_build_nodes(b, scope, record->nodes));
    ONV_TRY(find_outputs(b, scope, record, graph));
    graph->n_nodes = (uint32_t)scope->nodes->count;
    graph->nodes = onv_arena_copy(&b->model->arena, scope->nodes->at,
                                  scope->nodes->count * sizeof *graph->nodes);
    return graph->nodes != NULL ? ONV_OK : onv_fail_memory(b->err);
}

onv_status onv_build_graph(onv_builder *b, const onv_scan_graph *record, const onv_scope *closure,
                           const onv_scope *host, onv_node_id owner, const char *owner_attr,
                           const char *path, onv_graph_id *id)
{
    onv_model *model = b->model;
    onv_graph graph = {
        .name = path, .owner = owner, .owner_attr = owner_attr, .trips = onv_dim_const(1)};
    onv_node_list nodes = {0};
    onv_scope scope = {
        .outer = closure,
        .versions = closure != NULL ? closure->versions : &b->versions,
        .bindings = closure != NULL ? closure->bindings : NULL,
        .prefix = "",
        .graph = {(uint32_t)model->graphs.count},
        .graphs = host != NULL ? host->graphs + 1 : 0,
        .calls = host != NULL ? host->calls : 0,
        .nodes = &nodes,
    };
    if (scope.graphs > b->limits->nesting)
        return onv_fail(b->err, ONV_ERR_LIMIT,
                        "graphs nested more than %" PRIu32 " deep, the limit" ONV_RAISE("nesting"),
                        b->limits->nesting);
    if (path[0] != '\0') ONV_TRY(onv_build_prefix(b, path, &scope.prefix));
    *id = scope.graph;
    if (!onv_vec_push(&model->graphs, graph)) return onv_fail_memory(b->err);
    onv_status status = build_scope(b, &scope, record, &graph);
    if (status == ONV_OK) *onv_model_graph(model, scope.graph) = graph;
    onv_ptr_map_cleanup(&scope.names.some);
    onv_heap_free(scope.names.all);
    onv_vec_cleanup(&nodes);
    return status;
}

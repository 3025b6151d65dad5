#include <inttypes.h>
#include <stdio.h>

#include "base/fail.h"
#include "base/heap.h"
#include "load/build.h"
#include "load/limits.h"

/* --- The table --------------------------------------------------------------------------------- */

/* The text that stands for the names of a function, which are interned: their numbers. */
enum { KEY_BYTES = 36 };

static const char *key_of(char text[KEY_BYTES], const onv_scan_node *call)
{
    snprintf(text, KEY_BYTES, "%" PRIx32 ".%" PRIx32 ".%" PRIx32, call->domain, call->op_type,
             call->overload);
    return text;
}

onv_function *onv_build_find_function(const onv_builder *b, const onv_scan_node *node)
{
    char text[KEY_BYTES];
    uint32_t index;
    if (b->n_functions == 0) return NULL;
    const char *key = onv_interned(&b->model->strings, key_of(text, node));
    return key != NULL && onv_ptr_map_get(&b->function_at, key, &index) ? &b->functions[index]
                                                                        : NULL;
}

static onv_status add_function(onv_builder *b, const onv_scan_function *record)
{
    char text[KEY_BYTES];
    const char *key;
    const uint32_t index = (uint32_t)b->n_functions++;
    onv_function *function = &b->functions[index];
    *function = (onv_function){.record = record,
                               .name = onv_build_name(b, record->head.op_type),
                               .domain = onv_build_name(b, record->head.domain)};
    ONV_TRY(onv_build_intern(b, key_of(text, &record->head), &key));
    if (onv_ptr_map_get(&b->function_at, key, NULL))
        return onv_fail(b->err, ONV_ERR_MODEL, "function '%s' of domain '%s' is defined twice",
                        function->name, function->domain);
    if (!onv_ptr_map_set(&b->function_at, key, index)) return onv_fail_memory(b->err);
    ONV_EACH_RECORD(part, b->scan->parts, record->opsets)
    {
        const ProtobufCMessage *pb;
        ONV_TRY(onv_build_unpack(b, part->span, &onnx__operator_set_id_proto__descriptor, &pb));
        ONV_TRY(onv_build_import(b, (const Onnx__OperatorSetIdProto *)pb, &function->versions));
        ONV_TRY(onv_build_import(b, (const Onnx__OperatorSetIdProto *)pb, &b->elsewhere));
    }
    for (uint32_t k = 0; k < record->head.attrs.count; k++)
        if (onv_scan_attr_of(b->scan, record->head.attrs, k)->reference[0] != '\0')
            return onv_fail(b->err, ONV_ERR_MODEL,
                            "function '%s': the default of an attribute refers to another",
                            function->name);
    return ONV_OK;
}

/* --- What expansion will cost ------------------------------------------------------------------ */

/* Found before anything is expanded, so that a model of a few hundred bytes cannot keep us busy up
 * to the limit. Graphs that calls pass as attributes are counted where they are written; the limit
 * on nodes holds them during expansion. */

enum { UNVISITED, VISITING, VISITED };

typedef struct cost {
    uint64_t nodes; /* and calls, and what long lists count for */
    uint32_t depth; /* of calls below */
} cost;

static onv_status cost_of_nodes(onv_builder *b, onv_record_list nodes, uint32_t depth, cost *sum);

static void add_cost(cost *sum, uint64_t nodes)
{
    if (__builtin_add_overflow(sum->nodes, nodes, &sum->nodes)) sum->nodes = UINT64_MAX;
}

static uint64_t items_of(const onv_scan_node *node)
{
    return (uint64_t)node->n_inputs + node->n_outputs + node->attrs.count;
}

/* What a call goes through besides the nodes of the body. */
static uint64_t list_items(const onv_scan_function *record)
{
    return items_of(&record->head) + record->declared.count;
}

static onv_status cost_of_function(onv_builder *b, onv_function *function, uint32_t depth)
{
    if (function->visit == VISITED) return ONV_OK;
    if (function->visit == VISITING)
        return onv_fail(b->err, ONV_ERR_MODEL, "function '%s' of domain '%s' calls itself",
                        function->name, function->domain);
    function->visit = VISITING;
    cost sum = {.nodes = onv_build_cost(list_items(function->record), true)};
    ONV_TRY(cost_of_nodes(b, function->record->nodes, depth, &sum));
    function->cost = sum.nodes;
    function->depth = sum.depth + 1;
    function->visit = VISITED;
    return ONV_OK;
}

static onv_status cost_of_call(onv_builder *b, const onv_scan_node *node, uint32_t depth, cost *sum)
{
    onv_function *function = onv_build_find_function(b, node);
    if (function == NULL) return ONV_OK;
    if (depth < b->limits->function_depth) ONV_TRY(cost_of_function(b, function, depth + 1));
    if (depth + (function->visit == VISITED ? function->depth : 1) > b->limits->function_depth)
        return onv_fail(b->err, ONV_ERR_LIMIT,
                        "functions call each other more than %" PRIu32
                        " deep, the limit (function '%s')" ONV_RAISE("function-depth"),
                        b->limits->function_depth, function->name);
    add_cost(sum, function->cost);
    if (function->depth > sum->depth) sum->depth = function->depth;
    return ONV_OK;
}

static onv_status cost_of_graphs(onv_builder *b, onv_record_list graphs, uint32_t depth, cost *sum)
{
    ONV_EACH_RECORD(graph, b->scan->graphs, graphs)
    {
        add_cost(sum, onv_build_cost(onv_build_graph_items(graph), depth > 0));
        ONV_TRY(cost_of_nodes(b, graph->nodes, depth, sum));
    }
    return ONV_OK;
}

static onv_status cost_of_nodes(onv_builder *b, onv_record_list nodes, uint32_t depth, cost *sum)
{
    ONV_EACH_RECORD(node, b->scan->nodes, nodes)
    {
        add_cost(sum, 1 + onv_build_cost(items_of(node), depth > 0));
        ONV_TRY(cost_of_call(b, node, depth, sum));
        for (uint32_t k = 0; k < node->attrs.count; k++) {
            const onv_scan_attr *attr = onv_scan_attr_of(b->scan, node->attrs, k);
            ONV_TRY(cost_of_graphs(b, attr->graph, depth, sum));
            ONV_TRY(cost_of_graphs(b, attr->graphs, depth, sum));
        }
    }
    return ONV_OK;
}

onv_status onv_build_functions(onv_builder *b)
{
    const onv_scan *scan = b->scan;
    const size_t n = scan->functions.count;
    if (n == 0) return ONV_OK;
    b->functions = onv_heap_calloc(n, sizeof *b->functions);
    if (b->functions == NULL) return onv_fail_memory(b->err);
    for (size_t i = 0; i < n; i++) ONV_TRY(add_function(b, &scan->functions.at[i]));
    cost sum = {0};
    ONV_TRY(cost_of_nodes(b, ONV_RECORD(scan->graphs, scan->main_graph)->nodes, 0, &sum));
    if (sum.nodes <= b->most_expanded) return ONV_OK;
    return onv_fail(
        b->err, ONV_ERR_LIMIT,
        "the model has %s%" PRIu64
        " nodes once its functions are expanded; the limit is %" PRIu64 ONV_RAISE("nodes"),
        sum.nodes == UINT64_MAX ? "at least " : "", sum.nodes, b->most_expanded);
}

/* --- Calls ------------------------------------------------------------------------------------- */

/* One call on its way into the caller's graph. */
typedef struct call {
    onv_builder *b;
    const onv_scope *caller;
    const onv_scan_node *node;
    const onv_function *function;
    const char *path;
    onv_scope body;
    onv_name_map results;
    onv_bindings bindings;
} call;

static onv_status bind_inputs(call *c)
{
    onv_builder *b = c->b;
    const onv_scan_node *function = &c->function->record->head;
    const onv_name *formals = onv_build_inputs(b, function);
    const onv_name *actuals = onv_build_inputs(b, c->node);
    if (c->node->n_inputs > function->n_inputs || c->node->n_outputs > function->n_outputs)
        return onv_fail(b->err, ONV_ERR_MODEL,
                        "the call has %" PRIu32 " inputs and %" PRIu32
                        " outputs, the function %" PRIu32 " and %" PRIu32,
                        c->node->n_inputs, c->node->n_outputs, function->n_inputs,
                        function->n_outputs);
    for (uint32_t i = 0; i < function->n_inputs; i++) {
        const onv_name formal = formals[i], actual = i < c->node->n_inputs ? actuals[i] : 0;
        onv_value_id id = ONV_NO_VALUE;
        if (actual != 0 && !onv_scope_find(c->caller, actual, &id))
            return onv_fail(b->err, ONV_ERR_MODEL,
                            "input %" PRIu32 ", '%s', is not defined anywhere", i,
                            onv_build_name(b, actual));
        if (formal == 0 || onv_name_get(&c->body.names, formal, NULL))
            return onv_fail(b->err, ONV_ERR_MODEL, "function '%s' has two inputs named '%s'",
                            c->function->name, onv_build_name(b, formal));
        if (!onv_name_set(&c->body.names, formal, id)) return onv_fail_memory(b->err);
    }
    return ONV_OK;
}

/* The caller's value for output k of the function; none where the call leaves it out. */
static onv_name actual_output(const call *c, uint32_t k, onv_value_id *id)
{
    const onv_scan_node *function = &c->function->record->head;
    const onv_name *outputs = onv_build_inputs(c->b, c->node) + c->node->n_inputs;
    *id = ONV_NO_VALUE;
    if (k < c->node->n_outputs && outputs[k] != 0) onv_name_get(&c->caller->names, outputs[k], id);
    return onv_build_inputs(c->b, function)[function->n_inputs + k];
}

static onv_status bind_outputs(call *c)
{
    for (uint32_t k = 0; k < c->function->record->head.n_outputs; k++) {
        onv_value_id id;
        const onv_name formal = actual_output(c, k, &id);
        /* An output that is an input too, or listed before, is copied from there at the end. */
        if (!onv_is_value(id) || onv_name_get(&c->body.names, formal, NULL) ||
            onv_name_get(&c->results, formal, NULL))
            continue;
        if (!onv_name_set(&c->results, formal, id)) return onv_fail_memory(c->b->err);
    }
    return ONV_OK;
}

static onv_status bind_attrs(call *c, onv_range attrs, const onv_scope *scope)
{
    for (uint32_t k = 0; k < attrs.count; k++) {
        const onv_scan_attr *attr = onv_scan_attr_of(c->b->scan, attrs, k);
        onv_binding binding = {.attr = attr, .scope = scope};
        if (onv_ptr_map_get(&c->bindings.index, attr->name, NULL)) continue; /* given: no default */
        if (!onv_ptr_map_set(&c->bindings.index, attr->name, (uint32_t)c->bindings.list.count) ||
            !onv_vec_push(&c->bindings.list, binding))
            return onv_fail_memory(c->b->err);
    }
    return ONV_OK;
}

/* Outputs of the function that no node of its body produces under the caller's id. */
static onv_status pass_through(call *c)
{
    for (uint32_t k = 0; k < c->function->record->head.n_outputs; k++) {
        onv_value_id actual, inner;
        const onv_name formal = actual_output(c, k, &actual);
        if (!onv_is_value(actual)) continue;
        if (!onv_name_get(&c->body.names, formal, &inner) || !onv_is_value(inner))
            return onv_fail(c->b->err, ONV_ERR_MODEL,
                            "output '%s' of function '%s' is not defined in it",
                            onv_build_name(c->b, formal), c->function->name);
        if (inner.index == actual.index) continue;
        const char *name;
        ONV_TRY(onv_build_join(c->b, c->body.prefix, "Identity_", &name));
        ONV_TRY(onv_build_join(c->b, name, onv_build_name(c->b, formal), &name));
        ONV_TRY(onv_build_identity(c->b, &c->body, name, inner, actual));
    }
    return ONV_OK;
}

static onv_status expand(call *c)
{
    onv_builder *b = c->b;
    const onv_scan_function *function = c->function->record;
    /* Defaults see no names and no attributes; without this a default graph could hold itself. */
    const onv_scope defaults = {.versions = &c->function->versions};
    size_t first_value = b->model->values.count;
    ONV_TRY(onv_build_prefix(b, c->path, &c->body.prefix));
    ONV_TRY(bind_inputs(c));
    ONV_TRY(bind_outputs(c));
    ONV_TRY(bind_attrs(c, c->node->attrs, c->caller));
    ONV_TRY(bind_attrs(c, function->head.attrs, &defaults));
    ONV_TRY(onv_build_outputs(b, &c->body, function->nodes));
    ONV_TRY(onv_build_declared(b, &c->body, function->declared, ONV_FREE_LOCAL, first_value));
    ONV_TRY(onv_build_nodes(b, &c->body, function->nodes));
    return pass_through(c);
}

onv_status onv_build_call(onv_builder *b, const onv_scope *caller, const onv_scan_node *record,
                          const onv_function *function, const char *path)
{
    call c = {
        .b = b,
        .caller = caller,
        .node = record,
        .function = function,
        .path = path,
        .body = {.versions = &function->versions,
                 .graph = caller->graph,
                 .graphs = caller->graphs,
                 .calls = caller->calls + 1,
                 .nodes = caller->nodes},
    };
    c.body.results = &c.results;
    c.body.bindings = &c.bindings;
    /* The walk over costs has seen every call, but for those in graphs passed as attributes. */
    if (c.body.calls > b->limits->function_depth)
        return onv_fail(b->err, ONV_ERR_LIMIT,
                        "functions call each other more than %" PRIu32
                        " deep, the limit" ONV_RAISE("function-depth"),
                        b->limits->function_depth);
    onv_status status = onv_build_work(b, onv_build_cost(list_items(function->record), true));
    if (status == ONV_OK) status = expand(&c);
    onv_ptr_map_cleanup(&c.body.names.some);
    onv_ptr_map_cleanup(&c.results.some);
    onv_ptr_map_cleanup(&c.bindings.index);
    onv_vec_cleanup(&c.bindings.list);
    return status;
}

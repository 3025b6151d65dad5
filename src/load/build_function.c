#include <inttypes.h>
#include <string.h>

#include "base/heap.h"
#include "load/build.h"
#include "load/limits.h"

/* --- The table --------------------------------------------------------------------------------- */

static uint64_t hash_key(const char *domain, const char *name, const char *overload)
{
    const uintptr_t names[] = {(uintptr_t)domain, (uintptr_t)name, (uintptr_t)overload};
    return onv_hash_bytes(names, sizeof names, 0);
}

static uint32_t *find_slot(const onv_builder *b, const char *domain, const char *name,
                           const char *overload)
{
    size_t mask = b->n_function_slots - 1;
    size_t slot = hash_key(domain, name, overload) & mask;
    for (; b->function_slots[slot] != 0; slot = (slot + 1) & mask) {
        const onv_function *function = &b->functions[b->function_slots[slot] - 1];
        if (function->domain == domain && function->name == name && function->overload == overload)
            break;
    }
    return &b->function_slots[slot];
}

const onv_function *onv_build_find_function(const onv_builder *b, const char *domain,
                                            const char *name, const char *overload)
{
    if (b->n_functions == 0) return NULL;
    uint32_t index = *find_slot(b, domain, name, overload);
    return index != 0 ? &b->functions[index - 1] : NULL;
}

static onv_status add_function(onv_builder *b, const Onnx__FunctionProto *pb)
{
    onv_function *function = &b->functions[b->n_functions];
    *function = (onv_function){.pb = pb};
    b->n_functions++;
    ONV_TRY(onv_build_intern(b, pb->name, &function->name));
    ONV_TRY(onv_build_intern(b, pb->overload, &function->overload));
    ONV_TRY(onv_build_domain(b, pb->domain, &function->domain));
    uint32_t *slot = find_slot(b, function->domain, function->name, function->overload);
    if (*slot != 0)
        return onv_fail(b->err, ONV_ERR_MODEL, "function '%s' of domain '%s' is defined twice",
                        function->name, function->domain);
    *slot = (uint32_t)b->n_functions;
    ONV_TRY(onv_build_versions(b, pb->opset_import, pb->n_opset_import, &function->versions));
    ONV_TRY(onv_build_versions(b, pb->opset_import, pb->n_opset_import, &b->elsewhere));
    for (size_t i = 0; i < pb->n_attribute_proto; i++)
        if (pb->attribute_proto[i]->ref_attr_name != NULL &&
            pb->attribute_proto[i]->ref_attr_name[0] != '\0')
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

static onv_status cost_of_nodes(onv_builder *b, Onnx__NodeProto *const *nodes, size_t n,
                                uint32_t depth, cost *sum);

static void add_cost(cost *sum, uint64_t nodes)
{
    if (__builtin_add_overflow(sum->nodes, nodes, &sum->nodes)) sum->nodes = UINT64_MAX;
}

/* What a call goes through besides the nodes of the body. */
static uint64_t list_items(const Onnx__FunctionProto *pb)
{
    return (uint64_t)pb->n_input + pb->n_output + pb->n_attribute_proto + pb->n_value_info;
}

static onv_status cost_of_function(onv_builder *b, onv_function *function, uint32_t depth)
{
    if (function->visit == VISITED) return ONV_OK;
    if (function->visit == VISITING)
        return onv_fail(b->err, ONV_ERR_MODEL, "function '%s' of domain '%s' calls itself",
                        function->name, function->domain);
    function->visit = VISITING;
    cost sum = {.nodes = onv_build_cost(list_items(function->pb), true)};
    ONV_TRY(cost_of_nodes(b, function->pb->node, function->pb->n_node, depth, &sum));
    function->cost = sum.nodes;
    function->depth = sum.depth + 1;
    function->visit = VISITED;
    return ONV_OK;
}

static onv_status cost_of_call(onv_builder *b, const Onnx__NodeProto *pb, uint32_t depth, cost *sum)
{
    const char *domain, *name, *overload;
    ONV_TRY(onv_build_domain(b, pb->domain, &domain));
    ONV_TRY(onv_build_intern(b, pb->op_type, &name));
    ONV_TRY(onv_build_intern(b, pb->overload, &overload));
    if (onv_build_find_function(b, domain, name, overload) == NULL) return ONV_OK;
    onv_function *function = &b->functions[*find_slot(b, domain, name, overload) - 1];
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

static onv_status cost_of_graph(onv_builder *b, const Onnx__GraphProto *pb, uint32_t depth,
                                cost *sum)
{
    add_cost(sum, onv_build_cost(onv_build_graph_items(pb), depth > 0));
    return cost_of_nodes(b, pb->node, pb->n_node, depth, sum);
}

static onv_status cost_of_nodes(onv_builder *b, Onnx__NodeProto *const *nodes, size_t n,
                                uint32_t depth, cost *sum)
{
    for (size_t i = 0; i < n; i++) {
        const Onnx__NodeProto *node = nodes[i];
        add_cost(sum,
                 1 + onv_build_cost(node->n_input + node->n_output + node->n_attribute, depth > 0));
        ONV_TRY(cost_of_call(b, node, depth, sum));
        for (size_t a = 0; a < node->n_attribute; a++) {
            const Onnx__AttributeProto *attr = node->attribute[a];
            if (attr->g != NULL) ONV_TRY(cost_of_graph(b, attr->g, depth, sum));
            for (size_t g = 0; g < attr->n_graphs; g++)
                ONV_TRY(cost_of_graph(b, attr->graphs[g], depth, sum));
        }
    }
    return ONV_OK;
}

onv_status onv_build_functions(onv_builder *b, const Onnx__ModelProto *pb)
{
    if (pb->n_functions == 0) return ONV_OK;
    b->n_function_slots = 8;
    while (b->n_function_slots < pb->n_functions * 2) b->n_function_slots *= 2;
    b->function_slots = onv_heap_calloc(b->n_function_slots, sizeof *b->function_slots);
    b->functions = onv_heap_calloc(pb->n_functions, sizeof *b->functions);
    if (b->function_slots == NULL || b->functions == NULL) return onv_fail_memory(b->err);
    for (size_t i = 0; i < pb->n_functions; i++) ONV_TRY(add_function(b, pb->functions[i]));
    cost sum = {0};
    ONV_TRY(cost_of_nodes(b, pb->graph->node, pb->graph->n_node, 0, &sum));
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
    const Onnx__NodeProto *pb;
    const onv_function *function;
    const char *path;
    onv_scope body;
    onv_ptr_map results;
    onv_bindings bindings;
} call;

static onv_status bind_inputs(call *c)
{
    onv_builder *b = c->b;
    const Onnx__FunctionProto *function = c->function->pb;
    if (c->pb->n_input > function->n_input || c->pb->n_output > function->n_output)
        return onv_fail(b->err, ONV_ERR_MODEL,
                        "the call has %zu inputs and %zu outputs, the function %zu and %zu",
                        c->pb->n_input, c->pb->n_output, function->n_input, function->n_output);
    for (size_t i = 0; i < function->n_input; i++) {
        const char *formal, *actual = "";
        onv_value_id id = ONV_NO_VALUE;
        ONV_TRY(onv_build_intern(b, function->input[i], &formal));
        if (i < c->pb->n_input) ONV_TRY(onv_build_intern(b, c->pb->input[i], &actual));
        if (actual[0] != '\0' && !onv_scope_find(c->caller, actual, &id))
            return onv_fail(b->err, ONV_ERR_MODEL, "input %zu, '%s', is not defined anywhere", i,
                            actual);
        if (formal[0] == '\0' || onv_ptr_map_get(&c->body.names, formal, NULL))
            return onv_fail(b->err, ONV_ERR_MODEL, "function '%s' has two inputs named '%s'",
                            c->function->name, formal);
        if (!onv_ptr_map_set(&c->body.names, formal, id.index)) return onv_fail_memory(b->err);
    }
    return ONV_OK;
}

/* The caller's value for output k of the function; none where the call leaves it out. */
static onv_status actual_output(const call *c, size_t k, const char **formal, onv_value_id *id)
{
    const char *name = "";
    *id = ONV_NO_VALUE;
    ONV_TRY(onv_build_intern(c->b, c->function->pb->output[k], formal));
    if (k < c->pb->n_output) ONV_TRY(onv_build_intern(c->b, c->pb->output[k], &name));
    if (name[0] != '\0') onv_ptr_map_get(&c->caller->names, name, &id->index);
    return ONV_OK;
}

static onv_status bind_outputs(call *c)
{
    for (size_t k = 0; k < c->function->pb->n_output; k++) {
        const char *formal;
        onv_value_id id;
        ONV_TRY(actual_output(c, k, &formal, &id));
        /* An output that is an input too, or listed before, is copied from there at the end. */
        if (!onv_is_value(id) || onv_ptr_map_get(&c->body.names, formal, NULL) ||
            onv_ptr_map_get(&c->results, formal, NULL))
            continue;
        if (!onv_ptr_map_set(&c->results, formal, id.index)) return onv_fail_memory(c->b->err);
    }
    return ONV_OK;
}

static onv_status bind_attr(call *c, const Onnx__AttributeProto *pb, const onv_scope *scope)
{
    const char *name;
    ONV_TRY(onv_build_intern(c->b, pb->name, &name));
    if (onv_ptr_map_get(&c->bindings.index, name, NULL)) return ONV_OK; /* given: no default */
    onv_binding binding = {.pb = pb, .scope = scope};
    if (!onv_ptr_map_set(&c->bindings.index, name, (uint32_t)c->bindings.list.count) ||
        !onv_vec_push(&c->bindings.list, binding))
        return onv_fail_memory(c->b->err);
    return ONV_OK;
}

static onv_status bind_attrs(call *c, const onv_scope *defaults)
{
    for (size_t i = 0; i < c->pb->n_attribute; i++)
        ONV_TRY(bind_attr(c, c->pb->attribute[i], c->caller));
    for (size_t i = 0; i < c->function->pb->n_attribute_proto; i++)
        ONV_TRY(bind_attr(c, c->function->pb->attribute_proto[i], defaults));
    return ONV_OK;
}

/* Outputs of the function that no node of its body produces under the caller's id. */
static onv_status pass_through(call *c)
{
    for (size_t k = 0; k < c->function->pb->n_output; k++) {
        const char *formal;
        onv_value_id actual, inner;
        ONV_TRY(actual_output(c, k, &formal, &actual));
        if (!onv_is_value(actual)) continue;
        if (!onv_ptr_map_get(&c->body.names, formal, &inner.index) || !onv_is_value(inner))
            return onv_fail(c->b->err, ONV_ERR_MODEL,
                            "output '%s' of function '%s' is not defined in it", formal,
                            c->function->name);
        if (inner.index == actual.index) continue;
        const char *name;
        ONV_TRY(onv_build_join(c->b, c->body.prefix, "Identity_", &name));
        ONV_TRY(onv_build_join(c->b, name, formal, &name));
        ONV_TRY(onv_build_identity(c->b, &c->body, name, inner, actual));
    }
    return ONV_OK;
}

static onv_status expand(call *c)
{
    onv_builder *b = c->b;
    const Onnx__FunctionProto *function = c->function->pb;
    /* Defaults see no names and no attributes; without this a default graph could hold itself. */
    const onv_scope defaults = {.versions = &c->function->versions};
    size_t first_value = b->model->values.count;
    ONV_TRY(onv_build_prefix(b, c->path, &c->body.prefix));
    ONV_TRY(bind_inputs(c));
    ONV_TRY(bind_outputs(c));
    ONV_TRY(bind_attrs(c, &defaults));
    ONV_TRY(onv_build_outputs(b, &c->body, function->node, function->n_node));
    ONV_TRY(onv_build_declared(b, &c->body, function->value_info, function->n_value_info,
                               ONV_FREE_LOCAL, first_value));
    ONV_TRY(onv_build_nodes(b, &c->body, function->node, function->n_node));
    return pass_through(c);
}

onv_status onv_build_call(onv_builder *b, const onv_scope *caller, const Onnx__NodeProto *pb,
                          const onv_function *function, const char *path)
{
    call c = {
        .b = b,
        .caller = caller,
        .pb = pb,
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
    onv_status status = onv_build_work(b, onv_build_cost(list_items(function->pb), true));
    if (status == ONV_OK) status = expand(&c);
    onv_ptr_map_cleanup(&c.body.names);
    onv_ptr_map_cleanup(&c.results);
    onv_ptr_map_cleanup(&c.bindings.index);
    onv_vec_cleanup(&c.bindings.list);
    return status;
}

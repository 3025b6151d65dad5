#include "program/view.h"

#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "load/limits.h"
#include "load/statements.h"

/* As Python writes lists of names, without an end. */
typedef struct stack_text {
    const char *calls, *classes;
} stack_text;

typedef struct viewer {
    const onv_program *program;
    onv_model *model;
    stack_text *stacks;    /* by module; made when a call needs it */
    const char **prefixes; /* of names in a graph: "cond/true_graph_0/" */
    uint32_t outer;        /* the graph around the one that was added last */
    onv_error *err;
} viewer;

static void *array(viewer *v, size_t count, size_t size, size_t align)
{
    return onv_arena_calloc(&v->model->arena, count, size, align);
}
#define ARRAY(v, type, count) ((type *)array(v, count, sizeof(type), _Alignof(type)))

/* --- Values -------------------------------------------------------------------------------------- */

static onv_status set_tensor(viewer *v, const onv_program_value *from, onv_value *value)
{
    uint64_t elems = 1;
    onv_tensor *tensor = ARRAY(v, onv_tensor, 1);
    if (tensor == NULL) return onv_fail_memory(v->err);
    for (uint32_t i = 0; i < from->rank; i++) {
        if (!onv_dim_is_const(from->dims[i]) ||
            __builtin_mul_overflow(elems, (uint64_t)from->dims[i].raw, &elems))
            return onv_fail(v->err, ONV_ERR_FORMAT, "the parameter '%.100s' has no size",
                            value->name);
    }
    bool is_counted = from->same_as != ONV_NO_PROGRAM_VALUE; /* under its other name */
    *tensor =
        (onv_tensor){.name = value->name, .type = value->type, .elems = is_counted ? 0 : elems};
    if (!onv_dtype_bytes((onv_dtype)from->dtype, tensor->elems, &tensor->bytes))
        return onv_fail(v->err, ONV_ERR_FORMAT, "the parameter '%.100s' has no size", value->name);
    value->tensor = tensor;
    return ONV_OK;
}

static const char *name_of(viewer *v, const onv_program_value *from)
{
    const char *name = from->fqn != NULL ? from->fqn : from->name;
    if (from->graph == 0) return name;
    return onv_arena_printf(&v->model->arena, "%s%s", v->prefixes[from->graph], name);
}

static onv_status add_value(viewer *v, const onv_program_value *from)
{
    onv_node_id producer = ONV_NO_NODE;
    if (from->kind == ONV_PROGRAM_RESULT) producer.index = from->call;
    onv_value value = {
        .name = name_of(v, from),
        .is_output = from->is_output,
        .graph = {from->graph},
        .producer = producer,
        .type = {.kind = ONV_TYPE_TENSOR,
                 .dtype = from->dtype,
                 .rank = (int16_t)from->rank,
                 .dims = from->dims},
    };
    if (value.name == NULL) return onv_fail_memory(v->err);
    if (from->kind == ONV_PROGRAM_RESULT) value.kind = ONV_VALUE_ACTIVATION;
    if (from->kind == ONV_PROGRAM_INPUT) value.kind = ONV_VALUE_INPUT;
    if (from->fqn != NULL) {
        value.kind = ONV_VALUE_INITIALIZER;
        value.role = from->kind == ONV_PROGRAM_PARAMETER ? ONV_ROLE_PARAMETER : ONV_ROLE_BUFFER;
        ONV_TRY(set_tensor(v, from, &value));
    }
    return onv_vec_push(&v->model->values, value) ? ONV_OK : onv_fail_memory(v->err);
}

/* --- Calls --------------------------------------------------------------------------------------- */

/* Appends to a text of known room. */
static char *append(char *at, const char *text)
{
    size_t n = strlen(text);
    memcpy(at, text, n + 1);
    return at + n;
}

/* "['', 'layer1', 'layer1.0'": outer first. */
static const char *list_text(viewer *v, const uint32_t *stack, uint32_t depth, bool is_class)
{
    size_t room = 2;
    for (uint32_t i = 0; i < depth; i++) {
        const onv_program_module *m = &v->program->modules.at[stack[i]];
        room += strlen(is_class ? m->class_name : m->path) + 4;
    }
    char *text = onv_arena_packed(&v->model->arena, room), *at = text;
    if (text == NULL) return NULL;
    at = append(at, "[");
    for (uint32_t i = depth; i-- > 0;) {
        const onv_program_module *m = &v->program->modules.at[stack[i]];
        at = append(at, i + 1 < depth ? ", '" : "'");
        at = append(at, is_class ? m->class_name : m->path);
        at = append(at, "'");
    }
    return text;
}

static onv_status set_module(viewer *v, uint32_t module, onv_notes *notes)
{
    const onv_program *p = v->program;
    if (module == UINT32_MAX) return ONV_OK;
    notes->scope = p->modules.at[module].path;
    notes->module_class = p->modules.at[module].class_name;
    stack_text *text = &v->stacks[module];
    if (text->calls == NULL) {
        uint32_t depth = 0, at = 0;
        for (uint32_t m = module; m != UINT32_MAX; m = p->modules.at[m].parent) depth++;
        uint32_t *stack = ARRAY(v, uint32_t, depth);
        if (stack == NULL) return onv_fail_memory(v->err);
        ONV_WORK(depth);
        for (uint32_t m = module; m != UINT32_MAX; m = p->modules.at[m].parent) stack[at++] = m;
        text->calls = list_text(v, stack, depth, false);
        text->classes = list_text(v, stack, depth, true);
        if (text->calls == NULL || text->classes == NULL) return onv_fail_memory(v->err);
    }
    notes->calls = text->calls;
    notes->call_classes = text->classes;
    return ONV_OK;
}

/* The lines of `forward` around it, which say how long Python's names hold results. */
static onv_status set_statements(viewer *v, const onv_program_call *call, onv_notes *notes)
{
    enum { WORK_BYTES = 16 };
    if (call->trace == NULL) return ONV_OK;
    onv_text trace = onv_text_of(call->trace);
    ONV_WORK(1 + trace.length / WORK_BYTES);
    onv_trace_frame own = {.path = {NULL, 0}};
    onv_text rest = trace;
    for (onv_trace_frame f; onv_next_frame(&rest, &f);) onv_statements_look_at(&f, &own);
    ONV_TRY(onv_statements_name_line(v->model, &own, &notes->line, v->err));
    if (notes->calls[0] == '\0') return ONV_OK;
    onv_notes read = *notes; /* for the rest the program has facts */
    ONV_TRY(onv_statements_read(v->model, trace, NULL, &read, v->err));
    notes->statements = read.statements;
    return ONV_OK;
}

/* "aten.conv2d.default" is conv2d of the domain pytorch.aten. */
static onv_status set_operator(viewer *v, const char *op_name, onv_node *node)
{
    onv_strings *strings = &v->model->strings;
    const char *dot = strchr(op_name, '.');
    size_t space = dot != NULL ? (size_t)(dot - op_name) : 0;
    const char *name = dot != NULL ? dot + 1 : op_name;
    size_t length = strcspn(name, ".");
    char *domain = onv_arena_printf(&v->model->arena, "pytorch.%.*s", (int)space, op_name);
    onv_node_set_op(node, onv_intern_n(strings, name, length));
    node->domain = domain != NULL ? onv_intern(strings, domain) : NULL;
    return node->op_type != NULL && node->domain != NULL ? ONV_OK : onv_fail_memory(v->err);
}

static onv_status set_inputs(viewer *v, const onv_program_call *call, onv_node *node)
{
    size_t n = 0;
    for (uint32_t i = 0; i < call->n_arguments; i++) {
        const onv_argument *a = &call->arguments[i];
        if (a->kind == ONV_ARGUMENT_TENSOR) n++;
        if (a->kind == ONV_ARGUMENT_TENSORS) n += a->count;
        node->n_attrs += a->kind == ONV_ARGUMENT_GRAPH;
    }
    if (n > UINT32_MAX) return onv_fail_memory(v->err);
    node->inputs = ARRAY(v, onv_value_id, (size_t)n);
    node->attrs = ARRAY(v, onv_attr, node->n_attrs);
    if (node->inputs == NULL || node->attrs == NULL) return onv_fail_memory(v->err);
    uint32_t attrs = 0;
    for (uint32_t i = 0; i < call->n_arguments; i++) {
        const onv_argument *a = &call->arguments[i];
        if (a->kind == ONV_ARGUMENT_TENSOR)
            node->inputs[node->n_inputs++] = (onv_value_id){a->value};
        for (uint32_t k = 0; a->kind == ONV_ARGUMENT_TENSORS && k < a->count; k++)
            node->inputs[node->n_inputs++] = (onv_value_id){a->values[k]};
        if (a->kind == ONV_ARGUMENT_GRAPH)
            node->attrs[attrs++] = (onv_attr){.name = v->program->graphs.at[a->graph].name,
                                              .kind = ONV_ATTR_GRAPH,
                                              .graph = {a->graph}};
    }
    return ONV_OK;
}

static onv_status set_outputs(viewer *v, const onv_program_call *call, onv_node *node)
{
    node->n_outputs = call->n_results;
    node->outputs = ARRAY(v, onv_value_id, call->n_results);
    if (node->outputs == NULL) return onv_fail_memory(v->err);
    for (uint32_t i = 0; i < call->n_results; i++) {
        node->outputs[i] = (onv_value_id){call->results[i]};
        if (call->results[i] != ONV_NO_PROGRAM_VALUE)
            v->model->values.at[call->results[i]].output_index = i;
    }
    return ONV_OK;
}

static onv_status add_node(viewer *v, const onv_program_call *call, uint32_t graph)
{
    onv_notes *notes = onv_arena_copy(&v->model->arena, &onv_no_notes, sizeof onv_no_notes);
    if (notes == NULL) return onv_fail_memory(v->err);
    notes->source_op = call->name;
    notes->aten_op = call->op_name;
    onv_node node = {.name = call->name,
                     .notes = notes,
                     .graph = {graph},
                     .place = (uint32_t)v->model->nodes.count,
                     .version = 1,
                     .macs = ONV_DIM_UNKNOWN,
                     .element_ops = ONV_DIM_UNKNOWN};
    ONV_WORK(1);
    ONV_TRY(set_operator(v, call->op_name, &node));
    ONV_TRY(set_module(v, call->module, notes));
    ONV_TRY(set_statements(v, call, notes));
    ONV_TRY(set_inputs(v, call, &node));
    ONV_TRY(set_outputs(v, call, &node));
    return onv_vec_push(&v->model->nodes, node) ? ONV_OK : onv_fail_memory(v->err);
}

/* --- Graphs -------------------------------------------------------------------------------------- */

static onv_value_id *ids(viewer *v, const uint32_t *values, uint32_t n)
{
    onv_value_id *list = ARRAY(v, onv_value_id, n);
    for (uint32_t i = 0; list != NULL && i < n; i++) list[i] = (onv_value_id){values[i]};
    return list;
}

/* The graph that has the call. Graphs come in the order of the calls that they are arguments of. */
static uint32_t graph_of(const viewer *v, uint32_t call)
{
    const onv_program_graph *graphs = v->program->graphs.at;
    uint32_t g = call >= graphs[v->outer].first_call ? v->outer : 0;
    while (call - graphs[g].first_call >= graphs[g].n_calls) g++;
    return g;
}

static onv_status add_graph(viewer *v, uint32_t index)
{
    const onv_program_graph *from = &v->program->graphs.at[index];
    onv_graph graph = {.name = "",
                       .owner = {from->call},
                       .owner_attr = from->name,
                       .nodes = ARRAY(v, onv_node_id, from->n_calls),
                       .n_nodes = from->n_calls,
                       .inputs = ids(v, from->inputs, from->n_inputs),
                       .n_inputs = from->n_inputs,
                       .outputs = ids(v, from->outputs, from->n_outputs),
                       .n_outputs = from->n_outputs,
                       .trips = onv_dim_const(1)};
    if (graph.nodes == NULL || graph.inputs == NULL || graph.outputs == NULL)
        return onv_fail_memory(v->err);
    for (uint32_t i = 0; i < from->n_calls; i++)
        graph.nodes[i] = (onv_node_id){from->first_call + i};
    v->prefixes[index] = "";
    if (index > 0) {
        const onv_program_call *call = &v->program->calls.at[from->call];
        uint32_t outer = v->outer = graph_of(v, from->call);
        char *name = onv_arena_printf(&v->model->arena, "%s%s/%s", v->prefixes[outer], call->name,
                                      from->name);
        if (name != NULL && strlen(name) > ONV_MOST_PATH_BYTES)
            name = onv_arena_printf(&v->model->arena, "%u", index);
        v->prefixes[index] = name != NULL ? onv_arena_printf(&v->model->arena, "%s/", name) : NULL;
        if (v->prefixes[index] == NULL) return onv_fail_memory(v->err);
        graph.name = name;
    }
    return onv_vec_push(&v->model->graphs, graph) ? ONV_OK : onv_fail_memory(v->err);
}

static onv_status view(viewer *v)
{
    const onv_program *p = v->program;
    if (v->stacks == NULL || v->prefixes == NULL) return onv_fail_memory(v->err);
    for (uint32_t g = 0; g < p->graphs.count; g++) ONV_TRY(add_graph(v, g));
    for (size_t i = 0; i < p->values.count; i++) ONV_TRY(add_value(v, &p->values.at[i]));
    for (uint32_t g = 0; g < p->graphs.count; g++) {
        const onv_program_graph *graph = &p->graphs.at[g];
        for (uint32_t i = 0; i < graph->n_calls; i++)
            ONV_TRY(add_node(v, &p->calls.at[graph->first_call + i], g));
    }
    return ONV_OK;
}

onv_status onv_program_view(const onv_program *program, onv_model *model, onv_error *err)
{
    viewer v = {.program = program, .model = model, .err = err};
    v.stacks = ARRAY(&v, stack_text, program->modules.count);
    v.prefixes = ARRAY(&v, const char *, program->graphs.count);
    model->program = program; /* what reads notes asks for it */
    ONV_TRY(view(&v));
    const char *version = program->torch_version;
    model->producer =
        onv_arena_printf(&model->arena, version[0] != '\0' ? "pytorch %s" : "pytorch%s", version);
    if (model->producer == NULL) return onv_fail_memory(err);
    return ONV_OK;
}

const char *onv_program_evidence(const onv_model *model)
{
    if (model->program != NULL)
        return onv_program_is_recorded(model->program) ? "recording" : "program";
    for (size_t i = 0; i < model->nodes.count; i++)
        if (onv_node_is_noted(&model->nodes.at[i])) return "notes";
    return "graph";
}

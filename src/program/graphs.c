/* Graphs: inputs, calls, outputs, and what the signature says of the network's. */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "load/limits.h"
#include "program/reader.h"

static const char prefix[] = "torch.ops.";

/* --- Inputs and outputs -------------------------------------------------------------------------- */

/* The name in {"as_tensor": {"name": ...}}; NULL where it is no tensor. */
static const onv_doc *tensor_of(onv_program_reader *r, const char *at, const onv_doc *argument)
{
    const char *kind;
    const onv_doc *value = onv_program_variant(r, at, argument, &kind);
    bool is_tensor = strcmp(kind, "as_tensor") == 0;
    return is_tensor ? onv_program_member(r, value, "name", ONV_DOC_STRING) : NULL;
}

static void list_value(onv_program_reader *r, uint32_t id)
{
    onv_program_fit(r, onv_vec_push(&r->ids, id));
}

static void read_inputs(onv_program_reader *r, const onv_doc *inputs)
{
    for (size_t i = 0; i < onv_doc_count(inputs); i++) {
        onv_program_work(r, 1);
        const onv_doc *name = tensor_of(r, "an argument", &inputs->items[i]);
        if (name == NULL) continue;
        list_value(r, onv_program_add_value(r, name, ONV_PROGRAM_INPUT, ONV_NO_CALL_INDEX));
    }
}

/* NULL: it is no tensor. */
static void add_output(onv_program_reader *r, const onv_doc *name)
{
    onv_program_work(r, 1);
    if (name == NULL) return;
    uint32_t id = onv_program_find_value(r, name);
    r->program->values.at[id].is_output = true;
    list_value(r, id);
}

/* --- Modules around a call ---------------------------------------------------------------------- */

/* As nn_module_stack has them, outer first: "L__self__,,__main__.Net;L__self__conv@1,conv,torch.nn.modules.conv.Conv2d".
 * torch.export's word for a call outside of all modules. */
static const char no_stack[] = "_empty_nn_module_stack_from_metadata_hook";

/* One entry, "key,path,class": keys may have commas, paths and classes have none. */
typedef struct entry {
    const char *key, *path, *class_name;
    size_t key_length, path_length, class_length;
} entry;

static const char *comma_before(const char *from, const char *end)
{
    while (end > from && end[-1] != ',') end--;
    return end > from ? end - 1 : NULL;
}

static bool read_entry(const char *from, const char *end, entry *e)
{
    const char *second = comma_before(from, end);
    const char *first = second != NULL ? comma_before(from, second) : NULL;
    if (first == NULL) return false;
    *e = (entry){from,
                 first + 1,
                 second + 1,
                 (size_t)(first - from),
                 (size_t)(second - first - 1),
                 (size_t)(end - second - 1)};
    return e->key_length != sizeof no_stack - 1 || memcmp(from, no_stack, e->key_length) != 0;
}

/* The module of that key inside `parent`: found by a text that names both. */
static uint32_t find_module(onv_program_reader *r, const entry *e, uint32_t parent)
{
    const char *both = onv_program_made(
        r, onv_arena_printf(&r->model->arena, "%x %.*s", parent, (int)e->key_length, e->key));
    const char *name = onv_program_intern(r, both, strlen(both));
    uint32_t module;
    if (onv_ptr_map_get(&r->stacks, name, &module)) return module;
    const onv_program_module made = {
        .path = onv_program_intern(r, e->path, e->path_length),
        .class_name = onv_program_intern(r, e->class_name, e->class_length),
        .key = onv_program_intern(r, e->key, e->key_length),
        .parent = parent,
    };
    module = (uint32_t)r->program->modules.count;
    onv_program_fit(r, onv_vec_push(&r->program->modules, made) &&
                           onv_ptr_map_set(&r->stacks, name, module));
    return module;
}

static uint32_t module_of(onv_program_reader *r, const char *stack)
{
    const char *known = onv_program_intern(r, stack, strlen(stack));
    uint32_t module = UINT32_MAX;
    if (onv_ptr_map_get(&r->stacks, known, &module)) return module;
    for (const char *at = known; *at != '\0';) {
        const char *end = strchr(at, ';');
        entry e;
        if (end == NULL) end = at + strlen(at);
        if (read_entry(at, end, &e)) module = find_module(r, &e, module);
        at = *end == ';' ? end + 1 : end;
    }
    onv_program_fit(r, onv_ptr_map_set(&r->stacks, known, module));
    return module;
}

/* --- Calls --------------------------------------------------------------------------------------- */

/* NULL: None. */
static void add_result(onv_program_reader *r, const onv_doc *name)
{
    uint32_t id = ONV_NO_PROGRAM_VALUE, call = (uint32_t)r->program->calls.count;
    if (name != NULL) id = onv_program_add_value(r, name, ONV_PROGRAM_RESULT, call);
    list_value(r, id);
}

static void read_result(onv_program_reader *r, const onv_doc *output)
{
    const char *kind;
    const onv_doc *value = onv_program_variant(r, "a result", output, &kind);
    if (strcmp(kind, "as_optional_tensor") == 0) add_result(r, tensor_of(r, "a result", value));
    if (strcmp(kind, "as_tensor") == 0 || strcmp(kind, "as_none") == 0)
        add_result(r, tensor_of(r, "a result", output));
    bool is_optional = strcmp(kind, "as_optional_tensors") == 0;
    bool is_list = is_optional || strcmp(kind, "as_tensors") == 0;
    for (size_t i = 0; is_list && i < onv_doc_count(value); i++) {
        const onv_doc *item = &value->items[i];
        onv_program_work(r, 1);
        add_result(r, is_optional ? tensor_of(r, "a result", item)
                                  : onv_program_member(r, item, "name", ONV_DOC_STRING));
    }
}

static void read_results(onv_program_reader *r, const onv_doc *outputs, onv_program_call *call)
{
    size_t first = r->ids.count;
    bool any = false;
    for (size_t i = 0; i < onv_doc_count(outputs); i++) read_result(r, &outputs->items[i]);
    for (size_t i = first; i < r->ids.count; i++) any |= r->ids.at[i] != ONV_NO_PROGRAM_VALUE;
    if (!any) r->ids.count = first;
    call->n_results = (uint32_t)(r->ids.count - first);
    call->results = onv_program_made(r, ONV_PROGRAM_TAKE(r, &r->ids, first));
}

/* Calls that give no tensor, change none and have no graph: sizes, assertions, numbers. Operators that change what they are given
 * have names that end in "_". */
static bool is_left_out(const onv_program_call *call)
{
    const char *name = call->op_name, *dot = strchr(name, '.');
    const char *end = dot != NULL ? strchr(dot + 1, '.') : NULL;
    for (uint32_t i = 0; i < call->n_arguments; i++)
        if (call->arguments[i].kind == ONV_ARGUMENT_GRAPH) return false;
    if (call->n_results > 0 || strncmp(name, "higher_order.", 13) == 0) return false;
    return end == NULL || end[-1] != '_';
}

static bool is_training_flag(const onv_argument *a)
{
    return a->kind == ONV_ARGUMENT_BOOL && a->flag &&
           (strcmp(a->name, "training") == 0 || strcmp(a->name, "train") == 0);
}

static void read_metadata(onv_program_reader *r, const onv_doc *metadata, onv_program_call *call)
{
    call->module = UINT32_MAX;
    if (metadata == NULL) return;
    const onv_doc *stack = onv_program_optional(r, metadata, "nn_module_stack", ONV_DOC_STRING);
    const onv_doc *trace = onv_program_optional(r, metadata, "stack_trace", ONV_DOC_STRING);
    if (stack != NULL) call->module = module_of(r, stack->text);
    if (trace != NULL) call->trace = onv_program_intern(r, trace->text, strlen(trace->text));
}

static void read_names(onv_program_reader *r, const onv_doc *node, onv_program_call *call)
{
    const onv_doc *target = onv_program_member(r, node, "target", ONV_DOC_STRING);
    call->op_name = onv_program_name(r, "target", target);
    if (strncmp(call->op_name, prefix, sizeof prefix - 1) == 0) call->op_name += sizeof prefix - 1;
    const char *dot = strchr(call->op_name, '.'), *op = dot != NULL ? dot + 1 : call->op_name;
    if (*op == '\0' || *op == '.')
        onv_program_leave(
            r, onv_fail(r->err, ONV_ERR_FORMAT,
                        "expected the name of an operator, as torch.ops.aten.relu.default, found "
                        "'%.100s'",
                        target->text));
    const onv_doc *name = onv_program_optional(r, node, "name", ONV_DOC_STRING);
    if (name != NULL) call->name = onv_program_name(r, "name", name);
}

/* Before PyTorch 2.7 calls had no names of their own: they have that of their first result. */
static const char *name_of_result(const onv_program_reader *r, const onv_program_call *call)
{
    for (uint32_t i = 0; i < call->n_results; i++)
        if (call->results[i] != ONV_NO_PROGRAM_VALUE)
            return r->program->values.at[call->results[i]].name;
    return "";
}

static void read_call_into(onv_program_reader *r, const onv_doc *node, onv_program_call *call)
{
    const onv_doc *inputs = onv_program_member(r, node, "inputs", ONV_DOC_LIST);
    const onv_doc *outputs = onv_program_member(r, node, "outputs", ONV_DOC_LIST);
    const onv_doc *metadata = onv_program_optional(r, node, "metadata", ONV_DOC_OBJECT);
    onv_program_arguments(r, inputs, call);
    read_results(r, outputs, call);
    read_metadata(r, metadata, call);
}

static void read_call(onv_program_reader *r, const onv_doc *node)
{
    onv_program *program = r->program;
    onv_program_call call = {.name = ""};
    onv_program_work(r, 4);
    read_names(r, node, &call);
    r->call = &call;
    read_call_into(r, node, &call);
    r->call = NULL;
    if (call.name[0] == '\0') call.name = name_of_result(r, &call);
    bool leaves = is_left_out(&call);
    uint32_t at = (uint32_t)program->calls.count;
    uint32_t named = !leaves ? at : at > 0 ? at - 1 : ONV_NO_CALL_INDEX;
    if (r->graph == 0 && call.name[0] != '\0')
        onv_program_fit(r, onv_ptr_map_set(&r->calls, call.name, named));
    if (leaves) return;
    if (at >= r->limits->nodes)
        onv_program_leave(r,
                          onv_fail(r->err, ONV_ERR_LIMIT,
                                   "the program has more than %" PRIu64 " calls" ONV_RAISE("nodes"),
                                   r->limits->nodes));
    for (uint32_t i = 0; i < call.n_arguments; i++)
        program->is_training |= is_training_flag(&call.arguments[i]);
    onv_program_fit(r, onv_vec_push(&program->calls, call));
}

/* --- The signature ------------------------------------------------------------------------------- */

static void apply_spec(onv_program_reader *r, const onv_doc *spec)
{
    static const struct {
        const char *kind, *name;
        uint8_t value;
    } kinds[] = {{"parameter", "parameter_name", ONV_PROGRAM_PARAMETER},
                 {"buffer", "buffer_name", ONV_PROGRAM_BUFFER},
                 {"tensor_constant", "tensor_constant_name", ONV_PROGRAM_CONSTANT}};
    const char *kind;
    const onv_doc *of = onv_program_variant(r, "input_specs", spec, &kind);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kind, kinds[i].kind) != 0) continue;
        const onv_doc *arg = onv_program_member(r, of, "arg", ONV_DOC_OBJECT);
        const onv_doc *name = onv_program_member(r, arg, "name", ONV_DOC_STRING);
        const onv_doc *fqn = onv_program_member(r, of, kinds[i].name, ONV_DOC_STRING);
        const onv_doc *persistent = onv_program_optional(r, of, "persistent", ONV_DOC_BOOL);
        onv_program_value *value = &r->program->values.at[onv_program_find_value(r, name)];
        value->kind = kinds[i].value;
        value->is_persistent = persistent == NULL || persistent->flag;
        value->fqn = onv_program_name(r, kinds[i].name, fqn);
    }
}

/* Which inputs are parameters, buffers and constants: the others are the caller's. */
static void apply_input_specs(onv_program_reader *r, const onv_doc *signature,
                              onv_program_graph *graph)
{
    const onv_doc *specs = onv_program_member(r, signature, "input_specs", ONV_DOC_LIST);
    for (size_t i = 0; i < onv_doc_count(specs); i++) {
        onv_program_work(r, 1);
        apply_spec(r, &specs->items[i]);
    }
    uint32_t *inputs =
        onv_program_made(r, ONV_ARENA_ARRAY(&r->model->arena, uint32_t, graph->n_inputs));
    uint32_t n = 0;
    for (uint32_t i = 0; i < graph->n_inputs; i++)
        if (r->program->values.at[graph->inputs[i]].kind == ONV_PROGRAM_INPUT)
            inputs[n++] = graph->inputs[i];
    graph->inputs = inputs;
    graph->n_inputs = n;
}

/* Outputs that the caller gets; others are new values of buffers, gradients, tokens. */
static void read_output_specs(onv_program_reader *r, const onv_doc *specs)
{
    bool is_functional = false;
    for (size_t i = 0; i < onv_doc_count(specs); i++) {
        const char *kind;
        const onv_doc *of = onv_program_variant(r, "output_specs", &specs->items[i], &kind);
        is_functional |= strstr(kind, "mutation") != NULL;
        bool is_loss = strcmp(kind, "loss_output") == 0;
        if (!is_loss && strcmp(kind, "user_output") != 0) continue;
        const onv_doc *arg = onv_program_member(r, of, "arg", ONV_DOC_OBJECT);
        add_output(r, is_loss ? onv_program_member(r, arg, "name", ONV_DOC_STRING)
                              : tensor_of(r, "an argument", arg));
    }
    if (is_functional)
        onv_model_diag(
            r->model, ONV_WARNING, "program-functional", NULL,
            "the program has no calls that write in place, as PyTorch before 2.6 and "
            "run_decompositions() make it: ReLUs and others that overwrite their input "
            "count as new tensors; export it with a later release, without decompositions");
}

static void read_outputs(onv_program_reader *r, const onv_doc *graph, const onv_doc *signature)
{
    const onv_doc *specs = onv_program_optional(r, signature, "output_specs", ONV_DOC_LIST);
    if (specs != NULL) {
        read_output_specs(r, specs);
        return;
    }
    const onv_doc *outputs = onv_program_member(r, graph, "outputs", ONV_DOC_LIST);
    for (size_t i = 0; i < onv_doc_count(outputs); i++)
        add_output(r, tensor_of(r, "an argument", &outputs->items[i]));
}

/* --- Lifetimes ----------------------------------------------------------------------------------- */

static void read_lifetime(onv_program_reader *r, const onv_doc *lifetime)
{
    uint32_t id;
    const char *name = lifetime->key, *known = onv_interned(&r->model->strings, name);
    if (known == NULL || !onv_ptr_map_get(&r->values, known, &id))
        onv_program_leave(r,
                          onv_fail(r->err, ONV_ERR_FORMAT,
                                   "lifetimes name the tensor '%.100s', which is not made", name));
    onv_program_value *value = &r->program->values.at[id];
    int64_t number = onv_program_member(r, lifetime, "storage", ONV_DOC_INTEGER)->integer;
    const onv_doc *freed = onv_program_optional(r, lifetime, "freed_after", ONV_DOC_STRING);
    const onv_doc *kept = onv_program_optional(r, lifetime, "kept", ONV_DOC_BOOL);
    if (number < 0 || number >= ONV_NO_STORAGE)
        onv_program_leave(
            r, onv_fail(r->err, ONV_ERR_FORMAT, "the storage of '%.100s' has no number", name));
    value->storage = (uint32_t)number;
    value->is_kept = kept != NULL && kept->flag;
    if (freed == NULL) return;
    known = onv_interned(&r->model->strings, freed->text);
    if (known == NULL || !onv_ptr_map_get(&r->calls, known, &value->freed_after))
        onv_program_leave(r, onv_fail(r->err, ONV_ERR_FORMAT,
                                      "'%.100s' is freed after '%.100s', which is not a call", name,
                                      freed->text));
}

/* --- Graphs -------------------------------------------------------------------------------------- */

void onv_program_map_members(onv_program_reader *r, const onv_doc *object, onv_ptr_map *map)
{
    uint32_t n = onv_doc_count(object);
    onv_ptr_map_cleanup(map);
    *map = (onv_ptr_map){0};
    onv_program_work(r, 1 + n);
    onv_program_fit(r, onv_ptr_map_reserve(map, n));
    for (uint32_t i = 0; i < n; i++) {
        const char *key = object->items[i].key;
        onv_program_fit(r, onv_ptr_map_set(map, onv_program_intern(r, key, strlen(key)), i));
    }
}

static void read_graph(onv_program_reader *r, const onv_doc *signature)
{
    onv_program *program = r->program;
    const onv_program_pending at = r->pending.at[r->graph];
    onv_program_graph graph = {.name = at.name, .call = at.call};
    r->tensors = onv_program_member(r, at.graph, "tensor_values", ONV_DOC_OBJECT);
    r->sizes = onv_program_optional(r, at.graph, "sym_int_values", ONV_DOC_OBJECT);
    const onv_doc *inputs = onv_program_member(r, at.graph, "inputs", ONV_DOC_LIST);
    const onv_doc *nodes = onv_program_member(r, at.graph, "nodes", ONV_DOC_LIST);
    onv_program_map_members(r, r->tensors, &r->tensor_at);
    onv_program_map_members(r, r->sizes, &r->size_at);
    read_inputs(r, inputs);
    graph.n_inputs = (uint32_t)r->ids.count;
    graph.inputs = onv_program_made(r, ONV_PROGRAM_TAKE(r, &r->ids, 0));
    if (signature != NULL) apply_input_specs(r, signature, &graph);
    graph.first_call = (uint32_t)program->calls.count;
    for (size_t i = 0; i < onv_doc_count(nodes); i++) read_call(r, &nodes->items[i]);
    graph.n_calls = (uint32_t)program->calls.count - graph.first_call;
    read_outputs(r, at.graph, signature);
    graph.n_outputs = (uint32_t)r->ids.count;
    graph.outputs = onv_program_made(r, ONV_PROGRAM_TAKE(r, &r->ids, 0));
    onv_program_fit(r, onv_vec_push(&program->graphs, graph));
}

void onv_program_graphs(onv_program_reader *r, const onv_doc *graph_module,
                        const onv_doc *lifetimes)
{
    onv_program_pending main_graph = {.name = "", .call = ONV_NO_CALL_INDEX};
    main_graph.graph = onv_program_member(r, graph_module, "graph", ONV_DOC_OBJECT);
    const onv_doc *signature = onv_program_member(r, graph_module, "signature", ONV_DOC_OBJECT);
    onv_program_fit(r, onv_vec_push(&r->pending, main_graph));
    for (size_t g = 0; g < r->pending.count; g++) {
        r->graph = (uint32_t)g;
        read_graph(r, g == 0 ? signature : NULL);
        for (uint32_t i = 0; g == 0 && i < onv_doc_count(lifetimes); i++) {
            onv_program_work(r, 1);
            read_lifetime(r, &lifetimes->items[i]);
        }
        onv_ptr_map_cleanup(&r->values);
        r->values = (onv_ptr_map){0};
    }
}

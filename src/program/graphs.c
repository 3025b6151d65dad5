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
static onv_status tensor_of(const onv_program_reader *r, const char *at, const onv_doc *argument,
                            const onv_doc **name)
{
    const char *kind;
    const onv_doc *value;
    *name = NULL;
    ONV_TRY(onv_program_variant(r, at, argument, &kind, &value));
    if (strcmp(kind, "as_tensor") != 0) return ONV_OK;
    return onv_program_member(r, value, "name", ONV_DOC_STRING, name);
}

static onv_status read_inputs(onv_program_reader *r, const onv_doc *inputs)
{
    for (size_t i = 0; i < onv_doc_count(inputs); i++) {
        const onv_doc *name;
        uint32_t id;
        ONV_WORK(1);
        ONV_TRY(tensor_of(r, "an argument", &inputs->items[i], &name));
        if (name == NULL) continue;
        ONV_TRY(onv_program_add_value(r, name, ONV_PROGRAM_INPUT, ONV_NO_CALL_INDEX, &id));
        if (!onv_vec_push(&r->ids, id)) return onv_fail_memory(r->err);
    }
    return ONV_OK;
}

static onv_status add_named_output(onv_program_reader *r, const onv_doc *name)
{
    uint32_t id;
    ONV_WORK(1);
    if (name == NULL) return ONV_OK;
    ONV_TRY(onv_program_find_value(r, name, &id));
    r->program->values.at[id].is_output = true;
    return onv_vec_push(&r->ids, id) ? ONV_OK : onv_fail_memory(r->err);
}

static onv_status add_output(onv_program_reader *r, const onv_doc *argument)
{
    const onv_doc *name;
    ONV_TRY(tensor_of(r, "an argument", argument, &name));
    return add_named_output(r, name);
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
static onv_status find_module(onv_program_reader *r, const entry *e, uint32_t parent,
                              uint32_t *module)
{
    onv_strings *strings = &r->model->strings;
    char *both = onv_arena_printf(&r->model->arena, "%x %.*s", parent, (int)e->key_length, e->key);
    const char *name = both != NULL ? onv_intern(strings, both) : NULL;
    if (name == NULL) return onv_fail_memory(r->err);
    if (onv_ptr_map_get(&r->stacks, name, module)) return ONV_OK;
    onv_program_module made = {
        .path = onv_intern_n(strings, e->path, e->path_length),
        .class_name = onv_intern_n(strings, e->class_name, e->class_length),
        .key = onv_intern_n(strings, e->key, e->key_length),
        .parent = parent,
    };
    *module = (uint32_t)r->program->modules.count;
    if (made.path == NULL || made.class_name == NULL || made.key == NULL ||
        !onv_vec_push(&r->program->modules, made) || !onv_ptr_map_set(&r->stacks, name, *module))
        return onv_fail_memory(r->err);
    return ONV_OK;
}

static onv_status module_of(onv_program_reader *r, const char *stack, uint32_t *module)
{
    *module = UINT32_MAX;
    const char *known = onv_intern(&r->model->strings, stack);
    if (known == NULL) return onv_fail_memory(r->err);
    if (onv_ptr_map_get(&r->stacks, known, module)) return ONV_OK;
    for (const char *at = known; *at != '\0';) {
        const char *end = strchr(at, ';');
        entry e;
        if (end == NULL) end = at + strlen(at);
        if (read_entry(at, end, &e)) ONV_TRY(find_module(r, &e, *module, module));
        at = *end == ';' ? end + 1 : end;
    }
    return onv_ptr_map_set(&r->stacks, known, *module) ? ONV_OK : onv_fail_memory(r->err);
}

/* --- Calls --------------------------------------------------------------------------------------- */

/* NULL: None. */
static onv_status add_result(onv_program_reader *r, const onv_doc *name)
{
    uint32_t id = ONV_NO_PROGRAM_VALUE, call = (uint32_t)r->program->calls.count;
    if (name != NULL) ONV_TRY(onv_program_add_value(r, name, ONV_PROGRAM_RESULT, call, &id));
    return onv_vec_push(&r->ids, id) ? ONV_OK : onv_fail_memory(r->err);
}

static onv_status add_optional_result(onv_program_reader *r, const onv_doc *result)
{
    const onv_doc *name;
    ONV_TRY(tensor_of(r, "a result", result, &name));
    return add_result(r, name);
}

static onv_status read_result(onv_program_reader *r, const onv_doc *output)
{
    const char *kind;
    const onv_doc *value;
    ONV_TRY(onv_program_variant(r, "a result", output, &kind, &value));
    if (strcmp(kind, "as_tensor") == 0 || strcmp(kind, "as_none") == 0)
        return add_optional_result(r, output);
    if (strcmp(kind, "as_optional_tensor") == 0) return add_optional_result(r, value);
    bool is_optional = strcmp(kind, "as_optional_tensors") == 0;
    if (!is_optional && strcmp(kind, "as_tensors") != 0) return ONV_OK;
    for (size_t i = 0; i < onv_doc_count(value); i++) {
        const onv_doc *item = &value->items[i], *name;
        ONV_WORK(1);
        if (!is_optional) ONV_TRY(onv_program_member(r, item, "name", ONV_DOC_STRING, &name));
        ONV_TRY(is_optional ? add_optional_result(r, item) : add_result(r, name));
    }
    return ONV_OK;
}

static onv_status read_results(onv_program_reader *r, const onv_doc *outputs,
                               onv_program_call *call)
{
    size_t first = r->ids.count;
    bool any = false;
    for (size_t i = 0; i < onv_doc_count(outputs); i++) ONV_TRY(read_result(r, &outputs->items[i]));
    for (size_t i = first; i < r->ids.count; i++) any |= r->ids.at[i] != ONV_NO_PROGRAM_VALUE;
    if (!any) r->ids.count = first;
    call->n_results = (uint32_t)(r->ids.count - first);
    call->results = ONV_PROGRAM_TAKE(r, &r->ids, first);
    return call->results != NULL ? ONV_OK : onv_fail_memory(r->err);
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

static onv_status read_metadata(onv_program_reader *r, const onv_doc *metadata,
                                onv_program_call *call)
{
    const onv_doc *stack, *trace;
    call->module = UINT32_MAX;
    if (metadata == NULL) return ONV_OK;
    ONV_TRY(onv_program_optional(r, metadata, "nn_module_stack", ONV_DOC_STRING, &stack));
    ONV_TRY(onv_program_optional(r, metadata, "stack_trace", ONV_DOC_STRING, &trace));
    if (stack != NULL) ONV_TRY(module_of(r, stack->text, &call->module));
    if (trace == NULL) return ONV_OK;
    call->trace = onv_intern(&r->model->strings, trace->text);
    return call->trace != NULL ? ONV_OK : onv_fail_memory(r->err);
}

static onv_status read_names(onv_program_reader *r, const onv_doc *node, onv_program_call *call)
{
    const onv_doc *target, *name;
    ONV_TRY(onv_program_member(r, node, "target", ONV_DOC_STRING, &target));
    ONV_TRY(onv_program_name(r, "target", target, &call->op_name));
    if (strncmp(call->op_name, prefix, sizeof prefix - 1) == 0) call->op_name += sizeof prefix - 1;
    const char *dot = strchr(call->op_name, '.'), *op = dot != NULL ? dot + 1 : call->op_name;
    if (*op == '\0' || *op == '.')
        return onv_fail(r->err, ONV_ERR_FORMAT,
                        "expected the name of an operator, as torch.ops.aten.relu.default, found "
                        "'%.100s'",
                        target->text);
    ONV_TRY(onv_program_optional(r, node, "name", ONV_DOC_STRING, &name));
    if (name != NULL) ONV_TRY(onv_program_name(r, "name", name, &call->name));
    return ONV_OK;
}

/* Before PyTorch 2.7 calls had no names of their own: they have that of their first result. */
static const char *name_of_result(const onv_program_reader *r, const onv_program_call *call)
{
    for (uint32_t i = 0; i < call->n_results; i++)
        if (call->results[i] != ONV_NO_PROGRAM_VALUE)
            return r->program->values.at[call->results[i]].name;
    return "";
}

static onv_status read_call_into(onv_program_reader *r, const onv_doc *node, onv_program_call *call)
{
    const onv_doc *inputs, *outputs, *metadata;
    ONV_TRY(onv_program_member(r, node, "inputs", ONV_DOC_LIST, &inputs));
    ONV_TRY(onv_program_member(r, node, "outputs", ONV_DOC_LIST, &outputs));
    ONV_TRY(onv_program_optional(r, node, "metadata", ONV_DOC_OBJECT, &metadata));
    ONV_TRY(onv_program_arguments(r, inputs, call));
    ONV_TRY(read_results(r, outputs, call));
    return read_metadata(r, metadata, call);
}

static onv_status read_call(onv_program_reader *r, const onv_doc *node)
{
    onv_program *program = r->program;
    onv_program_call call = {.name = ""};
    ONV_WORK(4);
    ONV_TRY(read_names(r, node, &call));
    onv_status status = read_call_into(r, node, &call);
    if (status != ONV_OK) onv_error_at(r->err, call.name, call.op_name);
    ONV_TRY(status);
    if (call.name[0] == '\0') call.name = name_of_result(r, &call);
    bool leaves = is_left_out(&call);
    uint32_t at = (uint32_t)program->calls.count;
    uint32_t named = !leaves ? at : at > 0 ? at - 1 : ONV_NO_CALL_INDEX;
    if (r->graph == 0 && call.name[0] != '\0' && !onv_ptr_map_set(&r->calls, call.name, named))
        return onv_fail_memory(r->err);
    if (leaves) return ONV_OK;
    if (at >= r->limits->nodes)
        return onv_fail(r->err, ONV_ERR_LIMIT,
                        "the program has more than %" PRIu64 " calls" ONV_RAISE("nodes"),
                        r->limits->nodes);
    for (uint32_t i = 0; i < call.n_arguments; i++)
        program->is_training |= is_training_flag(&call.arguments[i]);
    return onv_vec_push(&program->calls, call) ? ONV_OK : onv_fail_memory(r->err);
}

/* --- The signature ------------------------------------------------------------------------------- */

static onv_status apply_spec(onv_program_reader *r, const onv_doc *spec)
{
    static const struct {
        const char *kind, *name;
        uint8_t value;
    } kinds[] = {{"parameter", "parameter_name", ONV_PROGRAM_PARAMETER},
                 {"buffer", "buffer_name", ONV_PROGRAM_BUFFER},
                 {"tensor_constant", "tensor_constant_name", ONV_PROGRAM_CONSTANT}};
    const char *kind;
    const onv_doc *of, *arg, *name, *fqn, *persistent;
    uint32_t id;
    ONV_TRY(onv_program_variant(r, "input_specs", spec, &kind, &of));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kind, kinds[i].kind) != 0) continue;
        ONV_TRY(onv_program_member(r, of, "arg", ONV_DOC_OBJECT, &arg));
        ONV_TRY(onv_program_member(r, arg, "name", ONV_DOC_STRING, &name));
        ONV_TRY(onv_program_member(r, of, kinds[i].name, ONV_DOC_STRING, &fqn));
        ONV_TRY(onv_program_optional(r, of, "persistent", ONV_DOC_BOOL, &persistent));
        ONV_TRY(onv_program_find_value(r, name, &id));
        onv_program_value *value = &r->program->values.at[id];
        value->kind = kinds[i].value;
        value->is_persistent = persistent == NULL || persistent->flag;
        return onv_program_name(r, kinds[i].name, fqn, &value->fqn);
    }
    return ONV_OK;
}

/* Which inputs are parameters, buffers and constants: the others are the caller's. */
static onv_status apply_input_specs(onv_program_reader *r, const onv_doc *signature,
                                    onv_program_graph *graph)
{
    const onv_doc *specs;
    ONV_TRY(onv_program_member(r, signature, "input_specs", ONV_DOC_LIST, &specs));
    for (size_t i = 0; i < onv_doc_count(specs); i++) {
        ONV_WORK(1);
        ONV_TRY(apply_spec(r, &specs->items[i]));
    }
    uint32_t *inputs = ONV_ARENA_ARRAY(&r->model->arena, uint32_t, graph->n_inputs);
    uint32_t n = 0;
    if (inputs == NULL) return onv_fail_memory(r->err);
    for (uint32_t i = 0; i < graph->n_inputs; i++)
        if (r->program->values.at[graph->inputs[i]].kind == ONV_PROGRAM_INPUT)
            inputs[n++] = graph->inputs[i];
    graph->inputs = inputs;
    graph->n_inputs = n;
    return ONV_OK;
}

/* Outputs that the caller gets; others are new values of buffers, gradients, tokens. */
static onv_status read_output_specs(onv_program_reader *r, const onv_doc *specs)
{
    bool is_functional = false;
    for (size_t i = 0; i < onv_doc_count(specs); i++) {
        const char *kind;
        const onv_doc *of, *arg, *name;
        ONV_TRY(onv_program_variant(r, "output_specs", &specs->items[i], &kind, &of));
        is_functional |= strstr(kind, "mutation") != NULL;
        bool is_loss = strcmp(kind, "loss_output") == 0;
        if (!is_loss && strcmp(kind, "user_output") != 0) continue;
        ONV_TRY(onv_program_member(r, of, "arg", ONV_DOC_OBJECT, &arg));
        if (is_loss) ONV_TRY(onv_program_member(r, arg, "name", ONV_DOC_STRING, &name));
        ONV_TRY(is_loss ? add_named_output(r, name) : add_output(r, arg));
    }
    if (is_functional)
        onv_model_diag(
            r->model, ONV_WARNING, "program-functional", NULL,
            "the program has no calls that write in place, as PyTorch before 2.6 and "
            "run_decompositions() make it: ReLUs and others that overwrite their input "
            "count as new tensors; export it with a later release, without decompositions");
    return ONV_OK;
}

static onv_status read_outputs(onv_program_reader *r, const onv_doc *graph,
                               const onv_doc *signature)
{
    const onv_doc *specs = NULL, *outputs;
    if (signature != NULL)
        ONV_TRY(onv_program_optional(r, signature, "output_specs", ONV_DOC_LIST, &specs));
    if (specs != NULL) return read_output_specs(r, specs);
    ONV_TRY(onv_program_member(r, graph, "outputs", ONV_DOC_LIST, &outputs));
    for (size_t i = 0; i < onv_doc_count(outputs); i++) ONV_TRY(add_output(r, &outputs->items[i]));
    return ONV_OK;
}

/* --- Lifetimes ----------------------------------------------------------------------------------- */

static onv_status read_lifetime(onv_program_reader *r, const char *name, const onv_doc *lifetime)
{
    const onv_doc *storage, *freed, *kept;
    uint32_t id;
    const char *known = onv_interned(&r->model->strings, name);
    if (known == NULL || !onv_ptr_map_get(&r->values, known, &id))
        return onv_fail(r->err, ONV_ERR_FORMAT,
                        "lifetimes name the tensor '%.100s', which is not made", name);
    onv_program_value *value = &r->program->values.at[id];
    ONV_TRY(onv_program_member(r, lifetime, "storage", ONV_DOC_INTEGER, &storage));
    ONV_TRY(onv_program_optional(r, lifetime, "freed_after", ONV_DOC_STRING, &freed));
    ONV_TRY(onv_program_optional(r, lifetime, "kept", ONV_DOC_BOOL, &kept));
    int64_t number = storage->integer;
    if (number < 0 || number >= ONV_NO_STORAGE)
        return onv_fail(r->err, ONV_ERR_FORMAT, "the storage of '%.100s' has no number", name);
    value->storage = (uint32_t)number;
    value->is_kept = kept != NULL && kept->flag;
    if (freed == NULL) return ONV_OK;
    known = onv_interned(&r->model->strings, freed->text);
    if (known != NULL && onv_ptr_map_get(&r->calls, known, &value->freed_after)) return ONV_OK;
    return onv_fail(r->err, ONV_ERR_FORMAT, "'%.100s' is freed after '%.100s', which is not a call",
                    name, freed->text);
}

static onv_status read_lifetimes(onv_program_reader *r, const onv_doc *lifetimes)
{
    for (uint32_t i = 0; i < lifetimes->count; i++) {
        ONV_WORK(1);
        ONV_TRY(read_lifetime(r, lifetimes->items[i].key, &lifetimes->items[i]));
    }
    return ONV_OK;
}

/* --- Graphs -------------------------------------------------------------------------------------- */

onv_status onv_program_map_members(onv_program_reader *r, const onv_doc *object, onv_ptr_map *map)
{
    uint32_t n = onv_doc_count(object);
    onv_ptr_map_cleanup(map);
    *map = (onv_ptr_map){0};
    ONV_WORK(1 + n);
    if (!onv_ptr_map_reserve(map, n)) return onv_fail_memory(r->err);
    for (uint32_t i = 0; i < n; i++) {
        const char *name = onv_intern(&r->model->strings, object->items[i].key);
        if (name == NULL || !onv_ptr_map_set(map, name, i)) return onv_fail_memory(r->err);
    }
    return ONV_OK;
}

static onv_status read_graph(onv_program_reader *r, const onv_doc *signature)
{
    onv_program *program = r->program;
    const onv_program_pending at = r->pending.at[r->graph];
    onv_program_graph graph = {.name = at.name, .call = at.call};
    const onv_doc *inputs, *nodes;
    ONV_TRY(onv_program_member(r, at.graph, "tensor_values", ONV_DOC_OBJECT, &r->tensors));
    ONV_TRY(onv_program_optional(r, at.graph, "sym_int_values", ONV_DOC_OBJECT, &r->sizes));
    ONV_TRY(onv_program_member(r, at.graph, "inputs", ONV_DOC_LIST, &inputs));
    ONV_TRY(onv_program_member(r, at.graph, "nodes", ONV_DOC_LIST, &nodes));
    ONV_TRY(onv_program_map_members(r, r->tensors, &r->tensor_at));
    ONV_TRY(onv_program_map_members(r, r->sizes, &r->size_at));
    ONV_TRY(read_inputs(r, inputs));
    graph.n_inputs = (uint32_t)r->ids.count;
    graph.inputs = ONV_PROGRAM_TAKE(r, &r->ids, 0);
    if (graph.inputs == NULL) return onv_fail_memory(r->err);
    if (signature != NULL) ONV_TRY(apply_input_specs(r, signature, &graph));
    graph.first_call = (uint32_t)program->calls.count;
    for (size_t i = 0; i < onv_doc_count(nodes); i++) ONV_TRY(read_call(r, &nodes->items[i]));
    graph.n_calls = (uint32_t)program->calls.count - graph.first_call;
    ONV_TRY(read_outputs(r, at.graph, signature));
    graph.n_outputs = (uint32_t)r->ids.count;
    graph.outputs = ONV_PROGRAM_TAKE(r, &r->ids, 0);
    if (graph.outputs == NULL || !onv_vec_push(&program->graphs, graph))
        return onv_fail_memory(r->err);
    return ONV_OK;
}

onv_status onv_program_graphs(onv_program_reader *r, const onv_doc *graph_module,
                              const onv_doc *lifetimes)
{
    onv_program_pending main_graph = {.name = "", .call = ONV_NO_CALL_INDEX};
    const onv_doc *signature;
    ONV_TRY(onv_program_member(r, graph_module, "graph", ONV_DOC_OBJECT, &main_graph.graph));
    ONV_TRY(onv_program_member(r, graph_module, "signature", ONV_DOC_OBJECT, &signature));
    if (!onv_vec_push(&r->pending, main_graph)) return onv_fail_memory(r->err);
    for (size_t g = 0; g < r->pending.count; g++) {
        r->graph = (uint32_t)g;
        ONV_TRY(read_graph(r, g == 0 ? signature : NULL));
        if (g == 0 && lifetimes != NULL) ONV_TRY(read_lifetimes(r, lifetimes));
        onv_ptr_map_cleanup(&r->values);
        r->values = (onv_ptr_map){0};
    }
    return ONV_OK;
}

#include "tape/tape.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/ptr_map.h"
#include "base/quota.h"
#include "emit/loss.h"
#include "emit/patterns.h"
#include "tape/state.h"

/* --- What is there from the start ---------------------------------------------------------------- */

/* Parameters, buffers, constants and inputs. Numbers are arguments, not tensors on the device. */
static void make_permanent(onv_tape *t, uint32_t index)
{
    const onv_program_value *v = &t->program->values.at[index];
    onv_storage_kind kind = v->kind == ONV_PROGRAM_PARAMETER  ? ONV_STORAGE_PARAMETER
                            : v->kind == ONV_PROGRAM_BUFFER   ? ONV_STORAGE_BUFFER
                            : v->kind == ONV_PROGRAM_CONSTANT ? ONV_STORAGE_CONSTANT
                                                              : ONV_STORAGE_INPUT;
    if (kind == ONV_STORAGE_CONSTANT && v->rank == 0) return;
    uint32_t tensor = onv_tape_new(t, index, ONV_UNDEFINED);
    if (tensor == ONV_NO_TENSOR) return;
    onv_eager_storage *storage = onv_storage_of(&t->emit, tensor);
    storage->kind = (uint8_t)kind;
    storage->label = v->fqn != NULL && kind != ONV_STORAGE_INPUT ? v->fqn : v->name;
    if (kind == ONV_STORAGE_PARAMETER)
        onv_emit_parameter(&t->emit, tensor, storage->label, NULL, v->requires_grad);
    onv_tape_set(t, index, tensor);
}

/* Where the file does not say what modules share, as before PyTorch 2.9. A parameter that no call reads, in a module whose call
 * reads another one of its sizes that is not the module's: both names are of one tensor, which torch.export lists twice, and
 * reads by the last name. */
static bool may_have_other_name(const onv_tape *t, uint32_t index)
{
    const onv_program_value *v = &t->program->values.at[index];
    return v->kind == ONV_PROGRAM_PARAMETER && t->values[index].n_uses == 0 && v->fqn != NULL &&
           strrchr(v->fqn, '.') != NULL;
}

/* A text of a module's path and a parameter's type; NULL without memory. */
static const char *key_of(onv_tape *t, const char *path, size_t length, const onv_program_value *v)
{
    enum { NUMBER = 17 };
    char key[(ONV_MAX_RANK + 2) * NUMBER + 1];
    onv_strings *strings = &t->emit.model->strings;
    const char *module = onv_intern_n(strings, path, length);
    if (module == NULL || !onv_work(1)) return NULL;
    int at = snprintf(key, sizeof key, "%x %x", onv_string_number(module), v->dtype);
    for (uint32_t i = 0; i < v->rank; i++)
        at += snprintf(key + at, sizeof key - (size_t)at, " %llx",
                       (unsigned long long)v->dims[i].raw);
    return onv_intern(strings, key);
}

/* Parameters that calls read in modules which do not have them, by module and type; others by type alone. */
static void find_read(onv_tape *t, onv_ptr_map *read)
{
    const onv_program *p = t->program;
    for (size_t i = 0; i < p->calls.count && t->emit.status == ONV_OK; i++) {
        const onv_program_call *call = &p->calls.at[i];
        if (call->module >= p->modules.count) continue;
        const char *path = p->modules.at[call->module].path;
        size_t length = strlen(path);
        for (uint32_t k = 0; k < call->n_arguments; k++) {
            const onv_argument *a = &call->arguments[k];
            if (a->kind != ONV_ARGUMENT_TENSOR) continue;
            const onv_program_value *v = &p->values.at[a->value];
            if (v->kind != ONV_PROGRAM_PARAMETER || v->fqn == NULL) continue;
            bool is_own = strncmp(v->fqn, path, length) == 0;
            const char *key = key_of(t, path, is_own ? 0 : length, v);
            if (key == NULL || !onv_ptr_map_set(read, key, 0))
                t->emit.status = onv_fail_memory(t->emit.err);
        }
    }
}

static bool is_other_name(onv_tape *t, const onv_ptr_map *read, uint32_t index)
{
    const onv_program_value *v = &t->program->values.at[index];
    if (read->count == 0 || !may_have_other_name(t, index)) return false;
    const char *key = key_of(t, v->fqn, (size_t)(strrchr(v->fqn, '.') - v->fqn), v);
    return key != NULL && onv_ptr_map_get(read, key, NULL);
}

/* A matrix that no call reads, and that has the sizes of one that is read, may be that: an archive lists the names of a tensor that
 * modules share as if they were several. */
static void note_shared(onv_tape *t, const onv_ptr_map *read, uint32_t index)
{
    const onv_program_value *v = &t->program->values.at[index];
    uint32_t tensor = t->values[index].tensor;
    if (t->program->knows_shared || tensor == ONV_NO_TENSOR || v->rank < 2 || read->count == 0 ||
        !may_have_other_name(t, index))
        return;
    const char *key = key_of(t, "", 0, v);
    if (key == NULL || !onv_ptr_map_get(read, key, NULL)) return;
    onv_say(&t->emit, ONV_SAID_shared, v->fqn, onv_tensor_at(&t->emit, tensor).bytes, NULL);
}

static void make_all(onv_tape *t)
{
    const onv_program_graph *graph = &t->program->graphs.at[0];
    onv_ptr_map read = {0};
    uint32_t n = (uint32_t)t->program->values.count, unread = 0;
    t->emit.node = ONV_NO_NODE;
    while (unread < n && (t->program->knows_shared || !may_have_other_name(t, unread))) unread++;
    if (unread < n) find_read(t, &read);
    for (uint32_t i = 0; i < n && t->emit.status == ONV_OK; i++) {
        uint8_t kind = t->program->values.at[i].kind;
        bool is_there = kind == ONV_PROGRAM_PARAMETER || kind == ONV_PROGRAM_BUFFER ||
                        kind == ONV_PROGRAM_CONSTANT;
        if (!is_there || t->values[i].tensor != ONV_NO_TENSOR || is_other_name(t, &read, i))
            continue;
        /* Of several names Module.parameters() gives the first; calls may read another one. */
        uint32_t same = t->program->values.at[i].same_as;
        if (same == ONV_NO_PROGRAM_VALUE || t->values[same].tensor == ONV_NO_TENSOR)
            make_permanent(t, i);
        if (same != ONV_NO_PROGRAM_VALUE && t->values[same].tensor == ONV_NO_TENSOR)
            t->values[same].tensor = t->values[i].tensor;
        note_shared(t, &read, i);
    }
    onv_ptr_map_cleanup(&read);
    for (uint32_t i = 0; i < graph->n_inputs && t->emit.status == ONV_OK; i++)
        make_permanent(t, graph->inputs[i]);
}

/* --- Calls ------------------------------------------------------------------------------------- */

static void give_unknown(onv_tape *t, const onv_program_call *call)
{
    uint64_t bytes = 0;
    if (onv_tape_refuses(t, call)) return;
    onv_tape_operands(t, call, NULL);
    onv_emit_begin(&t->emit, call->op_name);
    for (size_t i = 0; i < t->operands.count; i++)
        onv_emit_in(&t->emit, t->operands.at[i].tensor, ONV_GRAD_NEW);
    for (uint32_t k = 0; k < call->n_results; k++) {
        if (call->results[k] == ONV_NO_PROGRAM_VALUE) continue;
        uint32_t out = onv_emit_out(&t->emit, onv_tape_new(t, call->results[k], ONV_UNDEFINED));
        onv_tape_set(t, call->results[k], out);
        bytes = onv_u64_plus(bytes, onv_tensor_at(&t->emit, out).bytes);
    }
    onv_emit_end(&t->emit);
    onv_say(&t->emit, ONV_SAID_unknown, call->op_name, bytes, NULL);
    t->emit.eager->opaque++;
}

static const struct {
    onv_tape_rule rule;
    onv_tape_reader read;
    uint32_t needs;
} rules[ONV_N_RULES] = {
#define ATEN_RULE(name, function)          [ONV_RULE_##name] = {.rule = onv_tape_##function},
#define ATEN_READER(name, function, least) [ONV_RULE_##name] = {NULL, onv_tape_##function, least},
#include "aten/rules.def"
};

/* What computes with numbers of the host alone, or for nobody, is passed by. */
static void read_call(onv_tape *t, const onv_program_call *call)
{
    uint32_t result = onv_call_result(call, 0), made = ONV_NO_TENSOR;
    bool runs = t->overwrites || result != ONV_NO_PROGRAM_VALUE;
    onv_tape_inputs(t, call);
    for (uint32_t k = 0; k < rules[t->row->rule].needs; k++) runs &= t->in[k] != ONV_NO_TENSOR;
    if (runs) made = rules[t->row->rule].read(t, call);
    if (made != ONV_NO_TENSOR) onv_tape_set(t, result, made);
}

void onv_tape_emit(onv_tape *t, const onv_program_call *call, const onv_aten_op *op, bool in_place)
{
    if (op == NULL) {
        give_unknown(t, call);
        return;
    }
    if (op->form == ONV_ATEN_NOTHING) return;
    t->row = op;
    t->overwrites = in_place;
    if (rules[op->rule].read != NULL)
        read_call(t, call);
    else if (rules[op->rule].rule != NULL)
        rules[op->rule].rule(t, call);
    else if (op->form == ONV_ATEN_VIEW && !in_place)
        onv_tape_view(t, call);
    else
        onv_tape_by_row(t, call);
}

/* Calls that count in the file alone are left out. */
static void emit_call(onv_tape *t, uint32_t index)
{
    const onv_program_call *call = &t->program->calls.at[index];
    if (t->left_out[index]) return;
    if (onv_tape_exported_mask(t, call, "condition") != ONV_MASK_ALL) {
        onv_tape_emit(t, call, t->ops[index], t->in_place[index]);
        return;
    }
    uint32_t bias = onv_call_value(call, "self");
    onv_tape_same(t, call, bias);
    onv_tape_count_mask(t, onv_tensor_at(&t->emit, onv_tape_tensor(t, bias)).bytes);
}

static void lower_call(onv_tape *t, uint32_t index)
{
    bool before = t->emit.has_no_grad;
    t->emit.node = (onv_node_id){index};
    bool is_inside = onv_tape_in_function(t, index);
    t->emit.has_no_grad |= is_inside || onv_tape_ran_without_grad(t, &t->program->calls.at[index]);
    emit_call(t, index);
    t->emit.has_no_grad = before;
    if (is_inside) onv_tape_end_function(t, index);
}

/* A call that several operations make up has its arguments until the last one. (A recording tells so itself.) */
static void hold_arguments(onv_tape *t, const onv_program_call *call, size_t first)
{
    uint32_t last = (uint32_t)t->emit.eager->ops.count - 1;
    if (onv_program_is_recorded(t->program) || t->emit.eager->ops.count < first + 2) return;
    onv_tape_operands(t, call, NULL);
    for (size_t i = 0; i < t->operands.count; i++) {
        uint32_t tensor = t->operands.at[i].tensor;
        if (tensor == ONV_NO_TENSOR) continue;
        onv_eager_storage *s = onv_storage_of(&t->emit, tensor);
        if (s->held_until < last) s->held_until = last;
    }
}

void onv_tape_calls(onv_tape *t, const onv_program_graph *graph)
{
    onv_node_id outer = t->emit.node;
    uint32_t end = graph->first_call + graph->n_calls;
    for (uint32_t i = graph->first_call; i < end && t->emit.status == ONV_OK; i++) {
        const onv_program_call *call = &t->program->calls.at[i];
        uint32_t next = onv_tape_fast_path(t, i, end);
        if (!onv_work(4)) t->emit.status = ONV_ERR_CANCELLED;
        size_t first = t->emit.eager->ops.count;
        if (next == i) {
            lower_call(t, i);
            hold_arguments(t, call, first);
        }
        for (; next > i + 1; i++) t->last_op[i] = (uint32_t)t->emit.eager->ops.count;
        t->last_op[i] = (uint32_t)t->emit.eager->ops.count;
        if (t->emit.status != ONV_OK) onv_error_at(t->emit.err, call->name, call->op_name);
    }
    t->emit.node = outer;
}

/* --- All of it --------------------------------------------------------------------------------- */

static void count_uses(onv_tape *t)
{
    for (size_t i = 0; i < t->program->calls.count; i++) {
        onv_values_in given = onv_values_of(&t->program->calls.at[i]);
        for (uint32_t value; onv_next_value(&given, &value);) t->values[value].n_uses++;
    }
    for (size_t g = 0; g < t->program->graphs.count; g++)
        for (uint32_t i = 0; i < t->program->graphs.at[g].n_outputs; i++)
            t->values[t->program->graphs.at[g].outputs[i]].n_uses++;
}

/* Names are interned, and a program calls few operators often. */
static void find_ops(onv_tape *t)
{
    enum { N = 64 };
    struct {
        const char *name;
        uint32_t call;
    } last[N] = {{0}};
    for (uint32_t i = 0; i < t->program->calls.count; i++) {
        const char *name = t->program->calls.at[i].op_name;
        size_t slot = ((uintptr_t)name >> 3) % N;
        if (last[slot].name == name) {
            t->ops[i] = t->ops[last[slot].call];
            t->in_place[i] = t->in_place[last[slot].call];
            continue;
        }
        t->ops[i] = onv_aten_find(name, &t->in_place[i]);
        last[slot].name = name;
        last[slot].call = i;
    }
}

static onv_status prepare(onv_tape *t)
{
    size_t n_values = t->program->values.count, n_calls = t->program->calls.count;
    t->values = ONV_EMIT_ARRAY(&t->emit, onv_tape_value, 2 * n_values);
    t->ops = ONV_EMIT_ARRAY(&t->emit, const onv_aten_op *, n_calls);
    t->in_place = ONV_EMIT_ARRAY(&t->emit, bool, n_calls);
    t->left_out = ONV_EMIT_ARRAY(&t->emit, bool, n_calls);
    t->last_op = ONV_EMIT_ARRAY(&t->emit, uint32_t, n_calls);
    t->runs = ONV_EMIT_ARRAY(&t->emit, onv_tape_run, t->program->modules.count);
    if (t->emit.status != ONV_OK) return t->emit.status;
    for (uint32_t i = 0; i < 2 * n_values; i++)
        t->values[i] =
            (onv_tape_value){.tensor = ONV_NO_TENSOR, .object = i, .base = ONV_NO_PROGRAM_VALUE};
    find_ops(t);
    t->first_inside = (uint32_t)n_values;
    count_uses(t);
    onv_tape_find_exported_masks(t);
    ONV_TRY(onv_tape_find_checkpoints(t));
    onv_tape_find_functions(t);
    if (onv_program_is_recorded(t->program)) ONV_TRY(onv_tape_number_storages(t));
    return onv_patterns_begin(&t->emit);
}

static void emit_losses(onv_tape *t)
{
    const onv_program_graph *graph = &t->program->graphs.at[0];
    onv_loss_output *outputs = ONV_EMIT_ARRAY(&t->emit, onv_loss_output, graph->n_outputs);
    if (outputs == NULL) return;
    t->emit.node = ONV_NO_NODE;
    for (uint32_t i = 0; i < graph->n_outputs; i++)
        outputs[i] = (onv_loss_output){.name = t->program->values.at[graph->outputs[i]].name,
                                       .tensor = onv_tape_tensor(t, graph->outputs[i]),
                                       .n_uses = t->values[graph->outputs[i]].n_uses};
    onv_emit_loss(&t->emit, outputs, graph->n_outputs);
}

static void report(onv_tape *t)
{
    onv_saying *typed = &t->emit.said[ONV_SAID_typed];
    bool is_archive = !onv_program_is_recorded(t->program);
    onv_tape_report_masks(t);
    if (is_archive) onv_tape_find_typed(t);
    if (!onv_tape_matters(t, typed->of.bytes)) typed->of.count = 0;
    if (is_archive && t->emit.options->amp != ONV_UNDEFINED)
        onv_say(&t->emit, ONV_SAID_archived_precision, NULL, 0, NULL);
    onv_say_up_to(&t->emit, ONV_N_SAID);
}

static void lower(onv_tape *t)
{
    const onv_lower_options *options = t->emit.options;
    make_all(t);
    onv_tape_calls(t, &t->program->graphs.at[0]);
    bool is_recorded = onv_program_is_recorded(t->program);
    if (is_recorded && t->emit.status == ONV_OK) onv_tape_lifetimes(t);
    if (!is_recorded && t->emit.status == ONV_OK) onv_tape_of_hooks(t);
    if (!is_recorded && t->emit.status == ONV_OK && !options->inference && options->reports) {
        onv_tape_report_checkpoints(t);
        onv_tape_of_evaluation(t);
    }
    if (!is_recorded && t->emit.status == ONV_OK && options->inference) onv_tape_of_training(t);
    if (options->reports) onv_say_up_to(&t->emit, ONV_SAID_training_calls);
    t->emit.has_no_grad = false;
    if (t->emit.status == ONV_OK) emit_losses(t);
    if (t->emit.status == ONV_OK && !options->inference) onv_tape_add_checkpoints(t);
    if (t->emit.status == ONV_OK && !options->inference) onv_check_frozen(&t->emit);
    if (t->emit.status == ONV_OK && options->reports) report(t);
}

onv_status onv_tape_lower(const onv_program *program, onv_model *view,
                          const onv_lower_options *options, onv_eager *eager, onv_error *err)
{
    onv_eager_init(eager);
    onv_tape t = {.emit = {.model = view,
                           .options = options,
                           .eager = eager,
                           .err = err,
                           .node = ONV_NO_NODE,
                           .views = onv_program_is_recorded(program) ? ONV_VIEWS_OF_KERNELS
                                                                     : ONV_VIEWS_OF_CALLS,
                           .amp = options->amp,
                           .region = ONV_NO_REGION},
                  .program = program,
                  .knows_grads = onv_tape_knows_grads(program)};
    t.emit.status = prepare(&t);
    if (t.emit.status == ONV_OK) lower(&t);
    onv_emitter_cleanup(&t.emit);
    onv_vec_cleanup(&t.operands);
    if (t.emit.status == ONV_OK) return onv_eager_complete(eager, view, err);
    onv_eager_cleanup(eager);
    return t.emit.status;
}

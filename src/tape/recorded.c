/* What a recording knows beside the calls: when storages were freed, which values share one, and what autograd kept. */
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "base/sort.h"
#include "tape/state.h"

bool onv_tape_knows_grads(const onv_program *program)
{
    if (!onv_program_is_recorded(program) || !program->is_training) return false;
    for (size_t i = 0; i < program->values.count; i++)
        if (program->values.at[i].kind == ONV_PROGRAM_RESULT && program->values.at[i].requires_grad)
            return true;
    return false;
}

static int by_storage(const void *a, const void *b, void *context)
{
    const onv_tape *t = context;
    uint32_t x = t->program->values.at[*(const uint32_t *)a].storage;
    uint32_t y = t->program->values.at[*(const uint32_t *)b].storage;
    return (x > y) - (x < y);
}

onv_status onv_tape_number_storages(onv_tape *t)
{
    size_t n = t->program->values.count;
    uint32_t number = 0, *ids = ONV_EMIT_ARRAY(&t->emit, uint32_t, n);
    t->storages = ONV_EMIT_ARRAY(&t->emit, uint32_t, n);
    t->given_to = ONV_EMIT_ARRAY(&t->emit, uint32_t, n);
    if (t->emit.status != ONV_OK) return t->emit.status;
    ONV_WORK(1 + n);
    for (uint32_t i = 0; i < n; i++) ids[i] = i;
    onv_sort_ids(ids, n, by_storage, t);
    for (size_t i = 0; i < n; i++) {
        number += i > 0 && by_storage(&ids[i - 1], &ids[i], t) != 0;
        t->storages[ids[i]] = number;
    }
    return ONV_OK;
}

bool onv_tape_ran_without_grad(onv_tape *t, const onv_program_call *call)
{
    if (!t->knows_grads) return false;
    bool has_results = false;
    uint32_t mark = (uint32_t)(call - t->program->calls.at) + 1;
    for (uint32_t k = 0; k < call->n_arguments; k++)
        if (call->arguments[k].kind == ONV_ARGUMENT_TENSOR)
            t->given_to[t->storages[call->arguments[k].value]] = mark;
    for (uint32_t k = 0; k < call->n_results; k++) {
        if (call->results[k] == ONV_NO_PROGRAM_VALUE) continue;
        const onv_program_value *v = &t->program->values.at[call->results[k]];
        /* A view that is gone before autograd marks it has no mark, whatever it is of. */
        if (v->requires_grad || t->given_to[t->storages[call->results[k]]] == mark) return false;
        has_results = true;
    }
    return has_results;
}

static onv_eager_storage *storage_of(onv_tape *t, uint32_t value)
{
    uint32_t tensor = t->values[t->values[value].object].tensor;
    return tensor != ONV_NO_TENSOR ? onv_storage_of(&t->emit, tensor) : NULL;
}

/* Calls that hold something after its last use. */
static void hold(onv_tape *t, uint32_t value)
{
    const onv_program_value *v = &t->program->values.at[value];
    onv_eager_storage *storage = storage_of(t, value);
    if (storage == NULL || v->freed_after >= t->program->calls.count) return;
    uint32_t end = t->last_op[v->freed_after];
    if (end > 0 && end - 1 > storage->held_until) storage->held_until = end - 1;
}

/* What lives on is an attribute of a module, if it was not there before and the caller does not get it. */
static void find_attributes(onv_tape *t)
{
    size_t n = t->program->values.count;
    bool *others = ONV_EMIT_ARRAY(&t->emit, bool, n);
    if (others == NULL) return;
    for (size_t i = 0; i < n; i++) {
        const onv_program_value *v = &t->program->values.at[i];
        if (v->storage < n && (v->kind != ONV_PROGRAM_RESULT || v->is_output))
            others[v->storage] = true;
    }
    for (uint32_t i = 0; i < n; i++) {
        const onv_program_value *v = &t->program->values.at[i];
        onv_eager_storage *storage = storage_of(t, i);
        bool lives = v->storage < n && v->freed_after >= t->program->calls.count;
        if (lives && !others[v->storage] && storage != NULL)
            storage->is_attribute = storage->kind == ONV_STORAGE_ACTIVATION;
    }
}

/* Values that share memory in one of both, and not in the other. */
static void compare_storages(onv_tape *t)
{
    size_t n = t->program->values.count;
    uint32_t *of = ONV_EMIT_ARRAY(&t->emit, uint32_t, n);
    if (of == NULL) return;
    for (uint32_t i = 0; i < n; i++) {
        const onv_program_value *v = &t->program->values.at[i];
        uint32_t tensor = t->values[t->values[i].object].tensor;
        if (v->storage == ONV_NO_STORAGE || v->kind != ONV_PROGRAM_RESULT ||
            tensor == ONV_NO_TENSOR)
            continue;
        uint32_t storage = onv_tensor_at(&t->emit, tensor).storage;
        uint32_t *seen = &of[t->storages[i]];
        if (*seen == 0) *seen = storage + 1;
        if (*seen == storage + 1) continue;
        onv_say(&t->emit, ONV_SAID_recorded_storages, v->name,
                onv_tensor_at(&t->emit, tensor).bytes, NULL);
    }
}

/* --- What autograd kept -------------------------------------------------------------------------- */

/* By storage. */
typedef enum change { STAYS = 0, LEAVES, JOINS } change;

typedef struct changes {
    const uint8_t *of; /* change, by storage of the tape */
    uint32_t *maker;   /* likewise: the first node of autograd that reads or makes it, and 1 */
    uint32_t *joining; /* by operation: how many it keeps from now on */
} changes;

static void note_node(const changes *c, uint32_t storage, size_t op)
{
    if (storage != UINT32_MAX && c->maker[storage] == 0) c->maker[storage] = (uint32_t)op + 1;
}

/* What leaves is kept by none. What joins is kept by the first node that has to do with it, which backward comes to last. */
static void look_through(onv_tape *t, const changes *c)
{
    for (size_t i = 0; i < t->emit.eager->ops.count; i++) {
        onv_eager_op *op = &t->emit.eager->ops.at[i];
        uint32_t n = 0;
        if (!onv_work(1 + (uint64_t)op->n_saved + op->n_in + op->n_out)) return;
        for (uint32_t k = 0; k < op->n_saved; k++)
            if (c->of[op->saved[k]] != LEAVES) op->saved[n++] = op->saved[k];
        op->n_saved = n;
        for (uint32_t k = 0; op->has_backward && k < op->n_in; k++)
            note_node(c, onv_tensor_at(&t->emit, op->in[k].tensor).storage, i);
        for (uint32_t k = 0; op->has_backward && k < op->n_out; k++)
            note_node(c, onv_tensor_at(&t->emit, op->out[k]).storage, i);
    }
    for (size_t s = 0; s < t->emit.eager->storages.count; s++)
        if (c->of[s] == JOINS && c->maker[s] > 0) c->joining[c->maker[s] - 1]++;
}

static bool make_room(onv_tape *t, const changes *c, onv_eager_op *op, size_t at)
{
    if (c->joining[at] == 0) return true;
    size_t n = (size_t)op->n_saved + c->joining[at];
    uint32_t *saved = ONV_EMIT_ARRAY(&t->emit, uint32_t, n);
    if (saved == NULL) return false;
    if (op->n_saved > 0) memcpy(saved, op->saved, op->n_saved * sizeof *saved);
    op->saved = saved;
    c->joining[at] = 0;
    return true;
}

/* `order`: the storages that change. */
static void apply_changes(onv_tape *t, const uint8_t *of, const uint32_t *order, size_t n)
{
    onv_eager *eager = t->emit.eager;
    const changes c = {.of = of,
                       .maker = ONV_EMIT_ARRAY(&t->emit, uint32_t, eager->storages.count),
                       .joining = ONV_EMIT_ARRAY(&t->emit, uint32_t, eager->ops.count)};
    if (c.maker == NULL || c.joining == NULL) return;
    look_through(t, &c);
    for (size_t i = 0; i < n; i++) {
        uint32_t storage = order[i], maker = c.maker[storage];
        t->emit.saved.at[storage] = of[storage] == JOINS && maker > 0;
        if (!t->emit.saved.at[storage]) continue;
        onv_eager_op *op = &eager->ops.at[maker - 1];
        if (!make_room(t, &c, op, maker - 1)) return;
        op->saved[op->n_saved++] = storage;
    }
}

/* Results that the recording keeps, by storage of the tape: other values may share it. NULL: no memory. */
static bool *find_kept(onv_tape *t)
{
    bool *kept = ONV_EMIT_ARRAY(&t->emit, bool, t->emit.eager->storages.count);
    for (uint32_t i = 0; kept != NULL && i < t->program->values.count; i++) {
        uint32_t tensor = t->values[t->values[i].object].tensor;
        if (tensor != ONV_NO_TENSOR && t->program->values.at[i].is_kept)
            kept[onv_tensor_at(&t->emit, tensor).storage] = true;
    }
    return kept;
}

/* By value: made or read inside a checkpoint, where what is kept is what the checkpoint does. */
static bool *find_checkpointed(onv_tape *t)
{
    const onv_program *p = t->program;
    bool *is_inside = ONV_EMIT_ARRAY(&t->emit, bool, p->values.count);
    for (uint32_t i = 0; is_inside != NULL && i < p->calls.count; i++) {
        const onv_program_call *call = &p->calls.at[i];
        if (t->segment_of[i] == 0) continue;
        for (uint32_t k = 0; k < call->n_results; k++)
            if (call->results[k] != ONV_NO_PROGRAM_VALUE) is_inside[call->results[k]] = true;
        for (uint32_t k = 0; k < call->n_arguments; k++)
            if (call->arguments[k].kind == ONV_ARGUMENT_TENSOR)
                is_inside[call->arguments[k].value] = true;
    }
    return is_inside;
}

/* Where rules and the recording differ, it is as the recording has it. */
static void take_kept(onv_tape *t)
{
    const bool *kept = find_kept(t), *is_inside = find_checkpointed(t);
    size_t n_storages = t->emit.eager->storages.count, n = 0;
    uint8_t *of = ONV_EMIT_ARRAY(&t->emit, uint8_t, n_storages);
    uint32_t *order = ONV_EMIT_ARRAY(&t->emit, uint32_t, n_storages);
    if (kept == NULL || is_inside == NULL || of == NULL || order == NULL) return;
    for (uint32_t i = 0; i < t->program->values.count; i++) {
        const onv_program_value *v = &t->program->values.at[i];
        uint32_t tensor = t->values[t->values[i].object].tensor;
        if (v->storage == ONV_NO_STORAGE || v->kind != ONV_PROGRAM_RESULT ||
            tensor == ONV_NO_TENSOR || is_inside[i])
            continue;
        uint32_t storage = onv_tensor_at(&t->emit, tensor).storage;
        bool is_own = t->emit.eager->storages.at[storage].kind == ONV_STORAGE_ACTIVATION;
        if (!is_own || of[storage] != STAYS || t->emit.saved.at[storage] == kept[storage]) continue;
        onv_say(&t->emit, ONV_SAID_recorded_kept, v->name, onv_tensor_at(&t->emit, tensor).bytes,
                NULL);
        of[storage] = kept[storage] ? JOINS : LEAVES;
        order[n++] = storage;
    }
    if (n > 0) apply_changes(t, of, order, n);
}

void onv_tape_lifetimes(onv_tape *t)
{
    bool casts = t->emit.options->amp != ONV_UNDEFINED;
    t->emit.eager->was_recorded = true;
    for (uint32_t i = 0; i < t->program->values.count; i++)
        if (t->program->values.at[i].kind == ONV_PROGRAM_RESULT) hold(t, i);
    find_attributes(t);
    compare_storages(t);
    /* Under autocast calls keep casts, which the recording does not have. */
    if (!casts && !t->emit.options->inference && t->program->is_training) take_kept(t);
    if (casts) onv_say(&t->emit, ONV_SAID_recorded_precision, NULL, 0, NULL);
}

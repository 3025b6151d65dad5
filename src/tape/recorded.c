/* What a recording knows beside the calls: when storages were freed, which values share one, and what autograd kept. */
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "tape/state.h"

bool onv_tape_knows_grads(const onv_program *program)
{
    if (!onv_program_is_recorded(program) || !program->is_training) return false;
    for (size_t i = 0; i < program->values.count; i++)
        if (program->values.at[i].kind == ONV_PROGRAM_RESULT && program->values.at[i].requires_grad)
            return true;
    return false;
}

/* A view that is gone before autograd marks it has no mark, whatever it is of. */
static bool shares_storage(const onv_tape *t, const onv_program_call *call, uint32_t storage)
{
    for (uint32_t k = 0; k < call->n_arguments; k++)
        if (call->arguments[k].kind == ONV_ARGUMENT_TENSOR &&
            t->program->values.at[call->arguments[k].value].storage == storage)
            return true;
    return false;
}

bool onv_tape_ran_without_grad(const onv_tape *t, const onv_program_call *call)
{
    if (!t->knows_grads) return false;
    bool has_results = false;
    for (uint32_t k = 0; k < call->n_results; k++) {
        if (call->results[k] == ONV_NO_PROGRAM_VALUE) continue;
        const onv_program_value *v = &t->program->values.at[call->results[k]];
        if (v->requires_grad || shares_storage(t, call, v->storage)) return false;
        has_results = true;
    }
    return has_results;
}

static onv_eager_storage *storage_of(onv_tape *t, uint32_t value)
{
    uint32_t tensor = t->values[t->values[value].object].tensor;
    return tensor != ONV_NO_TENSOR
               ? &t->emit.eager->storages.at[onv_tensor_at(&t->emit, tensor).storage]
               : NULL;
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
    bool *others = ONV_ARENA_ARRAY(&t->emit.model->arena, bool, n);
    if (others == NULL) {
        t->emit.status = onv_fail_memory(t->emit.err);
        return;
    }
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
static void compare_storages(onv_tape *t, onv_tally *differ)
{
    size_t n = t->program->values.count;
    uint32_t *of = ONV_ARENA_ARRAY(&t->emit.model->arena, uint32_t, n);
    if (of == NULL) {
        t->emit.status = onv_fail_memory(t->emit.err);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        const onv_program_value *v = &t->program->values.at[i];
        uint32_t tensor = t->values[t->values[i].object].tensor;
        if (v->storage >= n || v->kind != ONV_PROGRAM_RESULT || tensor == ONV_NO_TENSOR) continue;
        uint32_t storage = onv_tensor_at(&t->emit, tensor).storage;
        if (of[v->storage] == 0) of[v->storage] = storage + 1;
        if (of[v->storage] == storage + 1) continue;
        if (differ->count++ == 0) differ->first = v->name;
        differ->bytes += onv_tensor_at(&t->emit, tensor).bytes;
    }
}

/* --- What autograd kept -------------------------------------------------------------------------- */

static void leave_out(onv_tape *t, uint32_t storage)
{
    for (size_t i = 0; i < t->emit.eager->ops.count && onv_work(1); i++) {
        onv_eager_op *op = &t->emit.eager->ops.at[i];
        uint32_t n = 0;
        for (uint32_t k = 0; k < op->n_saved; k++)
            if (op->saved[k] != storage) op->saved[n++] = op->saved[k];
        op->n_saved = n;
    }
    t->emit.saved.at[storage] = false;
}

static bool touches(const onv_tape *t, const onv_eager_op *op, uint32_t storage)
{
    for (uint32_t k = 0; k < op->n_in; k++)
        if (onv_tensor_at(&t->emit, op->in[k].tensor).storage == storage) return true;
    for (uint32_t k = 0; k < op->n_out; k++)
        if (onv_tensor_at(&t->emit, op->out[k]).storage == storage) return true;
    return false;
}

/* By the first node of autograd that reads or makes it, which backward comes to last. */
static void keep_too(onv_tape *t, uint32_t storage)
{
    onv_eager_op *op = NULL;
    for (size_t i = 0; op == NULL && i < t->emit.eager->ops.count && onv_work(1); i++) {
        onv_eager_op *at = &t->emit.eager->ops.at[i];
        if (at->has_backward && touches(t, at, storage)) op = at;
    }
    if (op == NULL) return;
    uint32_t *saved = ONV_ARENA_ARRAY(&t->emit.model->arena, uint32_t, op->n_saved + 1);
    if (saved == NULL) {
        t->emit.status = onv_fail_memory(t->emit.err);
        return;
    }
    memcpy(saved, op->saved, op->n_saved * sizeof *saved);
    saved[op->n_saved++] = storage;
    op->saved = saved;
    t->emit.saved.at[storage] = true;
}

/* Results that the recording keeps, by storage of the tape: other values may share it. */
static bool *find_kept(onv_tape *t)
{
    bool *kept = ONV_ARENA_ARRAY(&t->emit.model->arena, bool, t->emit.eager->storages.count);
    if (kept == NULL) t->emit.status = onv_fail_memory(t->emit.err);
    for (uint32_t i = 0; kept != NULL && i < t->program->values.count; i++) {
        uint32_t tensor = t->values[t->values[i].object].tensor;
        if (tensor != ONV_NO_TENSOR && t->program->values.at[i].is_kept)
            kept[onv_tensor_at(&t->emit, tensor).storage] = true;
    }
    return kept;
}

/* Where rules and the recording differ, it is as the recording has it. */
static void take_kept(onv_tape *t, onv_tally *differ)
{
    const bool *kept = find_kept(t);
    for (uint32_t i = 0; i < t->program->values.count && t->emit.status == ONV_OK; i++) {
        const onv_program_value *v = &t->program->values.at[i];
        uint32_t tensor = t->values[t->values[i].object].tensor;
        if (v->storage == ONV_NO_STORAGE || v->kind != ONV_PROGRAM_RESULT ||
            tensor == ONV_NO_TENSOR)
            continue;
        uint32_t storage = onv_tensor_at(&t->emit, tensor).storage;
        bool is_own = t->emit.eager->storages.at[storage].kind == ONV_STORAGE_ACTIVATION;
        if (!is_own || t->emit.saved.at[storage] == kept[storage]) continue;
        if (differ->count++ == 0) differ->first = v->name;
        differ->bytes += onv_tensor_at(&t->emit, tensor).bytes;
        if (kept[storage])
            keep_too(t, storage);
        else
            leave_out(t, storage);
    }
}

void onv_tape_lifetimes(onv_tape *t)
{
    onv_tally views = {0}, kept = {0};
    t->emit.eager->was_recorded = true;
    for (uint32_t i = 0; i < t->program->values.count; i++)
        if (t->program->values.at[i].kind == ONV_PROGRAM_RESULT) hold(t, i);
    find_attributes(t);
    compare_storages(t, &views);
    if (!t->emit.options->inference && t->program->is_training) take_kept(t, &kept);
    if (!t->emit.options->reports) return;
    if (views.count > 0)
        onv_model_diag(t->emit.model, ONV_WARNING, "recorded-storages", NULL,
                       "%u results share memory otherwise in the recording than by the rules, as "
                       "'%.100s' (%llu bytes)",
                       views.count, views.first, (unsigned long long)views.bytes);
    if (kept.count > 0)
        onv_model_diag(
            t->emit.model, ONV_WARNING, "recorded-kept", NULL,
            "autograd kept %u results in the recording that the rules do not, or the other "
            "way round, as '%.100s' (%llu bytes): they count as in the recording; what "
            "backward computes again, as of checkpoints, does not count",
            kept.count, kept.first, (unsigned long long)kept.bytes);
}

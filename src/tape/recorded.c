/* What a recording knows beside the calls: when storages were freed, which values share one, and what autograd kept. */
#include <string.h>

#include "base/fail.h"
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

/* Calls that hold something after its last use. */
static void hold(onv_tape *t, uint32_t value)
{
    const onv_program_value *v = &t->program->values.at[value];
    uint32_t tensor = t->values[t->values[value].object].tensor;
    if (tensor == ONV_NO_TENSOR || v->freed_after >= t->program->calls.count) return;
    onv_eager_storage *storage =
        &t->emit.eager->storages.at[onv_tensor_at(&t->emit, tensor).storage];
    uint32_t end = t->last_op[v->freed_after];
    if (end > 0 && end - 1 > storage->held_until) storage->held_until = end - 1;
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

/* Storages that autograd kept in one of both alone. */
static void compare_kept(onv_tape *t, onv_tally *differ)
{
    for (uint32_t i = 0; i < t->program->values.count; i++) {
        const onv_program_value *v = &t->program->values.at[i];
        uint32_t tensor = t->values[t->values[i].object].tensor;
        if (v->storage == ONV_NO_STORAGE || v->kind != ONV_PROGRAM_RESULT ||
            tensor == ONV_NO_TENSOR)
            continue;
        uint32_t storage = onv_tensor_at(&t->emit, tensor).storage;
        bool is_kept = t->emit.saved.at[storage];
        bool is_own = t->emit.eager->storages.at[storage].kind == ONV_STORAGE_ACTIVATION;
        if (!is_own || is_kept == v->is_kept) continue;
        if (differ->count++ == 0) differ->first = v->name;
        differ->bytes += onv_tensor_at(&t->emit, tensor).bytes;
    }
}

void onv_tape_lifetimes(onv_tape *t)
{
    onv_tally views = {0}, kept = {0};
    t->emit.eager->was_recorded = true;
    for (uint32_t i = 0; i < t->program->values.count; i++)
        if (t->program->values.at[i].kind == ONV_PROGRAM_RESULT) hold(t, i);
    compare_storages(t, &views);
    if (!t->emit.options->inference && t->program->is_training) compare_kept(t, &kept);
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
            "way round, as '%.100s' (%llu bytes)",
            kept.count, kept.first, (unsigned long long)kept.bytes);
}

#include "eager/eager.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/heap.h"
#include "kernels/cublas.h"
#include "kernels/cudnn.h"

static bool counts(const onv_eager_storage *storage)
{
    return !storage->on_host &&
           (storage->kind == ONV_STORAGE_INPUT || storage->kind == ONV_STORAGE_ACTIVATION ||
            storage->kind == ONV_STORAGE_EXTRA);
}

onv_status onv_eager_saved(onv_model *model, const onv_eager *eager, uint64_t *bytes,
                           bool **is_saved, onv_error *err)
{
    bool *seen = ONV_ARENA_ARRAY(&model->arena, bool, eager->storages.count);
    if (seen == NULL) return onv_fail_memory(err);
    *bytes = 0;
    for (size_t i = 0; i < eager->ops.count; i++) {
        const onv_eager_op *op = &eager->ops.at[i];
        if (op->life == ONV_LIFE_FORWARD) continue;
        for (uint32_t k = 0; k < op->n_saved; k++) {
            uint32_t storage = op->saved[k];
            if (seen[storage]) continue;
            seen[storage] = true;
            if (!counts(&eager->storages.at[storage])) continue;
            if (!onv_u64_add(*bytes, eager->storages.at[storage].bytes, bytes))
                return onv_fail(err, ONV_ERR_OVERFLOW, "the saved bytes do not fit 64 bits");
        }
    }
    if (is_saved != NULL) *is_saved = seen;
    return ONV_OK;
}

uint64_t onv_eager_handle_bytes(const onv_eager *eager, const onv_lower_options *options)
{
    uint64_t bytes = 0;
    if (eager->uses_cublas) bytes += onv_cublas_handle_bytes(&options->cuda);
    if (eager->uses_cudnn) bytes += onv_cudnn_handle_bytes(&options->cuda);
    return bytes;
}

onv_status onv_eager_check(const onv_eager *eager, onv_error *err)
{
    for (size_t i = 0; i < eager->tensors.count; i++)
        if (eager->tensors.at[i].storage >= eager->storages.count)
            return onv_fail(err, ONV_ERR_MODEL, "eager tensor %zu has no storage", i);
    for (size_t i = 0; i < eager->ops.count; i++) {
        const onv_eager_op *op = &eager->ops.at[i];
        bool good = true;
        for (uint32_t k = 0; k < op->n_in; k++) good &= op->in[k].tensor < eager->tensors.count;
        for (uint32_t k = 0; k < op->n_out; k++) good &= op->out[k] < eager->tensors.count;
        for (uint32_t k = 0; k < op->n_saved; k++) good &= op->saved[k] < eager->storages.count;
        if (!good) return onv_fail(err, ONV_ERR_MODEL, "eager operation %zu is damaged", i);
    }
    return ONV_OK;
}

void onv_eager_init(onv_eager *eager)
{
    *eager = (onv_eager){.loss = ONV_NO_TENSOR};
    onv_arena_init(&eager->arena, SIZE_MAX);
}

uint64_t onv_backward_temps_most(const onv_backward_temp *temps, uint32_t n)
{
    uint64_t most = 0, grads = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t there = 0;
        for (uint32_t k = 0; k <= i; k++)
            if (temps[k].until > i || temps[k].grad_of > 0)
                there = onv_u64_plus(there, temps[k].bytes);
        if (there > most) most = there;
        if (temps[i].grad_of > 0) grads = onv_u64_plus(grads, temps[i].bytes);
    }
    return most == UINT64_MAX ? most : most > grads ? most - grads : 0;
}

uint64_t onv_eager_backward_temps(const onv_eager *eager, const onv_eager_op *op)
{
    if (op->n_temps == 0) return op->backward_temp_bytes;
    return onv_u64_plus(op->backward_temp_bytes,
                        onv_backward_temps_most(&eager->temps.at[op->first_temp], op->n_temps));
}

void onv_eager_cleanup(onv_eager *eager)
{
    onv_vec_cleanup(&eager->storages);
    onv_vec_cleanup(&eager->tensors);
    onv_vec_cleanup(&eager->ops);
    onv_vec_cleanup(&eager->rnns);
    onv_vec_cleanup(&eager->temps);
    onv_vec_cleanup(&eager->outputs);
    onv_vec_cleanup(&eager->regions);
    onv_vec_cleanup(&eager->checkpoints);
    onv_vec_cleanup(&eager->inplace_relus);
    onv_arena_cleanup(&eager->arena);
    onv_eager_init(eager);
}

/* Tensors stand in the order in which they were made: what is made of a storage behind the Relu is on the new one. */
onv_status onv_eager_with_new_relus(const onv_eager *tape, onv_eager *copy, onv_error *err)
{
    size_t n = tape->storages.count, most = n + tape->inplace_relus.count;
    *copy = *tape;
    copy->tensors.at =
        onv_heap_copy(tape->tensors.at, tape->tensors.count * sizeof *copy->tensors.at);
    copy->storages.at = onv_heap_alloc(most * sizeof *copy->storages.at);
    uint32_t *now = onv_heap_alloc(n * sizeof *now);
    bool good = copy->tensors.at != NULL && copy->storages.at != NULL && now != NULL;
    for (uint32_t i = 0; good && i < n; i++) {
        copy->storages.at[i] = tape->storages.at[i];
        now[i] = i;
    }
    const onv_inplace_relu *relu = tape->inplace_relus.at, *end = relu + tape->inplace_relus.count;
    for (uint32_t i = 0; good && i < copy->tensors.count; i++) {
        uint32_t *storage = &copy->tensors.at[i].storage, before = now[*storage];
        if (relu < end && relu->tensor == i) {
            uint32_t made = now[*storage] = (uint32_t)copy->storages.count++;
            copy->storages.at[made] = copy->storages.at[before];
            copy->storages.at[made].value = relu++->value;
            copy->storages.at[before].is_output = false;
        }
        *storage = now[*storage];
    }
    onv_heap_free(now);
    return good ? ONV_OK : onv_fail_memory(err);
}

void onv_eager_end_new_relus(onv_eager *copy)
{
    onv_vec_cleanup(&copy->storages);
    onv_vec_cleanup(&copy->tensors);
}

/* CUDA's stream-ordered pool (cudaMallocAsync), as PyTorch's cudaMallocAsync backend uses it: the
 * release threshold is at its maximum, so the pool never shrinks.
 *
 * What the driver does inside is not published. Assumed: it serves a request from the smallest free
 * range, and grows by whole steps of 32 MiB. Documented: addresses are aligned to 256 bytes or
 * more; 512 was observed, and is assumed to be the unit of sizes as well. "Allocated" is what the
 * pool counts as used, "reserved" what it holds. A pool can remap pages, this model cannot: where
 * memory is fragmented, reserved is an upper bound. A placement has one request to the pool for each
 * buffer; the segments below are the pool's own.
 */
#include "alloc/alloc_model.h"
#include "base/fail.h"

#define STEP_BYTES  (32 * ONV_MIB)
#define ALIGN_BYTES UINT64_C(512)

typedef struct async_state {
    onv_block_set free;
} async_state;

static onv_status async_init(onv_allocator *a, onv_error *err)
{
    async_state *s = a->state;
    onv_async_options *o = &a->options.async;
    if (o->step_bytes == 0) o->step_bytes = STEP_BYTES;
    if (o->align_bytes == 0) o->align_bytes = ALIGN_BYTES;
    if (o->step_bytes > ONV_ALLOC_MAX_BYTES || o->align_bytes > o->step_bytes)
        return onv_fail(err, ONV_ERR_USAGE, "async: the alignment must be at most the step");
    onv_block_set_init(&s->free, false);
    return ONV_OK;
}

static onv_status async_alloc(onv_allocator *a, uint64_t bytes, uint32_t *block, onv_error *err)
{
    async_state *s = a->state;
    uint64_t align = a->options.async.align_bytes, step = a->options.async.step_bytes;
    uint64_t rounded = (bytes + align - 1) / align * align;
    *block = onv_block_set_lower_bound(&s->free, &a->space, rounded, 0);
    if (*block != ONV_NO_BLOCK)
        onv_block_set_remove(&s->free, &a->space, *block);
    else
        ONV_TRY(onv_device_alloc(a, (rounded + step - 1) / step * step, ONV_POOL_ALL, block, err));
    if (*block == ONV_NO_BLOCK || onv_space_block(&a->space, *block)->bytes == rounded)
        return ONV_OK;
    ONV_TRY(onv_space_split(&a->space, *block, rounded, err));
    onv_block_set_insert(&s->free, &a->space, onv_space_block(&a->space, *block)->next);
    return ONV_OK;
}

static void async_free(onv_allocator *a, uint32_t block)
{
    async_state *s = a->state;
    block = onv_coalesce(a, &s->free, block);
    onv_block_set_insert(&s->free, &a->space, block);
}

const onv_alloc_model onv_alloc_async = {
    .name = "async",
    .summary = "CUDA's stream-ordered pool, cudaMallocAsync",
    .state_bytes = sizeof(async_state),
    .is_pooled = true,
    .init = async_init,
    .alloc = async_alloc,
    .free = async_free,
};

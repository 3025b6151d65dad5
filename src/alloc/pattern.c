/* ONNX Runtime's memory pattern: the packer that plans one buffer for all of a run.
 *
 * A block goes into the smallest gap that holds it, the earliest on ties; one of them is what the last live block leaves of the
 * buffer, which is as large as the furthest end ever was. Else it goes behind the last live block. Here that is best
 * fit in one segment that grows. Addresses are offsets in the buffer.
 *
 * Read in source: onnxruntime/core/framework/mem_pattern_planner.h; sizes are rounded to 256 before
 * they are traced (execution_frame.cc). Measured, ONNX Runtime 1.31.
 */
#include "alloc/alloc_model.h"
#include "base/fail.h"

#define ALIGN_BYTES UINT64_C(256) /* kAllocAlignment */

typedef struct pattern_state {
    onv_block_set gaps;
    uint32_t segment; /* ONV_NO_BLOCK: nothing was placed yet */
} pattern_state;

static onv_status pattern_init(onv_allocator *a, onv_error *err)
{
    pattern_state *p = a->state;
    if (a->options.pattern_align_bytes == 0) a->options.pattern_align_bytes = ALIGN_BYTES;
    if (a->options.pattern_align_bytes > ONV_ALLOC_MAX_BYTES)
        return onv_fail(err, ONV_ERR_USAGE, "pattern: the alignment is more than any device");
    onv_block_set_init(&p->gaps, false);
    p->segment = ONV_NO_BLOCK;
    a->space.next_address = 0;
    return ONV_OK;
}

/* Where no gap is large enough: makes the tail a free block of `bytes`. *block stays ONV_NO_BLOCK if the device has no room for a
 * larger buffer. */
static onv_status grow_tail(onv_allocator *a, uint64_t bytes, uint32_t *block, onv_error *err)
{
    pattern_state *p = a->state;
    if (p->segment == ONV_NO_BLOCK) {
        ONV_TRY(onv_device_alloc(a, bytes, ONV_POOL_ALL, block, err));
        if (*block == ONV_NO_BLOCK) return ONV_OK;
        p->segment = onv_space_block(&a->space, *block)->segment;
        if (a->record != NULL) a->record->segments.at[0].grows = true;
        return ONV_OK;
    }
    uint32_t last = a->space.segments.at[p->segment].last;
    const onv_block *tail = onv_space_block(&a->space, last);
    bool is_free = tail->state == ONV_BLOCK_FREE;
    uint64_t missing = is_free ? bytes - tail->bytes : bytes;
    uint32_t added;
    if (!onv_device_has(a, missing)) return ONV_OK;
    if (is_free) onv_block_set_remove(&p->gaps, &a->space, last);
    ONV_TRY(onv_space_extend(&a->space, p->segment, missing, ONV_BLOCK_FREE, &added, err));
    onv_stats_add(&a->stats, ONV_STAT_RESERVED_BYTES, ONV_POOL_ALL, missing);
    if (a->record != NULL) a->record->segments.at[0].bytes += missing;
    if (is_free) onv_space_merge(&a->space, last);
    *block = is_free ? last : added;
    return ONV_OK;
}

static onv_status pattern_alloc(onv_allocator *a, uint64_t bytes, uint32_t *block, onv_error *err)
{
    pattern_state *p = a->state;
    uint64_t align = a->options.pattern_align_bytes;
    uint64_t rounded = (bytes + align - 1) / align * align;
    *block = onv_block_set_lower_bound(&p->gaps, &a->space, rounded, 0);
    if (*block == ONV_NO_BLOCK) return grow_tail(a, rounded, block, err);
    onv_block_set_remove(&p->gaps, &a->space, *block);
    if (onv_space_block(&a->space, *block)->bytes == rounded) return ONV_OK;
    ONV_TRY(onv_space_split(&a->space, *block, rounded, err));
    onv_block_set_insert(&p->gaps, &a->space, onv_space_block(&a->space, *block)->next);
    return ONV_OK;
}

static void pattern_free(onv_allocator *a, uint32_t block)
{
    pattern_state *p = a->state;
    onv_block_set_insert(&p->gaps, &a->space, onv_coalesce(a, &p->gaps, block));
}

const onv_alloc_model onv_alloc_pattern = {
    .name = "pattern",
    .summary = "ONNX Runtime's memory pattern: one buffer planned ahead",
    .state_bytes = sizeof(pattern_state),
    .init = pattern_init,
    .alloc = pattern_alloc,
    .free = pattern_free,
};

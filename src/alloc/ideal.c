/* No allocator at all: the sum of what is live, to the byte. Blocks have no place. */
#include "alloc/alloc_model.h"

static onv_status ideal_alloc(onv_allocator *a, uint64_t bytes, uint32_t *block, onv_error *err)
{
    if (!onv_device_has(a, bytes)) return ONV_OK;
    ONV_TRY(onv_space_add_loose(&a->space, bytes, block, err));
    onv_stats_add(&a->stats, ONV_STAT_RESERVED_BYTES, ONV_POOL_ALL, bytes);
    return ONV_OK;
}

static void ideal_free(onv_allocator *a, uint32_t block)
{
    onv_stats_remove(&a->stats, ONV_STAT_RESERVED_BYTES, ONV_POOL_ALL,
                     onv_space_block(&a->space, block)->bytes);
    onv_space_drop_block(&a->space, block);
}

const onv_alloc_model onv_alloc_ideal = {
    .name = "ideal",
    .summary = "the bytes that are live, nothing rounded",
    .counts_requested = true,
    .alloc = ideal_alloc,
    .free = ideal_free,
};

/* One cudaMalloc and one cudaFree per buffer.
 *
 * "Allocated" sums what was asked for, "reserved" the physical memory behind it. The granularity of
 * 2 MiB is stated in PyTorch's notes and was reported by the driver's query for virtual memory
 * management; that several small buffers may share one such page is known but not modelled, so
 * many of them make this an upper bound.
 */
#include "alloc/alloc_model.h"
#include "base/fail.h"

#define GRANULARITY_BYTES (2 * ONV_MIB)

static onv_status raw_init(onv_allocator *a, onv_error *err)
{
    if (a->options.raw_granularity_bytes == 0) a->options.raw_granularity_bytes = GRANULARITY_BYTES;
    if (a->options.raw_granularity_bytes > ONV_ALLOC_MAX_BYTES)
        return onv_fail(err, ONV_ERR_USAGE, "raw: the granularity is more than any device");
    return ONV_OK;
}

static onv_status raw_alloc(onv_allocator *a, uint64_t bytes, uint32_t *block, onv_error *err)
{
    uint64_t unit = a->options.raw_granularity_bytes;
    return onv_device_alloc(a, (bytes + unit - 1) / unit * unit, ONV_POOL_ALL, block, err);
}

const onv_alloc_model onv_alloc_raw = {
    .name = "raw",
    .summary = "one cudaMalloc per buffer",
    .counts_requested = true,
    .init = raw_init,
    .alloc = raw_alloc,
    .free = onv_device_free,
};

/* PyTorch's expandable segments: address space for more than the device has, whose pages are mapped
 * as they are needed, so that blocks can grow at the end.
 *
 * Read in source: c10/cuda/CUDACachingAllocator.cpp, struct ExpandableSegment and the functions
 * named below. Pages are 2 MiB in the small pool and as long as a large segment in the large one; the
 * address space is 1 1/8 of the device's memory. PyTorch does not count these segments.
 */
#include "alloc/alloc_model.h"

/* Where no capacity is known. Assumed: any size that no trace fills. */
#define DEFAULT_SPACE_BYTES (UINT64_C(1) << 47)

uint64_t onv_torch_reach(const onv_allocator *a, uint32_t block)
{
    const onv_block *b = onv_space_block(&a->space, block);
    if (b->next == ONV_NO_BLOCK) return b->bytes;
    const onv_block *next = onv_space_block(&a->space, b->next);
    return next->state == ONV_BLOCK_UNMAPPED ? b->bytes + next->bytes : b->bytes;
}

static onv_status add_space(onv_allocator *a, onv_torch_pool *pool, uint64_t bytes, uint32_t *block,
                            onv_error *err)
{
    uint64_t capacity = a->options.capacity_bytes; /* at most ONV_ALLOC_MAX_BYTES */
    uint64_t space = capacity == 0 ? DEFAULT_SPACE_BYTES : capacity + capacity / 8;
    space = (space + pool->page_bytes - 1) / pool->page_bytes * pool->page_bytes;
    if (bytes > space) return ONV_OK; /* mapping it would fail anyway */
    ONV_TRY(onv_space_add_segment(&a->space, space, ONV_BLOCK_UNMAPPED, block, err));
    onv_segment *s = onv_space_segment_of(&a->space, *block);
    s->pool = (uint8_t)pool->which;
    s->stream = pool->stream;
    s->expandable = true;
    ONV_TRY(onv_record_segment(a, (onv_taken_segment){.bytes = space, .grows = true}, &s->recorded,
                               err));
    onv_block_set_insert(&pool->unmapped, &a->space, *block);
    return ONV_OK;
}

/* find_expandable_block: the lowest run of free and unmapped blocks that is long enough. */
static onv_status find_run(onv_allocator *a, onv_torch_pool *pool, uint64_t bytes, uint32_t *block,
                           onv_error *err)
{
    uint32_t unmapped = onv_block_set_first(&pool->unmapped, &a->space);
    while (unmapped != ONV_NO_BLOCK) {
        uint32_t first = unmapped;
        uint32_t prev = onv_space_block(&a->space, unmapped)->prev;
        if (prev != ONV_NO_BLOCK && onv_space_block(&a->space, prev)->state == ONV_BLOCK_FREE)
            first = prev;
        uint64_t room = 0;
        for (uint32_t at = first; at != ONV_NO_BLOCK && room < bytes;) {
            const onv_block *b = onv_space_block(&a->space, at);
            if (b->state == ONV_BLOCK_USED) break;
            room += b->bytes;
            at = b->next;
        }
        if (room >= bytes) {
            *block = first;
            return ONV_OK;
        }
        unmapped = onv_block_set_next(&pool->unmapped, &a->space, unmapped);
    }
    return add_space(a, pool, bytes, block, err);
}

/* map_block: maps whole pages for the first `bytes` of an unmapped block. *block becomes the free
 * block that holds them, or ONV_NO_BLOCK if the device is full. */
static onv_status map(onv_allocator *a, onv_torch_pool *pool, uint64_t bytes, uint32_t *block,
                      onv_error *err)
{
    uint64_t mapped = (bytes + pool->page_bytes - 1) / pool->page_bytes * pool->page_bytes;
    uint32_t at = *block;
    *block = ONV_NO_BLOCK;
    if (!onv_device_has(a, mapped)) return ONV_OK;
    onv_block_set_remove(&pool->unmapped, &a->space, at);
    if (mapped < onv_space_block(&a->space, at)->bytes) {
        ONV_TRY(onv_space_split(&a->space, at, mapped, err));
        onv_block_set_insert(&pool->unmapped, &a->space, onv_space_block(&a->space, at)->next);
    }
    ONV_TRY(onv_record_mapping(a, at, mapped, false, err));
    onv_space_block(&a->space, at)->state = ONV_BLOCK_FREE;
    at = onv_coalesce(a, &pool->free, at);
    onv_torch_cache(a, pool, at);
    onv_stats_add(&a->stats, ONV_STAT_RESERVED_BYTES, pool->which, mapped);
    a->stats.device_allocs++;
    *block = at;
    return ONV_OK;
}

/* try_allocate_expandable_block. The run is one of: unmapped; free, unmapped; or these in turn. */
onv_status onv_torch_grow(onv_allocator *a, onv_torch_pool *pool, uint64_t bytes, uint32_t *block,
                          onv_error *err)
{
    uint32_t at = ONV_NO_BLOCK;
    ONV_TRY(find_run(a, pool, bytes, &at, err));
    if (at == ONV_NO_BLOCK) return ONV_OK;
    const onv_block *b = onv_space_block(&a->space, at);
    if (b->state == ONV_BLOCK_UNMAPPED) {
        ONV_TRY(map(a, pool, b->bytes < bytes ? b->bytes : bytes, &at, err));
        if (at == ONV_NO_BLOCK) return ONV_OK;
    }
    while (onv_space_block(&a->space, at)->bytes < bytes) {
        b = onv_space_block(&a->space, at);
        uint64_t missing = bytes - b->bytes;
        at = b->next; /* unmapped: free blocks are never neighbours */
        uint64_t room = onv_space_block(&a->space, at)->bytes;
        ONV_TRY(map(a, pool, room < missing ? room : missing, &at, err));
        if (at == ONV_NO_BLOCK) return ONV_OK;
    }
    onv_block_set_remove(&pool->free, &a->space, at);
    *block = at;
    return ONV_OK;
}

/* unmap_block, and release_expandable_segment where nothing is left mapped */
onv_status onv_torch_unmap(onv_allocator *a, onv_torch_pool *pool, uint32_t block, onv_error *err)
{
    uint64_t page = pool->page_bytes;
    const onv_block *b = onv_space_block(&a->space, block);
    uint64_t from = b->address - onv_space_segment_of(&a->space, block)->address;
    uint64_t begin = (from + page - 1) / page * page, end = (from + b->bytes) / page * page;
    if (begin >= end) return ONV_OK;
    uint64_t unmapped = end - begin;
    onv_block_set_remove(&pool->free, &a->space, block);
    if (begin > from) {
        ONV_TRY(onv_space_split(&a->space, block, begin - from, err));
        onv_torch_cache(a, pool, block);
        block = onv_space_block(&a->space, block)->next;
    }
    if (onv_space_block(&a->space, block)->bytes > unmapped) {
        ONV_TRY(onv_space_split(&a->space, block, unmapped, err));
        onv_torch_cache(a, pool, onv_space_block(&a->space, block)->next);
    }
    ONV_TRY(onv_record_mapping(a, block, unmapped, true, err));
    onv_block *freed = onv_space_block(&a->space, block);
    freed->state = ONV_BLOCK_UNMAPPED;
    onv_stats_remove(&a->stats, ONV_STAT_RESERVED_BYTES, pool->which, unmapped);
    a->stats.device_frees++;
    block = onv_coalesce(a, &pool->unmapped, block);
    if (onv_space_is_whole(&a->space, block)) {
        onv_record_return(a, onv_space_segment_of(&a->space, block)->recorded);
        onv_space_remove_segment(&a->space, block);
    } else {
        onv_block_set_insert(&pool->unmapped, &a->space, block);
    }
    return ONV_OK;
}

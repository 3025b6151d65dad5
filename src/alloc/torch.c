/* PyTorch's CUDA caching allocator, native backend, no private pools of CUDA graphs.
 *
 * Small requests (1 MiB and less after rounding) and large ones live in segments of their own, and so do those
 * of each stream: what is free is found on the stream alone that it was made on. Best
 * fit, ties to the lowest address; freed blocks join their free neighbours; segments go back to the
 * device only when an allocation fails, and only if they are one free block.
 *
 * All rules are read in source: c10/cuda/CUDACachingAllocator.cpp (PyTorch 2.6 to 2.9); the
 * functions of that file are named where one stands for another. Measured: the compiled allocator
 * of PyTorch 2.15, run over a substitute for the CUDA runtime that hands out increasing addresses,
 * gave the same addresses and statistics after each of 4.4 million events, with every setting of
 * onv_torch_options, with and without a capacity.
 */
#include "alloc/alloc_model.h"

#include <string.h>

#include "base/fail.h"

/* The settings that count whole MB in PyTorch. Below their limits, which it has too (measured), a
 * block could be oversize and yet a part of a segment. */
static onv_status check_sizes(onv_torch_options *o, onv_error *err)
{
    if (o->large_segment_bytes == 0) o->large_segment_bytes = ONV_TORCH_LARGE_SEGMENT_BYTES;
    if (o->max_split_bytes == 0) o->max_split_bytes = UINT64_MAX;
    if (o->max_non_split_rounding_bytes == 0)
        o->max_non_split_rounding_bytes = o->large_segment_bytes;
    if (o->large_segment_bytes % ONV_MIB != 0 ||
        o->large_segment_bytes <= ONV_TORCH_MIN_LARGE_BYTES ||
        o->large_segment_bytes > ONV_ALLOC_MAX_BYTES)
        return onv_fail(err, ONV_ERR_USAGE,
                        "torch: large_segment_size must be whole MiB and more than 10 MiB");
    if (o->max_split_bytes != UINT64_MAX &&
        (o->max_split_bytes % ONV_MIB != 0 || o->max_split_bytes < o->large_segment_bytes ||
         o->max_split_bytes < ONV_TORCH_LARGE_SEGMENT_BYTES))
        return onv_fail(err, ONV_ERR_USAGE,
                        "torch: max_split_size must be whole MiB, at least 20 MiB and at least "
                        "large_segment_size");
    return ONV_OK;
}

static void init_pool(onv_torch_pool *pool, onv_alloc_pool which, uint8_t stream, uint64_t page)
{
    *pool = (onv_torch_pool){.which = which, .stream = stream, .page_bytes = page};
    onv_block_set_init(&pool->free, false);
    onv_block_set_init(&pool->unmapped, true);
}

static onv_status torch_init(onv_allocator *a, onv_error *err)
{
    onv_torch_state *t = a->state;
    onv_torch_options *o = &a->options.torch;
    ONV_TRY(check_sizes(o, err));
    t->divides = false;
    for (size_t i = 0; i < sizeof o->roundup_power2_divisions / sizeof(uint32_t); i++) {
        uint32_t d = o->roundup_power2_divisions[i];
        t->divides |= d > 1;
        if ((d & (d - 1)) != 0)
            return onv_fail(err, ONV_ERR_USAGE,
                            "torch: roundup_power2_divisions must be a power of 2, not %u", d);
    }
    if (!(o->garbage_collection_threshold >= 0 && o->garbage_collection_threshold < 1))
        return onv_fail(err, ONV_ERR_USAGE,
                        "torch: garbage_collection_threshold must be in [0, 1)");
    if (!(o->memory_fraction >= 0 && o->memory_fraction <= 1))
        return onv_fail(err, ONV_ERR_USAGE, "torch: memory_fraction must be in [0, 1]");
    if (o->memory_fraction > 0 && a->options.capacity_bytes == 0)
        return onv_fail(err, ONV_ERR_USAGE, "torch: memory_fraction needs a capacity");
    memset(t->searches, 0, sizeof t->searches);
    t->allowed_bytes = UINT64_MAX;
    if (o->memory_fraction > 0)
        t->allowed_bytes = (uint64_t)(o->memory_fraction * (double)a->options.capacity_bytes);
    t->collects_garbage = o->garbage_collection_threshold > 0 && o->memory_fraction > 0;
    for (uint8_t stream = 0; stream < ONV_N_STREAMS; stream++) {
        init_pool(&t->large[stream], ONV_POOL_LARGE, stream, o->large_segment_bytes);
        init_pool(&t->small[stream], ONV_POOL_SMALL, stream, ONV_TORCH_SMALL_SEGMENT_BYTES);
    }
    return ONV_OK;
}

/* --- Sizes ------------------------------------------------------------------------------------- */

static uint32_t divisions_for(const onv_torch_options *o, uint64_t bytes)
{
    unsigned top = 63 - (unsigned)__builtin_clzll(bytes);
    unsigned k = top > 20 ? top - 20 : 0;
    return o->roundup_power2_divisions[k < 16 ? k : 15];
}

/* round_size. `bytes` is at most ONV_ALLOC_MAX_BYTES, so no sum wraps. */
static inline uint64_t round_size(const onv_allocator *a, uint64_t bytes)
{
    const onv_torch_state *t = a->state;
    if (t->divides && bytes >= ONV_TORCH_QUANTUM_BYTES) {
        uint32_t divisions = divisions_for(&a->options.torch, bytes);
        if (divisions > 1 && bytes > ONV_TORCH_QUANTUM_BYTES * divisions)
            return onv_round_up(bytes, (UINT64_C(1) << (63 - __builtin_clzll(bytes))) / divisions);
    }
    return onv_round_up(bytes, ONV_TORCH_QUANTUM_BYTES);
}

/* get_allocation_size */
static uint64_t segment_size(const onv_torch_options *o, uint64_t rounded)
{
    if (rounded <= ONV_TORCH_SMALL_BYTES) return ONV_TORCH_SMALL_SEGMENT_BYTES;
    if (rounded < ONV_TORCH_MIN_LARGE_BYTES) return o->large_segment_bytes;
    uint64_t unit = ONV_TORCH_ROUND_LARGE_BYTES;
    return (rounded + unit - 1) / unit * unit;
}

/* should_split */
static bool splits(const onv_allocator *a, const onv_torch_pool *pool, uint64_t block_bytes,
                   uint64_t rounded)
{
    uint64_t rest = block_bytes - rounded;
    if (pool->which == ONV_POOL_SMALL || a->options.torch.expandable_segments)
        return rest >= ONV_TORCH_QUANTUM_BYTES;
    return rounded < a->options.torch.max_split_bytes && rest > ONV_TORCH_SMALL_BYTES;
}

/* --- Free blocks ------------------------------------------------------------------------------- */

void onv_torch_cache(onv_allocator *a, onv_torch_pool *pool, uint32_t block)
{
    const onv_torch_state *t = a->state;
    if (t->collects_garbage) onv_space_block(&a->space, block)->age = t->searches[pool->which];
    onv_block_set_insert(&pool->free, &a->space, block);
}

/* get_free_block: ONV_NO_BLOCK if none may be used. */
static inline uint32_t find_free(onv_allocator *a, onv_torch_pool *pool, uint64_t rounded)
{
    const onv_torch_options *o = &a->options.torch;
    onv_torch_state *t = a->state;
    t->searches[pool->which]++;
    uint32_t block = onv_block_set_lower_bound(&pool->free, &a->space, rounded, 0);
    if (block == ONV_NO_BLOCK) return block;
    if (o->expandable_segments) {
        /* A block that could grow counts as large as it could become. */
        uint32_t next = onv_block_set_next(&pool->free, &a->space, block);
        while (next != ONV_NO_BLOCK && onv_torch_reach(a, next) < onv_torch_reach(a, block)) {
            block = next;
            next = onv_block_set_next(&pool->free, &a->space, block);
        }
    }
    uint64_t bytes = onv_space_block(&a->space, block)->bytes;
    if (rounded < o->max_split_bytes && bytes >= o->max_split_bytes) return ONV_NO_BLOCK;
    if (rounded >= o->max_split_bytes && bytes - rounded >= o->max_non_split_rounding_bytes)
        return ONV_NO_BLOCK;
    return block;
}

/* --- Going to the device ----------------------------------------------------------------------- */

/* alloc_block; *block stays ONV_NO_BLOCK if the device, or the fraction of it, is full. */
static onv_status from_device(onv_allocator *a, onv_torch_pool *pool, uint64_t rounded,
                              uint32_t *block, onv_error *err)
{
    const onv_torch_state *t = a->state;
    uint64_t bytes = segment_size(&a->options.torch, rounded);
    uint64_t reserved = a->stats.of[ONV_STAT_RESERVED_BYTES][ONV_POOL_ALL].current;
    if (reserved > t->allowed_bytes || bytes > t->allowed_bytes - reserved) return ONV_OK;
    if (a->options.torch.expandable_segments) return onv_torch_grow(a, pool, rounded, block, err);
    ONV_TRY(onv_device_alloc(a, bytes, pool->which, block, err));
    if (*block != ONV_NO_BLOCK) onv_space_segment_of(&a->space, *block)->stream = pool->stream;
    return ONV_OK;
}

/* release_block, for a free block that is a whole segment */
static void release(onv_allocator *a, onv_torch_pool *pool, uint32_t block)
{
    onv_block_set_remove(&pool->free, &a->space, block);
    onv_device_free(a, block);
}

static bool is_expandable(const onv_allocator *a, uint32_t block)
{
    return onv_space_segment_of(&a->space, block)->expandable;
}

/* Of the whole large segments that are free on all streams. */
typedef struct garbage {
    uint64_t total_age, n;
    uint64_t reclaimed;
} garbage;

static uint64_t age_of(const onv_allocator *a, uint32_t block)
{
    const onv_torch_state *t = a->state;
    return t->searches[ONV_POOL_LARGE] - onv_space_block(&a->space, block)->age;
}

static void count_garbage(const onv_allocator *a, const onv_torch_pool *pool, garbage *g)
{
    uint32_t next = onv_block_set_first(&pool->free, &a->space);
    for (; next != ONV_NO_BLOCK; next = onv_block_set_next(&pool->free, &a->space, next)) {
        if (!onv_space_is_whole(&a->space, next)) continue;
        g->total_age += age_of(a, next);
        g->n++;
    }
}

static void release_older(onv_allocator *a, onv_torch_pool *pool, double average, garbage *g)
{
    uint32_t next = onv_block_set_first(&pool->free, &a->space);
    while (next != ONV_NO_BLOCK) {
        uint32_t block = next;
        next = onv_block_set_next(&pool->free, &a->space, block);
        uint64_t age = age_of(a, block);
        if (!onv_space_is_whole(&a->space, block) || is_expandable(a, block) ||
            (double)age < average)
            continue;
        g->reclaimed += onv_space_block(&a->space, block)->bytes;
        g->total_age -= age;
        g->n--;
        release(a, pool, block);
    }
}

/* garbage_collect_cached_blocks: releases whole large segments that have lain unused longer than
 * average, in rounds, until the reserved memory is below the threshold. */
static void collect_garbage(onv_allocator *a)
{
    onv_torch_state *t = a->state;
    uint64_t reserved = a->stats.of[ONV_STAT_RESERVED_BYTES][ONV_POOL_ALL].current;
    uint64_t threshold =
        (uint64_t)(a->options.torch.garbage_collection_threshold * (double)t->allowed_bytes);
    if (reserved <= threshold) return;
    garbage g = {0};
    for (int i = 0; i < ONV_N_STREAMS; i++) count_garbage(a, &t->large[i], &g);
    for (uint64_t before = UINT64_MAX;
         g.reclaimed < reserved - threshold && g.n > 0 && g.n < before;) {
        double average = (double)g.total_age / (double)g.n;
        before = g.n;
        for (int i = 0; i < ONV_N_STREAMS; i++) release_older(a, &t->large[i], average, &g);
    }
}

/* release_available_cached_blocks: makes room with the oversize blocks, which are never split: the
 * smallest that is large enough, or else several from the largest down. False: not enough. */
static bool release_oversize(onv_allocator *a, onv_torch_pool *pool, uint64_t rounded)
{
    uint64_t limit = a->options.torch.max_split_bytes;
    if (limit == UINT64_MAX) return false;
    uint64_t wanted = rounded < limit ? limit : rounded;
    uint32_t block = onv_block_set_lower_bound(&pool->free, &a->space, wanted, 0);
    if (block != ONV_NO_BLOCK && !is_expandable(a, block)) {
        release(a, pool, block);
        return true;
    }
    uint64_t released = 0;
    block = onv_block_set_before(&pool->free, &a->space, wanted, 0);
    while (block != ONV_NO_BLOCK && released < wanted) {
        const onv_block b = *onv_space_block(&a->space, block);
        if (b.bytes < limit) break;
        if (!is_expandable(a, block)) {
            release(a, pool, block);
            released += b.bytes;
        }
        block = onv_block_set_before(&pool->free, &a->space, b.bytes, b.address);
    }
    return released >= wanted;
}

/* release_blocks */
static onv_status release_pool(onv_allocator *a, onv_torch_pool *pool, onv_error *err)
{
    uint32_t block = onv_block_set_first(&pool->free, &a->space);
    while (block != ONV_NO_BLOCK) {
        const onv_block b = *onv_space_block(&a->space, block);
        if (is_expandable(a, block))
            ONV_TRY(onv_torch_unmap(a, pool, block, err));
        else if (onv_space_is_whole(&a->space, block))
            release(a, pool, block);
        /* What unmapping leaves of a block is smaller than it, so the walk does not meet it. */
        block = onv_block_set_lower_bound(&pool->free, &a->space, b.bytes, b.address + 1);
    }
    return ONV_OK;
}

/* release_cached_blocks, which is also torch.cuda.empty_cache() */
static onv_status release_cached(onv_allocator *a, onv_error *err)
{
    onv_torch_state *t = a->state;
    for (int i = 0; i < ONV_N_STREAMS; i++) {
        ONV_TRY(release_pool(a, &t->large[i], err));
        ONV_TRY(release_pool(a, &t->small[i], err));
    }
    return ONV_OK;
}

/* --- Requests ---------------------------------------------------------------------------------- */

/* The attempts of malloc, in its order. */
static onv_status find_block(onv_allocator *a, onv_torch_pool *pool, uint64_t rounded,
                             uint32_t *block, onv_error *err)
{
    const onv_torch_state *t = a->state;
    *block = find_free(a, pool, rounded);
    if (*block != ONV_NO_BLOCK) {
        onv_block_set_remove(&pool->free, &a->space, *block);
        return ONV_OK;
    }
    if (t->collects_garbage) collect_garbage(a);
    ONV_TRY(from_device(a, pool, rounded, block, err));
    if (*block != ONV_NO_BLOCK) return ONV_OK;
    if (release_oversize(a, pool, rounded)) {
        ONV_TRY(from_device(a, pool, rounded, block, err));
        if (*block != ONV_NO_BLOCK) return ONV_OK;
    }
    ONV_TRY(release_cached(a, err));
    a->stats.retries++;
    return from_device(a, pool, rounded, block, err);
}

/* Adds or removes the difference: PyTorch books the change of one free as one step. */
static void move_stat(onv_allocator *a, onv_alloc_metric metric, onv_alloc_pool pool,
                      uint64_t before, uint64_t after)
{
    if (after > before) onv_stats_add(&a->stats, metric, pool, after - before);
    if (after < before) onv_stats_remove(&a->stats, metric, pool, before - after);
}

/* Free pages of expandable segments can always go. */
static bool counts_inactive(const onv_allocator *a, uint32_t block)
{
    return !a->has_totals_alone && !is_expandable(a, block);
}

static onv_torch_pool *pool_for(const onv_allocator *a, uint64_t rounded)
{
    onv_torch_state *t = a->state;
    return rounded <= ONV_TORCH_SMALL_BYTES ? &t->small[a->stream] : &t->large[a->stream];
}

/* From what is cached it takes a block that joins its neighbours again; only garbage collection asks when it did. */
static uint64_t torch_pass(onv_allocator *a, uint64_t bytes)
{
    const onv_torch_state *t = a->state;
    uint64_t rounded = round_size(a, bytes);
    onv_torch_pool *pool = pool_for(a, rounded);
    uint32_t block = t->collects_garbage ? ONV_NO_BLOCK : find_free(a, pool, rounded);
    if (block == ONV_NO_BLOCK) return 0;
    uint64_t found = onv_space_block(&a->space, block)->bytes;
    return splits(a, pool, found, rounded) ? rounded : found;
}

static onv_status torch_alloc(onv_allocator *a, uint64_t bytes, uint32_t *block, onv_error *err)
{
    uint64_t rounded = round_size(a, bytes);
    onv_torch_pool *pool = pool_for(a, rounded);
    ONV_TRY(find_block(a, pool, rounded, block, err));
    if (*block == ONV_NO_BLOCK) return ONV_OK;

    /* alloc_found_block */
    bool was_split = !onv_space_is_whole(&a->space, *block);
    uint64_t found = onv_space_block(&a->space, *block)->bytes;
    bool is_split = splits(a, pool, found, rounded);
    if (is_split) {
        ONV_TRY(onv_space_split(&a->space, *block, rounded, err));
        onv_torch_cache(a, pool, onv_space_block(&a->space, *block)->next);
    }
    if (!counts_inactive(a, *block)) return ONV_OK;
    if (was_split)
        onv_stats_remove(&a->stats, ONV_STAT_INACTIVE_BYTES, pool->which,
                         is_split ? rounded : found);
    else if (is_split)
        onv_stats_add(&a->stats, ONV_STAT_INACTIVE_BYTES, pool->which, found - rounded);
    move_stat(a, ONV_STAT_INACTIVE_BLOCKS, pool->which, was_split, is_split);
    return ONV_OK;
}

static bool is_free(const onv_allocator *a, uint32_t block)
{
    return block != ONV_NO_BLOCK && onv_space_block(&a->space, block)->state == ONV_BLOCK_FREE;
}

/* free_block */
static void torch_free(onv_allocator *a, uint32_t block)
{
    onv_torch_state *t = a->state;
    const onv_segment *s = onv_space_segment_of(&a->space, block);
    onv_torch_pool *pool = s->pool == ONV_POOL_SMALL ? &t->small[s->stream] : &t->large[s->stream];
    bool counts = counts_inactive(a, block);
    const onv_block *b = onv_space_block(&a->space, block);
    uint64_t n_joined = counts ? is_free(a, b->prev) + is_free(a, b->next) : 0, bytes = b->bytes;
    block = onv_coalesce(a, &pool->free, block);
    onv_torch_cache(a, pool, block);
    if (!counts) return;
    uint64_t joined = onv_space_block(&a->space, block)->bytes;
    bool split = !onv_space_is_whole(&a->space, block);
    move_stat(a, ONV_STAT_INACTIVE_BLOCKS, pool->which, n_joined, split);
    move_stat(a, ONV_STAT_INACTIVE_BYTES, pool->which, joined - bytes, split ? joined : 0);
}

static void preset_expandable(onv_alloc_options *options)
{
    options->torch.expandable_segments = true;
}

#define TORCH                                                                                      \
    .state_bytes = sizeof(onv_torch_state), .counts_inactive = true, .init = torch_init,           \
    .alloc = torch_alloc, .pass = torch_pass, .free = torch_free, .release_cached = release_cached

const onv_alloc_model onv_alloc_torch = {
    .name = "torch",
    .summary = "PyTorch's CUDA caching allocator",
    TORCH,
};

const onv_alloc_model onv_alloc_torch_expandable = {
    .name = "torch-expandable",
    .summary = "the same with expandable_segments:True",
    .preset = preset_expandable,
    TORCH,
};

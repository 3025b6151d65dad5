/* What the models share among themselves: counting, and asking the device. */
#ifndef ONV_ALLOC_ALLOC_MODEL_H
#define ONV_ALLOC_ALLOC_MODEL_H

#include "alloc/alloc.h"
#include "base/checked.h"

/* A set of blocks in order of (bytes, address), or of address alone.
 *
 * Best fit with ties to the lowest address is a lower bound in that order. Sizes are sorted into
 * classes, one for each power of two, so that a class holds few different sizes; inside a class the
 * blocks form a treap through their own fields left, right and priority. The order, and so every
 * answer, does not depend on the priorities: they come from a fixed sequence. All operations cost
 * the logarithm of the class, and none allocates. The block that came last is in no class yet: half of
 * them are taken, or join a neighbour, before the next one comes.
 */

enum { ONV_BLOCK_SET_CLASSES = 64 };

typedef struct onv_block_set {
    uint32_t roots[ONV_BLOCK_SET_CLASSES]; /* of classes that are not empty */
    uint64_t filled;                       /* bit k: class k is not empty */
    uint32_t newest;                       /* in no class */
    uint32_t random;
    bool by_address;
} onv_block_set;

void onv_block_set_init(onv_block_set *set, bool by_address);
void onv_block_set_insert(onv_block_set *set, onv_space *space, uint32_t block);

/* The block must be in the set, with the size and address it went in with. */
void onv_block_set_remove(onv_block_set *set, onv_space *space, uint32_t block);

/* The first block not before (bytes, address) / the last one before it; ONV_NO_BLOCK: none. Sets by
 * address ignore `bytes`. */
uint32_t onv_block_set_lower_bound(const onv_block_set *set, const onv_space *space, uint64_t bytes,
                                   uint64_t address);
uint32_t onv_block_set_before(const onv_block_set *set, const onv_space *space, uint64_t bytes,
                              uint64_t address);

static inline uint32_t onv_block_set_first(const onv_block_set *set, const onv_space *space)
{
    return onv_block_set_lower_bound(set, space, 0, 0);
}

static inline uint32_t onv_block_set_next(const onv_block_set *set, const onv_space *space,
                                          uint32_t block)
{
    const onv_block *b = onv_space_block(space, block);
    return onv_block_set_lower_bound(set, space, b->bytes, b->address + 1);
}

#define ONV_KIB (UINT64_C(1) << 10)
#define ONV_MIB (UINT64_C(1) << 20)
#define ONV_GIB (UINT64_C(1) << 30)

static inline void onv_stat_bump(onv_alloc_stats *stats, onv_stat *s, uint64_t n)
{
    s->current += n; /* below `added`, so it cannot wrap unseen */
    if (!onv_u64_add(s->added, n, &s->added)) stats->overflow = true;
    if (s->current > s->peak) s->peak = s->current;
}

/* Counts for the pool and, unless it is that one, for ONV_POOL_ALL. */
static inline void onv_stats_add(onv_alloc_stats *stats, onv_alloc_metric metric, unsigned pool,
                                 uint64_t n)
{
    onv_stat_bump(stats, &stats->of[metric][ONV_POOL_ALL], n);
    if (pool != ONV_POOL_ALL) onv_stat_bump(stats, &stats->of[metric][pool], n);
}

static inline void onv_stats_remove(onv_alloc_stats *stats, onv_alloc_metric metric, unsigned pool,
                                    uint64_t n)
{
    stats->of[metric][ONV_POOL_ALL].current -= n;
    if (pool != ONV_POOL_ALL) stats->of[metric][pool].current -= n;
}

/* As it is now, without its record; to be cleaned up also after a failure. */
onv_status onv_allocator_copy(const onv_allocator *a, onv_allocator *copy, onv_error *err);

/* Whether the device still has that much. */
bool onv_device_has(const onv_allocator *a, uint64_t bytes);

/* A segment that the event being served takes, or gives back: nothing where nobody records. */
onv_status onv_record_segment(onv_allocator *a, onv_taken_segment segment, uint32_t *index,
                              onv_error *err);
void onv_record_return(onv_allocator *a, uint32_t index);

/* Memory of a segment that grows: the first `bytes` of a block come, or go back. */
onv_status onv_record_mapping(onv_allocator *a, uint32_t block, uint64_t bytes, bool goes_back,
                              onv_error *err);

/* A new segment of one free block; *block is ONV_NO_BLOCK if the device has no room for it. */
onv_status onv_device_alloc(onv_allocator *a, uint64_t bytes, unsigned pool, uint32_t *block,
                            onv_error *err);

/* Gives back the segment that consists of this block. */
void onv_device_free(onv_allocator *a, uint32_t block);

/* Gives a block back, whose id owns nothing by then. */
static inline void onv_allocator_give(onv_allocator *a, uint32_t block)
{
    onv_space_block(&a->space, block)->state = ONV_BLOCK_FREE;
    a->model->free(a, block);
}

/* Joins a block with neighbours in the same state and of the same stream, which leave `set`; returns the block they became,
 * which is in no set yet. */
uint32_t onv_coalesce(onv_allocator *a, onv_block_set *set, uint32_t block);

extern const onv_alloc_model onv_alloc_torch, onv_alloc_torch_expandable, onv_alloc_bfc,
    onv_alloc_bfc_same, onv_alloc_pattern, onv_alloc_async, onv_alloc_raw, onv_alloc_ideal;

/* What the parts of the model of PyTorch's allocator share. */

/* Read in source: c10/core/AllocatorConfig.h of PyTorch (until 2.8 c10/cuda/
 * CUDACachingAllocator.cpp), under the names given. */
#define ONV_TORCH_QUANTUM_BYTES       UINT64_C(512)  /* kMinBlockSize */
#define ONV_TORCH_SMALL_BYTES         ONV_MIB        /* kSmallSize: the largest small request */
#define ONV_TORCH_SMALL_SEGMENT_BYTES (2 * ONV_MIB)  /* kSmallBuffer */
#define ONV_TORCH_LARGE_SEGMENT_BYTES (20 * ONV_MIB) /* kLargeBuffer, large_segment_size */
#define ONV_TORCH_MIN_LARGE_BYTES     (10 * ONV_MIB) /* kMinLargeAlloc: from here on by itself */
#define ONV_TORCH_ROUND_LARGE_BYTES   (2 * ONV_MIB)  /* kRoundLarge */

typedef struct onv_torch_pool {
    onv_block_set free;     /* by size */
    onv_block_set unmapped; /* by address; expandable segments only */
    onv_alloc_pool which;
    uint8_t stream;
    uint64_t page_bytes; /* of an expandable segment */
} onv_torch_pool;

typedef struct onv_torch_state {
    onv_torch_pool large[ONV_N_STREAMS], small[ONV_N_STREAMS];
    uint64_t searches
        [ONV_N_POOLS];      /* for free blocks so far, on all streams: the clock that ages them */
    uint64_t allowed_bytes; /* memory_fraction of the capacity; UINT64_MAX: not set */
    bool collects_garbage;
    bool divides; /* some sizes are rounded to parts of powers of two */
} onv_torch_state;

/* Puts a free block into the pool's set. */
void onv_torch_cache(onv_allocator *a, onv_torch_pool *pool, uint32_t block);

/* Maps pages until there is a free block of `bytes`, which it takes out of the set; *block stays
 * ONV_NO_BLOCK where the device has no memory for them. */
onv_status onv_torch_grow(onv_allocator *a, onv_torch_pool *pool, uint64_t bytes, uint32_t *block,
                          onv_error *err);

/* The bytes that a free block of an expandable segment could grow to. */
uint64_t onv_torch_reach(const onv_allocator *a, uint32_t block);

/* Unmaps the pages of a free block that lie in it wholly. */
onv_status onv_torch_unmap(onv_allocator *a, onv_torch_pool *pool, uint32_t block, onv_error *err);

#endif

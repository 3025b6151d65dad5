/* What the models share among themselves: counting, and asking the device. */
#ifndef ONV_ALLOC_ALLOC_MODEL_H
#define ONV_ALLOC_ALLOC_MODEL_H

#include "alloc/alloc.h"
#include "alloc/block_set.h"
#include "base/checked.h"

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
    stats->of[metric][ONV_POOL_ALL].removed += n;
    if (pool == ONV_POOL_ALL) return;
    stats->of[metric][pool].current -= n;
    stats->of[metric][pool].removed += n;
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

#endif

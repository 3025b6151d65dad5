/* What allocators and placements hold, looked at and checked. The cost is linear. */
#ifndef ONV_TESTS_HELD_H
#define ONV_TESTS_HELD_H

#include "alloc/alloc.h"

/* The block that an id owns; NULL if it is not allocated or of 0 bytes. Valid until the next event. */
const onv_block *allocator_block(const onv_allocator *a, uint32_t id);

/* In address order: segments from first (NULL: the first one) on, blocks in a segment. Blocks in state ONV_BLOCK_UNMAPPED have
 * no memory behind them. */
const onv_segment *allocator_next_segment(const onv_allocator *a, const onv_segment *after);
const onv_block *allocator_next_block(const onv_allocator *a, const onv_segment *segment,
                                      const onv_block *after);

/* The image of memory is whole and agrees with the statistics. */
onv_status allocator_check(const onv_allocator *a, onv_error *err);

/* The placement is one of the timeline: every buffer is allocated and freed once, in its steps, and
 * lies for that time inside a segment that is there; the segments are what is held at each step.
 * Whether buffers overlap is for the replay to find. */
onv_status placement_check(const onv_placement *p, const onv_timeline *t, onv_error *err);

#endif

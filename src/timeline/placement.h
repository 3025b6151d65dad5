/* The placement: where in memory the buffers of a timeline lie, and what that takes of a device.
 *
 * A plan and an allocator model both answer with one; a replay lives through it on a device.
 *
 *   events     the allocations and frees of the timeline, in the order in which they were served
 *   segments   memory that is asked of the device, one allocation each, and between which events
 *   places     by buffer: an offset in a segment
 *   by step    the most that was reserved and allocated while the step runs
 *
 * At an event, in this order: what is freed there is free; segments go back; segments are taken; what
 * is allocated there is there. What goes back at the end, behind the last event, goes back at
 * `events.count`.
 *
 * A placement may be wrong (tests make such ones): who replays it looks at every index and bound.
 */
#ifndef ONV_TIMELINE_PLACEMENT_H
#define ONV_TIMELINE_PLACEMENT_H

#include "timeline/timeline.h"

#define ONV_NO_SEGMENT UINT32_MAX

typedef struct onv_place {
    uint64_t offset;
    uint64_t counted; /* the bytes that "allocated" has for it: of a block, or as asked for */
    uint32_t segment; /* ONV_NO_SEGMENT: 0 bytes, or the model knows no places */
} onv_place;

typedef struct onv_taken_segment {
    uint64_t bytes;         /* asked of the device */
    uint64_t counted;       /* what the model counts it as: rounded for pools */
    size_t taken, returned; /* events */
    bool grows;             /* later, in steps of the model's; `bytes` are what it may reach */
} onv_taken_segment;

/* A part of a segment that grows: memory comes, or goes back. */
typedef struct onv_mapping {
    uint64_t offset, bytes;
    size_t event;
    uint32_t segment;
    bool goes_back;
} onv_mapping;

/* "Allocated" is meant as a runtime means it: for torch and bfc the sizes of blocks, for raw, ideal
 * and plans the sizes asked for. "Segments" as the runtime counts them. */
typedef struct onv_held_figures {
    uint64_t allocated_peak, reserved_peak, requested_peak;
    uint64_t allocated_end, reserved_end;
    uint64_t segments, segments_peak;
    uint64_t returned_bytes; /* to the device, over the whole run */
    bool out_of_memory;      /* the run ended there; the sizes are those it left */
    size_t oom_event;
    uint64_t oom_bytes;
} onv_held_figures;

typedef struct onv_placement {
    onv_timeline_events events;
    ONV_VEC(onv_taken_segment) segments; /* in the order in which they are taken */
    ONV_VEC(onv_mapping) mappings;       /* of segments that grow, by event */
    ONV_VEC(onv_place) places;
    uint64_t *reserved_at, *allocated_at; /* by step */
    uint32_t n_steps;
    bool
        is_pooled; /* each buffer is a request to the device's own pool, which reserves by itself */
    onv_held_figures figures;
} onv_placement;

/* Events of the timeline, nothing placed yet. Cleanup also after a failure. */
onv_status onv_placement_init(onv_placement *p, const onv_timeline *t, onv_error *err);
void onv_placement_cleanup(onv_placement *p);

/* What is taken of the device by request: a pool reserves more than is asked of it. */
static inline const uint64_t *onv_placement_held_at(const onv_placement *p)
{
    return p->is_pooled ? p->allocated_at : p->reserved_at;
}

static inline uint64_t onv_placement_held_peak(const onv_placement *p)
{
    return p->is_pooled ? p->figures.allocated_peak : p->figures.reserved_peak;
}

/* The step of an event; behind the last one: the step behind the last. */
static inline uint32_t onv_placement_step_of(const onv_placement *p, size_t event)
{
    return event < p->events.count ? p->events.at[event].step : p->n_steps;
}

/* A buffer that holds something by itself: containers hold other buffers, and what lies within a
 * buffer that is no mere container is a part of it. */
static inline bool onv_buffer_has_content(const onv_timeline *t, const onv_buffer *b)
{
    return b->kind != ONV_BUFFER_POOL && b->bytes > 0 &&
           (b->within == ONV_NO_BUFFER || t->buffers.at[b->within].kind == ONV_BUFFER_POOL);
}

#endif

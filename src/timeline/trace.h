/* A trace: the sequence of allocations and frees that a run makes, sizes as requested.
 *
 * A prediction is a trace and a measurement is a trace. Ids are chosen by the producer; an id may be
 * used again after it was freed. CSV form: `alloc,ID,BYTES[,STEP,LABEL]` and `free,ID`.
 */
#ifndef ONV_TIMELINE_TRACE_H
#define ONV_TIMELINE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "timeline/timeline.h"

typedef struct onv_event {
    uint64_t bytes; /* ALLOC: requested; FREE: 0 */
    uint32_t id;
    uint32_t step;
    bool is_free;
    const char *label; /* of an alloc; may be NULL */
} onv_event;

typedef struct onv_trace {
    onv_event *events; /* on the heap */
    size_t count, capacity;
    uint32_t n_ids; /* every id is below */
} onv_trace;

void onv_trace_cleanup(onv_trace *trace);

/* Appending; false when memory is short. */
bool onv_trace_alloc(onv_trace *trace, uint32_t id, uint64_t bytes, uint32_t step,
                     const char *label);
bool onv_trace_free(onv_trace *trace, uint32_t id, uint32_t step);

/* Row i becomes id first_id + i: allocated before its first step, freed after its last one. Within
 * a step allocations come first, both in row order. */
bool onv_trace_add_intervals(onv_trace *trace, const onv_buffer *rows, uint32_t count,
                             uint32_t n_steps, uint32_t first_id);

#endif

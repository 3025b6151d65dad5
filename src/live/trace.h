/* A trace: the sequence of allocations and frees that a run makes, sizes as requested.
 *
 * A prediction is a trace and a measurement is a trace. Ids are chosen by the producer; an id may be
 * used again after it was freed. CSV form: `alloc,ID,BYTES[,STEP,LABEL]` and `free,ID`.
 */
#ifndef ONV_LIVE_TRACE_H
#define ONV_LIVE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct onv_event {
    uint64_t bytes; /* ALLOC: requested; FREE: 0 */
    uint32_t id;
    uint32_t step;
    bool is_free;
    const char *label; /* of an alloc; may be NULL */
} onv_event;

typedef struct onv_trace {
    onv_event *events;
    size_t count;
    uint32_t n_ids; /* every id is below */
} onv_trace;

#endif

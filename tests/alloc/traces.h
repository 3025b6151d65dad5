/* Random traces for the tests of allocator models: the same seed gives the same events. */
#ifndef ONV_TESTS_ALLOC_TRACES_H
#define ONV_TESTS_ALLOC_TRACES_H

#include "alloc/trace_csv.h"

typedef struct trace_shape {
    uint32_t seed;
    uint32_t events;
    unsigned size_bits;    /* sizes are below 2^size_bits, evenly spread over the powers of two */
    unsigned free_percent; /* how often an event is a free, where something is live */
    uint64_t first_bytes;  /* not 0: the trace starts with an allocation of this and its free */
    unsigned streams;      /* that allocations are spread over; 0: one */
} trace_shape;

typedef struct test_trace {
    onv_trace_event *events;
    size_t count;
    uint32_t n_ids; /* every id is below */
} test_trace;

/* Ids are used again after their free. */
test_trace random_trace(trace_shape shape);
void random_trace_free(test_trace *trace);

/* To an allocator, event by event. */
onv_status trace_feed(onv_allocator *a, const onv_trace_event *event, onv_error *err);
onv_status trace_serve(const test_trace *trace, const onv_alloc_model *model,
                       const onv_alloc_options *options, onv_held_figures *figures, onv_error *err);

/* As text, in the form of trace_csv.h; free() it. */
char *trace_text(const test_trace *trace);

/* FNV-1a over 64-bit numbers, to compare long results with measured ones. */
#define HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t hash_add(uint64_t hash, uint64_t number);

#endif

/* An arena that serves sessions run after run: what requests of different shapes leave behind.
 *
 * A run is a list of requests, taken from the timeline of a session (session.c). All that a run takes
 * it gives back at its end; initializers stay. Beside that the arena remembers everything: what it
 * took from the device it keeps, unless it is shrunk. */
#ifndef ONV_ORT_SERVICE_H
#define ONV_ORT_SERVICE_H

#include "ort/orders.h"

typedef struct onv_ort_request {
    uint64_t bytes;
    uint32_t buffer; /* of the timeline; ONV_NO_BUFFER: streams from `stream` on end */
    uint8_t stream;
    bool is_free, bypasses;
    bool is_pattern; /* the block of a memory pattern */
} onv_ort_request;

typedef ONV_VEC(onv_ort_request) onv_ort_requests;

/* What the first `n_runs` runs of the timeline ask for, each in a list of its own, without the first `n_weights`
 * buffers. Appends. */
onv_status onv_ort_list_requests(const onv_timeline *t, uint32_t n_weights, onv_ort_requests *runs,
                                 uint32_t n_runs, onv_error *err);

typedef struct onv_ort_service {
    onv_allocator arena;
    uint32_t n_kept; /* ids of what stays */
} onv_ort_service;

onv_status onv_ort_service_init(onv_ort_service *s, const onv_alloc_options *options,
                                onv_error *err);
void onv_ort_service_cleanup(onv_ort_service *s);

/* A session's initializers: the first `n_weights` buffers of its timeline, in that order, or
 * in the order that was drawn. */
onv_status onv_ort_service_load(onv_ort_service *s, const onv_timeline *t,
                                const onv_ort_orders *drawn, uint32_t n_weights, onv_error *err);

/* A shape's first run, or a later one: where that finds no room for a memory pattern, its buffers are asked for one by one, as
 * the first run did (onnxruntime/core/framework/execution_frame.cc). */
onv_status onv_ort_service_run(onv_ort_service *s, const onv_ort_requests runs[2], bool is_later,
                               onv_error *err);

static inline uint64_t onv_ort_service_reserved(const onv_ort_service *s)
{
    return s->arena.stats.of[ONV_STAT_RESERVED_BYTES][ONV_POOL_ALL].current;
}

#endif

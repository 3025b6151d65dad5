/* What a sequence of requests makes of a session's arena. */
#ifndef ONV_ORT_SHAPE_TRACE_H
#define ONV_ORT_SHAPE_TRACE_H

#include "ort/service.h"

/* One set of shapes: what its first run asks for, and every later one. */
typedef struct onv_ort_shape {
    onv_ort_requests runs[2];
} onv_ort_shape;

enum { ONV_ORT_MOST_POLICIES = 4 };

/* How the arena was extended, and whether it was shrunk after each run. */
typedef struct onv_ort_policy {
    onv_bfc_extend extend;
    bool shrinks;
    const char *name;
} onv_ort_policy;

extern const onv_ort_policy onv_ort_policies[ONV_ORT_MOST_POLICIES];

/* What is reserved after each request, by policy; what is in use at most while it runs. */
typedef struct onv_ort_shape_figures {
    uint64_t reserved[ONV_ORT_MOST_POLICIES];
    uint64_t peak;
} onv_ort_shape_figures;

typedef struct onv_ort_shape_trace {
    const onv_ort_shape *shapes;
    const uint32_t *sequence; /* by request: its shape */
    uint32_t n_shapes, n_requests;
    const onv_timeline *weights; /* whose first n_weights buffers are the initializers */
    uint32_t n_weights;
} onv_ort_shape_trace;

typedef struct onv_ort_shape_result {
    uint64_t created[ONV_ORT_MOST_POLICIES]; /* reserved before the first request */
    onv_ort_shape_figures *requests;         /* by request */
    uint64_t most[ONV_ORT_MOST_POLICIES];    /* reserved at any time */
    /* The same requests in another order: the most and the least that orders tried end with. */
    uint64_t worst[ONV_ORT_MOST_POLICIES], best[ONV_ORT_MOST_POLICIES];
    uint32_t n_orders;
    bool out_of_memory[ONV_ORT_MOST_POLICIES]; /* the limit is not enough in the order given */
} onv_ort_shape_result;

/* The requests as they were given, and what became of them. */
typedef struct onv_shape_requests {
    const char **names; /* of the dims */
    int64_t *sizes;     /* n_names for each request */
    uint32_t n_names, n_requests, n_shapes;
    onv_ort_shape_result result;
} onv_shape_requests;

/* `requests` has room for every request. */
onv_status onv_ort_shape_trace_run(const onv_ort_shape_trace *trace,
                                   const onv_alloc_options *options, onv_ort_shape_result *result,
                                   onv_error *err);

#endif

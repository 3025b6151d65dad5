/* Intervals and traces without a model: offsets, and what allocators make of them. */
#ifndef ONNXVRAM_PLANNER_H
#define ONNXVRAM_PLANNER_H

#include "options.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct onv_plan_info {
    uint64_t height;      /* bytes that the plan needs */
    uint64_t lower_bound; /* no plan needs less */
    bool optimal;         /* the two are equal */
    bool fits;            /* within the capacity, or none was given */
    uint64_t nodes;       /* of the exact search */
    const char *strategy; /* static text */
} onv_plan_info;

/* --- From memory, for programs that link the planner ---------------------------------------------- */

/* What these calls share. Results depend on the input and the options alone, never on time: what ends them early is
 * an error. */
typedef struct onv_planner_options {
    size_t struct_size;
    const onv_limits *limits; /* seconds and arena_bytes; NULL: defaults */
    uint64_t effort;          /* of searches, in units of work; 0: default */
    uint64_t
        capacity; /* onv_plan_intervals(): stop at the first plan within it; onv_simulate_events(): of the device; 0: none */
    uint64_t alignment;       /* onv_plan_intervals(): of offsets, a power of two; 0: 1 */
    bool expandable_segments; /* onv_simulate_events(): a setting of PyTorch's allocator */
    const char *order;        /* onv_order_graph(): "greedy", "optimal"; NULL: "optimal" */
    /* As in onv_options. */
    bool (*cancelled)(void *context);
    void *cancel_context;
} onv_planner_options;

ONV_API void onv_planner_options_init(onv_planner_options *options, size_t size);

static inline onv_planner_options onv_planner_options_default(void)
{
    onv_planner_options options;
    onv_planner_options_init(&options, sizeof options);
    return options;
}

/* Bytes that are needed from step `lower` up to but not including step `upper`. */
typedef struct onv_interval {
    uint64_t lower, upper, size;
} onv_interval;

/* Finds an offset for each interval so that no two that share a step overlap. `offsets` has room for `count`; they
 * are valid also where the plan does not fit the capacity (info.fits). `options` and `info` may be NULL. */
ONV_API onv_status onv_plan_get(const onv_interval *intervals, size_t count,
                                const onv_planner_options *options, uint64_t *offsets,
                                onv_plan_info *info, size_t size, onv_error *error);

static inline onv_status onv_plan_intervals(const onv_interval *intervals, size_t count,
                                            const onv_planner_options *options, uint64_t *offsets,
                                            onv_plan_info *info, onv_error *error)
{
    return onv_plan_get(intervals, count, options, offsets, info, sizeof *info, error);
}

/* An allocation, or the end of one. */
typedef struct onv_event {
    uint64_t bytes; /* of an allocation, as asked for */
    size_t frees; /* the index of the allocation that ends here; ONV_NO_INDEX: this event is one */
    uint32_t stream; /* of an allocation: the device's stream, 0 to 3; 0: the main one */
} onv_event;

typedef struct onv_simulated_info {
    uint64_t allocated_peak, reserved_peak, requested_peak; /* as the allocator counts them */
    uint64_t allocated_end, reserved_end;                   /* after the last event */
    uint64_t segments;  /* taken from the device, then still there */
    bool out_of_memory; /* there was no room in the capacity; the figures are those up to there */
    size_t oom_event;
    uint64_t oom_bytes;
} onv_simulated_info;

/* What an allocator of ONV_NAMES_ALLOCATORS, or "arena" (all of it at planned offsets in one block), makes of the
 * events. `options` may be NULL. */
ONV_API onv_status onv_simulate_get(const onv_event *events, size_t count, const char *allocator,
                                    const onv_planner_options *options, onv_simulated_info *info,
                                    size_t size, onv_error *error);

static inline onv_status onv_simulate_events(const onv_event *events, size_t count,
                                             const char *allocator,
                                             const onv_planner_options *options,
                                             onv_simulated_info *info, onv_error *error)
{
    return onv_simulate_get(events, count, allocator, options, info, sizeof *info, error);
}

/* Nodes, and values between them. */
typedef struct onv_graph_value {
    uint64_t bytes;
    size_t writer;  /* the node that makes it; ONV_NO_INDEX: it is there from the start */
    bool is_output; /* it stays to the end */
} onv_graph_value;

typedef struct onv_graph_read {
    size_t node, value;
} onv_graph_read;

typedef struct onv_size_graph {
    size_t struct_size;
    size_t n_nodes;
    const uint64_t *extra_bytes; /* by node: what it needs only while it runs; NULL: nothing */
    const onv_graph_value *values;
    size_t n_values;
    const onv_graph_read *reads; /* in any order */
    size_t n_reads;
} onv_size_graph;

typedef struct onv_graph_order_info {
    uint64_t peak_bytes;        /* the most that is live while a node runs */
    uint64_t lower_bound_bytes; /* no order has a lower peak; 0: the order was not searched for */
    bool proven;                /* the two are equal */
    uint64_t searched;          /* states looked at */
} onv_graph_order_info;

/* Finds an order of the nodes, each behind the writers of what it reads, with a small peak. A value is live from its
 * writer through its last reader. `order` has room for every node. `options` and `info` may be NULL. */
ONV_API onv_status onv_order_graph_get(const onv_size_graph *graph,
                                       const onv_planner_options *options, size_t *order,
                                       onv_graph_order_info *info, size_t size, onv_error *error);

static inline onv_status onv_order_graph(const onv_size_graph *graph,
                                         const onv_planner_options *options, size_t *order,
                                         onv_graph_order_info *info, onv_error *error)
{
    return onv_order_graph_get(graph, options, order, info, sizeof *info, error);
}

/* --- From files ------------------------------------------------------------------------------------ */

/* Reads intervals (CSV with the header id,lower,upper,size; half-open), finds an offset for each so
 * that no two that share a step overlap, and writes the same rows with a column `offset`. With a
 * capacity (not 0) the search ends at the first plan within it. Offsets are multiples of `alignment`, a power
 * of two (0: 1). `info` may be NULL. */
ONV_API onv_status onv_plan_file_get(const char *path, uint64_t capacity, uint64_t effort,
                                     uint64_t alignment, onv_write_fn write, void *context,
                                     onv_plan_info *info, size_t size, onv_error *error);

static inline onv_status onv_plan_file(const char *path, uint64_t capacity, uint64_t effort,
                                       uint64_t alignment, onv_write_fn write, void *context,
                                       onv_plan_info *info, onv_error *error)
{
    return onv_plan_file_get(path, capacity, effort, alignment, write, context, info, sizeof *info,
                             error);
}

typedef struct onv_simulate_options {
    size_t struct_size;
    bool summary;             /* a table of statistics per runtime instead of a row */
    bool header;              /* a header above the rows */
    bool expandable_segments; /* of PyTorch's allocator */
    uint64_t capacity;        /* of the device; 0: no limit */
} onv_simulate_options;

/* Reads a trace (lines alloc,ID,BYTES[,STEP,LABEL] and free,ID) and writes, for each runtime of the
 * comma-separated list, a row runtime,allocated_peak,reserved_peak,allocated_end,reserved_end,
 * segments. In addition to the runtimes of an analysis, allocators by their own names: see
 * ONV_NAMES_ALLOCATORS. `options` may be NULL. ONV_ERR_DEVICE: everything is written, but a runtime
 * found no room in the capacity; its figures are those up to there. */
ONV_API onv_status onv_simulate_file(const char *path, const char *runtimes,
                                     const onv_simulate_options *options, onv_write_fn write,
                                     void *context, onv_error *error);

#ifdef __cplusplus
}
#endif

#endif

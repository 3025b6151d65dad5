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
 * segments. Beside the runtimes of an analysis, allocators by their own names: see
 * onv_allocator_name(). `options` may be NULL. ONV_ERR_DEVICE: everything is written, but a runtime
 * found no room in the capacity; its figures are those up to there. */
ONV_API onv_status onv_simulate_file(const char *path, const char *runtimes,
                                     const onv_simulate_options *options, onv_write_fn write,
                                     void *context, onv_error *error);

ONV_API const char *onv_allocator_name(size_t index, const char **summary);

#ifdef __cplusplus
}
#endif

#endif

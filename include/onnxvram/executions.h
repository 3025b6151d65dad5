/* What each runtime executes, and where it places its memory: with onv_options.timelines. */
#ifndef ONNXVRAM_EXECUTIONS_H
#define ONNXVRAM_EXECUTIONS_H

#include "analysis.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A run of a runtime, or training with a plan. */
typedef struct onv_execution_info {
    const char *runtime;            /* of onv_runtime_name(), or "train" */
    size_t plan;                    /* of onv_analysis_checkpoint(); ONV_NO_INDEX: none */
    uint64_t peak_bytes, peak_step; /* as asked for; counted from `measured_from` on */
    uint64_t allocated_peak_bytes, reserved_peak_bytes;
    uint64_t measured_from; /* the step that peaks count from: training's second iteration */
    size_t steps, buffers, segments;
} onv_execution_info;

ONV_API size_t onv_analysis_execution_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_execution_get(const onv_analysis *analysis, size_t index,
                                        onv_execution_info *info, size_t size);

static inline bool onv_analysis_execution(const onv_analysis *analysis, size_t index,
                                          onv_execution_info *info)
{
    return onv_analysis_execution_get(analysis, index, info, sizeof *info);
}

typedef struct onv_execution_step_info {
    const char *node;  /* of the graph that runs; NULL: none, as the optimizer */
    const char *label; /* what runs; may be NULL */
    const char *phase; /* "forward", "loss", "backward", "optimizer" */
    uint32_t iteration;
    bool is_recompute;
    uint64_t live_bytes, allocated_bytes, reserved_bytes; /* the most while it runs */
} onv_execution_step_info;

/* False beyond the last one: of this and of the next two. */
ONV_API bool onv_analysis_execution_step_get(const onv_analysis *analysis, size_t execution,
                                             size_t index, onv_execution_step_info *info,
                                             size_t size);

static inline bool onv_analysis_execution_step(const onv_analysis *analysis, size_t execution,
                                               size_t index, onv_execution_step_info *info)
{
    return onv_analysis_execution_step_get(analysis, execution, index, info, sizeof *info);
}

typedef struct onv_execution_buffer_info {
    const char *name; /* may be NULL */
    size_t tensor;    /* of the model; ONV_NO_INDEX: it is none */
    const char *kind; /* "activation", "weight", "gradient", "workspace" ... */
    uint64_t bytes;
    uint64_t first_step, last_step;
    size_t within;     /* the buffer that it lies in; ONV_NO_INDEX: allocated by itself */
    bool is_transient; /* freed before the step's next buffer is allocated */
    size_t segment;    /* ONV_NO_INDEX: it has no place */
    uint64_t offset;   /* in the segment */
} onv_execution_buffer_info;

ONV_API bool onv_analysis_execution_buffer_get(const onv_analysis *analysis, size_t execution,
                                               size_t index, onv_execution_buffer_info *info,
                                               size_t size);

static inline bool onv_analysis_execution_buffer(const onv_analysis *analysis, size_t execution,
                                                 size_t index, onv_execution_buffer_info *info)
{
    return onv_analysis_execution_buffer_get(analysis, execution, index, info, sizeof *info);
}

/* Memory that the allocator takes from the device in one request. */
typedef struct onv_execution_segment_info {
    uint64_t bytes;
    uint64_t first_step,
        end_step; /* there from the one up to the other, which is the number of steps at most */
} onv_execution_segment_info;

ONV_API bool onv_analysis_execution_segment_get(const onv_analysis *analysis, size_t execution,
                                                size_t index, onv_execution_segment_info *info,
                                                size_t size);

static inline bool onv_analysis_execution_segment(const onv_analysis *analysis, size_t execution,
                                                  size_t index, onv_execution_segment_info *info)
{
    return onv_analysis_execution_segment_get(analysis, execution, index, info, sizeof *info);
}

#ifdef __cplusplus
}
#endif

#endif

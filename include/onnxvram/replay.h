/* What a replay of the allocations on a device found. */
#ifndef ONNXVRAM_REPLAY_H
#define ONNXVRAM_REPLAY_H

#include "analysis.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the replay found: all allocations that were predicted were made on the device, every buffer was
 * written and read again. Of several runtimes the largest. */
typedef struct onv_replay_info {
    const char *device; /* what ran: a GPU's name, "host memory (no GPU)" */
    bool is_gpu;
    bool agrees;        /* everything was as predicted */
    bool out_of_memory; /* the device was too small for some of it */
    uint64_t predicted_bytes, measured_bytes;
    uint64_t faults;     /* onv_analysis_replay_fault() has the first ones of each mode */
    const char *backend; /* of onv_replay_device_name() */
    uint64_t device_total_bytes;
    uint64_t context_bytes;  /* that creating the context took; ONV_SIZE_UNKNOWN: not measured */
    uint32_t driver_version; /* 12040: 12.4; 0: there is none */
    const char *filled_by;   /* what wrote and read the memory */
} onv_replay_info;

/* False where no replay was asked for. */
ONV_API bool onv_analysis_replay_get(const onv_analysis *analysis, onv_replay_info *info,
                                     size_t size);

static inline bool onv_analysis_replay(const onv_analysis *analysis, onv_replay_info *info)
{
    return onv_analysis_replay_get(analysis, info, sizeof *info);
}

/* The devices that replays know; NULL beyond the last one. */
ONV_API const char *onv_replay_device_name(size_t index, const char **summary);

/* What was replayed: the memory of a runtime, or of training. */
typedef struct onv_replay_mode_info {
    const char *mode, *runtime;
    const char *plan; /* of checkpoints; NULL: none */
    bool agrees;
    uint64_t predicted_bytes, measured_bytes, tolerance_bytes, granularity_bytes;
    uint64_t predicted_live_bytes, measured_live_bytes;
    uint64_t most_allocations; /* at a time */
    uint64_t buffers, checked_buffers;
    uint64_t free_before, free_least, free_after; /* of the device */
    uint64_t foreign_bytes;                       /* that came and went by other processes */
    bool has_pool;                                /* the next three are of the device's own pool */
    uint64_t pool_used_peak_bytes, pool_reserved_peak_bytes, pool_predicted_reserved_peak_bytes;
    bool out_of_memory; /* at this step, asking for so much while so much was free */
    uint64_t oom_step, oom_bytes, oom_free_bytes;
    uint64_t faults;
    size_t steps;
} onv_replay_mode_info;

ONV_API size_t onv_analysis_replay_mode_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_replay_mode_get(const onv_analysis *analysis, size_t index,
                                          onv_replay_mode_info *info, size_t size);

static inline bool onv_analysis_replay_mode(const onv_analysis *analysis, size_t index,
                                            onv_replay_mode_info *info)
{
    return onv_analysis_replay_mode_get(analysis, index, info, sizeof *info);
}

/* The most while a step runs. */
typedef struct onv_replay_step_info {
    uint64_t predicted_bytes, measured_bytes, predicted_live_bytes, measured_live_bytes;
} onv_replay_step_info;

/* False beyond the last one: of this and of the next. */
ONV_API bool onv_analysis_replay_step_get(const onv_analysis *analysis, size_t mode, size_t index,
                                          onv_replay_step_info *info, size_t size);

static inline bool onv_analysis_replay_step(const onv_analysis *analysis, size_t mode, size_t index,
                                            onv_replay_step_info *info)
{
    return onv_analysis_replay_step_get(analysis, mode, index, info, sizeof *info);
}

typedef struct onv_fault_info {
    const char *kind;
    uint64_t step;
    uint64_t offset; /* in the buffer */
    const char *message;
} onv_fault_info;

ONV_API bool onv_analysis_replay_fault_get(const onv_analysis *analysis, size_t mode, size_t index,
                                           onv_fault_info *info, size_t size);

static inline bool onv_analysis_replay_fault(const onv_analysis *analysis, size_t mode,
                                             size_t index, onv_fault_info *info)
{
    return onv_analysis_replay_fault_get(analysis, mode, index, info, sizeof *info);
}

/* The largest batch of a mode, where it was asked for. */
typedef struct onv_replay_max_batch_info {
    const char *mode, *runtime, *plan;
    int64_t predicted, measured;
    bool predicted_is_least; /* a pool may hold more */
    bool agrees;
} onv_replay_max_batch_info;

ONV_API size_t onv_analysis_replay_max_batch_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_replay_max_batch_get(const onv_analysis *analysis, size_t index,
                                               onv_replay_max_batch_info *info, size_t size);

static inline bool onv_analysis_replay_max_batch(const onv_analysis *analysis, size_t index,
                                                 onv_replay_max_batch_info *info)
{
    return onv_analysis_replay_max_batch_get(analysis, index, info, sizeof *info);
}

#ifdef __cplusplus
}
#endif

#endif

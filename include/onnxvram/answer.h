/* The answer: how much memory the runtimes that are judged need on a GPU, and whether that fits.
 *
 * Judged are PyTorch and ONNX Runtime ("torch", "ort"), or those that onv_options.runtimes names; with
 * onv_options.train training ("train"), and those that are named. A verdict is that of the runtime with the larger upper
 * end. Every report prints this.
 */
#ifndef ONNXVRAM_ANSWER_H
#define ONNXVRAM_ANSWER_H

#include "analysis.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct onv_answer_info {
    const char
        *runtime; /* with the larger upper end; NULL: a tensor is of unknown size, bind all dims */
    const char *gpu;                /* whose libraries count; NULL: none do */
    bool gpu_assumed;               /* it was not named */
    uint64_t low_bytes, high_bytes; /* on the device: weights, activations, libraries, context */
    bool has_verdict;               /* a budget was given */
    bool fits;            /* the (first) budget, by the upper end of every runtime that is judged */
    bool fits_some;       /* one of several */
    bool fits_by_release; /* it does not, unless PyTorch returns cached memory (onv_fit_info) */
    const char *set_by;   /* where the peak is, and what reserves it */
    size_t runtimes, devices; /* rows of the functions below */
    size_t warnings;          /* codes of diagnostics in "answer" of the JSON report */
    /* GPUs behind the devices, each with its own libraries: where no budget was given, for a page
     * (onv_options.timelines). */
    size_t usual_devices;
    bool
        is_contradicted; /* a replay, or what was measured, is not as predicted (onv_options.replay, snapshot, measured) */
    bool
        out_of_memory; /* of a runtime, by a limit of its own like gpu_mem_limit, or of the device that replayed */
} onv_answer_info;

/* Always true. */
ONV_API bool onv_analysis_answer_get(const onv_analysis *analysis, onv_answer_info *info,
                                     size_t size);

static inline bool onv_analysis_answer(const onv_analysis *analysis, onv_answer_info *info)
{
    return onv_analysis_answer_get(analysis, info, sizeof *info);
}

/* A runtime that is judged. */
typedef struct onv_answer_runtime_info {
    const char *name;
    uint64_t low_bytes, high_bytes; /* the total */
    uint64_t weight_bytes;          /* a part of what is live */
    uint64_t live_low, live_high;   /* of tensors, at their peak */
    uint64_t reserved_low,
        reserved_high; /* by the allocator, workspaces included: a part of the total, as those that follow */
    uint64_t library_bytes; /* at most; what the lower end has is the rest of low_bytes */
    uint64_t context_low, context_high;
    const char *set_by;
    bool out_of_memory; /* a limit of its own, like gpu_mem_limit, is not enough */
} onv_answer_runtime_info;

ONV_API bool onv_analysis_answer_runtime_get(const onv_analysis *analysis, size_t index,
                                             onv_answer_runtime_info *info, size_t size);

static inline bool onv_analysis_answer_runtime(const onv_analysis *analysis, size_t index,
                                               onv_answer_runtime_info *info)
{
    return onv_analysis_answer_runtime_get(analysis, index, info, sizeof *info);
}

typedef struct onv_fit_info {
    uint64_t budget, usable; /* usable: less the margin */
    bool fits;               /* every runtime that is judged, at the upper end of the estimates */
    int64_t max_batch;       /* that fits all of them; 0: none, or not asked for */
    bool has_max_batch;      /* it was asked for */
    const char *max_dim;     /* the dim whose largest size `max_batch` is; NULL: the batch */
    unsigned margin_percent;
    /* It does not fit, unless PyTorch's allocator returns cached memory to the device and requests it again, which is
     * slower. */
    bool fits_by_release;
    int64_t
        max_batch_by_release; /* the largest batch then, at least max_batch; 0: none, or not asked for */
} onv_fit_info;

/* A budget, with the figures that its libraries make. */
typedef struct onv_answer_device_info {
    const char *name; /* the GPU's; NULL: a size was given */
    const char *gpu;  /* whose libraries count; NULL: none do */
    bool gpu_assumed;
    const char *runtime; /* with the larger upper end there */
    uint64_t low_bytes, high_bytes;
    onv_fit_info fit; /* of all runtimes that are judged */
} onv_answer_device_info;

ONV_API bool onv_analysis_answer_device_get(const onv_analysis *analysis, size_t index,
                                            onv_answer_device_info *info, size_t size);

static inline bool onv_analysis_answer_device(const onv_analysis *analysis, size_t index,
                                              onv_answer_device_info *info)
{
    return onv_analysis_answer_device_get(analysis, index, info, sizeof *info);
}

/* What a file of torch.cuda.memory._dump_snapshot() says of the device that held the most. Bytes. */
typedef struct onv_snapshot_info {
    uint64_t requested_peak_bytes, allocated_peak_bytes, reserved_peak_bytes;
    uint32_t device, devices;
    bool has_history; /* else all are of the moment when it was written */
} onv_snapshot_info;

/* `limits` may be NULL. The file is read as data: nothing in it is run. */
ONV_API onv_status onv_snapshot_get(const char *path, const onv_limits *limits,
                                    onv_snapshot_info *info, size_t size, onv_error *error);

/* The figures to compare with those of onv_options.baseline. */
typedef struct onv_growth_info {
    const char *what; /* "weights", "peak", "total", a runtime, "train" */
    uint64_t before, after;
    bool exceeds; /* it grew by more than is allowed */
} onv_growth_info;

ONV_API bool onv_analysis_growth_get(const onv_analysis *analysis, size_t index,
                                     onv_growth_info *info, size_t size);

static inline bool onv_analysis_growth(const onv_analysis *analysis, size_t index,
                                       onv_growth_info *info)
{
    return onv_analysis_growth_get(analysis, index, info, sizeof *info);
}

#ifdef __cplusplus
}
#endif

#endif

/* The answer: how much memory the runtimes that are judged need on a GPU, and whether that fits.
 *
 * Judged are PyTorch and ONNX Runtime ("torch", "ort"), or those that onv_options.runtimes names; with
 * onv_options.train training ("train"), and those that are named. A verdict is that of the runtime with the larger upper
 * end. Every report prints this.
 */
#ifndef ONNXVRAM_ANSWER_H
#define ONNXVRAM_ANSWER_H

#include "runtimes.h"

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
    uint64_t library_bytes;
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

/* What was measured (onv_options.snapshot, onv_options.measured) next to what is predicted. */
typedef struct onv_measured_info {
    bool is_outside; /* a figure is outside of its range by more than 2 % */
    const char
        *what; /* that figure, or else the last one: "allocated", "reserved", "on the device" */
    uint64_t low_bytes, high_bytes;
    uint64_t measured_bytes;
} onv_measured_info;

/* False where nothing was measured. */
ONV_API bool onv_analysis_measured_get(const onv_analysis *analysis, onv_measured_info *info,
                                       size_t size);

static inline bool onv_analysis_measured(const onv_analysis *analysis, onv_measured_info *info)
{
    return onv_analysis_measured_get(analysis, info, sizeof *info);
}

#ifdef __cplusplus
}
#endif

#endif

/* What runtimes would hold, and whether it fits. */
#ifndef ONNXVRAM_RUNTIMES_H
#define ONNXVRAM_RUNTIMES_H

#include "analysis.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a runtime would hold on the device. Exact under its rules, but for the two ranges, which are
 * estimates. */
typedef struct onv_runtime_info {
    const char *name;
    const char *summary;
    uint64_t weight_bytes;
    uint64_t activation_bytes;          /* the most beyond the weights */
    uint64_t held_bytes;                /* both together, as taken from the device */
    uint64_t driver_bytes;              /* handles of libraries, outside the allocator */
    uint64_t context_low, context_high; /* of the driver */
    uint64_t total_low, total_high;
    bool out_of_memory; /* a limit of its own, like gpu_mem_limit, is not enough */
    uint64_t oom_bytes; /* what found no memory there */
    /* torch, async: as their allocators count; tensors alone, without workspaces. 0 elsewhere. */
    uint64_t allocated_peak_bytes, reserved_peak_bytes, tensor_peak_bytes;
    /* torch: ends of allocated_peak_bytes and of tensor_peak_bytes that the file leaves open: nothing outlives its last use, activations
     * overwrite what they may, and equal parameters are one; or names of modules hold what they can. A recording has one end. */
    uint64_t least_peak_bytes, locals_peak_bytes, least_tensor_bytes, most_tensor_bytes;
    /* arena */
    uint64_t lower_bound_bytes; /* no plan needs less */
    uint64_t alignment;         /* of offsets */
    bool optimal;               /* the plan needs no more than that */
    /* ort: what the arena reserves in the first run and later, of the order of initializers that needs most, and
     * of the one that needs least. */
    uint64_t first_run_bytes, steady_bytes, low_bytes;
    /* The graph that runs, where the runtime makes its own of the model (ort): 0 elsewhere. */
    uint64_t nodes, nodes_on_cpu, copies;
    /* Of the first budget: as onv_fit_info. */
    bool fits;
    int64_t max_batch;
    /* PyTorch's allocator: see onv_fit_info. */
    bool fits_by_release;
    int64_t max_batch_by_release;
    uint64_t
        released_bytes; /* cached memory that is returned to the device over the whole run; 0: it fits, or
                              * that does not help */
    bool is_judged; /* verdicts, the largest batch and the answer (answer.h) are of it */
    /* torch: what says which calls PyTorch makes: "recording", "program" (an archive), "notes" of an exporter,
     * "graph"; NULL elsewhere. Static. */
    const char *evidence;
} onv_runtime_info;

/* The runtimes asked for; none while a tensor is of unknown size. */
ONV_API size_t onv_analysis_runtime_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_runtime_get(const onv_analysis *analysis, size_t index,
                                      onv_runtime_info *info, size_t size);

static inline bool onv_analysis_runtime(const onv_analysis *analysis, size_t index,
                                        onv_runtime_info *info)
{
    return onv_analysis_runtime_get(analysis, index, info, sizeof *info);
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

/* False where no budget was given, or a tensor is of unknown size. */
ONV_API bool onv_analysis_fit_get(const onv_analysis *analysis, onv_fit_info *info, size_t size);

static inline bool onv_analysis_fit(const onv_analysis *analysis, onv_fit_info *info)
{
    return onv_analysis_fit_get(analysis, info, sizeof *info);
}

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

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
    uint64_t driver_bytes;              /* handles of libraries, beside the allocator */
    uint64_t context_low, context_high; /* of the driver */
    uint64_t total_low, total_high;
    bool out_of_memory; /* a limit of its own, like gpu_mem_limit, is not enough */
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
    bool fits;               /* for every runtime asked for, at the upper end of the estimates */
    int64_t max_batch;       /* that fits all of them; 0: none, or not asked for */
} onv_fit_info;

/* False where no budget was given, or a tensor is of unknown size. */
ONV_API bool onv_analysis_fit_get(const onv_analysis *analysis, onv_fit_info *info, size_t size);

static inline bool onv_analysis_fit(const onv_analysis *analysis, onv_fit_info *info)
{
    return onv_analysis_fit_get(analysis, info, sizeof *info);
}

/* The figures beside those of onv_options.baseline. */
typedef struct onv_growth_info {
    const char *what; /* "weights", "peak", "total", a runtime, "train" */
    uint64_t before, after;
    bool exceeds; /* it grew by more than is allowed */
} onv_growth_info;

ONV_API size_t onv_analysis_growth_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_growth_get(const onv_analysis *analysis, size_t index,
                                     onv_growth_info *info, size_t size);

static inline bool onv_analysis_growth(const onv_analysis *analysis, size_t index,
                                       onv_growth_info *info)
{
    return onv_analysis_growth_get(analysis, index, info, sizeof *info);
}

/* Of each of onv_options.budgets. */
ONV_API size_t onv_analysis_device_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_device_get(const onv_analysis *analysis, size_t index, const char **name,
                                     onv_fit_info *info, size_t size);

static inline bool onv_analysis_device(const onv_analysis *analysis, size_t index,
                                       const char **name, onv_fit_info *info)
{
    return onv_analysis_device_get(analysis, index, name, info, sizeof *info);
}

#ifdef __cplusplus
}
#endif

#endif

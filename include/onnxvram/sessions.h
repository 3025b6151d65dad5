/* Sessions of ONNX Runtime. */
#ifndef ONNXVRAM_SESSIONS_H
#define ONNXVRAM_SESSIONS_H

#include "runtimes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sessions of ONNX Runtime in one process on one device: each has an arena and handles of its own, the
 * context is there once. */
typedef struct onv_together_info {
    uint64_t sessions;
    uint64_t arenas_low, arenas_high;
    uint64_t shared_arena; /* what one arena for all of them grows to, one run at a time */
    uint64_t driver_bytes;
    uint64_t context_low, context_high;
    uint64_t total_low, total_high; /* with an arena each */
} onv_together_info;

/* Each analysis `instances[i]` times. ONV_ERR_USAGE where one has no figure for the runtime ort. */
ONV_API onv_status onv_together_get(onv_analysis *const *analyses, const unsigned *instances,
                                    size_t count, onv_together_info *info, size_t size,
                                    onv_error *error);

static inline onv_status onv_together(onv_analysis *const *analyses, const unsigned *instances,
                                      size_t count, onv_together_info *info, onv_error *error)
{
    return onv_together_get(analyses, instances, count, info, sizeof *info, error);
}

/* A session with other settings (onv_options.ort_advise), those that need least first. */
typedef struct onv_advice_info {
    uint64_t first_run_bytes, steady_bytes; /* of the order of initializers that needs most */
    uint64_t low_bytes;                     /* of the one that needs least */
    uint64_t in_use_bytes;                  /* at most */
    uint64_t least_limit_bytes;             /* the smallest gpu_mem_limit that is enough */
    bool is_given;                          /* the settings of the options */
} onv_advice_info;

ONV_API size_t onv_analysis_advice_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_advice_get(const onv_analysis *analysis, size_t index,
                                     onv_advice_info *info, size_t size);

static inline bool onv_analysis_advice(const onv_analysis *analysis, size_t index,
                                       onv_advice_info *info)
{
    return onv_analysis_advice_get(analysis, index, info, sizeof *info);
}

/* A setting of a row of advice: a name of onv_ort_setting_at() and its value. */
ONV_API bool onv_analysis_advice_setting_get(const onv_analysis *analysis, size_t row, size_t index,
                                             onv_setting_info *info, size_t size);

static inline bool onv_analysis_advice_setting(const onv_analysis *analysis, size_t row,
                                               size_t index, onv_setting_info *info)
{
    return onv_analysis_advice_setting_get(analysis, row, index, info, sizeof *info);
}

/* What a sequence of requests (onv_options.shape_trace) leaves reserved, by policy: how the arena is extended, and
 * whether it is shrunk after each run. */
typedef struct onv_shape_trace_info {
    size_t requests, dims;
    uint64_t orders; /* of the requests that were tried */
} onv_shape_trace_info;

/* False where no requests were given. */
ONV_API bool onv_analysis_shape_trace_get(const onv_analysis *analysis, onv_shape_trace_info *info,
                                          size_t size);

static inline bool onv_analysis_shape_trace(const onv_analysis *analysis,
                                            onv_shape_trace_info *info)
{
    return onv_analysis_shape_trace_get(analysis, info, sizeof *info);
}

typedef struct onv_policy_info {
    const char *name;
    uint64_t created_bytes;                       /* before the first request */
    uint64_t most_bytes;                          /* at any time */
    uint64_t best_order_bytes, worst_order_bytes; /* at the end, of the orders tried */
    bool out_of_memory;                           /* the limit is not enough */
} onv_policy_info;

ONV_API size_t onv_analysis_policy_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_policy_get(const onv_analysis *analysis, size_t index,
                                     onv_policy_info *info, size_t size);

static inline bool onv_analysis_policy(const onv_analysis *analysis, size_t index,
                                       onv_policy_info *info)
{
    return onv_analysis_policy_get(analysis, index, info, sizeof *info);
}

/* A request: what is in use while it runs; the size of one of its dims; what is reserved after it with a policy. */
ONV_API uint64_t onv_analysis_request_in_use(const onv_analysis *analysis, size_t request);
ONV_API int64_t onv_analysis_request_dim(const onv_analysis *analysis, size_t request, size_t dim,
                                         const char **name);
ONV_API uint64_t onv_analysis_request_reserved(const onv_analysis *analysis, size_t request,
                                               size_t policy);

#ifdef __cplusplus
}
#endif

#endif

/* What would be otherwise: weights in fewer bits, key-value caches, possible savings. */
#ifndef ONNXVRAM_WHAT_IF_H
#define ONNXVRAM_WHAT_IF_H

#include "analysis.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What became of the weights (onv_options.weights, without training). */
typedef struct onv_quantized_info {
    const char *format;
    uint64_t matrices;
    uint64_t bytes_before, bytes; /* of them */
    uint64_t left_bytes;          /* of all other weights, and of these: */
    uint64_t left_table_bytes, left_convolution_bytes;
} onv_quantized_info;

ONV_API bool onv_analysis_quantized_get(const onv_analysis *analysis, onv_quantized_info *info,
                                        size_t size);

static inline bool onv_analysis_quantized(const onv_analysis *analysis, onv_quantized_info *info)
{
    return onv_analysis_quantized_get(analysis, info, sizeof *info);
}

/* The key-value cache (onv_options.kv_cache). */
typedef struct onv_kv_cache_info {
    const char *mode; /* "copies", "shared" */
    uint64_t layers;
    bool is_sized; /* what follows is known */
    uint64_t token_bytes;
    uint64_t past_tokens, tokens;       /* before and after the step */
    uint64_t past_bytes, present_bytes; /* likewise */
    uint64_t fixed_bytes;               /* of what does not grow */
    uint64_t bytes;                     /* of all that the application holds */
    int64_t longest_context;            /* that fits the budget; -1: not asked for */
    size_t pairs;
} onv_kv_cache_info;

ONV_API bool onv_analysis_kv_cache_get(const onv_analysis *analysis, onv_kv_cache_info *info,
                                       size_t size);

static inline bool onv_analysis_kv_cache(const onv_analysis *analysis, onv_kv_cache_info *info)
{
    return onv_analysis_kv_cache_get(analysis, info, sizeof *info);
}

typedef struct onv_kv_pair_info {
    size_t past, present; /* tensors; ONV_NO_INDEX: there is no present */
    int axis;             /* of the sequence; -1: it does not grow */
    uint64_t past_bytes, present_bytes;
    uint64_t token_bytes; /* of one more */
    bool in_place;        /* its operator fills a shared buffer by itself */
} onv_kv_pair_info;

ONV_API size_t onv_analysis_kv_pair_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_kv_pair_get(const onv_analysis *analysis, size_t index,
                                      onv_kv_pair_info *info, size_t size);

static inline bool onv_analysis_kv_pair(const onv_analysis *analysis, size_t index,
                                        onv_kv_pair_info *info)
{
    return onv_analysis_kv_pair_get(analysis, index, info, sizeof *info);
}

/* A change that makes the peak smaller (onv_options.savings), the largest first. */
typedef struct onv_saving_info {
    const char *kind;
    uint64_t saved_bytes, peak_bytes; /* peak_bytes: with the change */
    size_t tensor;                    /* ONV_NO_INDEX: it is not of one */
    const char *node;                 /* NULL: likewise */
    bool everywhere;                  /* for all nodes of its operator */
    uint64_t parts, batch;          /* of a batch in parts: how many, of how many samples; else 0 */
    uint64_t more_macs, more_nodes; /* that run for it */
} onv_saving_info;

ONV_API size_t onv_analysis_saving_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_saving_get(const onv_analysis *analysis, size_t index,
                                     onv_saving_info *info, size_t size);

static inline bool onv_analysis_saving(const onv_analysis *analysis, size_t index,
                                       onv_saving_info *info)
{
    return onv_analysis_saving_get(analysis, index, info, sizeof *info);
}

#ifdef __cplusplus
}
#endif

#endif

/* Sizes that are left open: free dims, the peak as a formula of them, and an example. */
#ifndef ONNXVRAM_FORMULA_H
#define ONNXVRAM_FORMULA_H

#include "analysis.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct onv_free_dim_info {
    const char *name;
    const char *input; /* where it stands */
    int axis;
    const char *option; /* of the program, that binds it: "--batch N" */
    const char *past,
        *sequence; /* it is as long as these dims together, as masks over a cache are; NULL: not */
} onv_free_dim_info;

ONV_API size_t onv_analysis_free_dim_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_free_dim_get(const onv_analysis *analysis, size_t index,
                                       onv_free_dim_info *info, size_t size);

static inline bool onv_analysis_free_dim(const onv_analysis *analysis, size_t index,
                                         onv_free_dim_info *info)
{
    return onv_analysis_free_dim_get(analysis, index, info, sizeof *info);
}

/* Everything as functions of the free dims. */
typedef struct onv_formula_info {
    uint64_t weight_bytes;
    const char *why_not; /* there are no pieces; NULL: there are */
    onv_expression input_bytes, output_bytes, activation_bytes, macs;
} onv_formula_info;

/* False where every tensor has a size. */
ONV_API bool onv_analysis_formula_get(const onv_analysis *analysis, onv_formula_info *info,
                                      size_t size);

static inline bool onv_analysis_formula(const onv_analysis *analysis, onv_formula_info *info)
{
    return onv_analysis_formula_get(analysis, info, sizeof *info);
}

/* The peak is the largest of these. */
typedef struct onv_piece_info {
    onv_expression bytes;
    uint64_t step;
    /* The dim that alone decides which piece is the peak: this one from `from` up to but not including `until`
     * (INT64_MAX: no end). `decided_by.text` is NULL where it is not so simple. */
    onv_expression decided_by;
    int64_t from, until;
} onv_piece_info;

ONV_API size_t onv_analysis_piece_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_piece_get(const onv_analysis *analysis, size_t index,
                                    onv_piece_info *info, size_t size);

static inline bool onv_analysis_piece(const onv_analysis *analysis, size_t index,
                                      onv_piece_info *info)
{
    return onv_analysis_piece_get(analysis, index, info, sizeof *info);
}

/* The model with usual sizes for its free dims (onv_options.example): an analysis like any other, which belongs to
 * this one. NULL: not asked for, no dim is free, or more than 1,000 are. */
ONV_API const onv_analysis *onv_analysis_example(const onv_analysis *analysis);

#ifdef __cplusplus
}
#endif

#endif

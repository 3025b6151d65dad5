/* Analyses, and what each answers about the model itself. */
#ifndef ONNXVRAM_ANALYSIS_H
#define ONNXVRAM_ANALYSIS_H

#include "options.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct onv_analysis onv_analysis;

/* Reads the model at `path` and analyses it. On failure *analysis is NULL and the error is filled.
 * Files of 4 MiB and more are mapped where they can be, here and in onv_simulate_file(): where others may
 * shorten them meanwhile, a caller that must not die of SIGBUS has to handle it. */
ONV_API onv_status onv_analysis_new(const char *path, const onv_options *options,
                                    onv_analysis **analysis, onv_error *error);

/* The same for a model in memory; the bytes must stay valid until onv_analysis_destroy. `name` is
 * shown as its path; external data is looked for in that path's folder. */
ONV_API onv_status onv_analysis_new_from_memory(const void *data, size_t bytes, const char *name,
                                                const onv_options *options, onv_analysis **analysis,
                                                onv_error *error);

/* NULL is allowed. */
ONV_API void onv_analysis_destroy(onv_analysis *analysis);

typedef struct onv_summary {
    uint64_t nodes;
    uint64_t parameters; /* elements of the weights, shared ones once */
    uint64_t trainable;  /* of the parameters: float, and no running statistics */
    uint64_t parameter_bytes;
    uint64_t macs; /* multiply-accumulates; 0 while dims are free, see sized */
    uint64_t input_bytes, output_bytes;
    uint64_t activation_bytes; /* sum over all node outputs */
    uint64_t peak_bytes;       /* "ideal": the most that is live at one step, without weights */
    uint64_t peak_step;
    uint64_t unknown_tensors; /* of unknown size, counted as 0 above */
    uint64_t free_dims;       /* symbols left unbound */
    bool sized;               /* every tensor has a size in bytes */
    bool bounded;             /* some sizes are upper bounds */
} onv_summary;

ONV_API void onv_analysis_summary_get(const onv_analysis *analysis, onv_summary *summary,
                                      size_t size);

static inline void onv_analysis_summary(const onv_analysis *analysis, onv_summary *summary)
{
    onv_analysis_summary_get(analysis, summary, sizeof *summary);
}

/* The figures that onv_options.baseline takes, by name: "weights", then, where every tensor has a size, "peak", "total" and what each
 * runtime holds. False beyond the last one. */
ONV_API bool onv_analysis_figure(const onv_analysis *analysis, size_t index, onv_figure *figure);

/* An external file that holds weights, as the model names it; NULL: all are in the model. */
ONV_API const char *onv_analysis_external_file(const onv_analysis *analysis);

/* The external file, or program of PyTorch, with this device and inode number, as of stat(): who writes a file can see that it is
 * none that the model is read from, or that was found next to it. NULL: it is not one. */
ONV_API const char *onv_analysis_external_at(const onv_analysis *analysis, uint64_t device,
                                             uint64_t inode);

typedef enum onv_tensor_kind {
    ONV_TENSOR_INPUT,
    ONV_TENSOR_OUTPUT,
    ONV_TENSOR_ACTIVATION,
    ONV_TENSOR_INITIALIZER,
    ONV_TENSOR_CONSTANT
} onv_tensor_kind;

typedef struct onv_tensor_info {
    const char *name;
    onv_tensor_kind kind;
    const char *dtype; /* "float32" ... */
    const char *shape; /* "[256, 64, 112, 112]", dims may be expressions, "?" */
    uint64_t bytes;    /* ONV_SIZE_UNKNOWN if it has none */
    bool bound;        /* bytes is an upper bound */
    bool live;         /* has a lifetime (weights have none) */
    uint64_t first_step, last_step;
    bool is_dropped;    /* it never is: a branch that cannot be taken, and what only that reads */
    const char *format; /* of weights in fewer bits (onv_options.weights); NULL: as in the file */
    size_t alias_of;    /* the tensor that takes its memory over; ONV_NO_INDEX: none */
    int rank;           /* -1: not known */
    uint64_t offset;    /* in the runtime arena, above the weights; ONV_SIZE_UNKNOWN: not planned */
} onv_tensor_info;

ONV_API size_t onv_analysis_tensor_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_tensor_get(const onv_analysis *analysis, size_t index,
                                     onv_tensor_info *info, size_t size);

static inline bool onv_analysis_tensor(const onv_analysis *analysis, size_t index,
                                       onv_tensor_info *info)
{
    return onv_analysis_tensor_get(analysis, index, info, sizeof *info);
}

/* What is live at the peak, the largest first: a tensor; ONV_NO_INDEX beyond the last one. */
ONV_API size_t onv_analysis_peak_tensor_count(const onv_analysis *analysis);
ONV_API size_t onv_analysis_peak_tensor(const onv_analysis *analysis, size_t index);

typedef struct onv_diagnostic {
    const char *severity; /* "note", "warning" */
    const char *code;
    const char *node; /* "" if none */
    const char *message;
} onv_diagnostic;

ONV_API bool onv_analysis_diagnostic_get(const onv_analysis *analysis, size_t index,
                                         onv_diagnostic *diagnostic, size_t size);

static inline bool onv_analysis_diagnostic(const onv_analysis *analysis, size_t index,
                                           onv_diagnostic *diagnostic)
{
    return onv_analysis_diagnostic_get(analysis, index, diagnostic, sizeof *diagnostic);
}

/* --- Modules, found again from names ----------------------------------------------------------- */

/* Made on request, of an analysis that it must not outlive. */
typedef struct onv_module_table onv_module_table;

/* Modules up to `depth` deep (0: all); deeper ones count to those around them. */
ONV_API onv_status onv_module_table_new(const onv_analysis *analysis, unsigned depth,
                                        onv_module_table **table, onv_error *error);

/* NULL is allowed. */
ONV_API void onv_module_table_destroy(onv_module_table *table);

/* With everything inside. */
typedef struct onv_module_info {
    const char *name; /* in the module around it */
    size_t parent;    /* ONV_NO_INDEX: it is the model itself, which comes first */
    unsigned depth;
    uint64_t parameters;       /* of weights, in the module that uses them first */
    uint64_t macs;             /* ONV_SIZE_UNKNOWN: not known of every node */
    uint64_t activation_bytes; /* what its nodes make; without those of unknown size */
    uint64_t own_steps;        /* that belong to no module inside */
} onv_module_info;

/* False: there are no more. */
ONV_API bool onv_module_table_get(const onv_module_table *table, size_t index,
                                  onv_module_info *info, size_t size);

#ifdef __cplusplus
}
#endif

#endif

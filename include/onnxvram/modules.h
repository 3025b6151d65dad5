/* The modules of a model, found again from names. */
#ifndef ONNXVRAM_MODULES_H
#define ONNXVRAM_MODULES_H

#include "analysis.h"

#ifdef __cplusplus
extern "C" {
#endif

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

ONV_API size_t onv_module_table_count(const onv_module_table *table);
ONV_API bool onv_module_table_get(const onv_module_table *table, size_t index,
                                  onv_module_info *info, size_t size);

#ifdef __cplusplus
}
#endif

#endif

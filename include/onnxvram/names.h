/* The names that options take, and the table of GPUs. */
#ifndef ONNXVRAM_NAMES_H
#define ONNXVRAM_NAMES_H

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What options choose from. */
typedef enum onv_names {
    ONV_NAMES_RUNTIMES,
    ONV_NAMES_ORDERS, /* of execution */
    ONV_NAMES_OPTIMIZERS,
    ONV_NAMES_WEIGHT_FORMATS,
    ONV_NAMES_PYTORCH,      /* releases that are modelled, newest first */
    ONV_NAMES_ORT_SETTINGS, /* of ONNX Runtime; the summary is which values */
    ONV_NAMES_ALLOCATORS,   /* that traces are served by */
    ONV_NAMES_REPLAY_DEVICES
} onv_names;

/* NULL beyond the last one. `summary` may be NULL. */
ONV_API const char *onv_name_at(onv_names list, size_t index, const char **summary);

/* The checkpointing plans; one with an argument ("K") is written NAME=ARGUMENT; NULL: it has none. */
ONV_API const char *onv_checkpoint_name(size_t index, const char **summary, const char **argument);

typedef struct onv_gpu_info {
    const char *name;
    uint64_t nominal_bytes;      /* as sold */
    uint64_t usable_bytes;       /* as the driver reports */
    unsigned cc_major, cc_minor; /* compute capability */
    const char *source;          /* of usable_bytes */
} onv_gpu_info;

/* The table of GPUs, row by row; false beyond the last one. */
ONV_API bool onv_gpu_at_get(size_t index, onv_gpu_info *info, size_t size);

static inline bool onv_gpu_at(size_t index, onv_gpu_info *info)
{
    return onv_gpu_at_get(index, info, sizeof *info);
}

/* The rows that a name may mean, up to `capacity` of them: exactly one where the name is clear,
 * more where it is not ("A100"), none where it is not known. Returns how many there are. */
ONV_API size_t onv_gpu_by_name_get(const char *name, onv_gpu_info *found, size_t capacity,
                                   size_t size);

static inline size_t onv_gpu_by_name(const char *name, onv_gpu_info *found, size_t capacity)
{
    return onv_gpu_by_name_get(name, found, capacity, sizeof *found);
}

#ifdef __cplusplus
}
#endif

#endif

/* The names that options take, and the table of GPUs. */
#ifndef ONNXVRAM_NAMES_H
#define ONNXVRAM_NAMES_H

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The runtimes and the orders of execution there are; NULL beyond the last one. */
ONV_API const char *onv_runtime_name(size_t index, const char **summary);
ONV_API const char *onv_weight_format_name(size_t index, const char **summary);
ONV_API const char *onv_optimizer_name(size_t index, const char **summary);

/* The PyTorch releases that are modelled, newest first; NULL beyond the last one. */
ONV_API const char *onv_pytorch_name(size_t index);
ONV_API const char *onv_order_name(size_t index, const char **summary);
/* The settings of ONNX Runtime that `ort` of the options takes, and which values; NULL beyond the last
 * one. */
ONV_API const char *onv_ort_setting_at(size_t index, const char **values);
/* The devices that replays know; NULL beyond the last one. */
ONV_API const char *onv_replay_device_name(size_t index, const char **summary);
/* The checkpointing plans; one that takes a count is written NAME=K. */
ONV_API const char *onv_checkpoint_name(size_t index, const char **summary, bool *takes_count);

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

/* What training would hold, with checkpointing plans and under torch.compile. */
#ifndef ONNXVRAM_TRAINING_H
#define ONNXVRAM_TRAINING_H

#include "analysis.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Training in eager PyTorch, on one device. Sizes as asked for; the last two as PyTorch's allocator
 * counts. */
typedef struct onv_training_info {
    const char *optimizer, *loss;
    uint64_t parameter_bytes, gradient_bytes, optimizer_bytes;
    uint64_t saved_activation_bytes; /* between forward and backward, each storage once */
    uint64_t peak_bytes;             /* tensors alone */
    uint64_t allocated_peak_bytes, reserved_peak_bytes; /* with workspaces of libraries */
    uint64_t buffer_bytes;                              /* running statistics, constants */
    uint64_t requested_peak_bytes;                      /* with workspaces, sizes as asked for */
    uint64_t driver_bytes;                              /* handles of libraries */
    uint64_t first_iteration_peak_bytes; /* where it tries kernels (cudnn_benchmark); else 0 */
    /* What the allocator returns to the device to stay within the budget, over all iterations, and what it reserves
     * without one, which is reserved_peak_bytes; 0 where it fits, or that does not help. */
    uint64_t released_bytes, unbounded_reserved_bytes;
    uint64_t forward_macs;
    /* Optional costs that were asked for; 0: not. */
    uint64_t bucket_bytes, gathered_bytes, reduce_bytes; /* ddp, fsdp */
    uint64_t master_bytes, ema_bytes, host_bytes;
    uint64_t quantized_bytes, dequantized_bytes;
    uint64_t units;       /* that fully_shard gathers one by one */
    const char *evidence; /* as onv_runtime_info */
} onv_training_info;

/* False where training was not asked for. */
ONV_API bool onv_analysis_training_get(const onv_analysis *analysis, onv_training_info *info,
                                       size_t size);

static inline bool onv_analysis_training(const onv_analysis *analysis, onv_training_info *info)
{
    return onv_analysis_training_get(analysis, info, sizeof *info);
}

/* A checkpointing plan: training with it, and its price. */
typedef struct onv_checkpoint_info {
    const char *name;
    uint64_t peak_bytes, saved_activation_bytes;
    uint64_t allocated_peak_bytes, reserved_peak_bytes;
    uint64_t recompute_macs;
    uint64_t pass_macs; /* of a forward and a backward, which counts as two forwards */
    size_t segments;
    bool chosen; /* what the figures of training are of: the only plan, or the budget's choice */
    uint64_t offloaded_bytes, returned_bytes; /* copied to the host, and back */
    uint64_t host_bytes;                      /* of pinned memory for it */
    bool offloads;                            /* these three are figures of it */
    int64_t
        max_batch; /* that fits the budget; 0: none, or not asked for; -1: the search was cut before it found one */
    uint64_t by_hand;             /* segments that nothing tells where in the network they are */
    size_t kept;                  /* operations in segments whose results stay */
    bool compiles;                /* torch.compile in place of segments */
    double memory_budget;         /* then its activation_memory_budget, from 0 to 1 */
    int64_t max_batch_by_release; /* as in onv_fit_info; 0: none, or not asked for */
} onv_checkpoint_info;

/* False beyond the last one. */
ONV_API bool onv_analysis_checkpoint_get(const onv_analysis *analysis, size_t index,
                                         onv_checkpoint_info *info, size_t size);

static inline bool onv_analysis_checkpoint(const onv_analysis *analysis, size_t index,
                                           onv_checkpoint_info *info)
{
    return onv_analysis_checkpoint_get(analysis, index, info, sizeof *info);
}

#ifdef __cplusplus
}
#endif

#endif

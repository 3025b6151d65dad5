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
} onv_checkpoint_info;

/* False beyond the last one. */
ONV_API bool onv_analysis_checkpoint_get(const onv_analysis *analysis, size_t index,
                                         onv_checkpoint_info *info, size_t size);

static inline bool onv_analysis_checkpoint(const onv_analysis *analysis, size_t index,
                                           onv_checkpoint_info *info)
{
    return onv_analysis_checkpoint_get(analysis, index, info, sizeof *info);
}

/* Training under torch.compile: what AOTAutograd's partition keeps, and the eager step with it. */
typedef struct onv_compiled_info {
    double budget;
    uint64_t saved_activation_bytes, peak_bytes;
    uint64_t recompute_macs, pass_macs; /* as above */
    size_t saved;                       /* tensors that the network keeps */
} onv_compiled_info;

/* False where it was not asked for. */
ONV_API bool onv_analysis_compiled_get(const onv_analysis *analysis, onv_compiled_info *info,
                                       size_t size);

static inline bool onv_analysis_compiled(const onv_analysis *analysis, onv_compiled_info *info)
{
    return onv_analysis_compiled_get(analysis, info, sizeof *info);
}

#ifdef __cplusplus
}
#endif

#endif

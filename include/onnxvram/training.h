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
    int64_t max_batch;                        /* that fits the budget; 0: none, or not asked for */
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

/* A segment: what it begins and ends with. */
typedef struct onv_segment_info {
    const char *first, *last;
} onv_segment_info;

/* False beyond the last one. */
ONV_API bool onv_analysis_checkpoint_segment_get(const onv_analysis *analysis, size_t plan,
                                                 size_t index, onv_segment_info *info, size_t size);

static inline bool onv_analysis_checkpoint_segment(const onv_analysis *analysis, size_t plan,
                                                   size_t index, onv_segment_info *info)
{
    return onv_analysis_checkpoint_segment_get(analysis, plan, index, info, sizeof *info);
}

/* The name of an operation of the plan whose result stays; NULL beyond the last one. */
ONV_API const char *onv_analysis_checkpoint_kept(const onv_analysis *analysis, size_t plan,
                                                 size_t index);

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

/* What the partition keeps. */
typedef struct onv_compiled_tensor_info {
    size_t tensor;         /* ONV_NO_INDEX: it is not a tensor of the model */
    const char *node;      /* that makes it; NULL: none */
    const char *operation; /* that makes it; NULL: not told */
    uint64_t bytes;
} onv_compiled_tensor_info;

ONV_API bool onv_analysis_compiled_tensor_get(const onv_analysis *analysis, size_t index,
                                              onv_compiled_tensor_info *info, size_t size);

static inline bool onv_analysis_compiled_tensor(const onv_analysis *analysis, size_t index,
                                                onv_compiled_tensor_info *info)
{
    return onv_analysis_compiled_tensor_get(analysis, index, info, sizeof *info);
}

/* What plans are made of (with onv_options.timelines): units that run one after the other, then their backwards in
 * reverse, and the tensors between them. */
typedef struct onv_chain_info {
    size_t units, tensors;
    uint64_t beside_bytes; /* there while the first units run */
} onv_chain_info;

/* False where no plans were asked for. */
ONV_API bool onv_analysis_chain_get(const onv_analysis *analysis, onv_chain_info *info,
                                    size_t size);

static inline bool onv_analysis_chain(const onv_analysis *analysis, onv_chain_info *info)
{
    return onv_analysis_chain_get(analysis, info, sizeof *info);
}

typedef struct onv_chain_unit_info {
    const char *node; /* of most products; NULL: none */
    const char *operation;
    uint64_t macs;
    uint64_t forward_bytes;  /* while it runs, and keeps what its backward needs */
    uint64_t passing_bytes;  /* while it runs, and keeps nothing */
    uint64_t own_bytes;      /* what it alone keeps */
    uint64_t backward_bytes; /* in its backward, in addition to what is held before it */
    uint64_t beside_bytes;   /* while units up to it run, and it is the next one to go backward */
} onv_chain_unit_info;

ONV_API size_t onv_analysis_chain_unit_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_chain_unit_get(const onv_analysis *analysis, size_t index,
                                         onv_chain_unit_info *info, size_t size);

static inline bool onv_analysis_chain_unit(const onv_analysis *analysis, size_t index,
                                           onv_chain_unit_info *info)
{
    return onv_analysis_chain_unit_get(analysis, index, info, sizeof *info);
}

/* A tensor that later units read. */
typedef struct onv_chain_tensor_info {
    uint64_t bytes;
    size_t made_by; /* a unit */
    bool saved_by_maker;
    size_t readers;
} onv_chain_tensor_info;

ONV_API size_t onv_analysis_chain_tensor_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_chain_tensor_get(const onv_analysis *analysis, size_t index,
                                           onv_chain_tensor_info *info, size_t size);

static inline bool onv_analysis_chain_tensor(const onv_analysis *analysis, size_t index,
                                             onv_chain_tensor_info *info)
{
    return onv_analysis_chain_tensor_get(analysis, index, info, sizeof *info);
}

/* A unit that reads it; whether its backward needs it. */
typedef struct onv_chain_reader_info {
    size_t unit;
    bool saves;
} onv_chain_reader_info;

ONV_API bool onv_analysis_chain_reader_get(const onv_analysis *analysis, size_t tensor,
                                           size_t index, onv_chain_reader_info *info, size_t size);

static inline bool onv_analysis_chain_reader(const onv_analysis *analysis, size_t tensor,
                                             size_t index, onv_chain_reader_info *info)
{
    return onv_analysis_chain_reader_get(analysis, tensor, index, info, sizeof *info);
}

#ifdef __cplusplus
}
#endif

#endif

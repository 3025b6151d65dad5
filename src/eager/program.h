/* The training program: some iterations of training as steps and buffers.
 *
 * Requires: an eager program. Gives: a list of steps (forward and loss, backward, optimizer, for
 * every iteration) and one row per buffer that is allocated on the way, with its first and last step,
 * both included: the row is there while these steps run. What is there all the time (parameters,
 * statistics, the batch) spans all steps.
 *
 * The peak is that of the second iteration or a later one: only then do optimizer state and the
 * outputs of the iteration before coexist with activations. From the second on, iterations are equal.
 *
 * How autograd uses memory, as far as it shows:
 *   - the highest operation that is ready runs next; it holds the incoming gradient and what it kept
 *     until it returns, so these coexist with all gradients it makes;
 *   - a gradient that a parameter receives becomes its .grad without a copy if nobody else holds it, and its strides are the parameter's;
 *   - where a tensor has several readers, the first gradient waits, the next is added in place if the
 *     waiting one is held by nobody else, dense and no view, else into a new tensor.
 * Checkpoints follow torch.utils.checkpoint(use_reentrant=False): see simulation.h.
 *
 * Cost: linear in steps, and in what the segments cover, nested ones once for each level.
 */
#ifndef ONV_EAGER_PROGRAM_H
#define ONV_EAGER_PROGRAM_H

#include "eager/eager.h"
#include "eager/optimizer.h"
#include "eager/quantized.h"
#include "timeline/timeline.h"

/* PyTorch's ways to share the work, with the buffers that they take: see sharding.c. ZeRO's stages hold parts of
 * what there is, without the buffers of a library. */
typedef enum onv_parallel {
    ONV_PARALLEL_NONE,
    ONV_PARALLEL_DDP,       /* DistributedDataParallel: gradients are copied into buckets */
    ONV_PARALLEL_DDP_VIEWS, /* gradient_as_bucket_view: they are views of them */
    ONV_PARALLEL_FSDP,      /* fully_shard of each unit, and of the root */
} onv_parallel;

/* What leaves the device for the host. */
typedef enum onv_offload {
    ONV_OFFLOAD_NOTHING,
    ONV_OFFLOAD_OPTIMIZER, /* the state, and the step */
    ONV_OFFLOAD_GRADIENTS, /* each gradient too, as soon as it is complete */
} onv_offload;

/* What ran of an operation in one forward and backward, beside its forward. */
typedef struct onv_op_runs {
    uint32_t again; /* forward, in second runs */
    bool goes_back;
} onv_op_runs;

enum { ONV_TRAIN_ITERATIONS = 3 };

typedef struct onv_train_options {
    onv_lower_options lower;
    const onv_optimizer *optimizer; /* required */
    onv_optimizer_impl impl;
    uint32_t iterations; /* 0: ONV_TRAIN_ITERATIONS */
    bool tries_kernels; /* the first pass of cudnn.benchmark; what it took is given back after it */
    uint32_t accumulate;           /* forward and backward passes before a step; 0: 1 */
    bool zero_grad_late;           /* just before backward; otherwise before forward */
    bool keep_grads;               /* zero_grad(set_to_none=False): filled with zeros instead */
    bool weight_decay;             /* SGD then adds decay to a copy of the gradients */
    uint8_t parallel;              /* onv_parallel */
    uint32_t zero_stage;           /* ZeRO 1, 2, 3: states, gradients, parameters are shared out */
    uint32_t world;                /* among so many devices; 0: 1 */
    const onv_tape_segment *units; /* FSDP: those of its modules, by first_op, disjoint */
    uint32_t n_units;
    bool master_weights;              /* of 16-bit parameters the optimizer has float32 copies */
    uint8_t offload;                  /* onv_offload */
    bool ema;                         /* a moving average of parameters and buffers beside them */
    const onv_weight_format *weights; /* of frozen ones that are quantized; NULL: none is */
    const onv_tape_segment *segments; /* by first_op, outer before inner; disjoint or nested */
    uint32_t n_segments;
    bool prunes;       /* of a segment runs again what its backward needs: see prune.c */
    bool selects;      /* else all runs again but kept_ops: create_selective_checkpoint_contexts */
    bool is_reentrant; /* torch.utils.checkpoint(use_reentrant=True); no segments inside others */
    const uint32_t
        *kept_ops; /* with `prunes` or `selects`: inside segments, whose results stay; ascending */
    uint32_t n_kept_ops;
    uint32_t
        loop_from; /* checkpoint_sequential: where its last part begins, whose input its loop holds
                           until the forward pass is over; 0: no loop */
    bool saves_on_cpu;      /* torch.autograd.graph.save_on_cpu around the network: offload.c */
    uint32_t offload_until; /* what operations before it keep goes to the host: offload.c */
    bool *is_kept_used; /* NULL, or set by index of kept_ops: some second run takes the result */
    onv_op_runs *runs;  /* NULL, or set by operation */
    bool notes_holds;   /* lower.locals is not set: what it would hold beside is noted */
    bool (*cancelled)(void *context); /* asked by each build: true ends it, ONV_ERR_CANCELLED */
    void *cancel_context;
} onv_train_options;

/* From the second pass of an accumulation on all allocate alike, and an allocator that keeps what it
 * has, as PyTorch's does, does the same again after one pass, or after a few. So of many passes as many
 * cycles are left out, and neither time nor memory grows with their number: 12 is a multiple of cycles
 * of 1, 2, 3, 4 and 6 passes. */
enum { ONV_PASS_CYCLE = 12 };

/* What training takes beside parameters, gradients, state and activations, on this device. */
typedef struct onv_train_parts {
    uint64_t bucket_bytes; /* DDP's */
    uint64_t
        gathered_bytes; /* FSDP: parameters as gathered, and what gathers them; the most at once */
    uint64_t reduce_bytes; /* FSDP: what gradients are reduced through; the most at once */
    uint64_t master_bytes; /* float32 copies of parameters */
    uint64_t ema_bytes;
    uint64_t host_bytes;        /* state and copies on the host, no part of the peak */
    uint64_t quantized_bytes;   /* of the parameters: those that are quantized, with their scales */
    uint64_t dequantized_bytes; /* the most that an operation makes of them */
} onv_train_parts;

/* A buffer that the call of a module may hold until that step. */
typedef struct onv_noted_hold {
    uint32_t buffer, until;
} onv_noted_hold;

typedef struct onv_train_program {
    onv_timeline timeline;
    ONV_VEC(onv_noted_hold) holds; /* options->notes_holds */
    onv_train_parts parts;
    uint64_t parameter_bytes, gradient_bytes, optimizer_bytes; /* on this device */
    uint64_t trained_elems;
    uint64_t saved_bytes; /* between forward and backward, beyond parameters and buffers: distinct
                             storages that operations save or that enter checkpoints */
    uint64_t offloaded_bytes,
        returned_bytes;    /* what a forward copies to the host, what its backward
                                                 copies back */
    uint64_t pinned_bytes; /* what PyTorch's allocator of pinned memory has for it */
    uint64_t forward_macs, recomputed_macs; /* of one forward and backward: sums of steps' */
    uint64_t
        summed_bytes; /* likewise: gradients that are added to others, and to those of the passes before */
    uint32_t n_sums;
    uint32_t lost; /* things that a backward needed and did not find: must be 0 */
} onv_train_program;

/* The passes of an iteration that are simulated, and the iterations. */
uint32_t onv_train_passes(const onv_train_options *options);
uint32_t onv_train_iterations(const onv_train_options *options);

onv_status onv_train_program_build(onv_model *model, const onv_eager *eager,
                                   const onv_train_options *options, onv_train_program *program,
                                   onv_error *err);
void onv_train_program_cleanup(onv_train_program *program);
onv_status onv_train_program_check(const onv_train_program *program, onv_error *err);

#endif

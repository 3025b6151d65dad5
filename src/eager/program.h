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
 *   - a gradient that a parameter receives becomes its .grad without a copy if nobody else holds it;
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
#include "timeline/timeline.h"

/* A checkpoint: a range of the tape, both ends included, in the forward part (before the loss). */
typedef struct onv_tape_segment {
    uint32_t first_op, last_op;
} onv_tape_segment;

typedef struct onv_train_options {
    onv_lower_options lower;
    const onv_optimizer *optimizer; /* required */
    onv_optimizer_impl impl;
    uint32_t iterations; /* 0: 3 */
    uint32_t accumulate; /* forward and backward passes before a step; 0: 1 */
    bool zero_grad_late; /* just before backward; otherwise before forward */
    bool keep_grads;     /* zero_grad(set_to_none=False): filled with zeros instead */
    bool weight_decay;   /* SGD then adds decay to a copy of the gradients */
    uint32_t zero_stage; /* ZeRO 1, 2, 3: states, gradients, parameters are shared out */
    uint32_t world;      /* among so many devices; 0: 1 */
    const onv_tape_segment *segments; /* by first_op, outer before inner; disjoint or nested */
    uint32_t n_segments;
    bool (*cancelled)(void *context); /* asked by each build: true ends it, ONV_ERR_CANCELLED */
    void *cancel_context;
} onv_train_options;

/* From the second pass of an accumulation on all allocate alike, and an allocator that keeps what it
 * has, as PyTorch's does, does the same again after one pass, or after a few. So of many passes as many
 * cycles are left out, and neither time nor memory grows with their number: 12 is a multiple of cycles
 * of 1, 2, 3, 4 and 6 passes. */
enum { ONV_PASS_CYCLE = 12 };

typedef struct onv_train_program {
    onv_timeline timeline;
    uint64_t parameter_bytes, gradient_bytes, optimizer_bytes; /* on this device */
    uint64_t trained_elems;
    uint64_t saved_bytes; /* between forward and backward, beyond parameters and buffers: distinct
                             storages that operations save or that enter checkpoints */
    uint64_t forward_macs, recomputed_macs; /* of one forward and backward: sums of steps' */
    uint32_t lost; /* things that a backward needed and did not find: must be 0 */
} onv_train_program;

/* The passes of an iteration that are simulated. */
uint32_t onv_train_passes(const onv_train_options *options);

onv_status onv_train_program_build(onv_model *model, const onv_eager *eager,
                                   const onv_train_options *options, onv_train_program *program,
                                   onv_error *err);
void onv_train_program_cleanup(onv_train_program *program);
onv_status onv_train_program_check(const onv_train_program *program, onv_error *err);

#endif

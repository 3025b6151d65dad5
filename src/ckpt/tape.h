/* The eager tape as a chain (chain.h): where checkpoints may begin and end, and what is held between.
 *
 * A unit is a stretch of operations. Fine units begin at every node that keeps something for its
 * backward, or that makes something to keep of what is kept itself (casts). The others (views, sums)
 * go with the one before, for a checkpoint that ends there need not run them again. Where these are
 * more than asked for, neighbours are joined: first those that keep little and whose border is
 * crossed by much.
 *
 * Storages are the tensors of the chain, wherever they are read again: what skips units (residual
 * branches, the long connections of a U-Net) is held until then. What is there beside activations
 * (parameters, gradients, optimizer state) is read off the program without checkpoints, step by
 * step. The loss is the last unit, and always kept.
 *
 * Costs are multiply-accumulates; bytes written decide between plans that are equal in them.
 */
#ifndef ONV_CKPT_TAPE_H
#define ONV_CKPT_TAPE_H

#include "ckpt/beside.h"
#include "ckpt/chain.h"

/* Plans that compute more again than so many forward passes are not looked for. */
enum { ONV_TAPE_MAX_RERUNS = 3 };

typedef struct onv_tape_chain {
    onv_chain chain;
    uint32_t *first_op; /* by unit, n_units + 1: the tape from one to the next */
    uint32_t n_fine;    /* units before any were joined */
} onv_tape_chain;

typedef struct onv_tape_chain_options {
    const uint32_t
        *kept_ops; /* results of these operations are held wherever they are made: a plan's */
    uint32_t n_kept_ops;
    uint32_t max_units; /* 2 to ONV_CHAIN_MAX_UNITS */
    bool by_nodes;      /* units begin with nodes alone, not at places inside of them */
} onv_tape_chain_options;

/* In the arena; linear in the tape, times units where they are joined. */
onv_status onv_tape_chain_build(const onv_ckpt_problem *problem, const onv_tape_beside *beside,
                                const onv_tape_chain_options *options, onv_arena *arena,
                                onv_tape_chain *tape, onv_error *err);

/* The segment of a range; where plans are not pruned up to the last operation that keeps something, as
 * those behind it would only make the checkpoint hold what they read. False where nothing is kept. */
bool onv_tape_chain_segment(const onv_ckpt_problem *problem, const onv_tape_chain *tape,
                            onv_chain_range range, onv_tape_segment *segment);

#endif

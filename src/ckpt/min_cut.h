/* The min-cut partition: which values of a joint graph forward keeps for backward.
 *
 * As AOTAutograd's min_cut_rematerialization_partition divides it: a value that is kept costs its
 * bytes, more the farther it is from backward and where nothing would write it otherwise; what is cheap
 * and fused with its readers may run again; a minimum cut between what forward must compute and what
 * backward reads says which. With a budget below 1 products and convolutions may run again too; a knapsack over
 * their estimated work says which (budget.c).
 *
 * What fuses, what is cheap and what never runs again are rules of that partitioner, as of release 2.15.
 */
#ifndef ONV_CKPT_MIN_CUT_H
#define ONV_CKPT_MIN_CUT_H

#include "ckpt/joint.h"

/* What keeps a node from running again. */
typedef struct onv_cut_rules {
    bool used_far_apart, long_chains, materialized_backward, not_listed, reductions;
    const bool *may_run; /* by node: runs again whatever the rules say; NULL: none */
} onv_cut_rules;

typedef struct onv_partition {
    bool *is_saved; /* by node, primals too */
    bool *is_again; /* by node: backward computes it */
    bool *is_alive; /* by node: forward's results or backward need it */
    uint32_t
        *last_read; /* by node that is saved: the first operation of the tape whose backward, the
                            last one to run, needs it; ONV_JOINT_NONE: none does */
    uint32_t *first_read; /* the same, the first one to run */
    bool *is_written; /* by node that runs again: into memory of its own, for a kernel reads it */
    bool *is_read;    /* what depends on gradients reads it */
    uint32_t
        *last_again; /* by node: the last one that reads it and runs again into memory of its own;
                             ONV_JOINT_NONE: none */
    uint64_t recomputed_macs;
} onv_partition;

/* `budget` from 0 to 1, as torch._functorch.config.activation_memory_budget. Everything lives in `arena`. */
onv_status onv_partition_make(const onv_joint *joint, double budget, onv_arena *arena,
                              onv_partition *partition, onv_error *err);

/* --- Between the files ------------------------------------------------------------------------- */

typedef struct onv_cut_graph {
    const onv_joint *joint;
    onv_arena *arena;
    uint32_t n;
    bool *in_forward;  /* by node: forward's results need it */
    bool *is_alive;    /* something needs it */
    uint32_t *order;   /* by node of forward: its place */
    uint32_t *node_at; /* by place */
    uint32_t n_forward;
    uint32_t *first_user; /* by node, and one more: where its users stand in `users` */
    uint32_t *users;
    uint32_t *distance; /* by node: operations to backward; ONV_JOINT_NONE: it never comes there */
    uint32_t *stamp;    /* the work of one search */
    uint32_t *heap;     /* places */
} onv_cut_graph;

/* Sets `saved` and `banned` by node: what is kept, and what may not run again. */
onv_status onv_cut_solve(const onv_cut_graph *graph, const onv_cut_rules *rules, bool *saved,
                         bool *banned, onv_error *err);
/* What is saved at a budget below 1. */
onv_status onv_cut_budget(const onv_cut_graph *graph, const onv_cut_rules *rules, double budget,
                          bool *saved, onv_error *err);

#endif

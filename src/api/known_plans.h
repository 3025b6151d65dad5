/* A checkpointing plan that is taken from one size to another. */
#ifndef ONV_API_KNOWN_PLANS_H
#define ONV_API_KNOWN_PLANS_H

#include "ckpt/training.h"

typedef struct onv_known_plan {
    onv_ckpt_plan plan;
    onv_plan_text text;
    const char *id;
    uint64_t pass_macs;
    uint32_t n_ops; /* of the tape that it is a plan of */
    onv_training_figures figures;
} onv_known_plan;

/* Copies a plan with names to the arena; false: no memory. */
bool onv_know_plan(const onv_training_plan *plan, uint32_t n_ops, onv_arena *arena,
                   onv_known_plan *to);

#endif

/* A checkpointing plan that is taken from one size to another. */
#ifndef ONV_API_KNOWN_PLANS_H
#define ONV_API_KNOWN_PLANS_H

#include "ckpt/training.h"

/* Copies it to the arena; false: no memory. */
bool onv_know_plan(const onv_training_plan *plan, onv_arena *arena, onv_ckpt_plan *to);

#endif

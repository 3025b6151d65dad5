/* Seeded instances of offset planning, for tests and the benchmark. */
#ifndef ONV_TESTS_PLAN_INSTANCES_H
#define ONV_TESTS_PLAN_INSTANCES_H

#include "base/vec.h"
#include "plan/plan.h"

typedef ONV_VEC(onv_plan_buffer) instance;

/* Uniform: `n` buffers over `steps` steps, lifetimes up to `longest`, sizes 0..`largest`. */
void make_uniform(instance *out, uint64_t seed, uint32_t n, uint32_t steps, uint32_t longest,
                  uint32_t largest);

/* A full rectangle of `steps` x `capacity`, cut into about `n` buffers: a plan of height `capacity`
 * exists and has no gap, which greedy placement does not find. */
void make_jigsaw(instance *out, uint64_t seed, uint32_t n, uint32_t steps, uint32_t capacity);

/* Takes up to 1 / `part` of its life off each end of a row: hardly any two end at one time. */
void shorten_lives(instance *rows, uint64_t seed, uint32_t part);

/* The same, cut into pinwheels within pinwheels, which no straight cuts take apart. */
void make_pinwheels(instance *out, uint64_t seed, uint32_t n, uint32_t steps, uint32_t capacity);

/* Every step exactly full, but cut without looking at offsets, so that often no plan of height
 * `capacity` exists. */
void make_full(instance *out, uint64_t seed, uint32_t steps, uint32_t capacity);

/* Training of a network, about `n` buffers in `passes` forward and backward passes: activations
 * that are kept until their layer's backward step, temporaries, workspaces, gradients, and weight
 * gradients that live to the end of the pass or of all passes. `convnet`: sizes fall from stage to
 * stage; else all blocks are alike (a transformer). */
void make_training(instance *out, uint64_t seed, uint32_t n, uint32_t passes, bool convnet);

/* The next number of a generator (splitmix64). */
uint64_t next_random(uint64_t *state);

#endif

/* Small changes of the plans of a front, for as long as they pay. */
#ifndef ONV_CKPT_IMPROVE_H
#define ONV_CKPT_IMPROVE_H

#include "ckpt/ckpt.h"

/* Of every plan of the front those that differ from it in one thing are measured: one result more or less is kept, a
 * segment is left out, or one of another plan is added. What betters
 * something by a thousandth goes into the front, and is changed in turn. `candidates`: operations whose results may be kept,
 * ascending.
 *
 * Cost: programs of about MAX_STEPS operations in all (improve.c), those of segments counted once more; changes are tried evenly where
 * these are too few for all. */
onv_status onv_front_improve(const onv_ckpt_problem *problem, const uint32_t *candidates,
                             uint32_t n_candidates, onv_ckpt_plans *front, onv_error *err);

#endif

/* A front of plans: of any two, each is the better one in something: the peak, what runs again, bytes moved. Eager plans
 * stay beside torch.compile's that better them. */
#ifndef ONV_CKPT_FRONT_H
#define ONV_CKPT_FRONT_H

#include "ckpt/ckpt.h"

/* Takes the plan in, unless one is as good; drops those that it betters. Peaks descend, and where nothing is
 * moved prices ascend. */
onv_status onv_front_offer(onv_ckpt_plans *plans, const onv_ckpt_plan *plan, onv_error *err);
/* The same of each that moves nothing to the host. `from`: NULL: none. */
onv_status onv_front_offer_all(onv_ckpt_plans *plans, const onv_ckpt_plans *from, onv_error *err);

/* Appends the plans of the front, under that name. Each is run through the allocator as a whole, so of more than
 * 64, of tapes of more than 500 operations of fewer, those are left out (to `spare`) that a cheaper one comes near to, in peak: the part of it that is near is the least that
 * suffices, from a thousandth on. The smallest plan stays, the last one before much more runs again, and what betters another plan of the list. */
onv_status onv_front_give(const onv_ckpt_problem *problem, const onv_ckpt_plans *front,
                          const char *name, onv_ckpt_plans *plans, onv_error *err);

#endif

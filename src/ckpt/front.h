/* A front of plans: of any two, each is the better one in something: the peak, what runs again, bytes moved. Eager plans
 * stay beside torch.compile's that better them. */
#ifndef ONV_CKPT_FRONT_H
#define ONV_CKPT_FRONT_H

#include "ckpt/ckpt.h"

/* Takes the plan in, unless one is as good; drops those that it betters. Peaks descend, and where nothing is
 * moved prices ascend. */
onv_status onv_front_offer(onv_ckpt_plans *plans, const onv_ckpt_plan *plan, onv_error *err);

#endif

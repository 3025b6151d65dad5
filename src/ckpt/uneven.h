/* Plans of segments that grow shorter, nested ones too. */
#ifndef ONV_CKPT_UNEVEN_H
#define ONV_CKPT_UNEVEN_H

#include "ckpt/beside.h"

/* Appends some plans for each depth of nesting: uneven.c. */
onv_status onv_uneven_make(const onv_ckpt_problem *problem, const onv_tape_beside *beside,
                           onv_ckpt_plans *plans, onv_error *err);

#endif

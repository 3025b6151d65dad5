/* What names the segments of plans, and what plans achieve that are applied by these names. */
#ifndef ONV_CKPT_PLAN_NAMES_H
#define ONV_CKPT_PLAN_NAMES_H

#include "ckpt/training.h"

/* Of all plans of the result, which are of this tape. */
onv_status onv_plans_name(onv_model *model, const onv_eager *eager,
                          const onv_training_options *options, onv_training *result,
                          onv_error *err);

#endif

/* A checkpointing plan that --plan-out wrote. */
#ifndef ONV_API_PLAN_READ_H
#define ONV_API_PLAN_READ_H

#include "ckpt/plan_names.h"

/* Everything lives in the arena. ONV_ERR_FORMAT: it is none; errors begin with the path. */
onv_status onv_plan_read(const char *path, onv_arena *arena, onv_plan_text *plan, onv_error *err);

#endif

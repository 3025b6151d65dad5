/* A trace at planned offsets in one block: what `arena` is among the allocators. */
#ifndef ONV_API_TOOLS_H
#define ONV_API_TOOLS_H

#include "plan/plan.h"

/* `options` may be NULL. The block is asked for as a whole: beyond a capacity (0: none) it finds no memory. Cleans
 * the timeline up. */
onv_status onv_simulate_arena(onv_timeline *t, const onv_plan_options *options, uint64_t capacity,
                              onv_held_figures *figures, onv_error *err);

#endif

/* Repair: a plan of a large part is lowered by lowering the ceiling over it.
 *
 * What sticks out waits for a place. Who finds none under the ceiling takes the place whose owners failed least often so
 * far, and these wait in turn, the hardest to place first. Who fails counts for more from then on, so that rows that
 * stand in each other's way settle, and those that fit anywhere make way. Nothing is proved.
 */
#ifndef ONV_PLAN_REPAIR_H
#define ONV_PLAN_REPAIR_H

#include "plan/part.h"

typedef struct onv_repair onv_repair;

/* The part must outlive it; the repair is destroyed also after a failure. */
onv_status onv_repair_new(const onv_part *part, onv_repair **repair, onv_error *err);
void onv_repair_destroy(onv_repair *r);

/* Tries one ceiling between `goal` and the layout's plan, which must be higher than the goal, from where the try before
 * it ended. What it finds is offered to the layout. */
void onv_repair_run(onv_repair *r, uint64_t goal, onv_layout *layout, onv_effort *effort,
                    const char *name);

/* True once ceilings up to the plan were tried in vain. */
bool onv_repair_is_stuck(const onv_repair *r);

#endif

/* Repair: a plan of a large part is lowered by lowering the ceiling over it.
 *
 * Rows above the ceiling wait for a place. A row that finds none under the ceiling takes the place whose owners weigh
 * least, and these wait in turn, the largest first. A row weighs as many as share a section with it, for a row that
 * meets many is hard to place, and as much again for each time that it found no place: rows that compete for a place
 * settle, and rows that fit anywhere give way. Now and then all rows up to some height sink and those above it rise, in
 * the order in which they lie, so that small gaps between them become one. Nothing is proved.
 */
#ifndef ONV_PLAN_REPAIR_H
#define ONV_PLAN_REPAIR_H

#include "plan/part.h"

typedef struct onv_repair onv_repair;

/* The part must outlive it; the repair is destroyed also after a failure. NULL: so many rows share sections that not
 * even each of them would have its turn. */
onv_status onv_repair_new(const onv_part *part, onv_repair **repair, onv_error *err);
void onv_repair_destroy(onv_repair *r);

/* Tries one ceiling between `goal` and the layout's plan, which must be higher than the goal. A plan that it finds is
 * offered to the layout. */
void onv_repair_run(onv_repair *r, uint64_t goal, onv_layout *layout, onv_effort *effort,
                    const char *name);

#endif

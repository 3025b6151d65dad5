/* Boxes: rows that lie beside or on each other are planned as one.
 *
 *   in a chain   rows of one size, one after the other      [===][==][====]
 *   in a stack   rows that begin and end at about one time
 *
 * Both leave something empty: gaps between the rows of a chain, ends beside the shorter rows of a stack. Those that leave the
 * least go together first, and none where the load would pass the target. Boxes go into others again, so that few are
 * left, which a search plans that does not get far with all rows. From one round to the next boxes may leave more
 * empty; after the last one all begins again, with more work for each plan.
 */
#ifndef ONV_PLAN_BOXES_H
#define ONV_PLAN_BOXES_H

#include "plan/part.h"

typedef struct onv_boxes onv_boxes;

/* The part must outlive the boxes, which are destroyed also after a failure. */
onv_status onv_boxes_new(const onv_part *part, onv_boxes **boxes, onv_error *err);
void onv_boxes_destroy(onv_boxes *p);

/* The next round; what it finds is offered to the layout. */
onv_status onv_boxes_run(onv_boxes *p, onv_layout *layout, onv_effort *effort, const char *name,
                         onv_error *err);

#endif

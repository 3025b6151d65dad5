/* Beam search: many plans at once, each a buffer longer at every level, the worst dropped.
 *
 * For parts that fill their capacity to nearly the last byte, where one wrong buffer shows hundreds of
 * buffers later, too late for a search that goes back one choice at a time. A state is a skyline: the
 * height reached in each section. Its next choice is the end of a dip where the fewest buffers can
 * lie; each of these makes a state of the next level, and so does leaving the place empty where the
 * capacity allows. Of those alive the ones with the fewest steps in their skyline go on: a smooth
 * skyline takes whatever comes. Nothing is proved when none is left.
 */
#ifndef ONV_PLAN_BEAM_H
#define ONV_PLAN_BEAM_H

#include "plan/part.h"

enum { ONV_BEAM_MAX_ROWS = 4096, ONV_BEAM_MAX_WIDTH = 2048 };

typedef struct onv_beam onv_beam;

/* True for parts that a beam is made for: small, and with hardly anything left free at the load. */
bool onv_beam_takes(const onv_part *part);

/* The part must outlive the beam. */
onv_status onv_beam_new(const onv_part *part, onv_beam **beam, onv_error *err);
void onv_beam_destroy(onv_beam *beam);

/* One run with `width` states a level at the most; `seed` decides between equal ones, and an odd one
 * prefers states with more placed. Where a plan is found it fills the offsets. */
onv_status onv_beam_run(onv_beam *beam, uint64_t capacity, uint32_t width, uint32_t seed,
                        onv_effort *effort, uint64_t *offsets, bool *found, onv_error *err);

#endif

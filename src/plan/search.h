/* Exact search: a plan of a part under a given capacity, or the proof that there is none.
 *
 * Depth first, from the bottom up. The state is `least`: for each buffer not placed yet the lowest
 * offset it can still take. A section's floor is the smallest `least` of its buffers; what is left
 * to place in a section must fit between its floor and the capacity, else the state is dead.
 *
 *     capacity ─────────────────      A step picks a section at the lowest floor (here s, whose
 *                 ┌───┐               floor the placed buffers leave open) and decides what comes
 *        ┌────┐   │   │               next in it: one of the buffers that can lie right there, or
 *        │    │ s │   ├────┐          none, which wastes the space and lifts them all. Buffers that
 *     ┌──┴────┴───┴───┴────┤          stay in the dip never hang over something unplaced, so their
 *     └────────────────────┘          offset is final.
 *
 * What makes it fast: the section with the fewest choices is decided first, and one that failed
 * often before others (as constraint solvers do); a buffer that nothing can come under or next to
 * is placed without a choice; a state is split where no buffer crosses from one section to the
 * next, and the pieces are solved alone; states that failed are remembered by a hash (of 128 bits,
 * of what is unplaced and its `least`), over restarts in other orders too.
 * The wasted branch relies on plans in which every buffer rests on another one or the ground: if
 * there is a plan, there is such a plan.
 */
#ifndef ONV_PLAN_SEARCH_H
#define ONV_PLAN_SEARCH_H

#include "plan/greedy.h"
#include "plan/part.h"

enum { ONV_SEARCH_MAX_ROWS = 30000 };

typedef enum onv_search_result {
    ONV_SEARCH_FOUND,
    ONV_SEARCH_NONE,  /* proved: no plan of this height */
    ONV_SEARCH_SPENT, /* the work was used up */
} onv_search_result;

/* Which section is decided next. */
typedef enum onv_choice {
    ONV_CHOICE_TIGHTEST, /* the one with the least space to waste, of those at the lowest floor */
    ONV_CHOICE_FEWEST,   /* the one with the fewest options for how often it failed, of these */
    ONV_CHOICE_ANYWHERE, /* the same, of all dips */
} onv_choice;

/* How a run goes through the tree; any style finds the same answers, sooner or later. */
typedef struct onv_search_style {
    onv_order order; /* which buffers are tried first */
    bool reversed;
    bool smooth; /* before that, those that leave the fewest steps between floors */
    onv_choice choice;
    uint64_t seed;        /* 0: the order as it is, else shuffled a little */
    bool learnt;          /* start with the weights of the runs before it that did */
    const uint64_t *plan; /* offsets by row, in whose order they are tried instead; NULL */
} onv_search_style;

typedef struct onv_search onv_search;

/* False for parts with too many rows, too many pairs of them, or rows of too many sections. */
bool onv_search_takes(const onv_part *part);

/* The part must outlive the search. */
onv_status onv_search_new(const onv_part *part, onv_search **search, onv_error *err);
void onv_search_destroy(onv_search *search);

/* Spends about `work` units at most, and no more than effort holds. FOUND: fills the offsets. */
onv_status onv_search_run(onv_search *search, uint64_t capacity, const onv_search_style *style,
                          uint64_t work, onv_effort *effort, uint64_t *offsets,
                          onv_search_result *result, onv_error *err);

#endif

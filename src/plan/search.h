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

#include "base/arena.h"
#include "base/vec.h"
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

/* The state of an exact search and how it changes; see above for what it means.
 *
 * `least` and `floor` change through a trail, so that undoing is replaying it backwards. Arrays are
 * by row or by section of the part.
 */

#define ONV_PLACED UINT64_MAX

typedef struct onv_undo {
    uint32_t index;   /* a row, or n + a section */
    uint32_t support; /* of a section */
    uint64_t old;     /* of least or floor */
} onv_undo;

typedef struct onv_search_state {
    const onv_part *part;
    uint32_t n, sections;
    uint64_t capacity;
    uint32_t *member_from; /* by section, and one more: where its rows begin in members */
    uint32_t *members;     /* in the order in which they are tried */
    uint32_t *near_from;   /* by row, and one more: where its conflicts begin in near */
    uint32_t *near;
    uint32_t *row_from;   /* by section, and one more: the first row whose lo is not below it */
    uint64_t *least;      /* by row; ONV_PLACED */
    uint64_t *offset;     /* by row, once placed */
    uint64_t *floor;      /* by section; ONV_PLACED where nothing is left */
    uint32_t *support;    /* by section: a row whose least is the floor */
    uint32_t *supports;   /* by row: how many sections it supports */
    uint32_t *cursor;     /* by section: where in members a support was last found; a hint */
    uint64_t *rest;       /* by section: units not placed yet */
    uint32_t *through;    /* by section: unplaced rows that cover it and the next */
    uint32_t *weight;     /* by section: how often it proved a state dead */
    uint32_t *weights[2]; /* of runs that start without, and of those that go on from each other */
    bool learnt;
    uint32_t *stale; /* sections whose floor may have risen */
    bool *is_stale;
    uint32_t n_stale;
    /* A row is blocked by another one that may come to lie beside it, or loose: its blocker
     * changed, and a new one is to be found; or at rest: placed, and looked at since. The rows of
     * one blocker form a list. Undoing takes rows from rest to loose, but leaves blockers as they
     * are: that one may be none any more only hides that the row is free. */
    uint32_t *blocked; /* by row: the first row that it blocks; UINT32_MAX */
    uint32_t *next_blocked;
    uint32_t *loose;
    uint32_t n_loose;
    bool *at_rest;
    uint32_t dead_at; /* a section where a row no longer fits; UINT32_MAX */
    ONV_VEC(onv_undo) trail;
    bool out_of_memory; /* the trail could not grow; the state is of no more use */
    uint64_t work;
} onv_search_state;

onv_status onv_state_init(onv_search_state *state, const onv_part *part, onv_arena *arena,
                          onv_error *err);
void onv_state_cleanup(onv_search_state *state);

/* Nothing placed; each section's members in the order of `rows`. */
void onv_state_start(onv_search_state *state, uint64_t capacity, const uint32_t *rows);

/* Puts the row at its least offset. */
void onv_state_place(onv_search_state *state, uint32_t row);
/* The row lies at `least` or higher. */
void onv_state_raise(onv_search_state *state, uint32_t row, uint64_t least);
/* The row is blocked by `blocker`, and no longer loose. */
void onv_state_block(onv_search_state *state, uint32_t row, uint32_t blocker);
/* Brings the floors up to date after changes; false if the state is dead. */
bool onv_state_settle(onv_search_state *state);
/* Back to where the trail held `mark` entries, after which the state was settled. */
void onv_state_undo(onv_search_state *state, size_t mark);

#endif

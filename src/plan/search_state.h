/* The state of an exact search and how it changes; see search.h for what it means.
 *
 * `least` and `floor` change through a trail, so that undoing is replaying it backwards. Arrays are
 * by row or by section of the part.
 */
#ifndef ONV_PLAN_SEARCH_STATE_H
#define ONV_PLAN_SEARCH_STATE_H

#include "base/arena.h"
#include "base/vec.h"
#include "plan/part.h"

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

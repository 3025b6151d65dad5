/* A part: buffers that are planned together because their lifetimes hang together.
 *
 * Time is compressed to sections: the maximal sets of buffers live at once. A buffer covers the
 * sections [lo, hi); two buffers conflict exactly when they share a section. Sizes are divided by
 * their greatest common divisor. Rows are in order of lo.
 */
#ifndef ONV_PLAN_PART_H
#define ONV_PLAN_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "base/vec.h"
#include "plan/plan.h"

typedef struct onv_part {
    uint32_t n, sections;
    const uint32_t *lo, *hi;
    const uint64_t *size;   /* in units */
    const uint32_t *origin; /* the caller's row */
    uint64_t unit;          /* bytes */
    uint64_t base;          /* bytes; where the part's offset 0 lies in the plan */
    uint64_t load;          /* most units live at one section */
} onv_part;

typedef struct onv_parts {
    ONV_VEC(onv_part) list;
    uint64_t *offsets; /* by the caller's row; set for what lies beneath the parts */
    uint64_t height;   /* of what was set */
    uint64_t max_load;
} onv_parts;

/* Rows must be valid (lower < upper) and their sizes, already rounded, must have a sum that fits.
 * Everything lives in the arena but the list. Cost: O(n log n), and a bounded number of units for
 * taking off layers. */
onv_status onv_parts_split(const onv_plan_buffer *buffers, const uint64_t *sizes, size_t count,
                           uint64_t *offsets, onv_arena *arena, onv_parts *parts, onv_error *err);

/* Conflicts are listed pair by pair, so only parts with few enough are searched. */
enum { ONV_PART_MAX_PAIRS = 8 << 20 };

/* Pairs of rows that share a section, counted both ways; beyond the limit it stops counting. */
uint64_t onv_part_pairs(const onv_part *part);

/* By row, and one more, where in `near` the rows begin that share a section with it; false when memory is short. Only
 * within the limit. */
bool onv_part_conflicts(const onv_part *part, onv_arena *arena, uint32_t **near_from,
                        uint32_t **near);

/* What planning may still spend. */
typedef struct onv_effort {
    uint64_t left; /* units of work */
    uint64_t spent;
    uint64_t improved_at; /* value of spent when a plan was last taken over */
    uint64_t patience;    /* give up when that, and twice improved_at, is spent; 0: never */
    uint64_t nodes;
    uint64_t poll_at; /* value of spent */
    bool (*cancelled)(void *context);
    void *context;
    bool stopped;
    bool are_boxes; /* the rows: they go into no others */
    bool unbounded; /* a single strategy was asked for, and takes what it takes */
} onv_effort;

/* Books `units`; false once nothing is left. What has counted to the quota is only booked. */
bool onv_effort_spend(onv_effort *effort, uint64_t units);
bool onv_effort_book(onv_effort *effort, uint64_t units);

/* The best plan of a part so far. */
typedef struct onv_layout {
    uint64_t *offsets; /* by the part's row */
    uint64_t height;   /* UINT64_MAX: no plan yet */
    uint64_t target;   /* good enough */
    uint64_t lower;    /* proved */
    uint32_t runs;     /* of randomised planners, which go on with other numbers */
    bool heavy;        /* so many rows that share sections that one placement takes too long */
    const char *strategy;
} onv_layout;

/* Takes a plan over if it is lower than the layout's. */
void onv_layout_offer(onv_layout *layout, onv_effort *effort, const onv_part *part,
                      const uint64_t *offsets, const char *strategy);

typedef struct onv_planner {
    const char *name;
    bool
        improves; /* a plan that is there, by onv_tighten_run; the others make one, by onv_greedy_run */
    int order, fit; /* of the greedy ones */
} onv_planner;

/* The strategies, in the order in which they are tried. */
extern const onv_planner onv_planners[];
extern const size_t onv_n_planners;

/* Lower the layout to its target, or as far as effort allows. */
onv_status onv_greedy_run(const onv_planner *self, const onv_part *part, onv_layout *layout,
                          onv_effort *effort, onv_error *err);
onv_status onv_tighten_run(const onv_planner *self, const onv_part *part, onv_layout *layout,
                           onv_effort *effort, onv_error *err);

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

typedef struct onv_boxes onv_boxes;

/* The part must outlive the boxes, which are destroyed also after a failure. */
onv_status onv_boxes_new(const onv_part *part, onv_boxes **boxes, onv_error *err);
void onv_boxes_destroy(onv_boxes *p);

/* The next round; what it finds is offered to the layout. */
onv_status onv_boxes_run(onv_boxes *p, onv_layout *layout, onv_effort *effort, const char *name,
                         onv_error *err);

/* A skyline: placed buffers in order of offset, to find gaps among those that share a section.
 *
 * Buffers lie in blocks of up to 64, kept as columns so that the test for shared sections runs over
 * plain arrays; a lane lists its blocks in order. A block is skipped where it is known that none of its buffers shares
 * a section with the one in question, or that all do and leave no gap that is large enough. Large parts have, besides the lane of
 * everything, a lane for each stretch of time with what is live in it, where the short-lived
 * buffers find their gaps.
 * Cost of finding a place: linear in what lies below it in the lane, at about 1 ns a buffer, or a block where blocks are
 * skipped.
 */

/* Steps of the planner, a nanosecond each, that count as a unit of a quota's work. */
enum { ONV_PLAN_STEPS_OF_WORK = 16 };

typedef enum onv_fit {
    ONV_FIT_FIRST, /* the lowest gap that is large enough */
    ONV_FIT_BEST,  /* the smallest gap that is large enough, the lowest of these */
} onv_fit;

typedef struct onv_skyline_lane onv_skyline_lane;

typedef struct onv_skyline {
    onv_skyline_lane *lanes; /* [0]: everything; then one for each stretch */
    uint32_t stretches;      /* 0, or more than 1 */
    uint32_t stretch;        /* sections of one */
    uint64_t work;           /* units spent since it was started, see onv_effort */
    uint64_t counted;        /* of them, to the quota */
} onv_skyline;

/* Makes an empty skyline for about `rows` buffers; a zeroed one can be cleaned up. */
bool onv_skyline_init(onv_skyline *skyline, uint32_t rows, uint32_t sections);
void onv_skyline_cleanup(onv_skyline *skyline);
/* Takes everything off. */
void onv_skyline_clear(onv_skyline *skyline);

/* Puts a buffer of `size` > 0 on the skyline, in a gap or on top; false when memory is short. */
bool onv_skyline_place(onv_skyline *skyline, uint32_t lo, uint32_t hi, uint64_t size, onv_fit fit,
                       uint64_t *offset);

/* Takes a buffer off that was put there. */
void onv_skyline_remove(onv_skyline *skyline, uint32_t lo, uint32_t hi, uint64_t offset);

/* Orders of a part's rows, and placing rows in an order on a skyline. */

typedef enum onv_order {
    ONV_ORDER_SIZE,  /* largest first */
    ONV_ORDER_WIDTH, /* longest-lived first, counted in sections */
    ONV_ORDER_AREA,  /* size x width */
    ONV_ORDER_TIME,  /* earliest first, as an allocator at run time sees them */
    ONV_ORDER_LOAD,  /* those of the most loaded section first */
    /* size x pressure^4 x width^(1/4): pressure is the load of the row's fullest section as a share of the largest, as
     * what meets the peak goes before what has space; steep: size x pressure^16 x width^(1/8) */
    ONV_ORDER_PRESSURE,
    ONV_ORDER_STEEP,
} onv_order;

/* Writes the part's rows in that order; ties go by a second measure, then by row. */
onv_status onv_order_rows(const onv_part *part, onv_order order, uint32_t *rows, onv_error *err);

/* Repair: a plan of a large part is lowered by lowering the ceiling over it.
 *
 * Rows above the ceiling wait for a place. A row that finds none under the ceiling takes the place whose owners weigh
 * least, and these wait in turn, the largest first. A row weighs as many as share a section with it, for a row that
 * meets many is hard to place, and as much again for each time that it found no place: rows that compete for a place
 * settle, and rows that fit anywhere give way. Now and then all rows up to some height sink and those above it rise, in
 * the order in which they lie, so that small gaps between them become one. Nothing is proved.
 */

typedef struct onv_repair onv_repair;

/* The part must outlive it; the repair is destroyed also after a failure. NULL: so many rows share sections that not
 * even each of them would have its turn. */
onv_status onv_repair_new(const onv_part *part, onv_repair **repair, onv_error *err);
void onv_repair_destroy(onv_repair *r);

/* Tries one ceiling between `goal` and the layout's plan, which must be higher than the goal. A plan that it finds is
 * offered to the layout. */
void onv_repair_run(onv_repair *r, uint64_t goal, onv_layout *layout, onv_effort *effort,
                    const char *name);

/* Beam search: many plans at once, each a buffer longer at every level, the worst dropped.
 *
 * For parts that fill their capacity to nearly the last byte, where one wrong buffer shows hundreds of
 * buffers later, too late for a search that goes back one choice at a time. A state is a skyline: the
 * height reached in each section. Its next choice is the end of a dip where the fewest buffers can
 * lie; each of these makes a state of the next level, and so does leaving the place empty where the
 * capacity allows. Of those alive the ones with the fewest steps in their skyline go on: a smooth
 * skyline takes whatever comes. Nothing is proved when none is left.
 */

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

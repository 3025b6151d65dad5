/* A part: buffers that are planned together because their lifetimes hang together.
 *
 * Time is compressed to sections: the maximal sets of buffers live at once. A buffer covers the
 * sections [lo, hi); two buffers conflict exactly when they share a section. Sizes are divided by
 * their greatest common divisor. Rows are in order of lo.
 */
#ifndef ONV_PLAN_PART_H
#define ONV_PLAN_PART_H

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

struct onv_planner {
    const char *name;
    /* Lowers the layout to its target, or as far as effort allows. */
    onv_status (*run)(const onv_planner *self, const onv_part *part, onv_layout *layout,
                      onv_effort *effort, onv_error *err);
    bool improves;  /* a plan that is there; the others make one */
    int order, fit; /* of the greedy ones */
};

onv_status onv_greedy_run(const onv_planner *self, const onv_part *part, onv_layout *layout,
                          onv_effort *effort, onv_error *err);
onv_status onv_tighten_run(const onv_planner *self, const onv_part *part, onv_layout *layout,
                           onv_effort *effort, onv_error *err);

#endif

/* Repair: greedy placement again and again, for parts too large for the exact search.
 *
 * First in orders that weigh size, pressure and width against each other: no weights are good for all, and one placement
 * tells. Then in the best of these orders, each time with what stuck out at the top moved forward: what ends in the upper half of the excess over the
 * target moves to a random place before its own in the order, and finds lower gaps next time. The
 * order drifts; the layout keeps the best plan.
 */
#include <stdlib.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/strings.h"
#include "plan/greedy.h"
#include "plan/part.h"

typedef struct place {
    uint64_t key;
    uint32_t row;
} place;

static int compare_places(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

typedef struct repair {
    const onv_part *part;
    uint32_t *rows; /* the order */
    place *places;
    uint64_t *offsets;
    uint64_t random;
} repair;

static void move_forward(repair *r, uint64_t above)
{
    uint32_t n = r->part->n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t row = r->rows[i];
        uint64_t key = (uint64_t)i << 16;
        if (r->offsets[row] + r->part->size[row] > above)
            key = (key >> 16) * (onv_hash_u64(r->random += 0x9e3779b97f4a7c15u) & 0xffff);
        r->places[i] = (place){key, row};
    }
    qsort(r->places, n, sizeof *r->places, compare_places);
    for (uint32_t i = 0; i < n; i++) r->rows[i] = r->places[i].row;
}

static bool is_over(const onv_layout *layout, const onv_effort *effort)
{
    return layout->height <= layout->target || effort->left == 0;
}

/* A placement in the order of the rows; without effort for it the height is UINT64_MAX. */
static onv_status place_rows(repair *r, onv_skyline *skyline, const char *name, onv_layout *layout,
                             onv_effort *effort, uint64_t *height, onv_error *err)
{
    ONV_TRY(onv_greedy_place(r->part, r->rows, NULL, ONV_FIT_FIRST, effort->left, skyline,
                             r->offsets, height, err));
    onv_effort_book(effort, skyline->work);
    onv_effort_spend(effort, r->part->n);
    if (*height != UINT64_MAX)
        onv_layout_offer(layout, effort, r->offsets, r->part->n, *height, name);
    return ONV_OK;
}

/* The most promising first. */
static const struct weights {
    uint8_t squarings, roots;
} weights[] = {{2, 2},
               {4, 3},
               {2, 3},
               {3, 2},
               {1, 2},
               {4, 2},
               {3, 3},
               {1, 3},
               {5, 3},
               {5, 2},
               {0, 2},
               {2, 1},
               {4, ONV_NO_ROOTS},
               {2, ONV_NO_ROOTS},
               {3, 1}};
enum { N_WEIGHTS = sizeof weights / sizeof weights[0] };

/* Tries the weights in turn; the rows are left in the order of the best. */
static onv_status try_weights(repair *r, onv_skyline *skyline, size_t count, const char *name,
                              onv_layout *layout, onv_effort *effort, onv_error *err)
{
    uint64_t height = 0, least = UINT64_MAX;
    size_t best = 0;
    for (size_t i = 0; i < count && !is_over(layout, effort) && height != UINT64_MAX; i++) {
        ONV_TRY(
            onv_order_by_pressure(r->part, weights[i].squarings, weights[i].roots, r->rows, err));
        ONV_TRY(place_rows(r, skyline, name, layout, effort, &height, err));
        if (height < least) best = i;
        if (height < least) least = height;
    }
    return onv_order_by_pressure(r->part, weights[best].squarings, weights[best].roots, r->rows,
                                 err);
}

static onv_status repeat(repair *r, onv_skyline *skyline, const char *name, onv_layout *layout,
                         onv_effort *effort, onv_error *err)
{
    uint64_t height = 0;
    ONV_TRY(try_weights(r, skyline, N_WEIGHTS, name, layout, effort, err));
    r->random = layout->runs++;
    while (!is_over(layout, effort) && height != UINT64_MAX) {
        ONV_TRY(place_rows(r, skyline, name, layout, effort, &height, err));
        if (height != UINT64_MAX) move_forward(r, layout->target + (height - layout->target) / 2);
    }
    return ONV_OK;
}

typedef onv_status (*way)(repair *r, onv_skyline *skyline, const char *name, onv_layout *layout,
                          onv_effort *effort, onv_error *err);

static onv_status go(way how, const char *name, const onv_part *part, onv_layout *layout,
                     onv_effort *effort, onv_error *err)
{
    repair r = {.part = part,
                .rows = onv_heap_calloc(part->n, sizeof *r.rows),
                .places = onv_heap_calloc(part->n, sizeof *r.places),
                .offsets = onv_heap_calloc(part->n, sizeof *r.offsets)};
    onv_skyline skyline = {0};
    bool enough = r.rows != NULL && r.places != NULL && r.offsets != NULL &&
                  onv_skyline_init(&skyline, part->n, part->sections);
    onv_status status =
        enough ? how(&r, &skyline, name, layout, effort, err) : onv_fail_memory(err);
    onv_skyline_cleanup(&skyline);
    onv_heap_free(r.rows);
    onv_heap_free(r.places);
    onv_heap_free(r.offsets);
    return status;
}

static onv_status weigh(repair *r, onv_skyline *skyline, const char *name, onv_layout *layout,
                        onv_effort *effort, onv_error *err)
{
    enum { FIRST_WEIGHTS = 4 };
    return try_weights(r, skyline, FIRST_WEIGHTS, name, layout, effort, err);
}

onv_status onv_pressure_run(const onv_planner *self, const onv_part *part, onv_layout *layout,
                            onv_effort *effort, onv_error *err)
{
    enum { LARGE = 2000 };
    if (layout->heavy || (part->n <= LARGE && !effort->unbounded)) return ONV_OK;
    if (effort->left == 0 && !effort->unbounded) return ONV_OK;
    return go(weigh, self->name, part, layout, effort, err);
}

onv_status onv_repair_run(const onv_planner *self, const onv_part *part, onv_layout *layout,
                          onv_effort *effort, onv_error *err)
{
    if (layout->heavy) return ONV_OK;
    return go(repeat, self->name, part, layout, effort, err);
}

/* Repair: greedy placement again and again, each time with what stuck out at the top moved forward.
 *
 * For parts too large for the exact search. What ends in the upper half of the excess over the
 * target moves to a random place before its own in the order, and finds lower gaps next time. The
 * order drifts; the layout keeps the best plan.
 */
#include <stdlib.h>

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

static onv_status repeat(repair *r, const char *name, onv_layout *layout, onv_effort *effort,
                         onv_error *err)
{
    onv_shelf shelf;
    if (!onv_shelf_init(&shelf, r->part->n, r->part->sections)) return onv_fail_memory(err);
    onv_status status = onv_order_rows(r->part, ONV_ORDER_SIZE, r->rows, err);
    r->random = layout->runs++;
    while (status == ONV_OK && layout->height > layout->target && effort->left > 0) {
        uint64_t height;
        status = onv_greedy_place(r->part, r->rows, ONV_FIT_FIRST, effort->left, &shelf, r->offsets,
                                  &height, err);
        if (status != ONV_OK) break;
        onv_effort_book(effort, shelf.work);
        onv_effort_spend(effort, r->part->n);
        if (height == UINT64_MAX) break;
        onv_layout_offer(layout, effort, r->offsets, r->part->n, height, name);
        move_forward(r, layout->target + (height - layout->target) / 2);
    }
    onv_shelf_cleanup(&shelf);
    return status;
}

onv_status onv_repair_run(const onv_planner *self, const onv_part *part, onv_layout *layout,
                          onv_effort *effort, onv_error *err)
{
    if (layout->heavy) return ONV_OK;
    repair r = {.part = part,
                .rows = onv_heap_calloc(part->n, sizeof *r.rows),
                .places = onv_heap_calloc(part->n, sizeof *r.places),
                .offsets = onv_heap_calloc(part->n, sizeof *r.offsets)};
    onv_status status = r.rows != NULL && r.places != NULL && r.offsets != NULL
                            ? repeat(&r, self->name, layout, effort, err)
                            : onv_fail_memory(err);
    onv_heap_free(r.rows);
    onv_heap_free(r.places);
    onv_heap_free(r.offsets);
    return status;
}

/* Greedy planning: buffers in some order, each to the first or best gap among those placed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "plan/part.h"

/* Units that a placement in another order than that of time may take. */
static const uint64_t MOST_WORK = 64000000, WORK_PER_ROW = 1000;
static const double SPARE_WORK = 8000000;

typedef struct ranked {
    uint64_t key, tie; /* larger first */
    uint32_t row;
} ranked;

static int compare_ranked(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->key != y->key) return x->key > y->key ? -1 : 1;
    if (x->tie != y->tie) return x->tie > y->tie ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static uint64_t area_of(const onv_part *part, uint32_t row)
{
    uint64_t area;
    if (__builtin_mul_overflow(part->size[row], (uint64_t)(part->hi[row] - part->lo[row]), &area))
        return UINT64_MAX;
    return area;
}

/* tree[sections + s] is the load of section s, tree[i] the larger of its two children. */
static uint64_t *load_tree(const onv_part *part)
{
    uint32_t m = part->sections;
    uint64_t *tree = onv_heap_calloc((size_t)m * 2, sizeof *tree);
    if (tree == NULL) return NULL;
    uint64_t *load = tree + m; /* first as differences between neighbours, which may wrap */
    for (uint32_t row = 0; row < part->n; row++) {
        load[part->lo[row]] += part->size[row];
        if (part->hi[row] < m) load[part->hi[row]] -= part->size[row];
    }
    for (uint32_t s = 1; s < m; s++) load[s] += load[s - 1];
    for (size_t i = m; i-- > 1;)
        tree[i] = tree[2 * i] > tree[2 * i + 1] ? tree[2 * i] : tree[2 * i + 1];
    return tree;
}

static uint64_t largest_load(const uint64_t *tree, uint32_t m, uint32_t lo, uint32_t hi)
{
    uint64_t most = 0;
    for (uint64_t a = (uint64_t)lo + m, b = (uint64_t)hi + m; a < b; a >>= 1, b >>= 1) {
        if ((a & 1) != 0 && tree[a++] > most) most = tree[a - 1];
        if ((b & 1) != 0 && tree[--b] > most) most = tree[b];
    }
    return most;
}

/* The order of positive doubles is that of their bits. Only products and square roots: the same everywhere. */
static uint64_t weigh(const onv_part *part, uint32_t row, uint64_t load, bool steep)
{
    double pressure = (double)load / (double)part->load, width = part->hi[row] - part->lo[row];
    for (int i = steep ? 4 : 2; i > 0; i--) pressure *= pressure;
    for (int i = steep ? 3 : 2; i > 0; i--) width = sqrt(width);
    double product = (double)part->size[row] * pressure * width;
    uint64_t key;
    memcpy(&key, &product, sizeof key);
    return key;
}

static void rank_row(const onv_part *part, onv_order order, const uint64_t *loads, ranked *rank)
{
    uint32_t row = rank->row;
    uint64_t width = part->hi[row] - part->lo[row];
    switch (order) {
    case ONV_ORDER_SIZE: rank->key = part->size[row], rank->tie = width; break;
    case ONV_ORDER_WIDTH: rank->key = width, rank->tie = part->size[row]; break;
    case ONV_ORDER_AREA: rank->key = area_of(part, row), rank->tie = width; break;
    case ONV_ORDER_TIME: rank->key = part->sections - part->lo[row], rank->tie = width; break;
    case ONV_ORDER_LOAD:
        rank->key = largest_load(loads, part->sections, part->lo[row], part->hi[row]);
        rank->tie = area_of(part, row);
        break;
    case ONV_ORDER_PRESSURE:
    case ONV_ORDER_STEEP:
        rank->key =
            weigh(part, row, largest_load(loads, part->sections, part->lo[row], part->hi[row]),
                  order == ONV_ORDER_STEEP);
        break;
    }
}

onv_status onv_order_rows(const onv_part *part, onv_order order, uint32_t *rows, onv_error *err)
{
    bool by_load = order >= ONV_ORDER_LOAD;
    uint64_t *loads = by_load ? load_tree(part) : NULL;
    ranked *ranks = onv_heap_calloc(part->n, sizeof *ranks);
    bool enough = ranks != NULL && (loads != NULL || !by_load);
    for (uint32_t row = 0; enough && row < part->n; row++) {
        ranks[row].row = row;
        rank_row(part, order, loads, &ranks[row]);
    }
    if (enough) qsort(ranks, part->n, sizeof *ranks, compare_ranked);
    for (uint32_t i = 0; enough && i < part->n; i++) rows[i] = ranks[i].row;
    onv_heap_free(ranks);
    onv_heap_free(loads);
    return enough ? ONV_OK : onv_fail_memory(err);
}

/* Rows in order of their ends, to take them off in order of time. NULL: memory is short. */
static uint32_t *order_ends(const onv_part *part)
{
    uint32_t *rows = onv_heap_calloc(part->n, sizeof *rows);
    uint32_t *from = onv_heap_calloc(part->sections + (size_t)1, sizeof *from);
    bool enough = rows != NULL && from != NULL;
    for (uint32_t row = 0; enough && row < part->n; row++) from[part->hi[row]]++;
    for (uint32_t s = 0, sum = 0; enough && s <= part->sections; s++) {
        uint32_t count = from[s];
        from[s] = sum;
        sum += count;
    }
    for (uint32_t row = 0; enough && row < part->n; row++) rows[from[part->hi[row]]++] = row;
    onv_heap_free(from);
    if (enough) return rows;
    onv_heap_free(rows);
    return NULL;
}

/* Places all rows in the order given. In order of time `ends` has them by their ends, to take off what has ended: there all
 * that is left shares a section with the next; else NULL. Ends where the plan is no lower than `bound`, and where it will
 * take more than `most_work` units: the height is UINT64_MAX. */
static onv_status place_rows(const onv_part *part, const uint32_t *rows, const uint32_t *ends,
                             onv_fit fit, uint64_t bound, uint64_t most_work, onv_skyline *skyline,
                             uint64_t *offsets, uint64_t *height, onv_error *err)
{
    onv_skyline_clear(skyline);
    *height = 0;
    for (uint32_t i = 0; i < part->n && *height < bound; i++) {
        uint32_t row = rows[i];
        for (; ends != NULL && part->hi[*ends] <= part->lo[row]; ends++)
            onv_skyline_remove(skyline, part->lo[*ends], part->hi[*ends], offsets[*ends]);
        if (!onv_skyline_place(skyline, part->lo[row], part->hi[row], part->size[row], fit,
                               &offsets[row]))
            return onv_fail_memory(err);
        uint64_t end = offsets[row] + part->size[row];
        if (end > *height) *height = end;
        /* Later rows find more before them: what is above its share of the work by now stays so. */
        if ((double)skyline->work <= SPARE_WORK + (double)most_work * (i + 1) / part->n) continue;
        *height = UINT64_MAX;
        return ONV_OK;
    }
    return ONV_OK;
}

onv_status onv_greedy_run(const onv_planner *self, const onv_part *part, onv_layout *layout,
                          onv_effort *effort, onv_error *err)
{
    /* In order of time it never costs much, so there is always that plan. */
    bool by_time = self->order == ONV_ORDER_TIME;
    if (layout->heavy && !by_time) return ONV_OK;
    if (layout->height != UINT64_MAX && !onv_effort_spend(effort, part->n)) return ONV_OK;
    bool unbounded = effort->unbounded || by_time;
    uint64_t most_work = unbounded ? UINT64_MAX : MOST_WORK + part->n * WORK_PER_ROW;
    onv_skyline skyline = {0}; /* by time there is little on it, and no need for lanes */
    uint32_t *rows = onv_heap_calloc(part->n, sizeof *rows);
    uint32_t *ends = by_time ? order_ends(part) : NULL;
    uint64_t *offsets = onv_heap_calloc(part->n, sizeof *offsets);
    uint64_t height;
    onv_status status = ONV_OK;
    if (rows == NULL || offsets == NULL || (by_time && ends == NULL) ||
        !onv_skyline_init(&skyline, by_time ? 0 : part->n, part->sections))
        status = onv_fail_memory(err);
    if (status == ONV_OK) status = onv_order_rows(part, (onv_order)self->order, rows, err);
    if (status == ONV_OK)
        status = place_rows(part, rows, ends, (onv_fit)self->fit, layout->height, most_work,
                            &skyline, offsets, &height, err);
    if (status == ONV_OK && height == UINT64_MAX) layout->heavy = true;
    if (status == ONV_OK && height < layout->height)
        onv_layout_offer(layout, effort, part, offsets, self->name);
    onv_effort_book(effort, skyline.work);
    onv_skyline_cleanup(&skyline);
    onv_heap_free(offsets);
    onv_heap_free(ends);
    onv_heap_free(rows);
    return status;
}

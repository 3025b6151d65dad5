/* Checking a plan by a sweep over time.
 *
 * What is live at one step is kept as a set of ranks in the order of offsets. While no two live
 * buffers overlap, a new one can only overlap its neighbours in that order.
 */
#include <stdlib.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/heap.h"
#include "plan/plan.h"

/* A set of numbers below a limit: level 0 has a bit for each, a bit above for each word below. */
enum { LEVELS = 4 }; /* 64^4 numbers: more than ONV_PLAN_MAX_BUFFERS */

typedef struct rank_set {
    uint64_t *words[LEVELS];
    size_t count[LEVELS];
} rank_set;

static bool rank_set_init(rank_set *set, size_t limit)
{
    bool enough = true;
    for (int level = 0; level < LEVELS; level++) {
        limit = limit / 64 + 1;
        set->count[level] = limit;
        set->words[level] = onv_heap_calloc(limit, sizeof(uint64_t));
        enough = enough && set->words[level] != NULL;
    }
    return enough;
}

static void rank_set_cleanup(rank_set *set)
{
    for (int level = 0; level < LEVELS; level++) onv_heap_free(set->words[level]);
}

static void rank_set_add(rank_set *set, size_t rank)
{
    for (int level = 0; level < LEVELS; level++, rank /= 64)
        set->words[level][rank / 64] |= (uint64_t)1 << rank % 64;
}

static void rank_set_remove(rank_set *set, size_t rank)
{
    for (int level = 0; level < LEVELS; level++, rank /= 64) {
        set->words[level][rank / 64] &= ~((uint64_t)1 << rank % 64);
        if (set->words[level][rank / 64] != 0) return;
    }
}

/* The next member above `rank` (step 1) or below it (step -1), or SIZE_MAX. */
static size_t rank_set_next(const rank_set *set, size_t rank, int step)
{
    for (int level = 0; level < LEVELS; level++, rank /= 64) {
        uint64_t word = set->words[level][rank / 64], bit = rank % 64;
        word = step > 0 ? word & (~(uint64_t)1 << bit) : word & (((uint64_t)1 << bit) - 1);
        if (word == 0) continue;
        size_t found = rank / 64;
        for (;; level--) {
            int at = step > 0 ? __builtin_ctzll(word) : 63 - __builtin_clzll(word);
            found = found * 64 + (size_t)at;
            if (level == 0) return found;
            word = set->words[level - 1][found];
        }
    }
    return SIZE_MAX;
}

typedef struct placed {
    uint64_t offset, end;
    uint64_t lower, upper;
    size_t row;
} placed;

typedef struct event {
    uint64_t time;
    uint32_t rank;
    bool start; /* ends come before starts of the same time */
} event;

static int compare_placed(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static int compare_events(const void *a, const void *b)
{
    const event *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    if (x->start != y->start) return x->start ? 1 : -1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static onv_status overlap(const placed *a, const placed *b, onv_error *err)
{
    return onv_fail(err, ONV_ERR_MODEL,
                    "plan: buffers %zu (offset %llu) and %zu (offset %llu) overlap", a->row,
                    (unsigned long long)a->offset, b->row, (unsigned long long)b->offset);
}

/* Returns the most bytes live at once through `load`. */
static onv_status sweep(const placed *rows, const event *events, size_t count, rank_set *live,
                        uint64_t *load, onv_error *err)
{
    uint64_t bytes = 0;
    *load = 0;
    for (size_t i = 0; i < 2 * count; i++) {
        size_t rank = events[i].rank;
        const placed *row = &rows[rank];
        if (!events[i].start) {
            rank_set_remove(live, rank);
            bytes -= row->end - row->offset;
            continue;
        }
        size_t above = rank_set_next(live, rank, 1), below = rank_set_next(live, rank, -1);
        if (above != SIZE_MAX && rows[above].offset < row->end)
            return overlap(row, &rows[above], err);
        if (below != SIZE_MAX && rows[below].end > row->offset)
            return overlap(row, &rows[below], err);
        rank_set_add(live, rank);
        bytes += row->end - row->offset;
        if (bytes > *load) *load = bytes;
    }
    return ONV_OK;
}

/* Fills the rows that have a size, in order of offset. */
static onv_status take_rows(const onv_plan_buffer *buffers, uint64_t alignment,
                            const onv_plan *plan, placed *rows, size_t *count, onv_error *err)
{
    uint64_t height = 0;
    *count = 0;
    for (size_t i = 0; i < plan->count; i++) {
        uint64_t size, end;
        if (buffers[i].size == 0) continue;
        if (!onv_u64_round_up(buffers[i].size, alignment, &size) ||
            !onv_u64_add(plan->offsets[i], size, &end))
            return onv_fail(err, ONV_ERR_OVERFLOW, "plan: the end of buffer %zu overflows", i);
        if (plan->offsets[i] % alignment != 0)
            return onv_fail(err, ONV_ERR_MODEL, "plan: offset %llu of buffer %zu is not aligned",
                            (unsigned long long)plan->offsets[i], i);
        rows[(*count)++] = (placed){plan->offsets[i], end, buffers[i].lower, buffers[i].upper, i};
        if (end > height) height = end;
    }
    if (height != plan->height)
        return onv_fail(err, ONV_ERR_MODEL, "plan: the height is %llu, not %llu",
                        (unsigned long long)height, (unsigned long long)plan->height);
    qsort(rows, *count, sizeof *rows, compare_placed);
    return ONV_OK;
}

static onv_status check_figures(const onv_plan *plan, uint64_t capacity, uint64_t load,
                                onv_error *err)
{
    if (load != plan->max_load)
        return onv_fail(err, ONV_ERR_MODEL, "plan: the largest load is %llu, not %llu",
                        (unsigned long long)load, (unsigned long long)plan->max_load);
    if (plan->lower_bound < load || plan->height < plan->lower_bound ||
        plan->optimal != (plan->height == plan->lower_bound) ||
        plan->fits != (capacity == 0 || plan->height <= capacity))
        return onv_fail(err, ONV_ERR_MODEL, "plan: its figures contradict each other");
    return ONV_OK;
}

onv_status onv_plan_check(const onv_plan_buffer *buffers, size_t count,
                          const onv_plan_options *options, const onv_plan *plan, onv_error *err)
{
    uint64_t alignment = options != NULL && options->alignment != 0 ? options->alignment : 1;
    if (plan->count != count)
        return onv_fail(err, ONV_ERR_MODEL, "plan: %zu offsets for %zu buffers", plan->count,
                        count);
    rank_set live = {0};
    placed *rows = onv_heap_calloc(count, sizeof *rows);
    event *events = onv_heap_calloc(count, 2 * sizeof *events);
    bool enough = rank_set_init(&live, count) && rows != NULL && events != NULL;
    onv_status status = enough ? ONV_OK : onv_fail_memory(err);
    size_t used = 0;
    uint64_t load = 0;
    if (status == ONV_OK) status = take_rows(buffers, alignment, plan, rows, &used, err);
    if (status == ONV_OK) {
        for (size_t i = 0; i < used; i++) {
            events[2 * i] = (event){rows[i].lower, (uint32_t)i, true};
            events[2 * i + 1] = (event){rows[i].upper, (uint32_t)i, false};
        }
        qsort(events, 2 * used, sizeof *events, compare_events);
        status = sweep(rows, events, used, &live, &load, err);
    }
    if (status == ONV_OK)
        status = check_figures(plan, options != NULL ? options->capacity : 0, load, err);
    rank_set_cleanup(&live);
    onv_heap_free(events);
    onv_heap_free(rows);
    return status;
}

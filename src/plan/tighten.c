/* Tightening: the exact search under one capacity after another, for the lowest plan. */
#include <stdio.h> /*DBG*/
#include <stdlib.h> /*DBG*/
#include "base/heap.h"
#include "plan/part.h"
#include "plan/search.h"

/* A run that does not succeed soon seldom succeeds late, so many short runs in different styles
 * come first, and longer ones after each round of all. */
enum { FIRST_WORK = 1000000, WORK_PER_ROW = 5000 };

typedef struct tightening {
    const onv_part *part;
    onv_layout *layout;
    onv_effort *effort;
    onv_search *search;
    uint64_t *offsets;
    uint64_t first_work; /* of a run */
    const char *name;
    onv_error *err;
} tightening;

static uint64_t style_of_run(uint32_t run, onv_search_style *style)
{
    static const onv_search_style orders[] = {
        {.order = ONV_ORDER_SIZE},
        {.order = ONV_ORDER_WIDTH},
        {.order = ONV_ORDER_SIZE, .reversed = true},
        {.order = ONV_ORDER_LOAD},
        {.order = ONV_ORDER_AREA},
        {.order = ONV_ORDER_TIME},
    };
    static const onv_choice choices[] = {ONV_CHOICE_FEWEST, ONV_CHOICE_TIGHTEST,
                                         ONV_CHOICE_ANYWHERE};
    enum { ORDERS = sizeof orders / sizeof orders[0], CHOICES = 3 };
    *style = orders[run / CHOICES % ORDERS];
    style->choice = choices[run % CHOICES];
    style->seed = run / (CHOICES * ORDERS);
    uint32_t round = run / (2 * CHOICES * ORDERS);
    return (uint64_t)1 << (round < 20 ? round : 20);
}

/* Searches for a plan within the capacity, with at most `work` units in all runs. */
static onv_status probe(tightening *t, uint64_t capacity, uint64_t work, onv_search_result *result)
{
    uint64_t start = t->effort->spent;
    *result = ONV_SEARCH_SPENT;
    for (uint32_t run = 0; *result == ONV_SEARCH_SPENT; run++) {
        uint64_t used = t->effort->spent - start;
        if (used >= work || t->effort->left == 0) return ONV_OK;
        onv_search_style style;
        uint64_t share = t->first_work * style_of_run(run, &style);
        if (share > work - used) share = work - used;
        ONV_TRY(onv_search_run(t->search, capacity, &style, share, t->effort, t->offsets, result,
                               t->err));
        if (getenv("VERB")) fprintf(stderr, "cap %lu run %u order %d choice %d seed %lu share %.1fM: result %d, used %.1fM nodes %lu\n", capacity, run, style.order, style.choice, style.seed, share/1e6, *result, (t->effort->spent-start-used)/1e6, t->effort->nodes); /*DBG*/
    }
    if (*result == ONV_SEARCH_NONE) {
        t->layout->lower = capacity + 1;
        return ONV_OK;
    }
    uint64_t height = 0;
    for (uint32_t row = 0; row < t->part->n; row++) {
        uint64_t end = t->offsets[row] + t->part->size[row];
        if (end > height) height = end;
    }
    onv_layout_offer(t->layout, t->offsets, t->part->n, height, t->name);
    return ONV_OK;
}

/* Halves what lies between the heights that seem out of reach and the best plan. */
static onv_status bisect(tightening *t)
{
    uint64_t low = t->layout->lower;
    while (t->effort->left > 0 && t->layout->height > t->layout->target &&
           t->layout->height > low) {
        uint64_t capacity = low + (t->layout->height - 1 - low) / 2;
        onv_search_result result;
        ONV_TRY(probe(t, capacity, t->effort->left / 4 + t->first_work, &result));
        if (result != ONV_SEARCH_FOUND) low = capacity + 1;
    }
    return ONV_OK;
}

static onv_status tighten(tightening *t)
{
    onv_layout *layout = t->layout;
    onv_search_result result;
    /* Mostly the target is the load, and a plan of that height exists. */
    ONV_TRY(probe(t, layout->target, t->effort->left / 2, &result));
    ONV_TRY(bisect(t));
    while (t->effort->left > 0 && layout->height > layout->target &&
           layout->height > layout->lower)
        ONV_TRY(probe(t, layout->height - 1, UINT64_MAX, &result));
    return ONV_OK;
}

onv_status onv_tighten_run(const onv_planner *self, const onv_part *part, onv_layout *layout,
                           onv_effort *effort, onv_error *err)
{
    if (effort->left == 0 || !onv_search_takes(part)) return ONV_OK;
    tightening t = {.part = part, .layout = layout, .effort = effort, .name = self->name,
                    .first_work = FIRST_WORK + (uint64_t)part->n * WORK_PER_ROW,
                    .err = err};
    ONV_TRY(onv_search_new(part, &t.search, err));
    t.offsets = onv_heap_calloc(part->n, sizeof *t.offsets);
    onv_status status = t.offsets == NULL ? onv_fail_memory(err) : tighten(&t);
    onv_heap_free(t.offsets);
    onv_search_destroy(t.search);
    return status;
}

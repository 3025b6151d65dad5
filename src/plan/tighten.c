/* Tightening: the exact search under one capacity after another, for the lowest plan. */
#include "base/heap.h"
#include "plan/part.h"
#include "plan/search.h"

/* A run that does not succeed soon seldom succeeds late, so many short runs in different styles
 * come first, and longer ones after each round of all. */
enum { FIRST_WORK = 100000, WORK_PER_PAIR = 60, WORK_PER_PAIR_LARGE = 200, LARGE = 2000 };

typedef struct tightening {
    const onv_part *part;
    onv_layout *layout;
    onv_effort *effort;
    onv_search *search;
    uint64_t *offsets;
    bool large;
    uint64_t first_work; /* of a run: somewhat more than it takes to place all without a mistake */
    const char *name;
    onv_error *err;
} tightening;

#define STYLE(choice_, order_)                                                                     \
    {                                                                                              \
        .choice = ONV_CHOICE_##choice_, .order = ONV_ORDER_##order_                                \
    }
#define REVERSED(choice_, order_)                                                                  \
    {                                                                                              \
        .choice = ONV_CHOICE_##choice_, .order = ONV_ORDER_##order_, .reversed = true              \
    }

/* Deciding the tightest section suits large graphs, where most sections have space to spare; the one
 * with the fewest options suits puzzles. Within these, which buffers come first matters more than
 * anything, and no order is good for all. */
static const onv_search_style large_styles[] = {
    STYLE(TIGHTEST, SIZE),  STYLE(TIGHTEST, LOAD), STYLE(TIGHTEST, TIME),
    STYLE(TIGHTEST, WIDTH), STYLE(TIGHTEST, AREA),
};
static const onv_search_style styles[] = {
    STYLE(TIGHTEST, SIZE),  STYLE(FEWEST, WIDTH),     REVERSED(FEWEST, SIZE),
    STYLE(FEWEST, TIME),    REVERSED(ANYWHERE, AREA), STYLE(TIGHTEST, TIME),
    STYLE(FEWEST, LOAD),    STYLE(FEWEST, SIZE),      REVERSED(FEWEST, AREA),
    STYLE(ANYWHERE, SIZE),  STYLE(TIGHTEST, LOAD),    REVERSED(FEWEST, WIDTH),
    REVERSED(FEWEST, LOAD),
};
enum {
    N_LARGE = sizeof large_styles / sizeof large_styles[0],
    N_STYLES = sizeof styles / sizeof styles[0]
};

static onv_search_style style_of_run(uint32_t run, bool large)
{
    if (large && run < N_LARGE) return large_styles[run];
    onv_search_style style = styles[run % N_STYLES];
    style.seed = run < 3 ? 0 : run;
    style.smooth = !large;
    return style;
}

/* 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ...: whatever the right length of a run is, not much is lost. */
static uint64_t length_of_run(uint32_t run)
{
    uint32_t k = run + 1;
    while ((k & (k + 1)) != 0) { /* not of the form 2^i - 1 */
        uint32_t power = 1;
        while (power * 2 - 1 < k) power *= 2;
        k -= power - 1;
    }
    return ((uint64_t)k + 1) / 2;
}

/* One run under a capacity, of `length` times the work of the shortest. */
static onv_status probe(tightening *t, uint64_t capacity, uint64_t length, bool guided,
                        onv_search_result *result)
{
    onv_search_style style = style_of_run(t->layout->runs++, t->large);
    if (guided) {
        style.plan = t->layout->offsets;
        style.seed = t->layout->runs;
    }
    ONV_TRY(onv_search_run(t->search, capacity, &style, t->first_work * length, t->effort,
                           t->offsets, result, t->err));
    if (*result == ONV_SEARCH_NONE) t->layout->lower = capacity + 1;
    if (*result != ONV_SEARCH_FOUND) return ONV_OK;
    uint64_t height = 0;
    for (uint32_t row = 0; row < t->part->n; row++) {
        uint64_t end = t->offsets[row] + t->part->size[row];
        if (end > height) height = end;
    }
    onv_layout_offer(t->layout, t->effort, t->offsets, t->part->n, height, t->name);
    return ONV_OK;
}

/* Two lines of runs that take turns, so that neither uses more work than the other. One goes for
 * the target itself: mostly it is the load, and a plan of that height exists. The other goes down
 * in steps: of half the way to the bound at first, and of half of that after some runs that failed,
 * down to a unit; then from the start again with longer runs. What a run does never depends on
 * how much effort is left: more of it only adds runs. */
static onv_status tighten(tightening *t)
{
    enum { TRIES = 3 };
    onv_layout *layout = t->layout;
    uint64_t direct = 0, stepwise = 0, length = 1;
    uint32_t n_direct = 0, tries = 0, shift = 1;
    while (t->effort->left > 0 && layout->height > layout->target &&
           layout->height > layout->lower) {
        onv_search_result result;
        uint64_t start = t->effort->spent;
        uint64_t goal = layout->target > layout->lower ? layout->target : layout->lower;
        if (direct <= stepwise) {
            ONV_TRY(probe(t, goal, length_of_run(n_direct++), false, &result));
            direct += t->effort->spent - start;
            continue;
        }
        uint64_t step = (layout->height - goal) >> shift;
        if (step == 0) step = 1;
        bool guided = layout->strategy == t->name && layout->runs % 2 == 1;
        ONV_TRY(probe(t, layout->height - step, length, guided, &result));
        stepwise += t->effort->spent - start;
        if (result == ONV_SEARCH_FOUND) {
            tries = 0;
            continue;
        }
        if (++tries < TRIES) continue;
        tries = 0;
        shift++;
        if (step > 1 && step > (layout->height >> 12)) continue;
        shift = 1;
        length *= 2;
    }
    return ONV_OK;
}

onv_status onv_tighten_run(const onv_planner *self, const onv_part *part, onv_layout *layout,
                           onv_effort *effort, onv_error *err)
{
    uint64_t pairs;
    if (effort->left == 0 || !onv_search_takes(part, &pairs)) return ONV_OK;
    tightening t = {.part = part,
                    .layout = layout,
                    .effort = effort,
                    .name = self->name,
                    .large = part->n > LARGE,
                    .err = err};
    t.first_work = FIRST_WORK + pairs * (t.large ? WORK_PER_PAIR_LARGE : WORK_PER_PAIR);
    ONV_TRY(onv_search_new(part, &t.search, err));
    t.offsets = onv_heap_calloc(part->n, sizeof *t.offsets);
    onv_status status = t.offsets == NULL ? onv_fail_memory(err) : tighten(&t);
    onv_heap_free(t.offsets);
    onv_search_destroy(t.search);
    return status;
}

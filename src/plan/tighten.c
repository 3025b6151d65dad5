/* Tightening: the exact search under one capacity after another, for the lowest plan. */
#include "base/fail.h"
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
    onv_search *search; /* NULL for parts that it does not take */
    onv_beam *beam;     /* NULL for parts that it does not take */
    onv_boxes *boxes;   /* likewise */
    onv_repair *repair; /* NULL for parts that are small, full or too dense */
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

/* The offsets are a plan: takes it over if it is lower. */
static void offer(tightening *t)
{
    onv_layout_offer(t->layout, t->effort, t->part, t->offsets, t->name);
}

/* How a run starts. */
typedef enum memory {
    FRESH,
    LEARNT, /* with what the runs before it learnt of which sections fail */
    GUIDED, /* that, and in the order of the best plan */
} memory;

/* One run under a capacity, of `length` times the work of the shortest. */
static onv_status probe(tightening *t, uint64_t capacity, uint64_t length, memory from,
                        onv_search_result *result)
{
    onv_search_style style = style_of_run(t->layout->runs++, t->large);
    style.learnt = from != FRESH;
    if (from == GUIDED) {
        style.plan = t->layout->offsets;
        style.seed = t->layout->runs;
    }
    ONV_TRY(onv_search_run(t->search, capacity, &style, t->first_work * length, t->effort,
                           t->offsets, result, t->err));
    if (*result == ONV_SEARCH_NONE) t->layout->lower = capacity + 1;
    if (*result == ONV_SEARCH_FOUND) offer(t);
    return ONV_OK;
}

/* Lines of runs that take turns, each with its part of the work. */
typedef enum line {
    /* The target itself: mostly it is the load, and a plan of that height exists. */
    LINE_DIRECT,
    /* The same by ever wider beams, for parts that are full. */
    LINE_BEAM,
    /* Rows that are planned as one, likewise. */
    LINE_BOXES,
    /* A fixed share above the bound: 1/36 of it, once that is reached 1/72, and so on. */
    LINE_SHARE,
    /* Down in steps: half the way to the bound at first, and half of that after some runs that failed, down to a
     * unit; then from the start again with longer runs. */
    LINE_STEPS,
    /* Plans of large parts are lowered by repair. */
    LINE_REPAIR,
    N_LINES
} line;

typedef struct schedule {
    uint64_t goal;           /* no plan has to be lower */
    const uint32_t *parts;   /* of the work, by line; 0: the line is not taken */
    uint64_t spent[N_LINES]; /* for one part */
    uint32_t runs[N_LINES];
    uint64_t length; /* of runs in steps */
    uint32_t tries, shift;
} schedule;

static onv_status run_beam(tightening *t, schedule *plan)
{
    enum { FIRST_WIDTH = 128, RUNS_OF_A_WIDTH = 2 };
    uint32_t run = plan->runs[LINE_BEAM]++, doubled = run / RUNS_OF_A_WIDTH;
    uint32_t width = ONV_BEAM_MAX_WIDTH;
    if (doubled < 8 && (uint32_t)FIRST_WIDTH << doubled < width)
        width = (uint32_t)FIRST_WIDTH << doubled;
    bool found;
    ONV_TRY(onv_beam_run(t->beam, plan->goal, width, run, t->effort, t->offsets, &found, t->err));
    if (found) offer(t);
    return ONV_OK;
}

static onv_status run_share(tightening *t, schedule *plan)
{
    enum { LARGEST_SHARE = 36 };
    uint64_t share = plan->goal / LARGEST_SHARE;
    while (plan->goal + share >= t->layout->height) share /= 2;
    onv_search_result result;
    return probe(t, plan->goal + share, length_of_run(plan->runs[LINE_SHARE]++), FRESH, &result);
}

static onv_status run_step(tightening *t, schedule *plan)
{
    enum { TRIES = 3 };
    onv_layout *layout = t->layout;
    uint64_t step = (layout->height - plan->goal) >> plan->shift;
    if (step == 0) step = 1;
    bool guided = layout->strategy == t->name && layout->runs % 2 == 1;
    onv_search_result result;
    ONV_TRY(probe(t, layout->height - step, plan->length, guided ? GUIDED : LEARNT, &result));
    if (result == ONV_SEARCH_FOUND) {
        plan->tries = 0;
        return ONV_OK;
    }
    if (++plan->tries < TRIES) return ONV_OK;
    plan->tries = 0;
    plan->shift++;
    if (step > 1 && step > (layout->height >> 12)) return ONV_OK;
    plan->shift = 1;
    plan->length *= 2;
    return ONV_OK;
}

static onv_status run_line(tightening *t, schedule *plan, line which)
{
    onv_search_result result;
    switch (which) {
    case LINE_BEAM: return run_beam(t, plan);
    case LINE_BOXES: return onv_boxes_run(t->boxes, t->layout, t->effort, t->name, t->err);
    case LINE_SHARE: return run_share(t, plan);
    case LINE_STEPS: return run_step(t, plan);
    case LINE_REPAIR:
        onv_repair_run(t->repair, plan->goal, t->layout, t->effort, t->name);
        return ONV_OK;
    default: break;
    }
    return probe(t, plan->goal, length_of_run(plan->runs[LINE_DIRECT]++), FRESH, &result);
}

/* The line that spent the least for its part of the work. */
static line next_line(const tightening *t, const schedule *plan)
{
    if (t->search == NULL) return LINE_REPAIR;
    line next = LINE_DIRECT;
    for (line i = LINE_DIRECT; i < N_LINES; i++)
        if (plan->parts[i] > 0 && plan->spent[i] < plan->spent[next]) next = i;
    return next;
}

/* What a run does never depends on how much effort is left: more of it only adds runs. */
static onv_status tighten(tightening *t)
{
    onv_layout *layout = t->layout;
    static const uint32_t usual[N_LINES] = {[LINE_DIRECT] = 2, [LINE_STEPS] = 3, [LINE_SHARE] = 1};
    static const uint32_t full[N_LINES] = {
        [LINE_DIRECT] = 1, [LINE_BEAM] = 3, [LINE_BOXES] = 6, [LINE_STEPS] = 1};
    static const uint32_t large[N_LINES] = {
        [LINE_DIRECT] = 2, [LINE_STEPS] = 3, [LINE_SHARE] = 1, [LINE_REPAIR] = 6};
    schedule plan = {.length = 1, .shift = 1};
    plan.parts = t->beam != NULL ? full : t->repair != NULL ? large : usual;
    /* Of large parts a run of the search may take longer than all repair, which begins: for half as much. */
    for (line i = LINE_DIRECT; i < LINE_REPAIR && t->repair != NULL; i++)
        plan.spent[i] = t->first_work / 2 / plan.parts[LINE_REPAIR];
    while (t->effort->left > 0 && layout->height > layout->target &&
           layout->height > layout->lower) {
        plan.goal = layout->target > layout->lower ? layout->target : layout->lower;
        line which = next_line(t, &plan);
        uint64_t start = t->effort->spent, height = layout->height;
        ONV_TRY(run_line(t, &plan, which));
        uint64_t spent = (t->effort->spent - start) / plan.parts[which];
        /* Of large parts what lowers the plan goes on. */
        bool goes_on = t->repair != NULL && layout->height < height;
        plan.spent[which] += goes_on ? spent / 4 : spent;
    }
    return ONV_OK;
}

onv_status onv_tighten_run(const onv_planner *self, const onv_part *part, onv_layout *layout,
                           onv_effort *effort, onv_error *err)
{
    uint64_t pairs = onv_part_pairs(part);
    bool searched = onv_search_takes(part), large = part->n > LARGE;
    if (effort->left == 0 || !(searched || large)) return ONV_OK;
    tightening t = {.part = part,
                    .layout = layout,
                    .effort = effort,
                    .name = self->name,
                    .large = large,
                    .err = err};
    t.first_work = FIRST_WORK + pairs * (t.large ? WORK_PER_PAIR_LARGE : WORK_PER_PAIR);
    t.offsets = onv_heap_calloc(part->n, sizeof *t.offsets);
    onv_status status = t.offsets == NULL ? onv_fail_memory(err) : ONV_OK;
    if (status == ONV_OK && searched) status = onv_search_new(part, &t.search, err);
    if (status == ONV_OK && searched && onv_beam_takes(part) && !effort->are_boxes) {
        status = onv_boxes_new(part, &t.boxes, err);
        if (status == ONV_OK) status = onv_beam_new(part, &t.beam, err);
    }
    if (status == ONV_OK && large && t.beam == NULL) status = onv_repair_new(part, &t.repair, err);
    if (status == ONV_OK && (t.search != NULL || t.repair != NULL)) status = tighten(&t);
    onv_repair_destroy(t.repair);
    onv_boxes_destroy(t.boxes);
    onv_beam_destroy(t.beam);
    onv_heap_free(t.offsets);
    onv_search_destroy(t.search);
    return status;
}

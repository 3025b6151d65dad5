#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"
#include "plan/greedy.h"
#include "plan/part.h"

/* A unit of work is one step of an inner loop, about 3 ns. */
#define DEFAULT_EFFORT ((uint64_t)150000000)
enum { UNITS_BETWEEN_POLLS = 2000000 };

/* --- Strategies -------------------------------------------------------------------------------- */

#define GREEDY(id, label, text, order_, fit_)                                                      \
    static const onv_planner id = {.name = label,                                                  \
                                   .summary = text,                                                \
                                   .run = onv_greedy_run,                                          \
                                   .order = ONV_ORDER_##order_,                                    \
                                   .fit = ONV_FIT_##fit_}

GREEDY(size_first, "size-first", "largest buffers first, each in the lowest gap", SIZE, FIRST);
GREEDY(size_best, "size-best", "largest buffers first, each in the tightest gap", SIZE, BEST);
GREEDY(width_first, "width-first", "longest-lived first, each in the lowest gap", WIDTH, FIRST);
GREEDY(width_best, "width-best", "longest-lived first, each in the tightest gap", WIDTH, BEST);
GREEDY(area_first, "area-first", "size x lifetime first, each in the lowest gap", AREA, FIRST);
GREEDY(area_best, "area-best", "size x lifetime first, each in the tightest gap", AREA, BEST);
GREEDY(load_first, "load-first", "most loaded steps first, each in the lowest gap", LOAD, FIRST);
GREEDY(load_best, "load-best", "most loaded steps first, each in the tightest gap", LOAD, BEST);
GREEDY(time_first, "time-first", "in order of time, each in the lowest gap", TIME, FIRST);
GREEDY(time_best, "time-best", "in order of time, each in the tightest gap", TIME, BEST);

static const onv_planner exact = {
    .name = "exact",
    .summary = "search that proves the plan optimal if the effort suffices; up to 5,000 buffers",
    .run = onv_tighten_run};

static const onv_planner repair = {
    .name = "repair",
    .summary = "greedy placement again and again, what stuck out at the top going earlier",
    .run = onv_repair_run};

const onv_planner *const onv_planners[] = {
    &size_first, &width_first, &area_first, &load_first, &size_best, &width_best,
    &area_best,  &load_best,   &time_first, &time_best,  &exact,     &repair,
    NULL,
};

const char *onv_planner_name(const onv_planner *planner)
{
    return planner->name;
}

const char *onv_planner_summary(const onv_planner *planner)
{
    return planner->summary;
}

/* --- Effort and layouts ------------------------------------------------------------------------ */

bool onv_effort_spend(onv_effort *effort, uint64_t units)
{
    effort->spent += units;
    effort->left -= units < effort->left ? units : effort->left;
    if (effort->cancelled != NULL && effort->spent >= effort->poll_at) {
        effort->poll_at = effort->spent + UNITS_BETWEEN_POLLS;
        if (effort->cancelled(effort->context)) {
            effort->stopped = true;
            effort->left = 0;
        }
    }
    return effort->left > 0;
}

void onv_layout_offer(onv_layout *layout, const uint64_t *offsets, uint32_t n, uint64_t height,
                      const char *strategy)
{
    if (height >= layout->height) return;
    memcpy(layout->offsets, offsets, n * sizeof *offsets);
    layout->height = height;
    layout->strategy = strategy;
}

/* --- Planning the parts ------------------------------------------------------------------------ */

typedef struct run {
    const onv_plan_options *options;
    onv_parts parts;
    onv_effort effort;
    onv_plan *plan;
    onv_error *err;
} run;

static onv_status plan_part(run *r, const onv_part *part, onv_layout *layout)
{
    const char *only = r->options->strategy;
    for (size_t i = 0; onv_planners[i] != NULL; i++) {
        if (layout->height <= layout->target || layout->height == layout->lower) break;
        const onv_planner *planner = onv_planners[i];
        if (only != NULL && strcmp(only, planner->name) != 0) continue;
        /* What only improves a plan starts from the first one. */
        if (layout->height == UINT64_MAX && planner->run != onv_greedy_run)
            ONV_TRY(onv_greedy_run(onv_planners[0], part, layout, &r->effort, r->err));
        ONV_TRY(planner->run(planner, part, layout, &r->effort, r->err));
    }
    return ONV_OK;
}

/* Plans one part no better than needed: where another part is higher anyway, or the capacity
 * allows more, a low plan is worth nothing. */
static onv_status add_part(run *r, const onv_part *part, onv_arena *scratch)
{
    onv_plan *plan = r->plan;
    onv_arena_reset(scratch);
    onv_layout layout = {.offsets = ONV_ARENA_ARRAY(scratch, uint64_t, part->n),
                         .height = UINT64_MAX,
                         .lower = part->load,
                         .strategy = ""};
    if (layout.offsets == NULL) return onv_fail_memory(r->err);
    uint64_t allowed = plan->height > plan->lower_bound ? plan->height : plan->lower_bound;
    if (r->options->capacity > allowed) allowed = r->options->capacity;
    layout.target = (allowed - part->base) / part->unit;
    ONV_TRY(plan_part(r, part, &layout));
    for (uint32_t row = 0; row < part->n; row++)
        plan->offsets[part->origin[row]] = part->base + layout.offsets[row] * part->unit;
    uint64_t height = part->base + layout.height * part->unit;
    uint64_t lower = part->base + layout.lower * part->unit;
    if (height > plan->height || plan->strategy[0] == '\0') plan->strategy = layout.strategy;
    if (height > plan->height) plan->height = height;
    if (lower > plan->lower_bound) plan->lower_bound = lower;
    return ONV_OK;
}

/* The most loaded parts come first: they decide how low the others have to be. */
static int compare_parts(const void *a, const void *b)
{
    const onv_part *x = a, *y = b;
    uint64_t p = x->base + x->load * x->unit, q = y->base + y->load * y->unit;
    if (p != q) return p > q ? -1 : 1;
    return x->origin[0] < y->origin[0] ? -1 : x->origin[0] > y->origin[0];
}

static onv_status plan_parts(run *r)
{
    onv_plan *plan = r->plan;
    plan->max_load = plan->lower_bound = r->parts.max_load;
    plan->height = r->parts.height;
    if (r->parts.list.count > 0)
        qsort(r->parts.list.at, r->parts.list.count, sizeof(onv_part), compare_parts);
    else if (plan->height > 0)
        plan->strategy = onv_planners[0]->name; /* everything lies at the bottom */
    onv_arena scratch;
    onv_arena_init(&scratch, SIZE_MAX);
    onv_status status = ONV_OK;
    for (size_t i = 0; i < r->parts.list.count && status == ONV_OK; i++)
        status = add_part(r, &r->parts.list.at[i], &scratch);
    onv_arena_cleanup(&scratch);
    plan->optimal = plan->height == plan->lower_bound;
    plan->fits = r->options->capacity == 0 || plan->height <= r->options->capacity;
    plan->stopped = r->effort.stopped;
    plan->nodes = r->effort.nodes;
    plan->work = r->effort.spent;
    return status;
}

/* --- Input ------------------------------------------------------------------------------------- */

static onv_status check_options(const onv_plan_options *options, onv_error *err)
{
    if (options->strategy == NULL) return ONV_OK;
    for (size_t i = 0; onv_planners[i] != NULL; i++)
        if (strcmp(options->strategy, onv_planners[i]->name) == 0) return ONV_OK;
    return onv_fail(err, ONV_ERR_USAGE, "no planning strategy is called '%s'", options->strategy);
}

/* Sizes rounded up; heights are sums of sizes, so their sum must fit. */
static onv_status round_sizes(const onv_plan_buffer *buffers, size_t count, uint64_t alignment,
                              uint64_t *sizes, onv_error *err)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (buffers[i].lower >= buffers[i].upper)
            return onv_fail(err, ONV_ERR_USAGE, "buffer %zu ends at step %llu, before it starts",
                            i, (unsigned long long)buffers[i].upper);
        if (!onv_u64_round_up(buffers[i].size, alignment, &sizes[i]) ||
            !onv_u64_add(sum, sizes[i], &sum) || sum > INT64_MAX)
            return onv_fail(err, ONV_ERR_OVERFLOW,
                            "the sizes of the first %zu buffers do not fit 63 bits together",
                            i + 1);
    }
    return ONV_OK;
}

static onv_status compute(run *r, const onv_plan_buffer *buffers, size_t count, onv_arena *arena)
{
    uint64_t *sizes = ONV_ARENA_ARRAY(arena, uint64_t, count);
    if (sizes == NULL) return onv_fail_memory(r->err);
    uint64_t alignment = r->options->alignment != 0 ? r->options->alignment : 1;
    ONV_TRY(round_sizes(buffers, count, alignment, sizes, r->err));
    ONV_TRY(onv_parts_split(buffers, sizes, count, r->plan->offsets, arena, &r->parts, r->err));
    onv_status status = plan_parts(r);
    onv_vec_cleanup(&r->parts.list);
    return status;
}

onv_status onv_plan_compute(const onv_plan_buffer *buffers, size_t count,
                            const onv_plan_options *options, onv_plan *plan, onv_error *err)
{
    static const onv_plan_options defaults = {0};
    if (options == NULL) options = &defaults;
    *plan = (onv_plan){.strategy = ""};
    ONV_TRY(check_options(options, err));
    if (count > ONV_PLAN_MAX_BUFFERS)
        return onv_fail(err, ONV_ERR_LIMIT, "%zu buffers to plan, more than %d", count,
                        ONV_PLAN_MAX_BUFFERS);
    plan->offsets = onv_heap_calloc(count, sizeof *plan->offsets);
    if (plan->offsets == NULL) return onv_fail_memory(err);
    plan->count = count;
    run r = {.options = options,
             .effort = {.left = options->effort != 0 ? options->effort : DEFAULT_EFFORT,
                        .cancelled = options->cancelled,
                        .context = options->cancel_context},
             .plan = plan,
             .err = err};
    onv_arena arena;
    onv_arena_init(&arena, SIZE_MAX);
    onv_status status = compute(&r, buffers, count, &arena);
    onv_arena_cleanup(&arena);
    if (status != ONV_OK) onv_plan_cleanup(plan);
    return status;
}

void onv_plan_cleanup(onv_plan *plan)
{
    onv_heap_free(plan->offsets);
    *plan = (onv_plan){.strategy = ""};
}

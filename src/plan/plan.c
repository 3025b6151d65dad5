#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/heap.h"
#include "base/quota.h"
#include "plan/part.h"

/* A unit of work is one step of an inner loop, 1 to 2 ns. By default at most about a second for up
 * to 2,000 buffers, four where they fill their time and height without a gap, for there it is worth it, and two for
 * any more; there a plan that is within 1 / 4096 of the bound (0.024 %) is good enough, since the rest of the way can
 * take most of the time. In any case no longer than there is hope: until twice the work that led to the last
 * improvement, and a fixed part of the default more, brought none. */
#define DEFAULT_EFFORT    ((uint64_t)600000000)
#define EFFORT_PER_BUFFER ((uint64_t)50000) /* of those beyond 2,000 */
#define MAX_EFFORT        ((uint64_t)800000000)
enum {
    TIMES_FOR_FULL = 4,
    SMALL_GRAPH = 2000,
    GOOD_ENOUGH_SHIFT = 12,
    UNITS_BETWEEN_POLLS = 2000000
};

/* --- Strategies -------------------------------------------------------------------------------- */

#define GREEDY(label, order_, fit_)                                                                \
    {                                                                                              \
        .name = label, .order = ONV_ORDER_##order_, .fit = ONV_FIT_##fit_                          \
    }

enum { TIME_FIRST = 5 };

/* By size, lifetime, size x lifetime, load of their steps, time, or all of these; each in the lowest gap, or in the tightest. The
 * last one repairs a large plan, then proves it optimal if the effort suffices. */
const onv_planner onv_planners[] = {
    GREEDY("size-first", SIZE, FIRST), GREEDY("width-first", WIDTH, FIRST),
    GREEDY("area-first", AREA, FIRST), GREEDY("load-first", LOAD, FIRST),
    GREEDY("load-best", LOAD, BEST),   [TIME_FIRST] = GREEDY("time-first", TIME, FIRST),
    GREEDY("time-best", TIME, BEST),   GREEDY("pressure", PRESSURE, FIRST),
    GREEDY("steep", STEEP, FIRST),     {.name = "exact", .improves = true},
};
const size_t onv_n_planners = sizeof onv_planners / sizeof onv_planners[0];

/* --- Effort and layouts ------------------------------------------------------------------------ */

static bool out_of_patience(const onv_effort *effort)
{
    return effort->patience != 0 && effort->spent / 2 > effort->improved_at &&
           effort->spent - 2 * effort->improved_at > effort->patience;
}

bool onv_effort_spend(onv_effort *effort, uint64_t units)
{
    onv_work(units / ONV_PLAN_STEPS_OF_WORK);
    return onv_effort_book(effort, units);
}

bool onv_effort_book(onv_effort *effort, uint64_t units)
{
    effort->spent += units;
    effort->left -= units < effort->left ? units : effort->left;
    if (out_of_patience(effort)) effort->left = 0;
    if (effort->cancelled != NULL && effort->spent >= effort->poll_at) {
        effort->poll_at = effort->spent + UNITS_BETWEEN_POLLS;
        if (effort->cancelled(effort->context)) {
            effort->stopped = true;
            effort->left = 0;
        }
    }
    return effort->left > 0;
}

void onv_layout_offer(onv_layout *layout, onv_effort *effort, const onv_part *part,
                      const uint64_t *offsets, const char *strategy)
{
    uint64_t height = 0;
    for (uint32_t row = 0; row < part->n; row++)
        if (offsets[row] + part->size[row] > height) height = offsets[row] + part->size[row];
    if (height >= layout->height) return;
    effort->improved_at = effort->spent;
    memcpy(layout->offsets, offsets, part->n * sizeof *offsets);
    layout->height = height;
    layout->strategy = strategy;
}

/* --- Planning the parts ------------------------------------------------------------------------ */

typedef struct run {
    const onv_plan_options *options;
    onv_parts parts;
    onv_layout *layouts; /* by part */
    onv_effort effort;
    uint64_t patience; /* of the effort, once there is a plan to improve */
    bool good_enough;  /* what there is; but more was asked for */
    onv_plan *plan;
    onv_error *err;
} run;

/* Runs the strategies of one kind on a part until one reaches the target or proves its height. */
static onv_status plan_part(run *r, size_t index, bool improve)
{
    onv_layout *layout = &r->layouts[index];
    const char *only = r->options->strategy;
    for (size_t i = 0; i < onv_n_planners; i++) {
        const onv_planner *planner = &onv_planners[i];
        if (layout->height <= layout->target || layout->height == layout->lower) break;
        if (planner->improves != improve) continue;
        if (only != NULL && strcmp(only, planner->name) != 0) continue;
        ONV_TRY((improve ? onv_tighten_run : onv_greedy_run)(planner, &r->parts.list.at[index],
                                                             layout, &r->effort, r->err));
    }
    /* Where only improvement was asked for, it starts from a plan that never costs much. */
    if (layout->height != UINT64_MAX) return ONV_OK;
    return onv_greedy_run(&onv_planners[TIME_FIRST], &r->parts.list.at[index], layout, &r->effort,
                          r->err);
}

/* A part's height in bytes of the whole. */
static uint64_t top_of(const run *r, size_t index)
{
    const onv_part *part = &r->parts.list.at[index];
    return part->base + r->layouts[index].height * part->unit;
}

/* The figures as they stand; returns the index of the highest part. */
static size_t take_figures(run *r)
{
    onv_plan *plan = r->plan;
    size_t highest = 0;
    plan->height = r->parts.height;
    for (size_t i = 0; i < r->parts.list.count; i++) {
        if (top_of(r, i) > top_of(r, highest)) highest = i;
        if (top_of(r, i) > plan->height) plan->height = top_of(r, i);
        const onv_part *part = &r->parts.list.at[i];
        uint64_t lower = part->base + r->layouts[i].lower * part->unit;
        if (lower > plan->lower_bound) plan->lower_bound = lower;
    }
    return highest;
}

/* What no plan has to be lower than. With an effort of the user's, a large graph goes on from what is good enough
 * to the bound; until then it does what it does without. */
static uint64_t allowed_height(const run *r)
{
    uint64_t lower = r->plan->lower_bound;
    if (r->options->capacity > lower) return r->options->capacity;
    bool to_the_end = r->good_enough || r->options->capacity != 0 || r->plan->count <= SMALL_GRAPH;
    return to_the_end ? lower : lower + (lower >> GOOD_ENOUGH_SHIFT);
}

static void set_target(run *r, size_t index)
{
    const onv_part *part = &r->parts.list.at[index];
    r->layouts[index].target = (allowed_height(r) - part->base) / part->unit;
}

/* Improves the highest part, again and again: with all of the effort if it is the only one that is
 * too high, else with a slice that doubles each time. What is done never depends on how much effort
 * is left, so more of it never leads elsewhere. */
static onv_status improve(run *r)
{
    enum { FIRST_SLICE = 20000000 };
    for (uint64_t slice = FIRST_SLICE;; slice += slice < UINT64_MAX / 2 ? slice : 0) {
        size_t highest = take_figures(r), too_high = 0;
        if (r->plan->height <= allowed_height(r) && r->options->effort != 0) r->good_enough = true;
        if (r->plan->height <= allowed_height(r) || r->effort.left == 0) return ONV_OK;
        for (size_t i = 0; i < r->parts.list.count; i++)
            if (top_of(r, i) > allowed_height(r)) too_high++;
        uint64_t before = r->effort.spent;
        uint64_t reserve = too_high > 1 && r->effort.left > slice ? r->effort.left - slice : 0;
        r->effort.left -= reserve;
        set_target(r, highest);
        ONV_TRY(plan_part(r, highest, true));
        if (!r->effort.stopped && !out_of_patience(&r->effort)) r->effort.left += reserve;
        bool idle = r->effort.spent == before; /* no strategy takes the part */
        if (idle) return ONV_OK;
    }
}

static onv_status start_layouts(run *r, onv_arena *arena)
{
    size_t count = r->parts.list.count;
    r->layouts = ONV_ARENA_ARRAY(arena, onv_layout, count);
    if (r->layouts == NULL) return onv_fail_memory(r->err);
    for (size_t i = 0; i < count; i++) {
        const onv_part *part = &r->parts.list.at[i];
        r->layouts[i] = (onv_layout){.offsets = ONV_ARENA_ARRAY(arena, uint64_t, part->n),
                                     .height = UINT64_MAX,
                                     .lower = part->load,
                                     .strategy = ""};
        if (r->layouts[i].offsets == NULL) return onv_fail_memory(r->err);
    }
    return ONV_OK;
}

static onv_status plan_parts(run *r, onv_arena *arena)
{
    onv_plan *plan = r->plan;
    plan->max_load = plan->lower_bound = r->parts.max_load;
    ONV_TRY(start_layouts(r, arena));
    for (size_t i = 0; i < r->parts.list.count; i++) {
        set_target(r, i);
        ONV_TRY(plan_part(r, i, false));
    }
    /* Not before: placements that did not help say nothing of what improves them. */
    r->effort.improved_at = r->effort.spent;
    r->effort.patience = r->patience;
    ONV_TRY(improve(r));
    size_t highest = take_figures(r);
    if (r->parts.list.count > 0)
        plan->strategy = r->layouts[highest].strategy;
    else if (plan->height > 0)
        plan->strategy = onv_planners[0].name; /* everything lies at the bottom, as it would */
    for (size_t i = 0; i < r->parts.list.count; i++) {
        const onv_part *part = &r->parts.list.at[i];
        for (uint32_t row = 0; row < part->n; row++)
            plan->offsets[part->origin[row]] = part->base + r->layouts[i].offsets[row] * part->unit;
    }
    return ONV_OK;
}

/* --- Input ------------------------------------------------------------------------------------- */

static onv_status check_options(const onv_plan_options *options, onv_error *err)
{
    if ((options->alignment & (options->alignment - 1)) != 0 && options->alignment != 0)
        return onv_fail(err, ONV_ERR_USAGE, "the alignment is a power of two, as in 256, not %llu",
                        (unsigned long long)options->alignment);
    if (options->strategy == NULL) return ONV_OK;
    for (size_t i = 0; i < onv_n_planners; i++)
        if (strcmp(options->strategy, onv_planners[i].name) == 0) return ONV_OK;
    return onv_fail(err, ONV_ERR_USAGE, "no planning strategy is called '%s'", options->strategy);
}

/* Sizes rounded up; heights are sums of sizes, so their sum must fit. */
static onv_status round_sizes(const onv_plan_buffer *buffers, size_t count, uint64_t alignment,
                              uint64_t *sizes, onv_error *err)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (buffers[i].lower >= buffers[i].upper)
            return onv_fail(err, ONV_ERR_USAGE, "buffer %zu ends at step %llu, before it starts", i,
                            (unsigned long long)buffers[i].upper);
        if (!onv_u64_round_up(buffers[i].size, alignment, &sizes[i]) ||
            !onv_u64_add(sum, sizes[i], &sum) || sum > INT64_MAX)
            return onv_fail(err, ONV_ERR_OVERFLOW,
                            "the sizes of the first %zu buffers do not fit 63 bits together",
                            i + 1);
    }
    return ONV_OK;
}

static void set_effort(run *r, size_t count)
{
    uint64_t beyond = count > SMALL_GRAPH ? count - SMALL_GRAPH : 0;
    uint64_t usual = DEFAULT_EFFORT + beyond * EFFORT_PER_BUFFER;
    bool full = false;
    for (size_t i = 0; i < r->parts.list.count; i++)
        full = full || onv_beam_takes(&r->parts.list.at[i]);
    if (usual > MAX_EFFORT) usual = MAX_EFFORT;
    if (full && beyond == 0) usual *= TIMES_FOR_FULL;
    r->effort.left = usual;
    r->patience = usual / (full ? 2 : count > SMALL_GRAPH ? 4 : 3);
}

static onv_status compute(run *r, const onv_plan_buffer *buffers, size_t count, onv_arena *arena)
{
    uint64_t *sizes = ONV_ARENA_ARRAY(arena, uint64_t, count);
    if (sizes == NULL) return onv_fail_memory(r->err);
    uint64_t alignment = r->options->alignment != 0 ? r->options->alignment : 1;
    ONV_TRY(round_sizes(buffers, count, alignment, sizes, r->err));
    ONV_TRY(onv_parts_split(buffers, sizes, count, r->plan->offsets, arena, &r->parts, r->err));
    if (r->options->effort == 0) set_effort(r, count);
    onv_status status = plan_parts(r, arena);
    onv_vec_cleanup(&r->parts.list);
    onv_plan *plan = r->plan;
    plan->optimal = plan->height == plan->lower_bound;
    plan->fits = r->options->capacity == 0 || plan->height <= r->options->capacity;
    plan->stopped = r->effort.stopped;
    plan->nodes = r->effort.nodes;
    plan->work = r->effort.spent;
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
             .effort = {.left = options->effort,
                        .are_boxes = options->are_boxes,
                        .unbounded = options->strategy != NULL,
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

/* The front of plans: for every peak the cheapest known.
 *
 * Candidates are the plans of the tape's chain (tape.h, chain.h), exact under the chain's model of
 * memory; the named plans with every count; and the other plans of the list. Each is built and
 * measured as a training program, and what another one betters in both peak and recomputed operations
 * is dropped: so no plan of the list is better than all of these.
 *
 * The search is bounded. Units beyond MAX_UNITS are joined, fronts are thinned (chain.h), and of the
 * largest tapes not every candidate is built. What of this happened is noted in the model.
 *
 * Cost: MAX_UNITS³ / 6 merges of fronts, and programs of about MAX_STEPS operations in all, or of
 * MIN_BUILDS passes over the tape where these are more. */
#include "base/heap.h"
#include "ckpt/ckpt.h"
#include "ckpt/tape.h"

enum { MAX_UNITS = 160, MAX_COUNTS = 128, MAX_STEPS = 1000000, MIN_BUILDS = 32 };

typedef struct front {
    const onv_ckpt_problem *problem;
    onv_ckpt_plans plans; /* recomputation ascending, peaks descending */
    uint32_t max_builds;  /* of programs, about */
} front;

static bool betters(const onv_ckpt_plan *a, const onv_ckpt_plan *b)
{
    return a->peak_bytes <= b->peak_bytes && a->recomputed_macs <= b->recomputed_macs;
}

/* Takes the plan in, unless one is as good; drops those that it betters. */
static onv_status offer(front *f, const onv_ckpt_plan *plan, onv_error *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < f->plans.at.count; i++)
        if (betters(&f->plans.at.at[i], plan)) return ONV_OK;
    if (!onv_vec_reserve(&f->plans.at, 1)) return onv_fail_memory(err);
    onv_ckpt_plan *at = f->plans.at.at;
    for (size_t i = 0; i < f->plans.at.count; i++)
        if (!betters(plan, &at[i])) at[kept++] = at[i];
    size_t place = kept;
    while (place > 0 && at[place - 1].recomputed_macs > plan->recomputed_macs) {
        at[place] = at[place - 1];
        place--;
    }
    at[place] = *plan;
    f->plans.at.count = kept + 1;
    return ONV_OK;
}

/* --- Candidates -------------------------------------------------------------------------------- */

static onv_status try_kind(front *f, const onv_ckpt_plan_kind *kind, uint32_t count, onv_error *err)
{
    onv_ckpt_plans plans = {0};
    onv_status status = kind->make(f->problem, count, &plans, err);
    for (size_t i = 0; i < plans.at.count && status == ONV_OK; i++)
        status = offer(f, &plans.at.at[i], err);
    onv_ckpt_plans_cleanup(&plans);
    return status;
}

/* Counts from 1 on: as segments=K the coarse plans, as every=K the fine ones. */
static onv_status try_named(front *f, onv_error *err)
{
    uint32_t n = f->problem->units->count;
    if (n > MAX_COUNTS) n = MAX_COUNTS;
    if (n > f->max_builds / 4) n = f->max_builds / 4;
    ONV_TRY(try_kind(f, &onv_ckpt_none, 0, err));
    ONV_TRY(try_kind(f, &onv_ckpt_sqrt, 0, err));
    ONV_TRY(try_kind(f, &onv_ckpt_blocks, 0, err));
    for (uint32_t k = 1; k <= n; k++) {
        ONV_TRY(try_kind(f, &onv_ckpt_every, k, err));
        ONV_TRY(try_kind(f, &onv_ckpt_segments, k, err));
    }
    const onv_ckpt_plans *others = f->problem->others;
    for (size_t i = 0; others != NULL && i < others->at.count; i++)
        ONV_TRY(offer(f, &others->at.at[i], err));
    return ONV_OK;
}

static onv_status try_point(front *f, const onv_tape_chain *tape, const onv_chain_ranges *ranges,
                            onv_error *err)
{
    onv_tape_segment *segments =
        onv_heap_calloc(ranges->count > 0 ? ranges->count : 1, sizeof *segments);
    onv_ckpt_plans plans = {0};
    if (segments == NULL) return onv_fail_memory(err);
    uint32_t n = 0;
    for (size_t i = 0; i < ranges->count; i++)
        n += onv_tape_chain_segment(f->problem, tape, ranges->at[i], &segments[n]);
    onv_status status = onv_ckpt_plans_add(f->problem, "optimal", segments, n, &plans, err);
    if (status == ONV_OK) status = offer(f, &plans.at.at[0], err);
    onv_ckpt_plans_cleanup(&plans);
    onv_heap_free(segments);
    return status;
}

static void note_bounds(const front *f, const onv_tape_chain *tape, bool thinned, uint32_t n_tried,
                        uint32_t n_points)
{
    onv_model *model = f->problem->model;
    if (tape->n_fine > tape->chain.n_units)
        onv_model_diag(
            model, ONV_NOTE, "optimal-joined", NULL,
            "optimal plans: %u stretches of operations were joined to %u, so better plans "
            "may exist",
            tape->n_fine, tape->chain.n_units);
    else if (thinned || n_tried < n_points)
        onv_model_diag(model, ONV_NOTE, "optimal-thinned", NULL,
                       "optimal plans: of many that differ little some were looked at, so slightly "
                       "better ones may exist");
}

static onv_status try_chain(front *f, onv_arena *arena, onv_error *err)
{
    onv_tape_chain tape;
    onv_chain_solution solution;
    onv_chain_ranges ranges = {0};
    ONV_TRY(onv_tape_chain_build(f->problem, MAX_UNITS, arena, &tape, err));
    if (tape.chain.n_units == 0) return ONV_OK;
    ONV_TRY(onv_chain_solve(&tape.chain, arena, &solution, err));
    uint32_t n_points = solution.front.count, n = n_points;
    if (n > f->max_builds / 2) n = f->max_builds / 2;
    onv_status status = ONV_OK;
    for (uint32_t i = 0; i < n && status == ONV_OK; i++) {
        uint32_t point = n > 1 ? i * (n_points - 1) / (n - 1) : 0; /* both ends, evenly */
        status = onv_chain_plan(&solution, point, &ranges, err);
        if (status == ONV_OK) status = try_point(f, &tape, &ranges, err);
    }
    note_bounds(f, &tape, solution.thinned, n, n_points);
    onv_vec_cleanup(&ranges);
    return status;
}

static uint32_t max_builds(const onv_eager *eager)
{
    size_t n = eager->ops.count > 0 ? MAX_STEPS / eager->ops.count : MAX_STEPS;
    return n > MIN_BUILDS ? (uint32_t)n : MIN_BUILDS;
}

static onv_status make(const onv_ckpt_problem *problem, uint32_t count, onv_ckpt_plans *plans,
                       onv_error *err)
{
    (void)count;
    front f = {.problem = problem, .max_builds = max_builds(problem->eager)};
    onv_arena arena;
    onv_arena_init(&arena, SIZE_MAX);
    onv_status status = try_named(&f, err);
    if (status == ONV_OK) status = try_chain(&f, &arena, err);
    for (size_t i = 0; i < f.plans.at.count && status == ONV_OK; i++) {
        f.plans.at.at[i].name = "optimal";
        if (!onv_vec_push(&plans->at, f.plans.at.at[i])) status = onv_fail_memory(err);
    }
    onv_ckpt_plans_cleanup(&f.plans);
    onv_arena_cleanup(&arena);
    return status;
}

const onv_ckpt_plan_kind onv_ckpt_optimal = {.name = "optimal",
                                             .summary = "for every peak the cheapest plan found",
                                             .in_all = true,
                                             .is_front = true,
                                             .make = make};

/* The front of plans: for every peak the cheapest known.
 *
 * Candidates are the plans of the tape's chain (tape.h, chain.h), exact under the chain's model of
 * memory, and the named plans with every count. Each is built and measured as a training program, and
 * what another one betters in both peak and recomputed operations is dropped: so no named plan is
 * better than all of these. */
#include "base/heap.h"
#include "ckpt/ckpt.h"
#include "ckpt/tape.h"

/* The chain takes n³ merges; most models have less units. */
enum { MAX_UNITS = 160, MAX_COUNTS = 128 };

typedef struct front {
    const onv_ckpt_problem *problem;
    onv_ckpt_plans plans; /* recomputation ascending, peaks descending */
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

static onv_status try_named(front *f, onv_error *err)
{
    uint32_t n = f->problem->units->count;
    ONV_TRY(try_kind(f, &onv_ckpt_none, 0, err));
    ONV_TRY(try_kind(f, &onv_ckpt_sqrt, 0, err));
    ONV_TRY(try_kind(f, &onv_ckpt_blocks, 0, err));
    for (uint32_t k = 1; k <= n && k <= MAX_COUNTS; k++) {
        ONV_TRY(try_kind(f, &onv_ckpt_every, k, err));
        ONV_TRY(try_kind(f, &onv_ckpt_segments, k, err));
    }
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

static onv_status try_chain(front *f, onv_arena *arena, onv_error *err)
{
    onv_tape_chain tape;
    onv_chain_solution solution;
    onv_chain_ranges ranges = {0};
    ONV_TRY(onv_tape_chain_build(f->problem, MAX_UNITS, arena, &tape, err));
    if (tape.chain.n_units == 0) return ONV_OK;
    ONV_TRY(onv_chain_solve(&tape.chain, arena, &solution, err));
    onv_status status = ONV_OK;
    for (uint32_t i = 0; i < solution.front.count && status == ONV_OK; i++) {
        status = onv_chain_plan(&solution, i, &ranges, err);
        if (status == ONV_OK) status = try_point(f, &tape, &ranges, err);
    }
    onv_vec_cleanup(&ranges);
    return status;
}

static onv_status make(const onv_ckpt_problem *problem, uint32_t count, onv_ckpt_plans *plans,
                       onv_error *err)
{
    (void)count;
    front f = {.problem = problem};
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
                                             .make = make};

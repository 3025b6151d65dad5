/* The front of plans: for every peak the cheapest known.
 *
 * Candidates are the plans of the tape's chain (tape.h, chain.h), exact under the chain's model of memory; segments
 * that grow shorter (uneven.h); and the other plans of the list. Each is measured as a training program, and what another
 * one betters in both peak and recomputed operations is dropped: so no plan of the list is better than all of these. Where
 * torch.compile was asked for, it stands among them with its memory budgets.
 *
 * Then each plan's small changes are tried, and segments of other plans in it (improve.h): where segments are inside each other
 * the chain's model takes operations to run again that pruned plans leave out.
 *
 * The search is bounded. Units beyond MAX_UNITS are joined, very many to fewer, fronts are thinned (chain.h), and of the
 * largest tapes not every candidate is built. What of this happened is noted in the model.
 *
 * Cost: MAX_UNITS³ / 6 merges of fronts, and programs of about MAX_STEPS operations in all, or of
 * MIN_BUILDS passes over the tape where these are more. */
#include <stdlib.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/heap.h"
#include "ckpt/ckpt.h"
#include "ckpt/front.h"
#include "ckpt/improve.h"
#include "ckpt/tape.h"
#include "ckpt/uneven.h"

enum { MAX_UNITS = 160, MAX_STEPS = 500000, MIN_BUILDS = 8 };

/* With kept results: so many steps from none to all, each with less of a search, as where units are joined. */
enum { PARTS = 8, MANY = 4, MANY_STEP = 4, PART_TRIES = 32, PART_FRONT = 16 };
enum { PART_WORK = 100000, JOINED_WORK = 125000 };

typedef struct front {
    const onv_ckpt_problem *problem;
    onv_ckpt_plans plans;
    uint32_t max_builds;      /* of programs, about */
    uint32_t n_fine, n_units; /* of the last chain */
    onv_tape_beside beside;
    bool is_thinned;
} front;

/* --- Candidates -------------------------------------------------------------------------------- */

static onv_status try_seeds(front *f, onv_error *err)
{
    onv_ckpt_plans plans = {0};
    onv_ckpt_problem problem = *f->problem;
    problem.rivals = NULL; /* a level ends by what its plans take */
    onv_status status = onv_ckpt_none.make(f->problem, &plans, err);
    if (status == ONV_OK) status = onv_uneven_make(&problem, &f->beside, &plans, err);
    if (status == ONV_OK) status = onv_front_offer_all(&f->plans, &plans, err);
    onv_ckpt_plans_cleanup(&plans);
    if (status != ONV_OK) return status;
    return onv_front_offer_all(&f->plans, f->problem->others, err);
}

/* Operations whose results may be kept, the dearest to run for each byte first. */
typedef struct candidate {
    uint32_t op;
    uint64_t macs, bytes;
} candidate;

typedef struct candidates {
    candidate *at;
    uint32_t count;
    uint64_t bytes;   /* of all */
    uint32_t *sorted; /* those that are kept at the time, ascending */
} candidates;

static int compare_worth(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    double p = (double)x->macs / (double)x->bytes, q = (double)y->macs / (double)y->bytes;
    return p != q ? (p < q) - (p > q) : (x->op > y->op) - (x->op < y->op);
}

static onv_status find_candidates(const onv_ckpt_problem *problem, onv_arena *arena, candidates *c,
                                  onv_error *err)
{
    const onv_eager *eager = problem->eager;
    *c = (candidates){.at = ONV_ARENA_ARRAY(arena, candidate, eager->first_loss_op),
                      .sorted = ONV_ARENA_ARRAY(arena, uint32_t, eager->first_loss_op)};
    if (c->at == NULL || c->sorted == NULL) return onv_fail_memory(err);
    for (uint32_t i = 0; i < eager->first_loss_op && problem->places->is_told; i++) {
        const onv_eager_op *op = &eager->ops.at[i];
        uint32_t keeper = onv_places_keeper(problem->places, eager, i);
        if (op->macs == 0 || !op->has_backward || keeper == UINT32_MAX) continue;
        candidate at = {keeper, op->macs, eager->tensors.at[op->out[0]].bytes};
        if (at.bytes == 0 || !onv_u64_add(c->bytes, at.bytes, &c->bytes)) continue;
        c->at[c->count++] = at;
    }
    qsort(c->at, c->count, sizeof *c->at, compare_worth);
    return ONV_OK;
}

/* The first ones that together have this part of the bytes. */
static uint32_t keep_part(candidates *c, uint32_t part, uint32_t parts)
{
    uint32_t n = 0;
    double bytes = 0;
    while (n < c->count && bytes + (double)c->at[n].bytes <= (double)c->bytes * part / parts) {
        bytes += (double)c->at[n].bytes;
        c->sorted[n] = c->at[n].op;
        n++;
    }
    onv_ops_sort(c->sorted, n);
    return n;
}

/* Of the operations that are kept those inside the plan's segments. */
static uint32_t keep_inside(const candidates *c, uint32_t n_kept, const onv_ckpt_plan *plan,
                            uint32_t *kept)
{
    uint32_t n = 0, k = 0;
    for (uint32_t i = 0; i < n_kept; i++) {
        while (k < plan->n_segments && plan->segments[k].last_op < c->sorted[i]) k++;
        if (k < plan->n_segments && plan->segments[k].first_op <= c->sorted[i])
            kept[n++] = c->sorted[i];
    }
    return n;
}

static onv_status try_point(front *f, const onv_tape_chain *tape, const onv_chain_ranges *ranges,
                            const candidates *c, uint32_t n_kept, onv_error *err)
{
    size_t n_most = ranges->count > 0 ? ranges->count : 1;
    onv_tape_segment *segments = onv_heap_calloc(n_most, sizeof *segments);
    uint32_t *kept = onv_heap_calloc((size_t)n_kept + 1, sizeof *kept);
    onv_ckpt_plans plans = {0};
    onv_ckpt_plan plan = {.name = "optimal", .segments = segments, .kept_ops = kept};
    onv_status status = ONV_OK;
    if (segments == NULL || kept == NULL) {
        status = onv_fail_memory(err);
    } else {
        for (size_t i = 0; i < ranges->count; i++)
            plan.n_segments +=
                onv_tape_chain_segment(f->problem, tape, ranges->at[i], &segments[plan.n_segments]);
        plan.prunes = f->problem->places->is_told;
        plan.n_kept_ops = keep_inside(c, n_kept, &plan, kept);
        status = onv_ckpt_plans_take(f->problem, &plan, &plans, err);
    }
    if (status == ONV_OK) status = onv_front_offer(&f->plans, &plans.at.at[0], err);
    onv_ckpt_plans_cleanup(&plans);
    onv_heap_free(segments);
    onv_heap_free(kept);
    return status;
}

static void note_bounds(const front *f)
{
    onv_model *model = f->problem->model;
    if (f->n_fine > f->n_units)
        onv_model_diag(
            model, ONV_NOTE, "optimal-joined", NULL,
            "optimal plans: %u stretches of operations were joined to %u, so better plans "
            "may exist",
            f->n_fine, f->n_units);
    else if (f->is_thinned)
        onv_model_diag(model, ONV_NOTE, "optimal-thinned", NULL,
                       "optimal plans: of many that differ little some were looked at, so slightly "
                       "better ones may exist");
}

/* Checkpoints as long as the work allows: n m^2 / 2. */
static void bound_search(onv_chain *chain, uint64_t work)
{
    uint32_t longest = 1;
    while (longest < chain->n_units && (uint64_t)chain->n_units * longest * longest / 2 < work)
        longest++;
    chain->max_range = longest;
    chain->inner_front = PART_FRONT;
}

static onv_status try_chain(front *f, const candidates *c, const onv_tape_chain_options *options,
                            uint32_t max_tries, onv_error *err)
{
    onv_tape_chain tape;
    onv_chain_solution solution = {0};
    onv_chain_ranges ranges = {0};
    onv_arena arena;
    uint32_t n = 0, n_points = 0;
    onv_arena_init(&arena, SIZE_MAX);
    onv_status status = onv_tape_chain_build(f->problem, &f->beside, options, &arena, &tape, err);
    bool is_known = !options->by_nodes && status == ONV_OK && tape.n_fine == f->n_fine;
    bool is_empty = status == ONV_OK && (tape.chain.n_units == 0 || is_known);
    bool is_part = options->n_kept_ops > 0;
    if (status == ONV_OK && (is_part || tape.n_fine > MAX_UNITS))
        bound_search(&tape.chain, is_part ? PART_WORK : JOINED_WORK);
    if (status == ONV_OK && !is_empty)
        status = onv_chain_solve(&tape.chain, &arena, &solution, err);
    if (status == ONV_OK && !is_empty) {
        n = n_points = solution.front.count;
        if (n > max_tries) n = max_tries;
    }
    for (uint32_t i = 0; i < n && status == ONV_OK; i++) {
        uint32_t point = n > 1 ? i * (n_points - 1) / (n - 1) : 0; /* both ends, evenly */
        status = onv_chain_plan(&solution, point, &ranges, err);
        if (status == ONV_OK && ranges.count > 0)
            status = try_point(f, &tape, &ranges, c, options->n_kept_ops, err);
    }
    if (status == ONV_OK && !is_empty) {
        f->n_fine = tape.n_fine;
        f->n_units = tape.chain.n_units;
        f->is_thinned |= solution.thinned || n < n_points;
    }
    onv_vec_cleanup(&ranges);
    onv_arena_cleanup(&arena);
    return status;
}

/* From nothing kept to all. */
static onv_status try_chains(front *f, onv_arena *arena, onv_error *err)
{
    candidates c;
    ONV_TRY(find_candidates(f->problem, arena, &c, err));
    uint32_t before = UINT32_MAX, step = 1;
    for (uint32_t part = 0; part <= PARTS; part += step) {
        uint32_t n_kept = keep_part(&c, part, PARTS);
        if (n_kept == before) continue;
        uint32_t tries = f->max_builds / (part == 0 ? 4 : 2 * PARTS);
        if (part > 0 && tries > PART_TRIES) tries = PART_TRIES;
        onv_tape_chain_options options = {
            .kept_ops = c.sorted, .n_kept_ops = n_kept, .max_units = MAX_UNITS, .by_nodes = true};
        ONV_TRY(try_chain(f, &c, &options, tries, err));
        if (f->n_fine > MANY * MAX_UNITS) step = MANY_STEP; /* what is joined tells less */
        options.by_nodes = false;
        if (part == 0) ONV_TRY(try_chain(f, &c, &options, tries, err));
        before = n_kept;
    }
    note_bounds(f);
    uint32_t n_all = keep_part(&c, 1, 1);
    return onv_front_improve(f->problem, c.sorted, n_all, &f->plans, err);
}

static uint32_t max_builds(const onv_eager *eager)
{
    size_t n = eager->ops.count > 0 ? MAX_STEPS / eager->ops.count : MAX_STEPS;
    return n > MIN_BUILDS ? (uint32_t)n : MIN_BUILDS;
}

static onv_status make(const onv_ckpt_problem *problem, onv_ckpt_plans *plans, onv_error *err)
{
    onv_ckpt_problem rivalled = *problem;
    front f = {.problem = &rivalled, .max_builds = max_builds(problem->eager)};
    rivalled.rivals = &f.plans;
    onv_arena arena;
    onv_arena_init(&arena, SIZE_MAX);
    onv_status status = onv_tape_beside_find(problem, &arena, &f.beside, err);
    if (status == ONV_OK) status = try_seeds(&f, err);
    if (status == ONV_OK) status = try_chains(&f, &arena, err);
    if (status == ONV_OK) status = onv_front_offer_all(&f.plans, problem->compiled, err);
    if (status == ONV_OK) status = onv_front_give(problem, &f.plans, "optimal", plans, err);
    onv_ckpt_plans_cleanup(&f.plans);
    onv_arena_cleanup(&arena);
    return status;
}

const onv_ckpt_plan_kind onv_ckpt_optimal = {.name = "optimal",
                                             .summary = "for every peak the cheapest plan found",
                                             .in_all = true,
                                             .is_front = true,
                                             .make = make};

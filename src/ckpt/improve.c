#include "ckpt/improve.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/heap.h"
#include "ckpt/front.h"

enum { MAX_POOL = 256, NO_NEWS = 1000 };

/* Of programs, less for large tapes, on which single changes matter less. */
enum { MAX_STEPS = 200000, STEPS_TIMES_OPS = 30000000 };

typedef struct search {
    const onv_ckpt_problem *problem;
    const uint32_t *candidates;
    uint32_t n_candidates;
    onv_ckpt_plans *front;
    uint64_t left;                   /* steps of programs that may be built */
    onv_tape_segment pool[MAX_POOL]; /* of all plans of the front */
    uint32_t n_pool;
    uint64_t few_macs; /* that are no news */
    onv_tape_segment *segments;
    uint32_t *kept;
    bool *is_used; /* of what the plan at hand keeps */
} search;

/* --- Single changes ---------------------------------------------------------------------------- */

static bool is_inside(const onv_ckpt_plan *plan, uint32_t op)
{
    for (uint32_t i = 0; i < plan->n_segments; i++)
        if (plan->segments[i].first_op <= op && op <= plan->segments[i].last_op) return true;
    return false;
}

/* With the result of `op` kept, or not any more; false: no segment makes it. */
static bool toggle(search *s, uint32_t op, onv_ckpt_plan *plan)
{
    uint32_t n = 0, i = 0;
    if (!is_inside(plan, op)) return false;
    for (; i < plan->n_kept_ops && plan->kept_ops[i] < op; i++) s->kept[n++] = plan->kept_ops[i];
    if (i < plan->n_kept_ops && plan->kept_ops[i] == op)
        i++;
    else
        s->kept[n++] = op;
    for (; i < plan->n_kept_ops; i++) s->kept[n++] = plan->kept_ops[i];
    plan->kept_ops = s->kept;
    plan->n_kept_ops = n;
    return true;
}

/* What is kept for the segment alone is kept no more. */
static bool leave_out(search *s, uint32_t index, onv_ckpt_plan *plan)
{
    uint32_t n = 0, n_kept = 0;
    for (uint32_t i = 0; i < plan->n_segments; i++)
        if (i != index) s->segments[n++] = plan->segments[i];
    plan->segments = s->segments;
    plan->n_segments = n;
    for (uint32_t i = 0; i < plan->n_kept_ops; i++)
        if (is_inside(plan, plan->kept_ops[i])) s->kept[n_kept++] = plan->kept_ops[i];
    plan->kept_ops = s->kept;
    plan->n_kept_ops = n_kept;
    return true;
}

/* Segments are in order, apart or inside each other, none twice. */
static bool are_nested(const onv_tape_segment *at, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (at[i].first_op > at[i].last_op) return false;
        for (uint32_t k = i + 1; k < n; k++) {
            bool is_apart = at[k].first_op > at[i].last_op,
                 ends_in = at[k].last_op <= at[i].last_op;
            bool is_same = at[k].first_op == at[i].first_op && at[k].last_op == at[i].last_op;
            if (at[k].first_op < at[i].first_op || is_same || !(is_apart || ends_in)) return false;
        }
    }
    return true;
}

/* A segment of another plan; false: the plan has it, or it does not go with the others. */
static bool add(search *s, onv_tape_segment segment, onv_ckpt_plan *plan)
{
    uint32_t n = 0, i = 0;
    for (; i < plan->n_segments; i++) {
        onv_tape_segment at = plan->segments[i];
        bool is_behind = at.first_op > segment.first_op ||
                         (at.first_op == segment.first_op && at.last_op < segment.last_op);
        if (is_behind) break;
        s->segments[n++] = at;
    }
    s->segments[n++] = segment;
    for (; i < plan->n_segments; i++) s->segments[n++] = plan->segments[i];
    plan->segments = s->segments;
    plan->n_segments = n;
    return are_nested(s->segments, n);
}

/* --- Changes of a plan ------------------------------------------------------------------------- */

static uint32_t count_changes(const search *s, const onv_ckpt_plan *plan)
{
    return s->n_candidates + s->n_pool + plan->n_segments;
}

static bool change(search *s, uint32_t i, onv_ckpt_plan *plan)
{
    if (i < s->n_candidates) return toggle(s, s->candidates[i], plan);
    i -= s->n_candidates;
    if (i < s->n_pool) return add(s, s->pool[i], plan);
    return leave_out(s, i - s->n_pool, plan);
}

/* Programs are built for it: of the tape, and of the segments once more. */
static uint64_t steps_of(const search *s, const onv_ckpt_plan *plan)
{
    uint64_t steps = s->problem->eager->ops.count;
    for (uint32_t i = 0; i < plan->n_segments; i++)
        steps += plan->segments[i].last_op - plan->segments[i].first_op + 1;
    return steps;
}

/* One of the front is as good, but for what does not matter. */
static bool is_no_news(const search *s, const onv_ckpt_plan *plan)
{
    uint64_t peak = plan->peak_bytes + plan->peak_bytes / NO_NEWS;
    uint64_t macs = plan->recomputed_macs > 0 ? plan->recomputed_macs + s->few_macs : 0;
    for (size_t i = 0; i < s->front->at.count; i++)
        if (s->front->at.at[i].peak_bytes <= peak && s->front->at.at[i].recomputed_macs <= macs)
            return true;
    return false;
}

static onv_status offer(search *s, onv_ckpt_plan *plan, onv_error *err)
{
    uint64_t steps = steps_of(s, plan);
    s->left -= steps < s->left ? steps : s->left;
    plan->prunes = true; /* as borders are applied */
    plan->sequential = plan->loop_from = 0;
    ONV_TRY(onv_ckpt_measure(s->problem, plan, s->is_used, err));
    if (is_no_news(s, plan)) return ONV_OK;
    ONV_TRY(onv_ckpt_keep(s->problem, s->is_used, plan, err));
    return onv_front_offer(s->front, plan, err);
}

/* As many of its changes as the steps allow, evenly. */
static onv_status try_changes(search *s, const onv_ckpt_plan *plan, uint64_t steps, onv_error *err)
{
    uint64_t n = count_changes(s, plan), tries = steps / steps_of(s, plan);
    if (tries > n) tries = n;
    for (uint64_t i = 0; i < tries; i++) {
        onv_ckpt_plan changed = *plan;
        if (change(s, (uint32_t)(i * n / tries), &changed)) ONV_TRY(offer(s, &changed, err));
    }
    return ONV_OK;
}

/* --- All of them ------------------------------------------------------------------------------- */

static bool has(const onv_ckpt_plans *plans, const onv_ckpt_plan *plan)
{
    for (size_t i = 0; i < plans->at.count; i++)
        if (plans->at.at[i].peak_bytes == plan->peak_bytes &&
            plans->at.at[i].recomputed_macs == plan->recomputed_macs)
            return true;
    return false;
}

/* What the front has and was not changed yet, and the segments of all. False: no memory. */
static bool begin_round(search *s, const onv_ckpt_plans *old, onv_ckpt_plans *fresh)
{
    fresh->at.count = 0;
    s->n_pool = 0;
    for (size_t i = 0; i < s->front->at.count; i++) {
        const onv_ckpt_plan *plan = &s->front->at.at[i];
        for (uint32_t k = 0; k < plan->n_segments && s->n_pool < MAX_POOL; k++) {
            uint32_t same = 0;
            while (same < s->n_pool &&
                   memcmp(&s->pool[same], &plan->segments[k], sizeof s->pool[same]) != 0)
                same++;
            if (same == s->n_pool) s->pool[s->n_pool++] = plan->segments[k];
        }
        if (!has(old, plan) && !onv_vec_push(&fresh->at, *plan)) return false;
    }
    return true;
}

static uint32_t most_segments(const search *s)
{
    uint32_t n = 0;
    for (size_t i = 0; i < s->front->at.count; i++)
        if (s->front->at.at[i].n_segments > n) n = s->front->at.at[i].n_segments;
    return n;
}

/* Plans of one round have at most one segment more than those before. */
static onv_status run_round(search *s, const onv_ckpt_plans *fresh, onv_ckpt_plans *old,
                            onv_error *err)
{
    onv_status status = ONV_OK;
    s->segments = onv_heap_calloc((size_t)most_segments(s) + 1, sizeof *s->segments);
    if (s->segments == NULL) return onv_fail_memory(err);
    for (size_t i = 0; i < fresh->at.count && status == ONV_OK; i++) {
        status = try_changes(s, &fresh->at.at[i], s->left / (fresh->at.count - i), err);
        if (status == ONV_OK && !onv_vec_push(&old->at, fresh->at.at[i]))
            status = onv_fail_memory(err);
    }
    onv_heap_free(s->segments);
    return status;
}

static uint64_t macs_of(const onv_eager *eager)
{
    uint64_t macs = 0;
    for (uint32_t i = 0; i < eager->first_loss_op; i++)
        if (!onv_u64_add(macs, eager->ops.at[i].macs, &macs)) return UINT64_MAX;
    return macs;
}

onv_status onv_front_improve(const onv_ckpt_problem *problem, const uint32_t *candidates,
                             uint32_t n_candidates, onv_ckpt_plans *front, onv_error *err)
{
    search s = {.problem = problem,
                .candidates = candidates,
                .n_candidates = n_candidates,
                .front = front,
                .left = STEPS_TIMES_OPS / (problem->eager->ops.count + 1),
                .few_macs = macs_of(problem->eager) / NO_NEWS};
    onv_ckpt_plans old = {0}, fresh = {0};
    if (!problem->places->is_told) return ONV_OK;
    if (s.left > MAX_STEPS) s.left = MAX_STEPS;
    s.kept = onv_heap_calloc((size_t)problem->eager->first_loss_op + 1, sizeof *s.kept);
    s.is_used = onv_heap_calloc((size_t)problem->eager->first_loss_op + 1, sizeof *s.is_used);
    onv_status status = s.kept != NULL && s.is_used != NULL ? ONV_OK : onv_fail_memory(err);
    for (bool ends = false; status == ONV_OK && !ends;) {
        if (!begin_round(&s, &old, &fresh)) status = onv_fail_memory(err);
        ends = fresh.at.count == 0 || s.left == 0;
        if (status == ONV_OK && !ends) status = run_round(&s, &fresh, &old, err);
    }
    onv_heap_free(s.kept);
    onv_heap_free(s.is_used);
    onv_ckpt_plans_cleanup(&old);
    onv_ckpt_plans_cleanup(&fresh);
    return status;
}

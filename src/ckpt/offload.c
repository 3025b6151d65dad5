/* Plans that keep tensors on the host.
 *
 * `offload` is torch.autograd.graph.save_on_cpu(pin_memory=True) around the network's forward. `joint` is a
 * front like `optimal`, in peak, work that runs again and bytes moved: of plans of `optimal` each with what is
 * kept before a place of the tape on the host. What is kept first is needed last: where it is away, it is away
 * the longest, and until then one byte is as good as another. Places are those where parts of what a plan
 * keeps are full.
 *
 * Cost: that of `optimal`, and MAX_BASES times MAX_PLACES programs, fewer of large tapes. */
#include <string.h>

#include "base/fail.h"
#include "ckpt/front.h"

enum { MAX_BASES = 12, MAX_PLACES = 8, MIN_PLACES = 2, MAX_STEPS = 100000 };

static onv_status make_offload(const onv_ckpt_problem *problem, onv_ckpt_plans *plans,
                               onv_error *err)
{
    const onv_ckpt_plan plan = {.name = "offload", .saves_on_cpu = true};
    return onv_ckpt_plans_take(problem, &plan, plans, err);
}

typedef struct search {
    const onv_ckpt_problem *problem;
    onv_ckpt_plans front;
    uint64_t *kept; /* by operation, with the plan at hand: what it is the first to keep */
    bool *is_seen;  /* by storage */
    uint32_t *made_by;
} search;

static void keep(search *s, uint32_t storage, uint32_t op)
{
    const onv_eager_storage *at = &s->problem->eager->storages.at[storage];
    if (s->is_seen[storage] || at->kind < ONV_STORAGE_ACTIVATION || at->on_host) return;
    s->is_seen[storage] = true;
    s->kept[op] += at->bytes;
}

/* What the plan keeps from forward to backward, by the operation that makes it stay: about, for of what
 * enters a segment its second run may leave out some. */
static void find_kept(search *s, const onv_ckpt_plan *plan)
{
    const onv_eager *eager = s->problem->eager;
    uint32_t end = 0, begin = 0, next = 0, kept = 0;
    memset(s->kept, 0, eager->ops.count * sizeof *s->kept);
    memset(s->is_seen, 0, eager->storages.count * sizeof *s->is_seen);
    for (uint32_t i = 0; i < eager->first_loss_op; i++) {
        const onv_eager_op *op = &eager->ops.at[i];
        for (; next < plan->n_segments && plan->segments[next].first_op == i; next++) {
            if (i < end) continue;
            begin = i;
            end = plan->segments[next].last_op + 1;
        }
        bool is_kept = kept < plan->n_kept_ops && plan->kept_ops[kept] == i;
        kept += is_kept;
        for (uint32_t k = 0; k < op->n_saved && i >= end; k++) keep(s, op->saved[k], i);
        for (uint32_t k = 0; k < op->n_out && is_kept; k++)
            keep(s, eager->tensors.at[op->out[k]].storage, begin);
        for (uint32_t k = 0; k < op->n_in && i < end; k++) {
            uint32_t in = eager->tensors.at[op->in[k].tensor].storage;
            if (s->made_by[in] < begin) keep(s, in, begin);
        }
    }
}

/* Where the code can be told to end it, at or behind `op`: in no segment, before the loss at the latest. */
static uint32_t place_at(const search *s, const onv_ckpt_plan *plan, uint32_t op)
{
    uint32_t end = s->problem->eager->first_loss_op, next = 0;
    if (!s->problem->places->is_told) return end;
    for (; op < end; op++) {
        while (next < plan->n_segments && plan->segments[next].last_op < op) next++;
        bool is_inside = next < plan->n_segments && plan->segments[next].first_op < op;
        if (!is_inside && s->problem->places->is_known[op]) break;
    }
    return op;
}

static onv_status try_until(search *s, const onv_ckpt_plan *base, uint32_t until, onv_error *err)
{
    onv_ckpt_plan plan = *base;
    plan.offload_until = until;
    plan.sequential = plan.loop_from = 0;
    plan.prunes = s->problem->places->is_told; /* as borders are applied */
    ONV_TRY(onv_ckpt_measure(s->problem, &plan, NULL, err));
    return onv_front_offer(&s->front, &plan, err);
}

static onv_status try_base(search *s, const onv_ckpt_plan *base, uint32_t n_places, onv_error *err)
{
    uint32_t n = s->problem->eager->first_loss_op, last = 0, part = 1;
    double total = 0, sum = 0;
    if (base->compiles) return ONV_OK;
    find_kept(s, base);
    for (uint32_t i = 0; i < n; i++) total += (double)s->kept[i];
    for (uint32_t i = 0; i < n && total > 0; i++) {
        sum += (double)s->kept[i];
        if (sum * n_places < total * part) continue;
        while (part <= n_places && sum * n_places >= total * part) part++;
        uint32_t until = place_at(s, base, i + 1);
        if (until > last) ONV_TRY(try_until(s, base, until, err));
        if (until > last) last = until;
    }
    return ONV_OK;
}

/* Of plans that move nothing some, evenly, both ends. */
static onv_status try_bases(search *s, const onv_ckpt_plans *bases, onv_error *err)
{
    size_t n = bases->at.count < MAX_BASES ? bases->at.count : MAX_BASES;
    size_t n_places = MAX_STEPS / (MAX_BASES * (s->problem->eager->ops.count + 1));
    if (n_places < MIN_PLACES) n_places = MIN_PLACES;
    if (n_places > MAX_PLACES) n_places = MAX_PLACES;
    ONV_TRY(onv_front_offer_all(&s->front, bases, err));
    for (size_t i = 0; i < n; i++) {
        size_t at = n > 1 ? i * (bases->at.count - 1) / (n - 1) : 0;
        ONV_TRY(try_base(s, &bases->at.at[at], (uint32_t)n_places, err));
    }
    return ONV_OK;
}

static onv_status prepare(search *s, onv_arena *arena, onv_error *err)
{
    const onv_eager *eager = s->problem->eager;
    s->kept = ONV_ARENA_ARRAY(arena, uint64_t, eager->ops.count);
    s->is_seen = ONV_ARENA_ARRAY(arena, bool, eager->storages.count);
    s->made_by = ONV_ARENA_ARRAY(arena, uint32_t, eager->storages.count);
    if (arena->failed) return onv_fail_memory(err);
    for (uint32_t i = (uint32_t)eager->ops.count; i-- > 0;)
        for (uint32_t k = 0; k < eager->ops.at[i].n_out; k++)
            s->made_by[eager->tensors.at[eager->ops.at[i].out[k]].storage] = i;
    return ONV_OK;
}

static onv_status make_joint(const onv_ckpt_problem *problem, onv_ckpt_plans *plans, onv_error *err)
{
    onv_ckpt_problem given = *problem;
    search s = {.problem = &given};
    onv_ckpt_plans bases = {0};
    onv_arena arena;
    onv_arena_init(&arena, SIZE_MAX);
    onv_status status = onv_ckpt_optimal.make(problem, &bases, err);
    given.rivals = &s.front;
    if (status == ONV_OK) status = prepare(&s, &arena, err);
    if (status == ONV_OK) status = try_bases(&s, &bases, err);
    given.others = &bases;
    if (status == ONV_OK) status = onv_front_give(&given, &s.front, "joint", plans, err);
    onv_ckpt_plans_cleanup(&bases);
    onv_ckpt_plans_cleanup(&s.front);
    onv_arena_cleanup(&arena);
    return status;
}

const onv_ckpt_plan_kind onv_ckpt_offload = {.name = "offload",
                                             .summary =
                                                 "all that is saved waits on the host: save_on_cpu",
                                             .make = make_offload};

const onv_ckpt_plan_kind onv_ckpt_joint = {
    .name = "joint",
    .summary = "a front as optimal, where what is kept may wait on the host",
    .is_front = true,
    .make = make_joint};

/* `optimal`: an order with the least peak, and the proof of it; or the best that the effort finds,
 * and a bound that no order is below.
 *
 *     quick orders, a bound          they often agree: done
 *     partition, reduce, partition   groups of nodes that can be ordered one by one
 *     search                         of each group whose quick order passes the bound
 *
 * A group needs no better order than the bound of the whole asks for, so most need no search. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "order/order_dag.h"

enum {
    DEFAULT_EFFORT = 1000000, /* about a second */
    STEPS_PER_UNIT = 128,     /* of bounds */
    BOUND_SHARE = 8,          /* of the effort at most: an eighth */
    NARROW_SHARE = 4,         /* of the effort for short searches: a quarter */
    RAISE_SHARE = 4,          /* of what is left for a higher bound */
};

typedef struct solver {
    const onv_order_options *options;
    uint64_t budget;
    uint64_t searched;
    uint64_t bound; /* no order of the whole has a lower peak */
} solver;

/* --- One group ---------------------------------------------------------------------------------- */

/* One search with a share of the budget; adds what it used. */
static onv_status run(solver *s, const onv_dag *dag, onv_dag_search *job, uint64_t share,
                      uint64_t limit, uint64_t *used, onv_error *err)
{
    if (share > s->budget) share = s->budget;
    if (job->lower >= job->upper || share == 0) return ONV_OK;
    job->budget = share;
    onv_status status = onv_dag_search_run(dag, job, limit, err);
    s->budget -= share - job->budget;
    *used += share - job->budget;
    return status;
}

/* Just below the order, and most of the way to it from the bound, each in both directions: searches that take turns, so
 * that all spend as much, and that are twice as long after they came to nothing. The direction whose proofs raised the
 * bound less spends a quarter on them. */
static onv_status narrow(solver *s, const onv_dag *dag, onv_dag_search *job, onv_error *err)
{
    enum { SEARCHES = 4, LESS = 4, UNITS_PER_NODE = 2, FIRST_SHARE = 64 };
    uint64_t rest = s->budget - s->budget / NARROW_SHARE, first = s->budget / FIRST_SHARE + 1;
    uint64_t short_proof = (uint64_t)dag->n_nodes * UNITS_PER_NODE;
    if (first > short_proof) first = short_proof;
    uint64_t length[SEARCHES] = {first, first, first, first}, turn[SEARCHES] = {0}, raised[2] = {0};
    while (s->budget > rest && job->lower < job->upper) {
        unsigned next = 0;
        for (unsigned i = 1; i < SEARCHES; i++)
            if (turn[i] < turn[next]) next = i;
        uint64_t before = job->lower, used = 0;
        uint64_t limit = next < 2 ? job->upper - 1 : before + (job->upper - before) / 4 * 3;
        job->backward = next % 2 == 0; /* first: it mostly is better */
        ONV_TRY(run(s, dag, job, length[next], limit, &used, err));
        raised[next % 2] += job->lower - before;
        if (used == length[next]) length[next] *= 2;
        turn[next] += next >= 2 && raised[next % 2] < raised[1 - next % 2] ? used * LESS : used;
    }
    job->backward = raised[0] >= raised[1];
    return ONV_OK;
}

/* Below the order again and again, until there is no better one or the share is spent. */
static onv_status descend(solver *s, const onv_dag *dag, onv_dag_search *job, uint64_t share,
                          onv_error *err)
{
    uint64_t before, used = 0;
    do {
        before = job->upper;
        ONV_TRY(run(s, dag, job, share - used, before - 1, &used, err));
    } while (job->upper < before && used < share);
    return ONV_OK;
}

/* A proof just below the best order takes less than one that climbs there from the bound: the higher the limit, the more
 * nodes run without a choice. If it fails, the rest of the budget raises the bound. */
static onv_status search(solver *s, const onv_dag *dag, onv_dag_search *job, onv_error *err)
{
    ONV_TRY(narrow(s, dag, job, err));
    ONV_TRY(descend(s, dag, job, s->budget - s->budget / RAISE_SHARE, err));
    uint64_t beyond = job->upper, ignored = 0;
    while (s->budget > 1 && job->lower < beyond) {
        uint64_t middle = job->lower + (beyond - job->lower) / 2;
        ONV_TRY(run(s, dag, job, s->budget / 2, middle, &ignored, err));
        if (job->lower <= middle) beyond = middle;
    }
    s->searched += job->searched;
    return ONV_OK;
}

/* Improves the order of a part, as far as the whole gains from it. */
static onv_status search_part(solver *s, const onv_dag *part, uint32_t *order, onv_error *err)
{
    uint64_t lower, upper, units = s->budget / BOUND_SHARE;
    ONV_TRY(onv_dag_improve(part, order, &upper, err));
    if (upper <= s->bound) return ONV_OK;
    ONV_TRY(onv_dag_bound(part, order, units * STEPS_PER_UNIT, &lower, err));
    if (lower < s->bound) lower = s->bound;
    onv_dag_search job = {.lower = lower, .upper = upper, .order = order, .options = s->options};
    ONV_TRY(search(s, part, &job, err));
    s->bound = job.lower;
    return ONV_OK;
}

/* --- All groups --------------------------------------------------------------------------------- */

typedef struct group {
    uint32_t first, count; /* in the order */
    uint64_t before;       /* bytes live before it */
    uint64_t peak_bytes;
} group;

static int compare_groups(const void *a, const void *b)
{
    const group *x = a, *y = b;
    if (x->peak_bytes != y->peak_bytes) return x->peak_bytes > y->peak_bytes ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

/* The groups that pass the bound, the worst first; `groups` has room for all nodes. */
static uint32_t list_groups(const onv_dag *dag, const uint32_t *order, const uint32_t *group_of,
                            const uint64_t *steps, uint64_t bound, group *groups)
{
    uint32_t n = 0;
    for (uint32_t s = 0, end; s < dag->n_nodes; s = end) {
        group g = {.first = s, .before = steps[s] - dag->need[order[s]]};
        for (end = s; end < dag->n_nodes && group_of[order[end]] == group_of[order[s]]; end++)
            if (steps[end] > g.peak_bytes) g.peak_bytes = steps[end];
        g.count = end - s;
        if (g.peak_bytes > bound) groups[n++] = g;
    }
    qsort(groups, n, sizeof *groups, compare_groups);
    return n;
}

typedef onv_status (*part_fn)(solver *s, const onv_dag *part, uint32_t *order, onv_error *err);

/* Calls for the nodes of one group as a dag of their own, and puts them in the order it gives if
 * that is better. */
static onv_status solve_group(solver *s, const onv_dag *dag, const uint32_t *group_of,
                              uint32_t *nodes, const group *g, part_fn solve, onv_error *err)
{
    onv_dag part;
    ONV_TRY(
        onv_dag_part(dag, group_of, group_of[nodes[0]], nodes, g->count, g->before, &part, err));
    uint32_t *order = ONV_ARENA_ARRAY(&part.arena, uint32_t, g->count);
    uint32_t *sorted = ONV_ARENA_ARRAY(&part.arena, uint32_t, g->count);
    onv_status status = part.arena.failed ? onv_fail_memory(err) : ONV_OK;
    for (uint32_t i = 0; status == ONV_OK && i < g->count; i++) order[i] = i;
    uint64_t before = 0, after = 0;
    if (status == ONV_OK) status = onv_dag_peak(&part, order, &before, err);
    if (status == ONV_OK) status = solve(s, &part, order, err);
    if (status == ONV_OK) status = onv_dag_peak(&part, order, &after, err);
    for (uint32_t i = 0; status == ONV_OK && i < g->count; i++) sorted[i] = nodes[order[i]];
    if (status == ONV_OK && after < before) memcpy(nodes, sorted, g->count * sizeof *nodes);
    onv_dag_cleanup(&part);
    return status;
}

/* Partitions, and solves each group that passes the bound. */
static onv_status solve_groups(solver *s, const onv_dag *dag, uint32_t *order, part_fn solve,
                               onv_error *err)
{
    onv_arena arena;
    onv_arena_init(&arena, SIZE_MAX);
    uint32_t n_groups, n = 0;
    uint32_t *group_of = ONV_ARENA_ARRAY(&arena, uint32_t, dag->n_nodes);
    uint64_t *steps = ONV_ARENA_ARRAY(&arena, uint64_t, dag->n_nodes);
    group *groups = ONV_ARENA_ARRAY(&arena, group, dag->n_nodes);
    onv_status status = arena.failed ? onv_fail_memory(err) : ONV_OK;
    if (status == ONV_OK)
        status = onv_dag_partition(dag, s->bound, order, group_of, &n_groups, err);
    if (status == ONV_OK) status = onv_dag_steps(dag, order, steps, err);
    if (status == ONV_OK) n = list_groups(dag, order, group_of, steps, s->bound, groups);
    for (uint32_t i = 0; i < n && status == ONV_OK; i++) {
        const group *g = &groups[i];
        if (g->peak_bytes <= s->bound)
            break; /* earlier ones have raised it, the rest is no worse */
        if (g->count == 1)
            s->bound = g->peak_bytes; /* there is but one order */
        else
            status = solve_group(s, dag, group_of, order + g->first, g, solve, err);
    }
    onv_arena_cleanup(&arena);
    return status;
}

/* --- The whole ---------------------------------------------------------------------------------- */

/* Joins nodes where that is safe; then again. */
static onv_status reduce_part(solver *s, const onv_dag *part, uint32_t *order, onv_error *err)
{
    onv_dag_reduced reduced;
    uint64_t peak;
    ONV_TRY(onv_dag_reduce(part, &reduced, err));
    uint32_t n = reduced.dag.n_nodes, n_order = 0;
    uint32_t *joined = ONV_ARENA_ARRAY(&reduced.dag.arena, uint32_t, n);
    onv_status status = joined != NULL ? ONV_OK : onv_fail_memory(err);
    if (status == ONV_OK) status = onv_dag_greedy(&reduced.dag, joined, &peak, err);
    if (status == ONV_OK) status = solve_groups(s, &reduced.dag, joined, search_part, err);
    for (uint32_t i = 0; status == ONV_OK && i < n; i++)
        for (uint32_t k = reduced.start[joined[i]]; k < reduced.start[joined[i] + 1]; k++)
            order[n_order++] = reduced.sequence[k];
    onv_dag_cleanup(&reduced.dag);
    return status;
}

static onv_status solve(solver *s, const onv_dag *dag, uint32_t *order, onv_error *err)
{
    return solve_groups(s, dag, order, reduce_part, err);
}

/* --- Inputs that nobody reads ------------------------------------------------------------------- */

/* They are live in the first step, so it matters which node comes first: each that may is tried
 * with the best order of the others behind it. */
typedef struct start {
    uint64_t bytes;
    uint32_t node;
} start;

static int compare_starts(const void *a, const void *b)
{
    const start *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

static uint32_t list_starts(const onv_dag *dag, start *starts)
{
    uint32_t n = 0;
    for (uint32_t node = 0; node < dag->n_nodes; node++) {
        bool waits = false;
        for (uint32_t i = dag->reads.start[node]; i < dag->reads.start[node + 1]; i++)
            waits |= dag->values[dag->reads.at[i]].writer != ONV_DAG_NONE;
        uint64_t bytes = dag->start_bytes + onv_dag_first_need(dag, node);
        if (!waits) starts[n++] = (start){bytes, node};
    }
    qsort(starts, n, sizeof *starts, compare_starts);
    return n;
}

/* `order` with the node moved to its front, the rest solved. */
static onv_status solve_behind(solver *s, const onv_dag *dag, uint32_t node, uint32_t *order,
                               uint32_t *group_of, uint64_t *steps, onv_error *err)
{
    uint32_t at = dag->n_nodes - 1;
    for (uint32_t i = 0; i < dag->n_nodes; i++) group_of[i] = 1;
    group_of[node] = 0;
    while (order[at] != node) at--;
    memmove(order + 1, order, at * sizeof *order);
    order[0] = node;
    if (dag->n_nodes == 1) return ONV_OK;
    ONV_TRY(onv_dag_steps(dag, order, steps, err));
    group rest = {1, dag->n_nodes - 1, steps[1] - dag->need[order[1]], 0};
    return solve_group(s, dag, group_of, order + 1, &rest, solve, err);
}

static onv_status try_starts(solver *s, const onv_dag *dag, uint32_t *order, uint64_t peak,
                             onv_arena *arena, onv_error *err)
{
    uint32_t *group_of = ONV_ARENA_ARRAY(arena, uint32_t, dag->n_nodes);
    uint32_t *tried = ONV_ARENA_ARRAY(arena, uint32_t, dag->n_nodes);
    uint64_t *steps = ONV_ARENA_ARRAY(arena, uint64_t, dag->n_nodes);
    start *starts = ONV_ARENA_ARRAY(arena, start, dag->n_nodes);
    if (arena->failed) return onv_fail_memory(err);
    uint32_t n = list_starts(dag, starts);
    uint64_t least = peak; /* no order is below that */
    for (uint32_t i = 0; i < n && starts[i].bytes < peak; i++) {
        solver sub = *s;
        uint64_t units = dag->n_nodes / STEPS_PER_UNIT + 1, bytes;
        if (starts[i].bytes > sub.bound) sub.bound = starts[i].bytes;
        if (sub.budget > units) {
            sub.budget -= units;
            memcpy(tried, order, dag->n_nodes * sizeof *tried);
            ONV_TRY(solve_behind(&sub, dag, starts[i].node, tried, group_of, steps, err));
            ONV_TRY(onv_dag_peak(dag, tried, &bytes, err));
            if (bytes < peak) {
                memcpy(order, tried, dag->n_nodes * sizeof *tried);
                peak = bytes;
            }
        }
        s->budget = sub.budget;
        s->searched = sub.searched;
        if (sub.bound < least) least = sub.bound;
    }
    if (peak < least) least = peak;
    if (least > s->bound) s->bound = least;
    return ONV_OK;
}

/* --- The strategy ------------------------------------------------------------------------------- */

static onv_status improve(solver *s, const onv_dag *dag, onv_dag_order *order, onv_error *err)
{
    onv_arena arena;
    uint64_t bytes;
    onv_arena_init(&arena, SIZE_MAX);
    uint32_t *tried = ONV_ARENA_ARRAY(&arena, uint32_t, dag->n_nodes);
    onv_status status = tried != NULL ? ONV_OK : onv_fail_memory(err);
    if (status == ONV_OK) {
        memcpy(tried, order->nodes, dag->n_nodes * sizeof *tried);
        if (dag->first_bytes > 0)
            status = try_starts(s, dag, tried, order->peak_bytes, &arena, err);
        else
            status = solve(s, dag, tried, err);
    }
    if (status == ONV_OK) status = onv_dag_peak(dag, tried, &bytes, err);
    if (status == ONV_OK && bytes < order->peak_bytes) {
        memcpy(order->nodes, tried, dag->n_nodes * sizeof *tried);
        order->peak_bytes = bytes;
    }
    onv_arena_cleanup(&arena);
    return status;
}

onv_status onv_dag_order_optimal(const onv_dag *dag, const onv_order_options *options,
                                 onv_dag_order *order, onv_error *err)
{
    solver s = {.options = options, .budget = DEFAULT_EFFORT};
    if (options != NULL && options->effort > 0) s.budget = options->effort;
    ONV_TRY(onv_dag_improve(dag, order->nodes, &order->peak_bytes, err));
    ONV_TRY(
        onv_dag_bound(dag, order->nodes, s.budget / BOUND_SHARE * STEPS_PER_UNIT, &s.bound, err));
    if (s.bound < order->peak_bytes) ONV_TRY(improve(&s, dag, order, err));
    order->has_bound = true;
    order->lower_bound_bytes = s.bound;
    order->searched = s.searched;
    return ONV_OK;
}

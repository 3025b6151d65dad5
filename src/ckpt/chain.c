#include "ckpt/chain.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/heap.h"
#include "base/quota.h"

/* What a point was made of: keep the first unit (a range of one, too), or checkpoint up to this split. */
#define KEEP UINT32_C(0)

typedef ONV_VEC(onv_chain_point) point_list;

/* What most splits are told by to be no good: fronts themselves lie far apart in memory. */
typedef struct front_ends {
    uint64_t least_peak, least_cost; /* UINT64_MAX: no plan */
} front_ends;

/* By unit: ranges from it that end up to `end` are those from `period` units earlier, moved. */
typedef struct twin {
    uint32_t period, end;
} twin;

/* The range being solved is [s, t). */
typedef struct solver {
    const onv_chain *chain;
    onv_arena *arena;
    onv_chain_front *fronts;
    uint32_t *first_tensor; /* by unit: index of its first one; n_units + 1 entries */
    uint64_t *crossing;     /* by place q: made in [s, q) and read in [q, t) */
    uint64_t *crossing_on;  /* of these, what somebody saves */
    uint64_t *entering;     /* by pair of units: what a checkpoint that begins with
                               the first one holds for itself from the second one on */
    uint64_t *total_cost;   /* of units before q; n_units + 1 entries */
    front_ends *ends;       /* by range, in rows of those that begin together */
    front_ends *ends_to;    /* the same in rows of those that end together */
    twin *twins;
    point_list made, merged, best;
    bool thinned;
    bool failed; /* memory */
} solver;

/* Of range [s, t) in rows of those that begin together; the other way round of those that end together. */
static size_t place_of(const onv_chain *chain, uint32_t s, uint32_t t)
{
    return (size_t)s * (chain->n_units + 1) + t;
}

/* --- What ranges hold -------------------------------------------------------------------------- */

/* The last reader before t of a tensor; 0 where there is none (no unit reads before it was made). */
static uint32_t last_reader(const onv_chain_tensor *v, uint32_t t)
{
    uint32_t n = v->n_readers;
    while (n > 0 && v->readers[n - 1].unit >= t) n--;
    return n == 0 ? 0 : v->readers[n - 1].unit;
}

static bool is_kept(const onv_chain_tensor *v, uint32_t t)
{
    if (v->saved_by_maker) return true;
    for (uint32_t k = 0; k < v->n_readers && v->readers[k].unit < t; k++)
        if (v->readers[k].saves) return true;
    return false;
}

/* Held by unit s, kept, while [s + 1, t) is trained. */
static uint64_t kept_bytes(const onv_chain *chain, const uint32_t *first_tensor, uint32_t s,
                           uint32_t t)
{
    uint64_t bytes = chain->units[s].own_bytes;
    for (uint32_t i = first_tensor[s]; i < first_tensor[s + 1]; i++)
        if (is_kept(&chain->tensors[i], t)) bytes += chain->tensors[i].bytes;
    return bytes;
}

/* By a unit that reads it: then it is held for that one, whoever made it. */
static bool is_saved(const onv_chain_tensor *v)
{
    for (uint32_t k = 0; k < v->n_readers; k++)
        if (v->readers[k].saves) return true;
    return false;
}

/* Held for its readers by a checkpoint of [s, q) while [q, t) is trained. */
static uint64_t crossing_bytes(const onv_chain *chain, uint32_t s, uint32_t q, uint32_t t)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < chain->n_tensors; i++) {
        const onv_chain_tensor *v = &chain->tensors[i];
        if (v->maker >= s && v->maker < q && last_reader(v, t) >= q && is_saved(v))
            bytes += v->bytes;
    }
    return bytes;
}

/* The unit that makes a checkpoint that begins at s hold the tensor: the next one to read it. UINT32_MAX: none. */
static uint32_t entry(const onv_chain_tensor *v, uint32_t s)
{
    if (v->maker >= s || is_saved(v)) return UINT32_MAX;
    for (uint32_t k = 0; k < v->n_readers; k++)
        if (v->readers[k].unit >= s) return v->readers[k].unit;
    return UINT32_MAX;
}

static uint32_t longest(const onv_chain *chain)
{
    return chain->max_range > 0 ? chain->max_range : chain->n_units;
}

/* Of running a unit in [.., t): in a second run for its readers there alone. */
static uint64_t cost_of(const onv_chain *chain, uint32_t u, uint32_t t)
{
    const onv_chain_unit *unit = &chain->units[u];
    return t < chain->n_units && t - u <= unit->reader_after ? unit->last_cost : unit->cost;
}

/* --- Fronts ------------------------------------------------------------------------------------ */

/* For so many points and one more. */
static bool empty(solver *s, point_list *list, size_t points)
{
    list->count = 0;
    if (!onv_vec_reserve(list, points + 1)) s->failed = true;
    return !s->failed;
}

/* Behind `n` points with smaller peaks, where there is room; how many there are then. */
static inline size_t emit(onv_chain_point *at, size_t n, onv_chain_point point)
{
    if (n > 0 && at[n - 1].cost <= point.cost) return n;
    n -= n > 0 && at[n - 1].peak_bytes == point.peak_bytes;
    at[n] = point;
    return n + 1;
}

/* The first one of a list whose peak is larger. */
static const onv_chain_point *above(const onv_chain_point *at, size_t count, uint64_t peak)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (at[middle].peak_bytes <= peak)
            low = middle + 1;
        else
            high = middle;
    }
    return at + low;
}

/* In place of the points [from, end) of `best` come those of `merged` from `first` on. */
static void replace(solver *s, size_t from, size_t end, size_t first)
{
    point_list *best = &s->best;
    size_t n = s->merged.count - first, rest = best->count - end;
    if (!onv_vec_reserve(best, n)) {
        s->failed = true;
        return;
    }
    memmove(best->at + from + n, best->at + end, rest * sizeof *best->at);
    memcpy(best->at + from, s->merged.at + first, n * sizeof *best->at);
    best->count = from + n + rest;
}

/* `best` becomes the front of itself and of `made`, which has points. Those of `best` before the first of `made` stay, and
 * those behind the last one from the first on that is cheaper. */
static void merge(solver *s)
{
    const onv_chain_point *best = s->best.at, *end_a = best + s->best.count, *a = best;
    const onv_chain_point *b = s->made.at, *end_b = b + s->made.count;
    if (b->peak_bytes > 0) a = above(best, s->best.count, b->peak_bytes - 1);
    if (!empty(s, &s->merged, s->best.count + s->made.count)) return;
    size_t from = (size_t)(a - best), n = 0;
    onv_chain_point *merged = s->merged.at;
    if (from > 0) merged[n++] = a[-1];
    while (b < end_b) {
        bool first = a < end_a && (a->peak_bytes < b->peak_bytes ||
                                   (a->peak_bytes == b->peak_bytes && a->cost <= b->cost));
        n = emit(merged, n, first ? *a++ : *b++);
    }
    while (a < end_a && a->cost >= merged[n - 1].cost) a++;
    s->merged.count = n;
    replace(s, from, (size_t)(a - best), from > 0);
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Both ends stay; of the others those where the way along the front, each axis as a part of its
 * range, passes another 1 / (limit - 1) of the whole. */
static void thin(solver *s, point_list *front, size_t limit)
{
    if (front->count <= limit) return;
    s->thinned = true;
    const onv_chain_point *from = &front->at[0], *to = &front->at[front->count - 1];
    double peaks = (double)(to->peak_bytes - from->peak_bytes);
    double costs = (double)(from->cost - to->cost);
    double low_peak = (double)from->peak_bytes, high_cost = (double)from->cost;
    size_t kept = 1;
    for (size_t i = 1; i + 1 < front->count; i++) {
        const onv_chain_point *p = &front->at[i];
        double way =
            ((double)p->peak_bytes - low_peak) / peaks + (high_cost - (double)p->cost) / costs;
        if (way * (double)(limit - 1) >= 2 * (double)kept && kept + 1 < limit)
            front->at[kept++] = *p;
    }
    front->at[kept++] = front->at[front->count - 1];
    front->count = kept;
}

/* --- The two ways ------------------------------------------------------------------------------ */

static void keep_one(solver *s, uint32_t t)
{
    const onv_chain_unit *unit = &s->chain->units[t - 1];
    bool is_first_run = t == s->chain->n_units;
    uint64_t run =
        s->chain->turn_bytes[t] + (is_first_run ? unit->forward_bytes : unit->last_bytes);
    if (!empty(s, &s->best, 0)) return;
    s->best.at[s->best.count++] = (onv_chain_point){
        max_u64(run, unit->backward_bytes), is_first_run ? unit->cost : unit->last_cost, KEEP};
}

static void keep_first(solver *s, uint32_t first, uint32_t t)
{
    const onv_chain_unit *unit = &s->chain->units[first];
    const onv_chain_front *rest = &s->fronts[place_of(s->chain, first + 1, t)];
    uint64_t kept = kept_bytes(s->chain, s->first_tensor, first, t);
    uint64_t run = s->chain->turn_bytes[t] + unit->forward_bytes;
    uint64_t floor = max_u64(run, unit->backward_bytes), cost = cost_of(s->chain, first, t);
    if (!empty(s, &s->best, rest->count)) return;
    for (uint32_t i = 0; i < rest->count; i++)
        s->best.count = emit(s->best.at, s->best.count,
                             (onv_chain_point){max_u64(floor, rest->at[i].peak_bytes + kept),
                                               cost + rest->at[i].cost, KEEP});
}

/* [q, t) is trained first, with `held` on top; then [first, q), with `inputs` on top. For every peak the cheapest of each;
 * what `best` betters is left out at once, and mostly that is all: then no front is looked at. */
static void split(solver *s, uint32_t first, uint32_t q, uint32_t t, uint64_t held, uint64_t inputs,
                  uint64_t floor, uint64_t cost)
{
    const front_ends *behind_ends = &s->ends_to[place_of(s->chain, t, q)],
                     *again_ends = &s->ends[place_of(s->chain, first, q)];
    if (behind_ends->least_peak == UINT64_MAX || again_ends->least_peak == UINT64_MAX) return;
    uint64_t peak =
        max_u64(floor, max_u64(behind_ends->least_peak + held, again_ends->least_peak + inputs));
    uint64_t least = cost + behind_ends->least_cost + again_ends->least_cost;
    const onv_chain_point *best = above(s->best.at, s->best.count, peak),
                          *end = s->best.at + s->best.count;
    if (best > s->best.at && best[-1].cost <= least) return;
    const onv_chain_front *behind = &s->fronts[place_of(s->chain, q, t)],
                          *again = &s->fronts[place_of(s->chain, first, q)];
    const onv_chain_point *a = above(behind->at, behind->count, peak - held) - 1,
                          *last_a = behind->at + behind->count - 1;
    const onv_chain_point *b = above(again->at, again->count, peak - inputs) - 1,
                          *last_b = again->at + again->count - 1;
    if (!empty(s, &s->made, behind->count + again->count)) return;
    onv_chain_point *made = s->made.at;
    size_t n = 0;
    while (peak != UINT64_MAX) {
        while (best < end && best->peak_bytes <= peak) best++;
        uint64_t sum = cost + a->cost + b->cost;
        uint64_t beats = best == s->best.at ? UINT64_MAX : best[-1].cost;
        if (beats > sum) n = emit(made, n, (onv_chain_point){peak, sum, q});
        if (beats <= least) break;
        do { /* to the next one that what is known does not better: it has nothing cheaper before */
            uint64_t next_a = a < last_a ? a[1].peak_bytes + held : UINT64_MAX;
            uint64_t next_b = b < last_b ? b[1].peak_bytes + inputs : UINT64_MAX;
            peak = next_a < next_b ? next_a : next_b;
            if (peak == UINT64_MAX) break;
            a += next_a == peak;
            b += next_b == peak;
        } while (cost + a->cost + b->cost >= beats);
    }
    s->made.count = n;
    if (n == 0) return;
    merge(s);
    thin(s, &s->best, 2 * (size_t)ONV_CHAIN_MAX_FRONT);
}

static void try_splits(solver *s, uint32_t first, uint32_t t)
{
    const onv_chain *chain = s->chain;
    uint64_t run = 0, cost = 0, inputs = 0;
    if (chain->units[first].no_start) return;
    for (uint32_t q = first + 1; q < t && q - first <= longest(chain) && !s->failed; q++) {
        uint64_t before = q == first + 1 ? 0 : s->crossing[q - 1];
        if (!onv_work(1)) s->failed = true;
        run = max_u64(run, before + chain->units[q - 1].passing_bytes);
        cost += cost_of(chain, q - 1, t);
        inputs += s->entering[(size_t)first * chain->n_units + q - 1];
        uint64_t held = s->crossing_on[q] + inputs;
        uint64_t floor = chain->turn_bytes[t] + run + inputs;
        split(s, first, q, t, held, inputs, floor, cost);
    }
}

static void store(solver *s, uint32_t first, uint32_t t)
{
    onv_chain_front *front = &s->fronts[place_of(s->chain, first, t)];
    bool ends = t == s->chain->n_units;
    uint32_t inner = s->chain->inner_front > 0 ? s->chain->inner_front : ONV_CHAIN_INNER_FRONT;
    thin(s, &s->best, ends ? ONV_CHAIN_MAX_FRONT : inner);
    front->count = (uint32_t)s->best.count;
    front->at = onv_arena_copy(s->arena, s->best.at, s->best.count * sizeof *front->at);
    if (front->at == NULL) s->failed = true;
    if (front->at == NULL || front->count == 0) return;
    front_ends at = {front->at[0].peak_bytes, front->at[front->count - 1].cost};
    s->ends[place_of(s->chain, first, t)] = at;
    s->ends_to[place_of(s->chain, t, first)] = at;
}

static void solve_range(solver *s, uint32_t first, uint32_t t)
{
    if (t == first + 1) {
        keep_one(s, t);
    } else {
        keep_first(s, first, t);
        try_splits(s, first, t);
    }
    /* Too dear ones come first. */
    uint64_t once = s->total_cost[t] - s->total_cost[first];
    size_t dear = 0;
    while (dear < s->best.count && s->best.at[dear].cost > once &&
           s->best.at[dear].cost - once > s->chain->max_extra_cost)
        dear++;
    s->best.count -= dear;
    if (dear > 0) memmove(s->best.at, s->best.at + dear, s->best.count * sizeof *s->best.at);
    store(s, first, t);
}

/* --- Equal layers ------------------------------------------------------------------------------ */

/* Whether a unit is the one `period` units before, with so many bytes more at its turn. */
static bool is_alike(const solver *s, uint32_t unit, uint32_t period, uint64_t more)
{
    const onv_chain_unit *a = &s->chain->units[unit - period], *b = &s->chain->units[unit];
    const uint32_t *first = &s->first_tensor[unit], *before = first - period;
    bool is = a->cost == b->cost && a->last_cost == b->last_cost &&
              a->forward_bytes == b->forward_bytes && a->last_bytes == b->last_bytes &&
              a->passing_bytes == b->passing_bytes && a->own_bytes == b->own_bytes &&
              a->backward_bytes + more == b->backward_bytes && a->no_start == b->no_start &&
              a->reader_after == b->reader_after && first[1] - first[0] == before[1] - before[0];
    for (uint32_t i = 0; is && i < first[1] - first[0]; i++) {
        const onv_chain_tensor *v = &s->chain->tensors[before[0] + i],
                               *w = &s->chain->tensors[first[0] + i];
        is = v->bytes == w->bytes && v->saved_by_maker == w->saved_by_maker &&
             v->n_readers == w->n_readers;
        for (uint32_t k = 0; is && k < v->n_readers; k++)
            is = v->readers[k].unit + period == w->readers[k].unit &&
                 v->readers[k].saves == w->readers[k].saves;
    }
    return is;
}

/* Of each unit the longest stretch before the last unit that repeats one before it: units, turns, and what enters are alike. */
static void find_twins(solver *s)
{
    const uint64_t *turn = s->chain->turn_bytes;
    size_t n = s->chain->n_units;
    for (uint32_t period = 1; period < n; period++) {
        uint64_t more_behind = 0;
        for (uint32_t u = (uint32_t)n - 1, end = u; u-- > period;) {
            uint64_t more = turn[u + 1] - turn[u + 1 - period];
            const uint64_t *enters = &s->entering[u * n + u], *other = enters - period * (n + 1);
            uint32_t most = is_alike(s, u, period, more) ? more == more_behind ? end : u + 1 : u;
            for (end = u; end < most && enters[end - u] == other[end - u];) end++;
            more_behind = more;
            if (end > s->twins[u].end) s->twins[u] = (twin){period, end};
        }
    }
}

/* The front of [first - period, t - period), with what is there in addition at this turn. */
static void move_range(solver *s, uint32_t first, uint32_t t, uint32_t period)
{
    const onv_chain_front *front = &s->fronts[place_of(s->chain, first - period, t - period)];
    uint64_t more = s->chain->turn_bytes[t] - s->chain->turn_bytes[t - period];
    if (!empty(s, &s->best, front->count)) return;
    for (uint32_t i = 0; i < front->count; i++) {
        onv_chain_point at = front->at[i];
        uint32_t choice = at.choice == KEEP ? KEEP : at.choice + period;
        s->best.at[s->best.count++] = (onv_chain_point){at.peak_bytes + more, at.cost, choice};
    }
    store(s, first, t);
}

/* --- All ranges -------------------------------------------------------------------------------- */

static onv_status check(const onv_chain *chain, onv_error *err)
{
    uint64_t bytes = 0, widest = 0, cost = 0;
    bool fits = true;
    if (chain->n_units == 0 || chain->n_units > ONV_CHAIN_MAX_UNITS)
        return onv_fail(err, ONV_ERR_LIMIT, "a chain has 1 to %d units, not %u",
                        ONV_CHAIN_MAX_UNITS, chain->n_units);
    for (uint32_t i = 0; i < chain->n_tensors; i++)
        fits &= onv_u64_add(bytes, chain->tensors[i].bytes, &bytes);
    for (uint32_t i = 0; i < chain->n_units; i++) {
        const onv_chain_unit *unit = &chain->units[i];
        fits &= onv_u64_add(bytes, unit->own_bytes, &bytes);
        widest = max_u64(widest, max_u64(unit->forward_bytes, unit->backward_bytes));
        widest = max_u64(widest, max_u64(unit->passing_bytes, unit->last_bytes));
        fits &= onv_u64_add(cost, unit->cost, &cost) && unit->last_cost <= unit->cost;
    }
    for (uint32_t i = 0; i <= chain->n_units; i++) widest = max_u64(widest, chain->turn_bytes[i]);
    /* A plan runs every unit at most once for each one behind it. */
    fits &= onv_u64_add(bytes, bytes, &bytes) && onv_u64_add(bytes, widest, &bytes) &&
            onv_u64_add(bytes, widest, &bytes) && onv_u64_mul(cost, chain->n_units + 1, &cost);
    if (fits) return ONV_OK;
    return onv_fail(err, ONV_ERR_OVERFLOW, "the bytes or costs of a chain do not fit 64 bits");
}

static onv_status prepare(solver *s, onv_error *err)
{
    const onv_chain *chain = s->chain;
    size_t n = chain->n_units;
    s->fronts = ONV_ARENA_ARRAY(s->arena, onv_chain_front, n * (n + 1));
    s->first_tensor = ONV_ARENA_ARRAY(s->arena, uint32_t, n + 1);
    s->crossing = ONV_ARENA_ARRAY(s->arena, uint64_t, n + 1);
    s->crossing_on = ONV_ARENA_ARRAY(s->arena, uint64_t, n + 1);
    s->entering = ONV_ARENA_ARRAY(s->arena, uint64_t, n * n);
    s->total_cost = ONV_ARENA_ARRAY(s->arena, uint64_t, n + 1);
    size_t n_ends = (n + 1) * (n + 1);
    s->ends = ONV_ARENA_ARRAY(s->arena, front_ends, n_ends);
    s->ends_to = ONV_ARENA_ARRAY(s->arena, front_ends, n_ends);
    s->twins = ONV_ARENA_ARRAY(s->arena, twin, n);
    if (s->arena->failed) return onv_fail_memory(err);
    memset(s->ends, 0xff, n_ends * sizeof *s->ends);
    memset(s->ends_to, 0xff, n_ends * sizeof *s->ends_to);
    for (uint32_t i = 0; i < chain->n_tensors; i++) s->first_tensor[chain->tensors[i].maker + 1]++;
    for (uint32_t i = 0; i < n; i++) {
        s->first_tensor[i + 1] += s->first_tensor[i];
        s->total_cost[i + 1] = s->total_cost[i] + chain->units[i].cost;
    }
    for (uint32_t i = 0; i < chain->n_tensors; i++) {
        const onv_chain_tensor *v = &chain->tensors[i];
        for (uint32_t first = v->maker + 1; first <= last_reader(v, UINT32_MAX); first++)
            if (entry(v, first) != UINT32_MAX) s->entering[first * n + entry(v, first)] += v->bytes;
    }
    find_twins(s);
    return ONV_OK;
}

/* All ranges that end at t, shortest first. */
static void solve_to(solver *s, uint32_t t)
{
    const onv_chain *chain = s->chain;
    uint32_t from = t < chain->n_units && t > longest(chain) ? t - longest(chain) : 0;
    memset(s->crossing, 0, (chain->n_units + 1) * sizeof *s->crossing);
    memset(s->crossing_on, 0, (chain->n_units + 1) * sizeof *s->crossing_on);
    for (uint32_t first = t; first-- > from && !s->failed;) {
        for (uint32_t i = s->first_tensor[first]; i < s->first_tensor[first + 1]; i++) {
            const onv_chain_tensor *v = &chain->tensors[i];
            uint64_t saved_bytes = is_saved(v) ? v->bytes : 0;
            for (uint32_t q = first + 1; q <= last_reader(v, t); q++) {
                s->crossing[q] += v->bytes;
                s->crossing_on[q] += saved_bytes;
            }
        }
        if (t <= s->twins[first].end)
            move_range(s, first, t, s->twins[first].period);
        else
            solve_range(s, first, t);
    }
}

onv_status onv_chain_solve(const onv_chain *chain, onv_arena *arena, onv_chain_solution *solution,
                           onv_error *err)
{
    *solution = (onv_chain_solution){.chain = chain};
    ONV_TRY(check(chain, err));
    solver s = {.chain = chain, .arena = arena};
    ONV_TRY(prepare(&s, err));
    for (uint32_t t = 1; t <= chain->n_units && !s.failed; t++) solve_to(&s, t);
    onv_vec_cleanup(&s.made);
    onv_vec_cleanup(&s.merged);
    onv_vec_cleanup(&s.best);
    if (s.failed) return onv_fail_memory(err);
    solution->fronts = s.fronts;
    solution->first_tensor = s.first_tensor;
    solution->entering = s.entering;
    solution->thinned = s.thinned;
    solution->front = s.fronts[place_of(chain, 0, chain->n_units)];
    return ONV_OK;
}

/* --- Plans ------------------------------------------------------------------------------------- */

typedef struct unplanned {
    uint32_t s, t;
    uint64_t peak; /* may be reached */
} unplanned;

typedef ONV_VEC(unplanned) unplanned_list;

/* The cheapest way within the peak; there is one. */
static uint32_t pick(const onv_chain_solution *solution, const unplanned *range)
{
    const onv_chain_front *front = &solution->fronts[place_of(solution->chain, range->s, range->t)];
    uint32_t i = front->count;
    while (i > 1 && front->at[i - 1].peak_bytes > range->peak) i--;
    return front->at[i - 1].choice;
}

/* Adds what is checkpointed on the way to the end of the range; on `stack` come the insides, each
 * after what lies behind it. */
static bool plan_range(const onv_chain_solution *solution, unplanned range,
                       onv_chain_ranges *ranges, unplanned_list *stack)
{
    const onv_chain *chain = solution->chain;
    while (range.t - range.s > 1) {
        uint32_t q = pick(solution, &range);
        if (q == KEEP) {
            range.peak -= kept_bytes(chain, solution->first_tensor, range.s, range.t);
            range.s++;
            continue;
        }
        uint64_t inputs = 0, held = crossing_bytes(chain, range.s, q, range.t);
        for (uint32_t u = range.s; u < q; u++)
            inputs += solution->entering[(size_t)range.s * chain->n_units + u];
        unplanned inside = {range.s, q, range.peak - inputs};
        unplanned behind = {q, range.t, range.peak - inputs - held};
        onv_chain_range made = {range.s, q};
        if (!onv_vec_push(ranges, made) || !onv_vec_push(stack, behind)) return false;
        range = inside;
    }
    return true;
}

onv_status onv_chain_plan(const onv_chain_solution *solution, uint32_t index,
                          onv_chain_ranges *ranges, onv_error *err)
{
    unplanned whole = {0, solution->chain->n_units, solution->front.at[index].peak_bytes};
    unplanned_list stack = {0};
    ranges->count = 0;
    bool fits = plan_range(solution, whole, ranges, &stack);
    while (fits && stack.count > 0)
        fits = plan_range(solution, stack.at[--stack.count], ranges, &stack);
    onv_vec_cleanup(&stack);
    return fits ? ONV_OK : onv_fail_memory(err);
}

/* Segments that grow shorter, and such segments inside of segments: candidates of fronts.
 *
 *     [ 1 2 3 4 | 5 6 7 | 8 9 | 10 ]     n units in s segments of s, s - 1, ... 1: s (s + 1) / 2 >= n
 *
 * When backward comes to a segment, the inputs of those before it are still there. So, within so many bytes, a segment may be
 * as long as what these leave for what it saves and for what stands beside it in the backward of each operation (beside.h);
 * of segments inside segments as long as segments of one level less cover within that. With more bytes less runs again: the
 * rest of the network needs one level less as soon as it fits, and the first segments may.
 *
 * Bytes are found by halving: for each level the least that suffice, and some between these and the least of
 * the level before. Levels end where the least of one takes no less than that of the level before.
 *
 * Cost: linear in the units, times their logarithm, levels and candidates; programs of FIRST_STEPS + 1 candidates, and of
 * STEPS + 1 of each level behind the first. */
#include "ckpt/uneven.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/quota.h"
#include "base/vec.h"

enum { LEVELS = 3, FIRST_STEPS = 16, STEPS = 8, MANY_UNITS = 4096, HALVINGS = 24 };

/* By unit. In backward all is there that was saved before it in the forward pass, as far as no segment leaves that out: sums
 * from the beginning of the tape, of which a segment takes off what was saved before its own. */
typedef struct search {
    const onv_ckpt_problem *problem;
    uint32_t n;
    uint64_t *saved;     /* by those before it, or crossing into it */
    uint64_t *entering;  /* what crosses into it */
    uint64_t *most;      /* in the backward of its operations; of the last one the loss's, too */
    uint64_t *most_last; /* the same where a segment ends with it */
    ONV_VEC(onv_tape_segment) found;
    bool spares_first; /* as many as possible of the first segments have one level less inside */
    bool failed;       /* memory */
} search;

/* --- What units hold --------------------------------------------------------------------------- */

/* What ends a segment and saves its own result alone (an activation) is left out: that tensor enters the next segment
 * and stays, and made anew it would be there beside all that its segment saves. */
static bool is_left_out(const search *s, uint32_t op)
{
    const onv_eager *eager = s->problem->eager;
    const onv_eager_op *at = &eager->ops.at[op];
    return s->problem->places->is_known[op] && at->n_saved == 1 && at->n_out == 1 &&
           at->saved[0] == eager->tensors.at[at->out[0]].storage;
}

static uint32_t last_op(const search *s, uint32_t first, uint32_t last)
{
    while (last > first && is_left_out(s, last)) last--;
    return last;
}

/* Of operations [first, end), where so much was saved before them. */
static uint64_t most_of(const search *s, const onv_tape_beside *beside, uint32_t first,
                        uint32_t end, bool *seen, uint64_t *saved)
{
    const onv_eager *eager = s->problem->eager;
    uint64_t most = 0;
    for (uint32_t i = first; i < end; i++) {
        const onv_eager_op *op = &eager->ops.at[i];
        for (uint32_t k = 0; k < op->n_saved; k++) {
            const onv_eager_storage *storage = &eager->storages.at[op->saved[k]];
            bool is_held = storage->kind < ONV_STORAGE_ACTIVATION || storage->is_output;
            if (is_held || seen[op->saved[k]]) continue;
            seen[op->saved[k]] = true;
            *saved = onv_u64_plus(*saved, storage->bytes);
        }
        uint64_t bytes = onv_u64_plus(*saved, beside->backward[i]);
        if (beside->goes_back[i] && bytes > most) most = bytes;
    }
    return most;
}

static onv_status prepare(search *s, const onv_tape_beside *beside, onv_arena *arena,
                          onv_error *err)
{
    const onv_eager *eager = s->problem->eager;
    const onv_ckpt_units *units = s->problem->units;
    uint64_t saved = 0;
    s->n = units->count;
    s->saved = ONV_ARENA_ARRAY(arena, uint64_t, s->n);
    s->entering = ONV_ARENA_ARRAY(arena, uint64_t, s->n);
    s->most = ONV_ARENA_ARRAY(arena, uint64_t, s->n);
    s->most_last = ONV_ARENA_ARRAY(arena, uint64_t, s->n);
    bool *seen = ONV_ARENA_ARRAY(arena, bool, eager->storages.count);
    if (arena->failed) return onv_fail_memory(err);
    for (uint32_t u = 0; u < s->n; u++) {
        const onv_ckpt_unit *unit = &units->at[u];
        uint32_t end = unit->last_op + 1, stop = end;
        while (stop > unit->first_op && is_left_out(s, stop - 1)) stop--;
        s->saved[u] = saved;
        if (unit->in != ONV_NO_TENSOR) {
            uint32_t in = eager->tensors.at[unit->in].storage;
            s->entering[u] = eager->storages.at[in].bytes;
            if (!seen[in]) s->saved[u] = onv_u64_plus(saved, s->entering[u]);
        }
        s->most_last[u] = most_of(s, beside, unit->first_op, stop, seen, &saved);
        if (u + 1 == s->n) end = (uint32_t)eager->ops.count;
        s->most[u] = most_of(s, beside, stop, end, seen, &saved);
        if (s->most_last[u] > s->most[u]) s->most[u] = s->most_last[u];
        if (u + 1 == s->n) s->most_last[u] = s->most[u];
    }
    return ONV_OK;
}

/* --- Within so many bytes ---------------------------------------------------------------------- */

/* How far units from `first` on can go forward and backward within so many bytes beside what crosses into it, with what is
 * inside of so many segments running again; up to `last`. */
static uint32_t cover(const search *s, uint32_t first, uint32_t last, uint64_t bytes,
                      uint32_t levels)
{
    uint32_t end = first;
    if (levels == 0) {
        bytes = onv_u64_plus(bytes, s->saved[first]);
        while (end < last && s->most_last[end] <= bytes)
            if (s->most[end++] > bytes) break;
        return end;
    }
    while (end < last) {
        uint32_t from = end;
        if (from > first && s->entering[from] > bytes) return from;
        if (from > first) bytes -= s->entering[from];
        end = cover(s, from, last, bytes, levels - 1);
        if (end == from) return from;
    }
    return end;
}

/* Behind a segment, whose input stays. */
static bool rest_fits(const search *s, uint32_t from, uint32_t last, uint64_t bytes,
                      uint32_t levels)
{
    return s->entering[from] <= bytes &&
           cover(s, from, last, bytes - s->entering[from], levels) == last;
}

static void list(search *s, uint32_t first, uint32_t last, uint64_t bytes, uint32_t levels);

/* Behind up to `count` segments with so many levels inside, the units that are left, and *bytes for them. A segment is as long
 * as it may be; the one behind which the rest needs no segment of that kind is as short as it may be. */
static uint32_t pass(search *s, uint32_t first, uint32_t last, uint64_t *bytes, uint32_t levels,
                     uint32_t count, bool adds)
{
    const onv_ckpt_unit *units = s->problem->units->at;
    for (; count > 0 && !s->failed; count--) {
        uint32_t end = cover(s, first, last, *bytes, levels), low = first + 1;
        if (end == first || end == last || s->entering[end] > *bytes) return first;
        while (low < end && rest_fits(s, end, last, *bytes, levels)) {
            uint32_t middle = low + (end - low) / 2;
            bool fits = rest_fits(s, middle, last, *bytes, levels);
            *(fits ? &end : &low) = fits ? middle : middle + 1;
        }
        if (!onv_work(end - first)) s->failed = true;
        onv_tape_segment made = {units[first].first_op,
                                 last_op(s, units[first].first_op, units[end - 1].last_op)};
        if (adds && !onv_vec_push(&s->found, made)) s->failed = true;
        if (adds) list(s, first, end, *bytes, levels);
        *bytes -= s->entering[end];
        first = end;
    }
    return first;
}

/* The segments within so many bytes, which suffice. */
static void list(search *s, uint32_t first, uint32_t last, uint64_t bytes, uint32_t levels)
{
    while (levels > 0 && cover(s, first, last, bytes, levels - 1) == last) levels--;
    uint32_t low = 0, high = levels > 1 && s->spares_first ? last - first : 0;
    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;
        uint64_t left = bytes;
        uint32_t from = pass(s, first, last, &left, levels - 2, middle, false);
        bool fits = onv_work(last - from) && cover(s, from, last, left, levels) == last;
        *(fits ? &low : &high) = fits ? middle : middle - 1;
    }
    if (levels == 0) return;
    if (low > 0) first = pass(s, first, last, &bytes, levels - 2, low, true);
    first = pass(s, first, last, &bytes, levels - 1, UINT32_MAX, true);
    list(s, first, last, bytes, levels - 1);
}

static uint64_t least_bytes(search *s, uint32_t levels)
{
    uint64_t most = 0, low = 0;
    for (uint32_t u = 0; u < s->n; u++)
        if (s->most[u] > most) most = s->most[u];
    for (int i = 0; i < HALVINGS && low < most; i++) {
        uint64_t middle = low + (most - low) / 2;
        if (!onv_work((uint64_t)s->n << levels)) s->failed = true;
        if (cover(s, 0, s->n, middle, levels) == s->n)
            most = middle;
        else
            low = middle + 1;
    }
    return most;
}

/* --- All of them ------------------------------------------------------------------------------- */

/* What they run again, in MACs. */
static double list_sparing(search *s, bool spares_first, uint64_t bytes, uint32_t levels)
{
    double macs = 0;
    s->spares_first = spares_first;
    s->found.count = 0;
    list(s, 0, s->n, bytes, levels);
    for (size_t i = 0; i < s->found.count; i++)
        for (uint32_t op = s->found.at[i].first_op; op <= s->found.at[i].last_op; op++)
            macs += (double)s->problem->eager->ops.at[op].macs;
    return macs;
}

/* Of both ways the one that runs less again. */
static void list_cheaper(search *s, uint64_t bytes, uint32_t levels)
{
    double macs = list_sparing(s, false, bytes, levels);
    if (list_sparing(s, true, bytes, levels) >= macs) list_sparing(s, false, bytes, levels);
}

static onv_status make(search *s, onv_ckpt_plans *plans, onv_error *err)
{
    uint64_t before = least_bytes(s, 0), peak = UINT64_MAX;
    for (uint32_t levels = 1; levels <= LEVELS; levels++) {
        uint64_t least = least_bytes(s, levels);
        size_t first = plans->at.count;
        uint32_t n = levels == 1 && s->n <= MANY_UNITS ? FIRST_STEPS : STEPS;
        uint64_t part = (before - least) / ((uint64_t)n * n);
        for (uint32_t i = 0; i <= n && least < before; i++) {
            /* Nearer to the least one, where a little matters; the last one is just below that of the level before. */
            uint64_t bytes = i < n ? least + part * i * i : before - part;
            list_cheaper(s, bytes, levels);
            if (s->failed) return onv_fail_memory(err);
            ONV_TRY(onv_ckpt_plans_add(s->problem, "uneven", s->found.at, (uint32_t)s->found.count,
                                       plans, err));
            if (plans->at.at[first].peak_bytes >= peak) return ONV_OK;
        }
        if (plans->at.count > first) peak = plans->at.at[first].peak_bytes;
        before = least;
    }
    return ONV_OK;
}

onv_status onv_uneven_make(const onv_ckpt_problem *problem, const onv_tape_beside *beside,
                           onv_ckpt_plans *plans, onv_error *err)
{
    search s = {.problem = problem};
    onv_arena arena;
    onv_arena_init(&arena, SIZE_MAX);
    onv_status status = prepare(&s, beside, &arena, err);
    if (status == ONV_OK) status = make(&s, plans, err);
    onv_vec_cleanup(&s.found);
    onv_arena_cleanup(&arena);
    return status;
}

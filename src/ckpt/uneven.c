/* Segments that grow shorter, and such segments inside of segments: candidates of fronts.
 *
 *     [ 1 2 3 4 | 5 6 7 | 8 9 | 10 ]     n units in s segments of s, s - 1, ... 1: s (s + 1) / 2 >= n
 *
 * When backward comes to a segment, the inputs of those before it are still there. So, within so many bytes, a segment may be
 * as long as what these leave for what it saves and for what stands beside it in the backward of each operation (beside.h);
 * of segments inside segments as long as segments of one level less cover within that. The rest of the network needs one
 * level less as soon as it fits: with more bytes less runs again.
 *
 * Bytes are found by halving: for each level the least that suffice, and some between these and the least of
 * the level before. Levels end where the least of one takes no less than that of the level before.
 *
 * Cost: linear in the units, times levels, halvings and candidates; at most LEVELS * STEPS programs. */
#include "ckpt/uneven.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/quota.h"
#include "base/vec.h"

enum { LEVELS = 3, STEPS = 8, HALVINGS = 24 };

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
    bool failed; /* memory */
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
 * inside of so many segments running again; up to `last`. `adds`: the segments are listed. */
static uint32_t cover(search *s, uint32_t first, uint32_t last, uint64_t bytes, uint32_t levels,
                      bool adds)
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
        end = cover(s, from, last, bytes, levels - 1, false);
        if (end == from) return from;
        if (!adds) continue;
        const onv_ckpt_unit *units = s->problem->units->at;
        onv_tape_segment made = {units[from].first_op,
                                 last_op(s, units[from].first_op, units[end - 1].last_op)};
        if (end < last && !onv_vec_push(&s->found, made)) s->failed = true;
        cover(s, from, end, bytes, levels - 1, true);
    }
    return end;
}

static uint64_t least_bytes(search *s, uint32_t levels)
{
    uint64_t most = 0, low = 0;
    for (uint32_t u = 0; u < s->n; u++)
        if (s->most[u] > most) most = s->most[u];
    for (int i = 0; i < HALVINGS && low < most; i++) {
        uint64_t middle = low + (most - low) / 2;
        if (!onv_work((uint64_t)s->n << levels)) s->failed = true;
        if (cover(s, 0, s->n, middle, levels, false) == s->n)
            most = middle;
        else
            low = middle + 1;
    }
    return most;
}

/* --- All of them ------------------------------------------------------------------------------- */

static onv_status make(search *s, onv_ckpt_plans *plans, onv_error *err)
{
    uint64_t before = least_bytes(s, 0), peak = UINT64_MAX;
    for (uint32_t levels = 1; levels <= LEVELS; levels++) {
        uint64_t least = least_bytes(s, levels);
        size_t first = plans->at.count;
        for (uint32_t i = 0; i < STEPS && least < before; i++) {
            /* Nearer to the least one, where a little matters. */
            uint64_t part = (before - least) / ((uint64_t)STEPS * STEPS) * ((uint64_t)i * i);
            s->found.count = 0;
            cover(s, 0, s->n, least + part, levels, true);
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

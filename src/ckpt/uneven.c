/* Segments that grow shorter, and such segments inside of segments: candidates of fronts.
 *
 *     [ 1 2 3 4 | 5 6 7 | 8 9 | 10 ]     n units in s segments of s, s - 1, ... 1: s (s + 1) / 2 >= n
 *
 * When backward comes to a segment, the inputs of those before it are still there, and the gradients of
 * parameters behind it. So, within so many bytes, a segment may be as long as what these leave for what it
 * saves; of segments inside segments as long as segments of one level less cover within that. The rest of
 * the network needs one level less as soon as it fits: with more bytes less runs again.
 *
 * Bytes are found by halving: for each level the least that suffice, and some between these and the least of
 * the level before. What an operation takes while its backward runs is estimated by its tensors, as candidates are
 * measured. Levels end where the least of one takes no less than that of the level before.
 *
 * Cost: linear in the units, times levels, halvings and candidates; at most LEVELS * STEPS programs. */
#include "ckpt/uneven.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/quota.h"
#include "base/vec.h"

enum { LEVELS = 3, STEPS = 8, HALVINGS = 24 };

typedef struct search {
    const onv_ckpt_problem *problem;
    uint32_t n;          /* units */
    uint64_t *saved;     /* by unit: of those before it, n + 1 */
    uint64_t *entering;  /* by unit: what crosses into it */
    uint64_t *gradients; /* by unit: of parameters that units from it on read, n + 1 */
    uint64_t *taken;     /* by unit: while its backward runs; of the last one the loss, too */
    ONV_VEC(onv_tape_segment) found;
    bool failed; /* memory */
} search;

/* --- What units hold --------------------------------------------------------------------------- */

static void find_gradients(search *s, const onv_eager *eager, bool *seen)
{
    const onv_ckpt_units *units = s->problem->units;
    for (uint32_t u = s->n; u-- > 0;) {
        s->gradients[u] = s->gradients[u + 1];
        for (uint32_t i = units->at[u].first_op; i <= units->at[u].last_op; i++) {
            const onv_eager_op *op = &eager->ops.at[i];
            for (uint32_t k = 0; k < op->n_in; k++) {
                uint32_t in = eager->tensors.at[op->in[k].tensor].storage;
                if (seen[in] || !eager->storages.at[in].trained) continue;
                seen[in] = true;
                s->gradients[u] += eager->storages.at[in].bytes;
            }
        }
    }
}

/* The result, or its gradient, and those of what came in. */
static uint64_t taken_by(const onv_eager *eager, const onv_eager_op *op)
{
    uint64_t bytes = onv_u64_plus(op->backward_temp_bytes, op->grad_copy_bytes);
    for (uint32_t k = 0; k < op->n_out + op->n_in; k++) {
        uint32_t tensor = k < op->n_out ? op->out[k] : op->in[k - op->n_out].tensor;
        const onv_eager_storage *storage = &eager->storages.at[eager->tensors.at[tensor].storage];
        if (storage->kind >= ONV_STORAGE_ACTIVATION) bytes = onv_u64_plus(bytes, storage->bytes);
    }
    return bytes;
}

/* The loss keeps the results of all its operations. */
static void find_taken(search *s, const onv_eager *eager)
{
    const onv_ckpt_units *units = s->problem->units;
    for (uint32_t u = 0; u < s->n; u++)
        for (uint32_t i = units->at[u].first_op; i <= units->at[u].last_op; i++) {
            uint64_t bytes = taken_by(eager, &eager->ops.at[i]);
            if (bytes > s->taken[u]) s->taken[u] = bytes;
        }
    uint64_t loss = 0;
    for (uint32_t i = eager->first_loss_op; i < eager->ops.count; i++)
        loss = onv_u64_plus(loss, taken_by(eager, &eager->ops.at[i]));
    if (loss > s->taken[s->n - 1]) s->taken[s->n - 1] = loss;
}

static onv_status prepare(search *s, onv_arena *arena, onv_error *err)
{
    const onv_eager *eager = s->problem->eager;
    const onv_ckpt_units *units = s->problem->units;
    s->n = units->count;
    s->saved = ONV_ARENA_ARRAY(arena, uint64_t, s->n + 1);
    s->entering = ONV_ARENA_ARRAY(arena, uint64_t, s->n + 1);
    s->gradients = ONV_ARENA_ARRAY(arena, uint64_t, s->n + 1);
    s->taken = ONV_ARENA_ARRAY(arena, uint64_t, s->n + 1);
    bool *seen = ONV_ARENA_ARRAY(arena, bool, eager->storages.count);
    if (arena->failed) return onv_fail_memory(err);
    for (uint32_t u = 0; u < s->n; u++) {
        const onv_ckpt_unit *unit = &units->at[u];
        s->saved[u + 1] = onv_u64_plus(s->saved[u], unit->saved_bytes);
        if (unit->in != ONV_NO_TENSOR)
            s->entering[u] = eager->storages.at[eager->tensors.at[unit->in].storage].bytes;
    }
    find_gradients(s, eager, seen);
    if (s->n > 0) find_taken(s, eager);
    return ONV_OK;
}

/* --- Within so many bytes ---------------------------------------------------------------------- */

static bool fits(const search *s, uint32_t first, uint32_t end, uint64_t bytes)
{
    uint64_t need = onv_u64_plus(s->saved[end] - s->saved[first], s->taken[end - 1]);
    uint64_t after = s->gradients[end];
    return need <= bytes && after <= bytes - need;
}

/* What ends a segment and saves its own result alone (an activation) is left out: that tensor enters the next segment
 * and stays, and made anew it would be there beside all that its segment saves. */
static uint32_t last_op(const search *s, onv_tape_segment whole)
{
    const onv_eager *eager = s->problem->eager;
    uint32_t last = whole.last_op;
    for (; last > whole.first_op && s->problem->places->is_known[last]; last--) {
        const onv_eager_op *op = &eager->ops.at[last];
        if (op->n_saved != 1 || op->n_out != 1 ||
            op->saved[0] != eager->tensors.at[op->out[0]].storage)
            break;
    }
    return last;
}

/* How far units from `first` on can go forward and backward within the bytes, with what is inside of so many
 * segments running again; up to `last`. `adds`: the segments are listed. */
static uint32_t cover(search *s, uint32_t first, uint32_t last, uint64_t bytes, uint32_t levels,
                      bool adds)
{
    uint32_t end = first;
    if (levels == 0) {
        while (end < last && fits(s, first, end + 1, bytes)) end++;
        return end;
    }
    while (end < last) {
        uint32_t from = end;
        end = cover(s, from, last, bytes, levels - 1, false);
        bool is_rest = end == last;
        if (!is_rest) {
            if (s->entering[from] > bytes) return from;
            bytes -= s->entering[from];
            end = cover(s, from, last, bytes, levels - 1, false);
            if (end == from) return from;
        }
        if (!adds) continue;
        const onv_ckpt_unit *units = s->problem->units->at;
        onv_tape_segment made = {units[from].first_op, units[end - 1].last_op};
        made.last_op = last_op(s, made);
        if (!is_rest && !onv_vec_push(&s->found, made)) s->failed = true;
        cover(s, from, end, bytes, levels - 1, true);
    }
    return end;
}

static uint64_t least_bytes(search *s, uint32_t levels)
{
    uint64_t most = 0, low = 0;
    for (uint32_t u = 0; u < s->n; u++)
        if (s->taken[u] > most) most = s->taken[u];
    most = onv_u64_plus(most, onv_u64_plus(s->saved[s->n], s->gradients[0]));
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

onv_status onv_uneven_make(const onv_ckpt_problem *problem, onv_ckpt_plans *plans, onv_error *err)
{
    search s = {.problem = problem};
    onv_arena arena;
    onv_arena_init(&arena, SIZE_MAX);
    onv_status status = prepare(&s, &arena, err);
    if (status == ONV_OK) status = make(&s, plans, err);
    onv_vec_cleanup(&s.found);
    onv_arena_cleanup(&arena);
    return status;
}

/* One segment for each repeated module.
 *
 * Candidates are the scopes of names (scopes.h). Scopes that differ in numbers alone are of one
 * pattern. The pattern that counts is the deepest one that
 *   - has two scopes or more that begin and end at cuts, so that a segment has a single input,
 *   - has a scope where activations meet (a residual sum, a gate, attention): a list of convolutions
 *     is none of blocks,
 *   - covers at least half of the bytes that the best pattern covers.
 * Without one (the skip tensors of a U-Net leave no cuts) all outermost scopes count that save at
 * least two things. Where names tell of less than a quarter of the bytes, structure decides: units
 * where activations meet and that occur twice or more; else the stretches of one resolution.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/strings.h"
#include "ckpt/ckpt.h"
#include "ckpt/scopes.h"

typedef struct search {
    const onv_ckpt_problem *problem;
    onv_arena arena;
    onv_scopes scopes;
    uint32_t n_ops;
    bool *is_border;  /* by operation: a cut; the beginning and the end */
    uint64_t *bytes;  /* by operation: saved first by those before it; one more for the end */
    uint32_t *savers; /* likewise, how many operations save something */
    uint32_t *joins;  /* likewise, how many read two activations that need gradients */
    ONV_VEC(onv_tape_segment) found;
} search;

/* --- What is known of each operation ----------------------------------------------------------- */

static bool crosses(const onv_eager *eager, uint32_t tensor)
{
    const onv_eager_tensor *t = &eager->tensors.at[tensor];
    const onv_eager_storage *storage = &eager->storages.at[t->storage];
    return t->needs_grad && storage->kind == ONV_STORAGE_ACTIVATION && !storage->is_cached;
}

/* Before the first tensor with a gradient (LoRA's first layer has some in it) nothing crosses at all. */
static void mark_frozen_start(search *s)
{
    const onv_eager *eager = s->problem->eager;
    for (uint32_t i = 0; i < s->n_ops; i++) {
        const onv_eager_op *op = &eager->ops.at[i];
        s->is_border[i] |= i == 0 || !onv_eager_same_node(op, op - 1);
        for (uint32_t k = 0; k < op->n_out; k++)
            if (crosses(eager, op->out[k])) return;
    }
}

static onv_status init(search *s, onv_error *err)
{
    const onv_eager *eager = s->problem->eager;
    s->n_ops = eager->first_loss_op;
    s->is_border = ONV_ARENA_ARRAY(&s->arena, bool, s->n_ops + 1);
    s->bytes = ONV_ARENA_ARRAY(&s->arena, uint64_t, s->n_ops + 1);
    s->savers = ONV_ARENA_ARRAY(&s->arena, uint32_t, s->n_ops + 1);
    s->joins = ONV_ARENA_ARRAY(&s->arena, uint32_t, s->n_ops + 1);
    bool *seen = ONV_ARENA_ARRAY(&s->arena, bool, eager->storages.count);
    if (s->arena.failed) return onv_fail_memory(err);
    for (uint32_t i = 0; i < s->n_ops; i++) s->is_border[i] = s->problem->units->is_cut[i];
    mark_frozen_start(s);
    s->is_border[0] = s->is_border[s->n_ops] = true;
    for (uint32_t i = 0; i < s->n_ops; i++) {
        const onv_eager_op *op = &eager->ops.at[i];
        s->bytes[i + 1] = s->bytes[i];
        for (uint32_t k = 0; k < op->n_saved; k++) {
            const onv_eager_storage *storage = &eager->storages.at[op->saved[k]];
            if (seen[op->saved[k]] || storage->kind < ONV_STORAGE_ACTIVATION) continue;
            seen[op->saved[k]] = true;
            if (!onv_u64_add(s->bytes[i + 1], storage->bytes, &s->bytes[i + 1]))
                return onv_fail(err, ONV_ERR_OVERFLOW, "the saved bytes do not fit 64 bits");
        }
        s->savers[i + 1] = s->savers[i] + (op->n_saved > 0);
        s->joins[i + 1] = s->joins[i] + onv_op_joins(eager, op, true);
    }
    return onv_scopes_find(s->problem->model, eager, &s->arena, &s->scopes, err);
}

/* --- By names ---------------------------------------------------------------------------------- */

/* Operations without a path at either end belong to the scope where that brings it to a cut. */
static onv_tape_segment snap(const search *s, const onv_scope_run *run)
{
    onv_tape_segment at = {run->first_op, run->last_op};
    while (!s->is_border[at.first_op] && s->scopes.path_of[at.first_op - 1] == NULL) at.first_op--;
    while (!s->is_border[at.last_op + 1] && s->scopes.path_of[at.last_op + 1] == NULL) at.last_op++;
    if (!s->is_border[at.first_op]) at.first_op = run->first_op;
    if (!s->is_border[at.last_op + 1]) at.last_op = run->last_op;
    return at;
}

static bool is_block(const search *s, onv_tape_segment at)
{
    return s->is_border[at.first_op] && s->is_border[at.last_op + 1] &&
           s->savers[at.last_op + 1] - s->savers[at.first_op] >= 2;
}

static uint64_t bytes_in(const search *s, onv_tape_segment at)
{
    return s->bytes[at.last_op + 1] - s->bytes[at.first_op];
}

/* Not every operation may begin a segment (places.h). */
static bool add(search *s, onv_tape_segment at)
{
    while (at.first_op <= at.last_op && !s->problem->places->is_open[at.first_op]) at.first_op++;
    if (at.first_op > at.last_op) return true;
    if (s->found.count > 0 && s->found.at[s->found.count - 1].last_op >= at.first_op) return true;
    return onv_vec_push(&s->found, at);
}

static bool by_names(search *s)
{
    size_t n = s->scopes.runs.count;
    const onv_scope_run *runs = s->scopes.runs.at;
    onv_scope_weight *weights = ONV_ARENA_ARRAY(&s->arena, onv_scope_weight, n);
    uint64_t pattern;
    if (weights == NULL) return false;
    for (size_t i = 0; i < n; i++) {
        weights[i].at = snap(s, &runs[i]);
        weights[i].counts = is_block(s, weights[i].at);
    }
    bool any = onv_scopes_choose(&s->scopes, weights, s->bytes, s->joins, &pattern);
    for (size_t i = 0; i < n; i++) {
        onv_tape_segment at = weights[i].at;
        bool counts = any ? onv_scope_pattern(&runs[i]) == pattern && weights[i].counts
                          : s->savers[at.last_op + 1] - s->savers[at.first_op] >= 2;
        if (counts && !add(s, at)) return false;
    }
    return true;
}

/* --- By structure ------------------------------------------------------------------------------ */

static uint64_t signature(const search *s, const onv_ckpt_unit *unit)
{
    uint64_t hash = 0;
    for (uint32_t i = unit->first_op; i <= unit->last_op; i++) {
        const char *name = s->problem->eager->ops.at[i].name;
        hash = onv_hash_bytes(name, strlen(name) + 1, hash);
    }
    return hash;
}

static int compare_hashes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool by_structure(search *s)
{
    const onv_ckpt_units *units = s->problem->units;
    uint64_t *sorted = ONV_ARENA_ARRAY(&s->arena, uint64_t, units->count);
    uint64_t *hashes = ONV_ARENA_ARRAY(&s->arena, uint64_t, units->count);
    if (sorted == NULL || hashes == NULL) return false;
    for (uint32_t u = 0; u < units->count; u++) sorted[u] = hashes[u] = signature(s, &units->at[u]);
    qsort(sorted, units->count, sizeof *sorted, compare_hashes);
    for (uint32_t u = 0; u < units->count; u++) {
        const onv_ckpt_unit *unit = &units->at[u];
        const uint64_t *at =
            bsearch(&hashes[u], sorted, units->count, sizeof *sorted, compare_hashes);
        bool twice = at != NULL && ((at > sorted && at[-1] == *at) ||
                                    (at + 1 < sorted + units->count && at[1] == *at));
        bool joins = s->joins[unit->last_op + 1] > s->joins[unit->first_op];
        if (twice && joins && !add(s, (onv_tape_segment){unit->first_op, unit->last_op}))
            return false;
    }
    return true;
}

/* The dims behind [N, C], or none. */
static bool same_resolution(const onv_eager *eager, uint32_t a, uint32_t b)
{
    if (a == ONV_NO_TENSOR || b == ONV_NO_TENSOR) return a == b;
    const onv_eager_tensor *x = &eager->tensors.at[a], *y = &eager->tensors.at[b];
    if (x->rank != y->rank) return false;
    for (uint32_t i = 2; i < x->rank; i++)
        if (x->dims[i] != y->dims[i]) return false;
    return true;
}

static bool by_resolution(search *s)
{
    const onv_ckpt_units *units = s->problem->units;
    for (uint32_t u = 1, begin = 0; u < units->count; u++) {
        bool goes_on = u + 1 < units->count &&
                       same_resolution(s->problem->eager, units->at[u].in, units->at[u + 1].in);
        if (goes_on) continue;
        onv_tape_segment at = {units->at[begin].first_op, units->at[u].last_op};
        if (u + 1 == units->count && begin == 0) break; /* the whole model: no blocks */
        if (!add(s, at)) return false;
        begin = u + 1;
    }
    return true;
}

/* --- Together ---------------------------------------------------------------------------------- */

static bool covers_enough(const search *s)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < s->found.count; i++) bytes += bytes_in(s, s->found.at[i]);
    return s->found.count >= 2 && bytes >= s->bytes[s->n_ops] / 4;
}

static onv_status find(search *s, onv_ckpt_plans *plans, onv_error *err)
{
    bool (*const ways[])(search *) = {by_names, by_structure, by_resolution};
    ONV_TRY(init(s, err));
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        s->found.count = 0;
        if (!ways[i](s)) return onv_fail_memory(err);
        if (covers_enough(s)) break;
    }
    return onv_ckpt_plans_add(s->problem, "blocks", s->found.at, (uint32_t)s->found.count, plans,
                              err);
}

static onv_status make(const onv_ckpt_problem *problem, onv_ckpt_plans *plans, onv_error *err)
{
    search s = {.problem = problem};
    onv_arena_init(&s.arena, SIZE_MAX);
    onv_status status = find(&s, plans, err);
    onv_scopes_cleanup(&s.scopes);
    onv_vec_cleanup(&s.found);
    onv_arena_cleanup(&s.arena);
    return status;
}

const onv_ckpt_plan_kind onv_ckpt_blocks = {.name = "blocks",
                                            .summary = "one segment for each repeated module",
                                            .in_all = true,
                                            .make = make};

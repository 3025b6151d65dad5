#include "ckpt/shard_units.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "ckpt/places.h"

enum { MAX_PATH = 512 };

/* --- Repeated modules -------------------------------------------------------------------------- */

static bool is_whole(const onv_scopes *scopes, uint32_t n_ops, const onv_scope_run *run)
{
    const onv_module_span *span = onv_scopes_module(scopes, run->path, run->length);
    return span != NULL && !span->is_called_again && span->first_op == run->first_op &&
           span->last_op == run->last_op && run->last_op < n_ops;
}

/* Of modules that stand in lists the innermost ones where activations meet (a residual sum, a gate,
 * attention), which hold at least half of the parameters that any such list holds. */
static onv_status find_blocks(const onv_scopes *scopes, const onv_eager *eager, onv_arena *arena,
                              onv_tape_segment *units, uint32_t *n_units, onv_error *err)
{
    uint32_t n = eager->first_loss_op, n_runs = (uint32_t)scopes->runs.count;
    uint64_t *bytes = ONV_ARENA_ARRAY(arena, uint64_t, (size_t)n + 1), pattern;
    uint32_t *joins = ONV_ARENA_ARRAY(arena, uint32_t, (size_t)n + 1);
    bool *seen = ONV_ARENA_ARRAY(arena, bool, eager->storages.count);
    onv_scope_weight *weights = ONV_ARENA_ARRAY(arena, onv_scope_weight, n_runs);
    if (arena->failed) return onv_fail_memory(err);
    for (uint32_t i = 0; i < n; i++) {
        const onv_eager_op *op = &eager->ops.at[i];
        bytes[i + 1] = bytes[i]; /* of parameters that those before it are the first to read */
        for (uint32_t k = 0; k < op->n_in; k++) {
            uint32_t storage = eager->tensors.at[op->in[k].tensor].storage;
            const onv_eager_storage *at = &eager->storages.at[storage];
            if (at->kind != ONV_STORAGE_PARAMETER || seen[storage]) continue;
            seen[storage] = true;
            bytes[i + 1] += at->bytes;
        }
        joins[i + 1] = joins[i] + onv_op_joins(eager, op, false);
    }
    for (uint32_t i = 0; i < n_runs; i++) {
        const onv_scope_run *run = &scopes->runs.at[i];
        bool good = is_whole(scopes, n, run);
        weights[i] = (onv_scope_weight){{run->first_op, run->last_op}, good, !good};
    }
    if (!onv_scopes_choose(scopes, weights, bytes, joins, &pattern)) return ONV_OK;
    for (uint32_t i = 0; i < n_runs; i++)
        if (onv_scope_pattern(&scopes->runs.at[i]) == pattern) units[(*n_units)++] = weights[i].at;
    return ONV_OK;
}

/* --- By name ----------------------------------------------------------------------------------- */

static onv_status match_all(const onv_scopes *scopes, const onv_eager *eager, const char *patterns,
                            onv_tape_segment *units, uint32_t *n_units, onv_error *err)
{
    for (const char *at = patterns; *at != '\0';) {
        char pattern[MAX_PATH];
        size_t length = strcspn(at, ",");
        if (length == 0 || length >= sizeof pattern)
            return onv_fail(err, ONV_ERR_USAGE,
                            "--fsdp takes patterns of modules with commas, not '%.200s'", patterns);
        snprintf(pattern, sizeof pattern, "%.*s", (int)length, at);
        ONV_TRY(onv_scopes_match(scopes, eager->first_loss_op, "--fsdp ", pattern, units, n_units,
                                 err));
        at += length + (at[length] == ',');
    }
    onv_segments_sort(units, *n_units);
    uint32_t n = 0;
    for (uint32_t i = 0; i < *n_units; i++) {
        if (n > 0 && memcmp(&units[n - 1], &units[i], sizeof *units) == 0) continue; /* twice */
        if (n > 0 && units[n - 1].last_op >= units[i].first_op)
            return onv_fail(err, ONV_ERR_USAGE,
                            "--fsdp '%.200s' names modules within one another: name those that "
                            "fully_shard() is called with",
                            patterns);
        units[n++] = units[i];
    }
    *n_units = n;
    return ONV_OK;
}

/* A module may be named by each pattern. */
static uint64_t most_matches(const onv_scopes *scopes, const char *patterns)
{
    uint64_t n = 1, modules = 0;
    for (; *patterns != '\0'; patterns++) n += *patterns == ',';
    for (uint32_t i = 0; i < scopes->n_slots; i++) modules += scopes->spans[i].path != NULL;
    return n * modules + scopes->runs.count;
}

onv_status onv_shard_units_find(onv_model *model, const onv_eager *eager, const char *patterns,
                                const onv_tape_segment **units, uint32_t *n_units, onv_error *err)
{
    onv_scopes scopes;
    onv_arena arena;
    onv_tape_segment *found = NULL;
    *n_units = 0;
    onv_arena_init(&arena, SIZE_MAX);
    onv_status status = onv_scopes_find(model, eager, &arena, &scopes, err);
    if (status == ONV_OK) {
        uint64_t most = most_matches(&scopes, patterns);
        found = ONV_ARENA_ARRAY(&model->arena, onv_tape_segment, (size_t)most);
        if (found == NULL) status = onv_fail_memory(err);
    }
    if (status == ONV_OK)
        status = patterns[0] == '\0' ? find_blocks(&scopes, eager, &arena, found, n_units, err)
                                     : match_all(&scopes, eager, patterns, found, n_units, err);
    *units = found;
    onv_scopes_cleanup(&scopes);
    onv_arena_cleanup(&arena);
    return status;
}

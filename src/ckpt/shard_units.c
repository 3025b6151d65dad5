#include "ckpt/shard_units.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "ckpt/places.h"

enum { MAX_PATH = 512 };

/* --- Repeated modules -------------------------------------------------------------------------- */

enum { MAX_PATTERNS = 256 }; /* scopes of further ones don't count */

/* Scopes whose paths differ in numbers alone. */
typedef struct family {
    uint64_t hash, bytes;
    uint32_t depth, n_scopes;
    bool joins, is_called_again;
} family;

typedef struct search {
    const onv_eager *eager;
    const onv_scopes *scopes;
    uint64_t *bytes; /* by operation: of parameters that those before it are the first to read */
    uint32_t *joins; /* likewise, how many of them read two activations */
    family families[MAX_PATTERNS];
    uint32_t n_families;
} search;

static bool joins_activations(const onv_eager *eager, const onv_eager_op *op)
{
    uint32_t first = ONV_NO_TENSOR;
    for (uint32_t k = 0; k < op->n_in; k++) {
        uint32_t tensor = op->in[k].tensor;
        const onv_eager_storage *storage = &eager->storages.at[eager->tensors.at[tensor].storage];
        if (storage->kind != ONV_STORAGE_ACTIVATION || storage->is_cached) continue;
        if (first != ONV_NO_TENSOR && first != tensor) return true;
        first = tensor;
    }
    return false;
}

static onv_status sum_up(search *s, onv_arena *arena, onv_error *err)
{
    uint32_t n = s->eager->first_loss_op;
    s->bytes = ONV_ARENA_ARRAY(arena, uint64_t, (size_t)n + 1);
    s->joins = ONV_ARENA_ARRAY(arena, uint32_t, (size_t)n + 1);
    bool *seen = ONV_ARENA_ARRAY(arena, bool, s->eager->storages.count);
    if (s->bytes == NULL || s->joins == NULL || seen == NULL) return onv_fail_memory(err);
    for (uint32_t i = 0; i < n; i++) {
        const onv_eager_op *op = &s->eager->ops.at[i];
        s->bytes[i + 1] = s->bytes[i];
        for (uint32_t k = 0; k < op->n_in; k++) {
            uint32_t storage = s->eager->tensors.at[op->in[k].tensor].storage;
            const onv_eager_storage *at = &s->eager->storages.at[storage];
            if (at->kind != ONV_STORAGE_PARAMETER || seen[storage]) continue;
            seen[storage] = true;
            s->bytes[i + 1] += at->bytes;
        }
        s->joins[i + 1] = s->joins[i] + joins_activations(s->eager, op);
    }
    return ONV_OK;
}

static family *family_of(search *s, const onv_scope_run *run)
{
    uint64_t hash = onv_scope_pattern(run);
    for (uint32_t i = 0; i < s->n_families; i++)
        if (s->families[i].hash == hash) return &s->families[i];
    if (s->n_families == MAX_PATTERNS) return NULL;
    s->families[s->n_families] = (family){.hash = hash, .depth = run->depth};
    return &s->families[s->n_families++];
}

static bool is_whole(const search *s, const onv_scope_run *run)
{
    const onv_module_span *span = onv_scopes_module(s->scopes, run->path, run->length);
    return span != NULL && !span->is_called_again && span->first_op == run->first_op &&
           span->last_op == run->last_op && run->last_op < s->eager->first_loss_op;
}

static const family *best_family(search *s)
{
    uint64_t most = 0;
    const family *best = NULL;
    for (uint32_t i = 0; i < s->scopes->runs.count; i++) {
        const onv_scope_run *run = &s->scopes->runs.at[i];
        family *f = family_of(s, run);
        if (f == NULL) continue;
        f->is_called_again |= !is_whole(s, run);
        if (f->is_called_again) continue;
        f->n_scopes++;
        f->bytes += s->bytes[run->last_op + 1] - s->bytes[run->first_op];
        f->joins |= s->joins[run->last_op + 1] > s->joins[run->first_op];
    }
    for (uint32_t i = 0; i < s->n_families; i++) {
        const family *f = &s->families[i];
        if (f->joins && f->n_scopes > 1 && !f->is_called_again && f->bytes > most) most = f->bytes;
    }
    for (uint32_t i = 0; i < s->n_families; i++) {
        const family *f = &s->families[i];
        bool good = f->joins && f->n_scopes > 1 && !f->is_called_again && f->bytes >= most / 2;
        if (good && (best == NULL || f->depth > best->depth)) best = f;
    }
    return most > 0 ? best : NULL;
}

/* Of modules that stand in lists the innermost ones where activations meet (a residual sum, a gate,
 * attention), which hold at least half of the parameters that any such list holds. */
static onv_status find_blocks(const onv_scopes *scopes, const onv_eager *eager, onv_arena *arena,
                              onv_tape_segment *units, uint32_t *n_units, onv_error *err)
{
    search *s = ONV_ARENA_ARRAY(arena, search, 1);
    if (s == NULL) return onv_fail_memory(err);
    s->eager = eager;
    s->scopes = scopes;
    ONV_TRY(sum_up(s, arena, err));
    const family *best = best_family(s);
    for (uint32_t i = 0; i < scopes->runs.count && best != NULL; i++) {
        const onv_scope_run *run = &scopes->runs.at[i];
        if (onv_scope_pattern(run) == best->hash)
            units[(*n_units)++] = (onv_tape_segment){run->first_op, run->last_op};
    }
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

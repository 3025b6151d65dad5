#include "ckpt/shard_units.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/ckpt.h"
#include "ckpt/scopes.h"

enum { MAX_PATH = 512 };

/* --- By structure ------------------------------------------------------------------------------ */

static onv_status find_blocks(onv_model *model, const onv_eager *eager,
                              const onv_train_options *options, const onv_tape_segment **units,
                              uint32_t *n_units, onv_error *err)
{
    onv_ckpt_plans plans;
    onv_train_options plain = {.lower = options->lower,
                               .optimizer = options->optimizer,
                               .impl = options->impl,
                               .cancelled = options->cancelled,
                               .cancel_context = options->cancel_context};
    ONV_TRY(onv_ckpt_make(model, eager, &plain, "blocks", &plans, err));
    *n_units = plans.at.count > 0 ? plans.at.at[0].n_segments : 0;
    *units = plans.at.count > 0 ? plans.at.at[0].segments : NULL;
    onv_ckpt_plans_cleanup(&plans);
    return ONV_OK;
}

/* --- By name ----------------------------------------------------------------------------------- */

static int by_first(const void *a, const void *b)
{
    const onv_tape_segment *x = a, *y = b;
    return (x->first_op > y->first_op) - (x->first_op < y->first_op);
}

static onv_status add_matches(const onv_scopes *scopes, const onv_eager *eager, const char *pattern,
                              onv_tape_segment *units, uint32_t *n_units, onv_error *err)
{
    uint32_t before = *n_units;
    for (uint32_t i = 0; i < scopes->n_slots; i++) {
        const onv_module_span *span = &scopes->spans[i];
        char path[MAX_PATH];
        if (span->path == NULL || span->length == 0 || span->length >= MAX_PATH) continue;
        snprintf(path, sizeof path, "%.*s", (int)span->length, span->path);
        if (fnmatch(pattern, path, 0) != 0 || span->last_op >= eager->first_loss_op) continue;
        if (span->is_called_again)
            return onv_fail(err, ONV_ERR_USAGE,
                            "--fsdp '%.200s' matches the module '%.200s', which is called several "
                            "times: name others",
                            pattern, path);
        units[(*n_units)++] = (onv_tape_segment){span->first_op, span->last_op};
    }
    if (*n_units > before) return ONV_OK;
    return onv_fail(err, ONV_ERR_USAGE, "--fsdp '%.200s' matches no module", pattern);
}

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
        ONV_TRY(add_matches(scopes, eager, pattern, units, n_units, err));
        at += length + (at[length] == ',');
    }
    qsort(units, *n_units, sizeof *units, by_first);
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
    return n * modules;
}

onv_status onv_shard_units_find(onv_model *model, const onv_eager *eager,
                                const onv_train_options *options, const char *patterns,
                                const onv_tape_segment **units, uint32_t *n_units, onv_error *err)
{
    *units = NULL;
    *n_units = 0;
    if (patterns[0] == '\0') return find_blocks(model, eager, options, units, n_units, err);
    onv_scopes scopes;
    onv_arena arena;
    onv_arena_init(&arena, SIZE_MAX);
    onv_status status = onv_scopes_find(model, eager, &arena, &scopes, err);
    uint64_t most = status == ONV_OK ? most_matches(&scopes, patterns) : 0;
    onv_tape_segment *found = NULL;
    if (status == ONV_OK) {
        found = ONV_ARENA_ARRAY(&model->arena, onv_tape_segment, most);
        status = found != NULL ? match_all(&scopes, eager, patterns, found, n_units, err)
                               : onv_fail_memory(err);
    }
    *units = found;
    onv_scopes_cleanup(&scopes);
    onv_arena_cleanup(&arena);
    return status;
}

#include "emit/patterns.h"

#include <fnmatch.h>
#include <string.h>

#include "base/fail.h"

/* Does the pattern match the name, or a module that it is in? */
bool onv_pattern_matches(const char *pattern, const char *name)
{
    char module[1024];
    if (fnmatch(pattern, name, 0) == 0) return true;
    if (strlen(name) >= sizeof module) return false;
    strcpy(module, name); /* NOLINT(clang-analyzer-security.insecureAPI.strcpy): it fits */
    for (char *dot; (dot = strrchr(module, '.')) != NULL;) {
        *dot = '\0';
        if (fnmatch(pattern, module, 0) == 0) return true;
    }
    return false;
}

static bool matches_any(const char *const *patterns, size_t n, const char *name, const char *file,
                        bool *used)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        bool match = onv_pattern_matches(patterns[i], name) ||
                     (file != NULL && onv_pattern_matches(patterns[i], file));
        used[i] |= match;
        any |= match;
    }
    return any;
}

static bool is_frozen(onv_emitter *e, const char *name, const char *file)
{
    const onv_lower_options *o = e->options;
    bool frozen = matches_any(o->freeze, o->n_freeze, name, file, e->freeze_used);
    bool only = o->n_train_only == 0 || matches_any(o->train_only, o->n_train_only, name, file,
                                                    e->freeze_used + o->n_freeze);
    return frozen || !only;
}

void onv_emit_parameter(onv_emitter *e, uint32_t tensor, const char *name, const char *file,
                        bool may_train)
{
    if (e->status != ONV_OK) return;
    onv_eager_tensor *t = &e->eager->tensors.at[tensor];
    onv_eager_storage *storage = &e->eager->storages.at[t->storage];
    storage->kind = ONV_STORAGE_PARAMETER;
    storage->label = name;
    storage->elems = t->elems;
    storage->dims = t->dims;
    storage->rank = t->rank;
    storage->trained = !e->options->inference && may_train && !is_frozen(e, name, file);
    t->needs_grad = t->is_leaf = storage->trained;
}

onv_status onv_patterns_begin(onv_emitter *e)
{
    const onv_lower_options *o = e->options;
    e->freeze_used = ONV_ARENA_ARRAY(&e->model->arena, bool, o->n_freeze + o->n_train_only);
    return e->freeze_used != NULL ? ONV_OK : onv_fail_memory(e->err);
}

/* A pattern without a match is a mistake that would pass for an answer. */
void onv_check_frozen(onv_emitter *e)
{
    const onv_lower_options *o = e->options;
    size_t n_trained = o->inference ? 0 : o->n_freeze + o->n_train_only; /* training asks */
    for (size_t i = 0; i < n_trained && e->status == ONV_OK; i++) {
        if (e->freeze_used[i]) continue;
        const char *example = "none";
        for (size_t s = 0; s < e->eager->storages.count; s++) {
            const onv_eager_storage *storage = &e->eager->storages.at[s];
            if (storage->kind != ONV_STORAGE_PARAMETER) continue;
            example = storage->label;
            break;
        }
        bool is_freeze = i < o->n_freeze;
        e->status = onv_fail(
            e->err, ONV_ERR_USAGE,
            "--%s '%.200s' matches no parameter and no module; the first parameter is '%.200s'",
            is_freeze ? "freeze" : "train-only",
            is_freeze ? o->freeze[i] : o->train_only[i - o->n_freeze], example);
    }
}

#include "ckpt/scopes.h"

#include <ctype.h>
#include <string.h>

/* --- Paths ------------------------------------------------------------------------------------- */

/* The parts of a name with slashes, but for the last one. A module of a list is written with the
 * list's name before its own: layer1/layer1.0 is layer1.0. */
static const char *path_of_name(onv_arena *arena, const char *name)
{
    const char *end = strrchr(name, '/');
    char *path = onv_arena_alloc(arena, strlen(name) + 1);
    if (path == NULL) return NULL;
    size_t length = 0;
    const char *before = "";
    size_t n_before = 0;
    for (const char *part = name; part < end;) {
        const char *stop = memchr(part, '/', (size_t)(end - part));
        if (stop == NULL) stop = end;
        size_t n = (size_t)(stop - part);
        bool repeats = n_before > 0 && n > n_before + 1 && memcmp(part, before, n_before) == 0 &&
                       part[n_before] == '.';
        size_t skip = repeats ? n_before + 1 : 0;
        if (n > skip) {
            if (length > 0) path[length++] = '.';
            memcpy(path + length, part + skip, n - skip);
            length += n - skip;
        }
        if (n > 0) {
            before = part;
            n_before = n;
        }
        part = stop + (stop < end);
    }
    path[length] = '\0';
    return path;
}

static const char *path_of_weight(onv_arena *arena, const char *label)
{
    const char *dot = strrchr(label, '.');
    return dot != NULL && dot > label ? onv_arena_strndup(arena, label, (size_t)(dot - label))
                                      : NULL;
}

static const char *path_of_op(const onv_model *model, const onv_eager *eager,
                              const onv_eager_op *op, onv_arena *arena)
{
    if (!onv_is_node(op->node)) return NULL;
    const char *name = onv_model_node(model, op->node)->name;
    if (strchr(name, '/') != NULL) return path_of_name(arena, name);
    for (uint32_t k = 0; k < op->n_in; k++) {
        const onv_eager_storage *storage =
            &eager->storages.at[eager->tensors.at[op->in[k].tensor].storage];
        if (storage->kind == ONV_STORAGE_PARAMETER || storage->kind == ONV_STORAGE_BUFFER) {
            const char *path = path_of_weight(arena, storage->label);
            if (path != NULL || arena->failed) return path;
        }
    }
    return NULL;
}

/* --- Scopes ------------------------------------------------------------------------------------ */

/* The lengths of the beginnings of a path that end in a number. */
static uint32_t numbered(const char *path, uint32_t ends[ONV_SCOPE_MAX_DEPTH])
{
    uint32_t n = 0;
    for (size_t i = 0; path[i] != '\0' && n < ONV_SCOPE_MAX_DEPTH; i++) {
        bool ends_part = path[i + 1] == '\0' || path[i + 1] == '.';
        if (ends_part && isdigit((unsigned char)path[i])) ends[n++] = (uint32_t)i + 1;
    }
    return n;
}

static bool is_inside(const onv_scope_run *run, const char *path, uint32_t length)
{
    return run->length == length && memcmp(run->path, path, length) == 0;
}

/* `open`: the runs around the last operation that had a path, outer first. */
static bool enter(onv_scopes *scopes, uint32_t *open, uint32_t *n_open, uint32_t op)
{
    const char *path = scopes->path_of[op];
    uint32_t ends[ONV_SCOPE_MAX_DEPTH];
    uint32_t n = numbered(path, ends), same = 0;
    while (same < n && same < *n_open && strlen(path) >= ends[same] &&
           is_inside(&scopes->runs.at[open[same]], path, ends[same]))
        scopes->runs.at[open[same++]].last_op = op;
    for (*n_open = same; *n_open < n; (*n_open)++) {
        onv_scope_run run = {path, ends[*n_open], op, op, *n_open};
        if (!onv_vec_push(&scopes->runs, run)) return false;
        open[*n_open] = (uint32_t)scopes->runs.count - 1;
    }
    return true;
}

onv_status onv_scopes_find(const onv_model *model, const onv_eager *eager, onv_arena *arena,
                           onv_scopes *scopes, onv_error *err)
{
    uint32_t open[ONV_SCOPE_MAX_DEPTH], n_open = 0;
    *scopes = (onv_scopes){.path_of = ONV_ARENA_ARRAY(arena, const char *, eager->first_loss_op)};
    if (scopes->path_of == NULL) return onv_fail_memory(err);
    for (uint32_t i = 0; i < eager->first_loss_op; i++) {
        scopes->path_of[i] = path_of_op(model, eager, &eager->ops.at[i], arena);
        if (arena->failed) return onv_fail_memory(err);
        if (scopes->path_of[i] != NULL && !enter(scopes, open, &n_open, i))
            return onv_fail_memory(err);
    }
    return ONV_OK;
}

void onv_scopes_cleanup(onv_scopes *scopes)
{
    onv_vec_cleanup(&scopes->runs);
}

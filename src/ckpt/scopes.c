#include "ckpt/scopes.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/strings.h"
#include "ir/notes.h"
#include "ir/origin.h"

/* --- Paths ------------------------------------------------------------------------------------- */

/* A module of a list is written with the list's name before its own: layer1/layer1.0 is layer1.0. */
static const char *path_of_slashes(onv_arena *arena, const char *name, size_t n_name)
{
    const char *end = name + n_name;
    char *path = onv_arena_alloc(arena, n_name + 1);
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

/* NULL: the node does not tell. */
static const char *path_of_node(const onv_model *model, onv_node_id node, onv_arena *arena)
{
    onv_origin origin = onv_node_origin(model, onv_model_node(model, node));
    if (origin.path == NULL) return NULL;
    return origin.separator == '/' ? path_of_slashes(arena, origin.path, origin.length)
                                   : onv_arena_strndup(arena, origin.path, origin.length);
}

/* The path of a node, which is asked for once: it may have thousands of operations, and inputs. */
typedef struct node_path {
    onv_node_id node;
    const char *path;
} node_path;

/* Where the node does not tell, weights do that come to the operation through other nodes. */
static const char *path_of_op(const onv_model *model, const onv_eager *eager,
                              const onv_eager_op *op, node_path *last, onv_arena *arena)
{
    if (!onv_is_node(op->node)) return NULL;
    if (op->part != NULL) return onv_arena_strndup(arena, op->part, strlen(op->part));
    if (op->node.index != last->node.index)
        *last = (node_path){op->node, path_of_node(model, op->node, arena)};
    if (last->path != NULL) return last->path;
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

bool onv_path_is_plain(const char *path, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (path[i] == '\0' || strchr(ONV_PATH_CHARACTERS, path[i]) == NULL) return false;
    return length > 0;
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

/* --- Modules ----------------------------------------------------------------------------------- */

/* Its slot, or the empty one where it belongs. The table is never full. */
static onv_module_span *find_slot(const onv_scopes *scopes, const char *path, uint32_t length)
{
    uint32_t mask = scopes->n_slots - 1;
    uint32_t slot = (uint32_t)onv_hash_bytes(path, length, 0) & mask;
    for (; scopes->spans[slot].path != NULL; slot = (slot + 1) & mask) {
        const onv_module_span *at = &scopes->spans[slot];
        if (at->length == length && memcmp(at->path, path, length) == 0) break;
    }
    return &scopes->spans[slot];
}

const onv_module_span *onv_scopes_module(const onv_scopes *scopes, const char *path,
                                         uint32_t length)
{
    const onv_module_span *at = find_slot(scopes, path, length);
    return at->path != NULL ? at : NULL;
}

static uint32_t n_parts(const char *path)
{
    uint32_t n = path[0] != '\0';
    for (; *path != '\0'; path++) n += *path == '.';
    return n;
}

/* An export writes the second call of module "relu" as "relu_1". */
static bool is_written_again(const onv_scopes *scopes, const char *path, uint32_t length)
{
    char second[256];
    uint32_t digits = 0;
    while (digits < length && isdigit((unsigned char)path[length - 1 - digits])) digits++;
    bool has_number = digits > 0 && digits + 1 < length && path[length - 1 - digits] == '_';
    if (has_number && onv_scopes_module(scopes, path, length - 1 - digits) != NULL) return true;
    int n = snprintf(second, sizeof second, "%.*s_1", (int)length, path);
    return n < 0 || (size_t)n >= sizeof second ||
           onv_scopes_module(scopes, second, (uint32_t)n) != NULL;
}

static bool lists(const char *calls, const char *path, size_t length)
{
    for (const char *at = calls; (at = strchr(at, '\'')) != NULL; at++)
        if (strncmp(at + 1, path, length) == 0 && at[1 + length] == '\'') return true;
    return false;
}

/* A list of modules is part of the path, but no call of it is around the node. */
static bool is_called(const onv_model *model, const onv_eager_op *op, const char *path,
                      size_t length)
{
    const char *calls =
        onv_is_node(op->node) ? onv_noted(onv_model_node(model, op->node))->calls : "";
    return lists(calls, path, length) || !lists(calls, path, strlen(path));
}

static onv_status find_modules(const onv_model *model, const onv_eager *eager, onv_scopes *scopes,
                               onv_arena *arena, onv_error *err)
{
    uint32_t n_ops = eager->first_loss_op;
    uint64_t most = 0;
    for (uint32_t i = 0; i < n_ops; i++)
        if (scopes->path_of[i] != NULL) most += n_parts(scopes->path_of[i]);
    if (most > UINT32_MAX / 4)
        return onv_fail(err, ONV_ERR_LIMIT, "the names of nodes have %llu parts",
                        (unsigned long long)most);
    for (scopes->n_slots = 16; scopes->n_slots < 2 * most;) scopes->n_slots *= 2;
    scopes->spans = ONV_ARENA_ARRAY(arena, onv_module_span, scopes->n_slots);
    scopes->module_of = ONV_ARENA_ARRAY(arena, const onv_module_span *, n_ops);
    if (scopes->spans == NULL || scopes->module_of == NULL) return onv_fail_memory(err);
    uint32_t place = 0;
    for (uint32_t i = 0; i < n_ops; i++) {
        const char *path = scopes->path_of[i];
        if (path == NULL) continue;
        place++;
        for (size_t end = 0; path[end] != '\0'; end += path[end] == '.') {
            end += strcspn(path + end, ".");
            onv_module_span *at = find_slot(scopes, path, (uint32_t)end);
            if (at->path == NULL)
                *at =
                    (onv_module_span){.path = path,
                                      .around = scopes->module_of[i],
                                      .length = (uint32_t)end,
                                      .first_op = i,
                                      .is_called = is_called(model, &eager->ops.at[i], path, end)};
            else
                at->is_called_again |= at->last_place + 1 < place;
            at->last_op = i;
            at->last_place = place;
            scopes->module_of[i] = at;
        }
    }
    for (uint32_t i = 0; i < scopes->n_slots; i++) {
        onv_module_span *at = &scopes->spans[i];
        at->is_one_call = at->path != NULL && at->is_called && !at->is_called_again &&
                          onv_path_is_plain(at->path, at->length) &&
                          !is_written_again(scopes, at->path, at->length);
    }
    return ONV_OK;
}

uint64_t onv_scope_pattern(const onv_scope_run *run)
{
    uint64_t hash = run->depth;
    for (uint32_t i = 0; i < run->length; i++) {
        char c = run->path[i];
        bool digit = isdigit((unsigned char)c) != 0;
        if (digit && i > 0 && isdigit((unsigned char)run->path[i - 1])) continue;
        if (digit) c = '#';
        hash = onv_hash_bytes(&c, 1, hash);
    }
    return hash;
}

enum { MAX_FAMILIES = 256 }; /* scopes of further patterns don't count */

typedef struct family {
    uint64_t pattern, bytes;
    uint32_t depth, n_scopes;
    bool joins, is_spoilt;
} family;

static bool is_good(const family *f)
{
    return f->joins && f->n_scopes > 1 && !f->is_spoilt;
}

bool onv_scopes_choose(const onv_scopes *scopes, const onv_scope_weight *weights,
                       const uint64_t *bytes, const uint32_t *joins, uint64_t *pattern)
{
    family families[MAX_FAMILIES];
    const family *best = NULL;
    uint32_t n = 0;
    uint64_t most = 0;
    for (size_t i = 0; i < scopes->runs.count; i++) {
        uint64_t hash = onv_scope_pattern(&scopes->runs.at[i]);
        uint32_t first = weights[i].at.first_op, end = weights[i].at.last_op + 1, k = 0;
        while (k < n && families[k].pattern != hash) k++;
        if (k == MAX_FAMILIES) continue;
        if (k == n) families[n++] = (family){.pattern = hash, .depth = scopes->runs.at[i].depth};
        families[k].is_spoilt |= weights[i].is_spoilt;
        if (!weights[i].counts) continue;
        families[k].n_scopes++;
        families[k].bytes += bytes[end] - bytes[first]; /* disjoint: not more than all */
        families[k].joins |= joins[end] > joins[first];
    }
    for (uint32_t k = 0; k < n; k++)
        if (is_good(&families[k]) && families[k].bytes > most) most = families[k].bytes;
    for (uint32_t k = 0; k < n && most > 0; k++) {
        if (!is_good(&families[k]) || families[k].bytes < most / 2) continue;
        if (best == NULL || families[k].depth > best->depth) best = &families[k];
    }
    if (best != NULL) *pattern = best->pattern;
    return best != NULL;
}

bool onv_op_joins(const onv_eager *eager, const onv_eager_op *op, bool with_grad)
{
    uint32_t first = ONV_NO_TENSOR;
    for (uint32_t k = 0; k < op->n_in; k++) {
        uint32_t tensor = op->in[k].tensor;
        const onv_eager_tensor *t = &eager->tensors.at[tensor];
        const onv_eager_storage *storage = &eager->storages.at[t->storage];
        if (storage->kind != ONV_STORAGE_ACTIVATION || storage->is_cached) continue;
        if (with_grad && !t->needs_grad) continue;
        if (first != ONV_NO_TENSOR && first != tensor) return true;
        first = tensor;
    }
    return false;
}

onv_status onv_scopes_match(const onv_scopes *scopes, uint32_t n_ops, const char *what,
                            const char *pattern, onv_tape_segment *to, uint32_t *n, onv_error *err)
{
    enum { MAX_PATH = 512 };
    uint32_t before = *n;
    for (uint32_t i = 0; i < scopes->n_slots; i++) {
        const onv_module_span *span = &scopes->spans[i];
        char path[MAX_PATH];
        if (span->path == NULL || span->length == 0 || span->length >= MAX_PATH) continue;
        snprintf(path, sizeof path, "%.*s", (int)span->length, span->path);
        if (fnmatch(pattern, path, 0) != 0 || span->last_op >= n_ops) continue;
        if (span->is_called_again)
            return onv_fail(err, ONV_ERR_USAGE,
                            "%s'%.200s' matches the module '%.200s', which is called several "
                            "times: name others",
                            what, pattern, path);
        to[(*n)++] = (onv_tape_segment){span->first_op, span->last_op};
    }
    if (*n > before) return ONV_OK;
    return onv_fail(err, ONV_ERR_USAGE, "%s'%.200s' matches no module", what, pattern);
}

onv_status onv_scopes_find(const onv_model *model, const onv_eager *eager, onv_arena *arena,
                           onv_scopes *scopes, onv_error *err)
{
    uint32_t open[ONV_SCOPE_MAX_DEPTH], n_open = 0;
    node_path last = {ONV_NO_NODE, NULL};
    *scopes = (onv_scopes){.path_of = ONV_ARENA_ARRAY(arena, const char *, eager->first_loss_op)};
    if (scopes->path_of == NULL) return onv_fail_memory(err);
    for (uint32_t i = 0; i < eager->first_loss_op; i++) {
        scopes->path_of[i] = path_of_op(model, eager, &eager->ops.at[i], &last, arena);
        if (arena->failed) return onv_fail_memory(err);
        if (scopes->path_of[i] != NULL && !enter(scopes, open, &n_open, i))
            return onv_fail_memory(err);
    }
    return find_modules(model, eager, scopes, arena, err);
}

void onv_scopes_cleanup(onv_scopes *scopes)
{
    onv_vec_cleanup(&scopes->runs);
}

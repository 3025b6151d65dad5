#include "ckpt/borders.h"

#include <string.h>

#include "base/fail.h"
#include "base/strings.h"
#include "fuse/fuse.h"

/* Calls inside each other, and characters of a path; beyond them nothing is known. */
enum { MAX_DEPTH = 64, MAX_PATH = 1000 };

static const char enter[] = "enter", leave[] = "leave", whole[] = ".";

/* --- Calls around an operation ----------------------------------------------------------------- */

/* The modules whose calls are around an operation, outer first, without the model itself. */
typedef struct around {
    const char *paths[MAX_DEPTH]; /* interned */
    uint32_t n;
    bool is_known;
} around;

typedef struct count {
    const char *path, *kind; /* path NULL: an empty slot */
    uint32_t n;
} count;

typedef struct finder {
    const onv_model *model;
    const onv_eager *eager;
    const onv_scopes *scopes;
    onv_arena *arena;
    onv_strings paths;
    count *counts; /* a hash table */
    uint32_t n_slots;
} finder;

/* False where the operation's calls are not known any more. */
static bool push(finder *f, around *a, const char *path, size_t length)
{
    if (a->n == MAX_DEPTH || length > MAX_PATH || !onv_path_is_plain(path, length)) return false;
    a->paths[a->n] = onv_intern_n(&f->paths, path, length);
    return a->paths[a->n++] != NULL;
}

/* "['', 'layer1', 'layer1.0'": paths of their own, the model first. */
static bool read_list(finder *f, const char *at, around *a)
{
    for (;;) {
        at += strcspn(at, "'\"");
        const char *end = *at != '\0' ? strchr(at + 1, *at) : NULL;
        if (end == NULL) return true;
        size_t length = (size_t)(end - at - 1);
        if (length > 0 && !push(f, a, at + 1, length)) return false;
        at = end + 1;
    }
}

/* "/layer1/layer1.0/conv1/Conv": each part under the one before; a member of a list has the list's
 * name before its own. */
static bool read_slashes(finder *f, const char *name, around *a)
{
    char path[MAX_PATH + 1];
    size_t length = 0, n_before = 0;
    const char *before = "";
    for (const char *part = name + 1, *stop; (stop = strchr(part, '/')) != NULL; part = stop + 1) {
        size_t n = (size_t)(stop - part);
        bool repeats = n_before > 0 && n > n_before + 1 && memcmp(part, before, n_before) == 0 &&
                       part[n_before] == '.';
        size_t skip = repeats ? n_before + 1 : 0;
        if (n == 0 || length + 1 + n - skip > MAX_PATH) return false;
        if (length > 0) path[length++] = '.';
        memcpy(path + length, part + skip, n - skip);
        length += n - skip;
        if (!push(f, a, path, length)) return false;
        before = part;
        n_before = n;
    }
    return true;
}

/* Whether the paths are of modules beside each other. */
static bool is_beside(const char *a, const char *b)
{
    const char *x = strrchr(a, '.'), *y = strrchr(b, '.');
    size_t n = x != NULL ? (size_t)(x - a) : 0, m = y != NULL ? (size_t)(y - b) : 0;
    return n == m && memcmp(a, b, n) == 0;
}

static size_t parent_length(const char *path)
{
    const char *last = strrchr(path, '.');
    return last != NULL ? (size_t)(last - path) : 0;
}

/* Whether `path` is somewhere in the module around `a`. */
static bool shares_parent(const char *a, const char *path)
{
    size_t n = parent_length(a);
    return n == 0 || (strncmp(path, a, n) == 0 && path[n] == '.');
}

static bool is_inside(const char *outer, const char *path)
{
    size_t n = strlen(outer);
    return strncmp(path, outer, n) == 0 && path[n] == '.';
}

/* The module `path`; if it is inside the last one, before it those between that the operation before is in: a Sequential. */
static bool push_inside(finder *f, around *a, const around *before, const char *path)
{
    const char *last = a->n > 0 ? a->paths[a->n - 1] : NULL;
    size_t outer = last != NULL ? strlen(last) + 1 : 0;
    if (last != NULL && !is_inside(last, path)) return push(f, a, path, strlen(path));
    for (const char *at = path + outer; (at = strchr(at, '.')) != NULL; at++) {
        const char *module = onv_intern_n(&f->paths, path, (size_t)(at - path));
        bool is_called = false;
        for (uint32_t i = 0; i < before->n; i++) is_called |= before->paths[i] == module;
        if (is_called && !push(f, a, path, (size_t)(at - path))) return false;
    }
    return push(f, a, path, strlen(path));
}

/* What pads the images of a convolution stands in its node, and runs in its module. */
static uint32_t owner_of(const onv_eager *eager, uint32_t index)
{
    const onv_eager_op *op = &eager->ops.at[index], *next = op + 1;
    bool is_part = op->aten == ONV_ATEN_pad && index + 1 < eager->first_loss_op &&
                   next->node.index == op->node.index && next->aten == ONV_ATEN_conv;
    return index + is_part;
}

/* What the exporter computed of a parameter: the operation that did that stands before the node that reads its
 * result, and was in a module of its own (lower/value.c). */
static bool is_computed(const finder *f, const onv_eager_op *op, const onv_node *node)
{
    if (op->n_in != 1 || onv_kind_of(op) == NULL) return false;
    const onv_eager *eager = f->eager;
    bool reads_parameter = eager->storages.at[eager->tensors.at[op->in[0].tensor].storage].kind ==
                           ONV_STORAGE_PARAMETER;
    bool is_own = op->aten == ONV_ATEN_embedding
                      ? node->code == ONV_OP_Gather || onv_node_is_aten(node, "embedding")
                      : op->aten != ONV_ATEN_mm;
    return reads_parameter && !is_own;
}

/* A node of two modules that an export folded (a convolution and its norm) notes one of them; the
 * operation's own path tells. Of others it does not: a weight may stand for equal ones of other modules. */
static void find_around(finder *f, uint32_t index, const around *before, around *a)
{
    uint32_t owner = owner_of(f->eager, index);
    const onv_eager_op *op = &f->eager->ops.at[owner];
    const char *path = f->scopes->path_of[owner];
    a->n = 0;
    a->is_known = false;
    if (!onv_is_node(op->node)) return;
    const onv_node *node = onv_model_node(f->model, op->node);
    /* The forward pass of an autograd function runs without gradient: nothing in it counts, and no place is inside. */
    if (onv_noted(node)->function[0] != '\0') return;
    if (is_computed(f, op, node)) return;
    if (onv_noted(node)->calls[0] != '\0')
        a->is_known = read_list(f, onv_noted(node)->calls, a);
    else if (node->name[0] == '/')
        a->is_known = read_slashes(f, node->name, a);
    bool is_conv = op->part == NULL && op->aten == ONV_ATEN_conv;
    if (!a->is_known || path == NULL || a->n == 0 || (op->part == NULL && !is_conv)) return;
    const char *noted = a->paths[a->n - 1];
    if (strcmp(noted, path) == 0) return;
    if (is_beside(noted, path)) {
        a->n--;
        a->is_known = push(f, a, path, strlen(path));
    } else if (is_conv && shares_parent(noted, path)) {
        a->n--;
        a->is_known = push_inside(f, a, before, path);
    }
}

/* --- Counting ---------------------------------------------------------------------------------- */

/* The table has room for all that are ever counted. */
static uint32_t *counter(finder *f, const char *path, const char *kind)
{
    uint32_t mask = f->n_slots - 1;
    uint64_t hash = onv_hash_word(onv_hash_word((uintptr_t)path) + (uintptr_t)kind);
    uint32_t slot = (uint32_t)hash & mask;
    while (f->counts[slot].path != NULL &&
           (f->counts[slot].path != path || f->counts[slot].kind != kind))
        slot = (slot + 1) & mask;
    f->counts[slot].path = path;
    f->counts[slot].kind = kind;
    return &f->counts[slot].n;
}

static uint32_t n_counted(finder *f)
{
    uint64_t n = 2;
    around calls[2] = {{.n = 0}, {.n = 0}};
    for (uint32_t i = 0; i < f->eager->first_loss_op; i++) {
        find_around(f, i, &calls[1 - i % 2], &calls[i % 2]);
        n += 2 * (uint64_t)calls[i % 2].n + 1;
    }
    return n < UINT32_MAX / 4 ? (uint32_t)n : 0;
}

/* --- All places -------------------------------------------------------------------------------- */

/* From an operation inside the calls `a` to one inside `b`: all calls that end are left, all that
 * begin are entered. The description is that of the outermost one; a call that begins goes before. */
static onv_border cross(finder *f, const around *a, const around *b)
{
    onv_border border = {.kind = NULL};
    uint32_t same = 0;
    while (same < a->n && same < b->n && a->paths[same] == b->paths[same]) same++;
    for (uint32_t i = a->n; i-- > same;) {
        uint32_t n = ++*counter(f, a->paths[i], leave);
        border = (onv_border){leave, a->paths[i], n};
    }
    for (uint32_t i = same; i < b->n; i++) {
        uint32_t n = ++*counter(f, b->paths[i], enter);
        if (i == same) border = (onv_border){enter, b->paths[i], n};
    }
    return border;
}

static void find_all(finder *f, onv_borders *borders)
{
    const onv_eager *eager = f->eager;
    around calls[2] = {{.n = 0}, {.n = 0}};
    uint32_t now = 0; /* the last one that is known */
    bool gap = false; /* operations that are not stand between */
    for (uint32_t i = 0; i < eager->first_loss_op; i++) {
        const onv_eager_op *op = &eager->ops.at[i];
        around *a = &calls[1 - now];
        find_around(f, i, &calls[now], a);
        if (!a->is_known) {
            gap |= op->has_backward;
            continue;
        }
        const char *path = a->n > 0 ? a->paths[a->n - 1] : whole, *kind = onv_kind_of(op);
        if (kind != NULL && op->has_backward)
            borders->of_op[i] = (onv_border){kind, path, ++*counter(f, path, kind)};
        onv_border crossed = cross(f, &calls[now], a);
        if (!gap) borders->before[i] = crossed.kind != NULL ? crossed : borders->of_op[i];
        gap = false;
        now = 1 - now;
    }
    borders->before[0] = (onv_border){enter, whole, 1};
    borders->before[eager->first_loss_op] = (onv_border){leave, whole, 1};
}

onv_status onv_borders_find(const onv_model *model, const onv_eager *eager,
                            const onv_scopes *scopes, onv_arena *arena, onv_borders *borders,
                            onv_error *err)
{
    finder f = {.model = model, .eager = eager, .scopes = scopes, .arena = arena};
    uint32_t n = eager->first_loss_op;
    *borders = (onv_borders){.before = ONV_ARENA_ARRAY(arena, onv_border, n + 1),
                             .of_op = ONV_ARENA_ARRAY(arena, onv_border, n + 1)};
    if (arena->failed) return onv_fail_memory(err);
    onv_strings_init(&f.paths, arena);
    uint32_t most = n_counted(&f);
    for (f.n_slots = 16; f.n_slots < 2 * most;) f.n_slots *= 2;
    f.counts = ONV_ARENA_ARRAY(arena, count, f.n_slots);
    onv_status status = ONV_OK;
    if (most == 0)
        status = onv_fail(err, ONV_ERR_LIMIT, "the operations stand in too many modules");
    else if (arena->failed)
        status = onv_fail_memory(err);
    else
        find_all(&f, borders);
    onv_strings_cleanup(&f.paths);
    return status == ONV_OK && arena->failed ? onv_fail_memory(err) : status;
}

const char *onv_border_text(const onv_border *border, onv_arena *arena)
{
    bool is_call = border->kind == enter || border->kind == leave;
    return is_call ? onv_arena_printf(arena, "%s %s %u", border->kind, border->path,
                                      (unsigned)border->count)
                   : onv_arena_printf(arena, "op %s %s %u", border->path, border->kind,
                                      (unsigned)border->count);
}

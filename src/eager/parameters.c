/* The order in which PyTorch goes over parameters and buffers.
 *
 * Module.to() moves children before what a module has itself, Module.parameters() lists what it has before
 * its children; parameters stand before buffers. Names tell modules ("layer1.0.conv1.weight"). Children stand in the
 * order in which they were registered, where the export lists all parameters; otherwise in that in which the network
 * uses them first, as they are mostly registered. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "eager/simulation.h"

enum { MAX_DEPTH = 16 };

typedef struct entry {
    const char *name;
    uint32_t storage; /* ONLY_LISTED: a name of the export's list */
    uint32_t place;   /* in that list, or behind it by the first use */
    uint32_t child
        [MAX_DEPTH]; /* by depth: the first place of the child that it is in; NO_CHILD: its own */
    bool is_buffer;
} entry;

#define NO_CHILD    UINT32_MAX
#define ONLY_LISTED UINT32_MAX

/* Length of the first `depth + 1` parts with the point that ends them; 0: it has not as many modules. */
static size_t prefix_length(const char *name, uint32_t depth)
{
    const char *at = name;
    for (uint32_t i = 0; i <= depth; i++) {
        at = strchr(at, '.');
        if (at == NULL) return 0;
        at++;
    }
    return (size_t)(at - name);
}

static int by_name(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x->storage > y->storage) - (x->storage < y->storage);
}

static int compare(const entry *x, const entry *y, bool children_first)
{
    for (uint32_t d = 0; d < MAX_DEPTH; d++) {
        uint32_t a = x->child[d], b = y->child[d];
        if (a == b && a == NO_CHILD) break;
        if (a == NO_CHILD || b == NO_CHILD) return (a == NO_CHILD) == children_first ? 1 : -1;
        if (a != b) return a < b ? -1 : 1;
    }
    if (x->is_buffer != y->is_buffer) return x->is_buffer ? 1 : -1;
    return (x->storage > y->storage) - (x->storage < y->storage);
}

static int as_moved(const void *a, const void *b)
{
    return compare(a, b, true);
}

static int as_listed(const void *a, const void *b)
{
    return compare(a, b, false);
}

/* Mostly they are in that order by then. */
static void sort(entry *entries, size_t n, int (*by)(const void *a, const void *b))
{
    size_t in_order = 1;
    while (in_order < n && by(&entries[in_order - 1], &entries[in_order]) < 0) in_order++;
    if (in_order < n) qsort(entries, n, sizeof *entries, by);
}

/* Names of one module stand together when they are sorted. False: none is so deep. */
static bool find_children(entry *entries, size_t n, uint32_t depth)
{
    bool any = false;
    for (size_t i = 0, end; i < n; i = end) {
        size_t length = prefix_length(entries[i].name, depth);
        uint32_t first = entries[i].place;
        for (end = i + 1; end < n && length > 0; end++) {
            if (strncmp(entries[i].name, entries[end].name, length) != 0) break;
            if (entries[end].place < first) first = entries[end].place;
        }
        for (size_t k = i; k < end; k++) entries[k].child[depth] = length > 0 ? first : NO_CHILD;
        if (length == 0) end = i + 1;
        any |= length > 0;
    }
    return any;
}

static void find_first_uses(const onv_eager *eager, uint32_t *first_use)
{
    memset(first_use, 0xff, eager->storages.count * sizeof *first_use);
    for (uint32_t i = (uint32_t)eager->ops.count; i-- > 0;)
        for (uint32_t k = 0; k < eager->ops.at[i].n_in; k++)
            first_use[eager->tensors.at[eager->ops.at[i].in[k].tensor].storage] = i;
}

/* The storages, then the listed names; returns how many storages there are. */
static uint32_t collect(const onv_eager *eager, const onv_model *model, const uint32_t *first_use,
                        entry *entries)
{
    uint32_t count = 0, listed = (uint32_t)model->listed.n_parameters;
    for (uint32_t i = 0; i < eager->storages.count; i++) {
        const onv_eager_storage *storage = &eager->storages.at[i];
        if (storage->kind < ONV_STORAGE_PARAMETER || storage->kind > ONV_STORAGE_CONSTANT) continue;
        entries[count++] = (entry){
            .name = storage->label != NULL ? storage->label : "",
            .storage = i,
            .place = first_use[i] < UINT32_MAX - listed ? listed + first_use[i] : UINT32_MAX,
            .is_buffer = storage->kind != ONV_STORAGE_PARAMETER};
    }
    for (uint32_t i = 0; i < listed; i++)
        entries[count + i] =
            (entry){.name = model->listed.parameters[i], .storage = ONLY_LISTED, .place = i};
    return count;
}

static void sort_entries(entry *entries, uint32_t n, uint32_t listed, onv_parameter_order *order)
{
    size_t all = (size_t)n + listed;
    uint32_t count = 0;
    sort(entries, all, by_name);
    for (uint32_t d = 0; d < MAX_DEPTH && find_children(entries, all, d); d++) {
    }
    for (size_t i = 0; i < all; i++)
        if (entries[i].storage != ONLY_LISTED) entries[count++] = entries[i];
    sort(entries, count, as_moved);
    for (uint32_t i = 0; i < count; i++) order->moved[i] = entries[i].storage;
    sort(entries, count, as_listed);
    for (uint32_t i = 0; i < count; i++) order->listed[i] = entries[i].storage;
}

static onv_status order_parameters(const onv_eager *eager, const onv_model *model, onv_arena *arena,
                                   onv_parameter_order *order, onv_error *err)
{
    size_t n = eager->storages.count, all = n + model->listed.n_parameters;
    entry *entries = onv_heap_calloc(all + 1, sizeof *entries);
    uint32_t *first_use = onv_heap_calloc(n + 1, sizeof *first_use);
    order->moved = ONV_ARENA_ARRAY(arena, uint32_t, n);
    order->listed = ONV_ARENA_ARRAY(arena, uint32_t, n);
    bool has_room = entries != NULL && first_use != NULL && !arena->failed && all < UINT32_MAX;
    if (has_room) {
        find_first_uses(eager, first_use);
        order->count = collect(eager, model, first_use, entries);
        sort_entries(entries, order->count, (uint32_t)model->listed.n_parameters, order);
    }
    onv_heap_free(entries);
    onv_heap_free(first_use);
    return has_room ? ONV_OK : onv_fail_memory(err);
}

onv_status onv_eager_complete(onv_eager *eager, const onv_model *model, onv_error *err)
{
    onv_vec_fit(&eager->storages);
    onv_vec_fit(&eager->tensors);
    onv_vec_fit(&eager->ops);
    onv_status status = order_parameters(eager, model, &eager->arena, &eager->order, err);
    if (status != ONV_OK) onv_eager_cleanup(eager);
    return status;
}

onv_status onv_sim_order_parameters(onv_simulation *s, onv_error *err)
{
    onv_parameter_order order = s->eager->order;
    if (order.listed == NULL) /* of a tape that is not complete */
        ONV_TRY(order_parameters(s->eager, s->model, &s->arena, &order, err));
    s->moved = order.moved;
    s->listed = order.listed;
    s->n_permanent = order.count;
    return ONV_OK;
}

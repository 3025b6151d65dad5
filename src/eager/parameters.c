/* The order in which PyTorch goes over parameters and buffers.
 *
 * Module.to() moves children before what a module has itself, Module.parameters() lists what it has before
 * its children; parameters stand before buffers. Names tell modules ("layer1.0.conv1.weight"). Children stand in the
 * order in which they were registered, where the export lists all parameters; otherwise in that in which the network
 * uses them first, as they are mostly registered. */
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/sort.h"
#include "base/strings.h"
#include "eager/calls.h"

enum { MAX_DEPTH = 16 };

typedef struct entry {
    const char *name;
    uint32_t storage; /* of a name of the export's list: none */
    uint32_t place;   /* in that list, or behind it by the first use */
    uint32_t child
        [MAX_DEPTH]; /* by depth: the first place of the child that it is in; NO_CHILD: its own */
    bool is_buffer;
} entry;

#define NO_CHILD UINT32_MAX

/* As they are moved: NO_CHILD is the largest number, so children come before what their module has itself. */
static int as_moved(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    for (uint32_t d = 0; d < MAX_DEPTH; d++) {
        if (x->child[d] != y->child[d]) return x->child[d] < y->child[d] ? -1 : 1;
        if (x->child[d] == NO_CHILD) break;
    }
    if (x->is_buffer != y->is_buffer) return x->is_buffer ? 1 : -1;
    return (x->storage > y->storage) - (x->storage < y->storage);
}

/* By the modules that names tell: each has the first place of what is in it. */
static bool find_children(entry *entries, size_t n, onv_strings *modules)
{
    ONV_VEC(uint32_t) first = {0};
    bool good = true;
    for (size_t i = 0; i < n && good; i++) {
        const char *at = entries[i].name;
        uint32_t d = 0;
        for (; d < MAX_DEPTH && good && (at = strchr(at, '.')) != NULL; d++) {
            const char *module =
                onv_intern_n(modules, entries[i].name, (size_t)(++at - entries[i].name));
            uint32_t number = module != NULL ? onv_string_number(module) : 0;
            good = module != NULL && (number < first.count || onv_vec_push(&first, UINT32_MAX));
            if (!good) break;
            if (entries[i].place < first.at[number]) first.at[number] = entries[i].place;
            entries[i].child[d] = number;
        }
        if (d < MAX_DEPTH) entries[i].child[d] = NO_CHILD;
    }
    for (size_t i = 0; i < n && good; i++)
        for (uint32_t d = 0; d < MAX_DEPTH && entries[i].child[d] != NO_CHILD; d++)
            entries[i].child[d] = first.at[entries[i].child[d]];
    onv_vec_cleanup(&first);
    return good;
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
        entries[count++] =
            (entry){.name = storage->label != NULL ? storage->label : "",
                    .storage = i,
                    .place = model->program != NULL               ? i
                             : first_use[i] < UINT32_MAX - listed ? listed + first_use[i]
                                                                  : UINT32_MAX,
                    .is_buffer = storage->kind != ONV_STORAGE_PARAMETER};
    }
    for (uint32_t i = 0; i < listed; i++)
        entries[count + i] = (entry){.name = model->listed.parameters[i], .place = i};
    return count;
}

/* Those of a module, which are in order as they are moved, as they are listed: what it has itself before its children. Returns
 * the place behind them. */
static uint32_t *list_module(const entry *entries, uint32_t count, uint32_t depth, uint32_t *listed)
{
    uint32_t own = depth < MAX_DEPTH ? count : 0, end;
    while (own > 0 && entries[own - 1].child[depth] == NO_CHILD) own--;
    for (uint32_t i = own; i < count; i++) *listed++ = entries[i].storage;
    for (uint32_t i = 0; i < own; i = end) {
        for (end = i + 1; end < own && entries[end].child[depth] == entries[i].child[depth];) end++;
        listed = list_module(entries + i, end - i, depth + 1, listed);
    }
    return listed;
}

static onv_status order_parameters(const onv_eager *eager, const onv_model *model, onv_arena *arena,
                                   onv_parameter_order *order, onv_error *err)
{
    size_t n = eager->storages.count, all = n + model->listed.n_parameters;
    entry *entries = onv_heap_alloc((all + 1) * sizeof *entries);
    uint32_t *first_use = onv_heap_alloc((n + 1) * sizeof *first_use);
    onv_arena names;
    onv_strings modules;
    onv_arena_init(&names, SIZE_MAX);
    onv_strings_init(&modules, &names);
    order->moved = ONV_ARENA_ARRAY(arena, uint32_t, n);
    order->listed = ONV_ARENA_ARRAY(arena, uint32_t, n);
    bool has_room = entries != NULL && first_use != NULL && !arena->failed && all < UINT32_MAX;
    if (has_room) {
        find_first_uses(eager, first_use);
        order->count = collect(eager, model, first_use, entries);
        has_room = find_children(entries, order->count + model->listed.n_parameters, &modules);
        onv_sort(entries, order->count, sizeof *entries, as_moved);
        for (uint32_t i = 0; i < order->count; i++) order->moved[i] = entries[i].storage;
        list_module(entries, order->count, 0, order->listed);
    }
    onv_strings_cleanup(&modules);
    onv_arena_cleanup(&names);
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
    if (status == ONV_OK && !eager->was_recorded)
        status = onv_calls_find(model, eager, &eager->arena, &eager->calls, err);
    if (status != ONV_OK) onv_eager_cleanup(eager);
    return status;
}

#include "ckpt/places.h"

#include <stdlib.h>

#include "base/fail.h"

typedef struct uses {
    uint32_t *last_read;   /* by storage: 1 + operation */
    uint32_t *last_writer; /* likewise, of those seen so far */
    uint32_t *savers;      /* how many operations save it */
} uses;

static uint32_t storage_of(const onv_eager *eager, uint32_t tensor)
{
    return eager->tensors.at[tensor].storage;
}

static void find_uses(const onv_eager *eager, uses *u)
{
    for (uint32_t i = 0; i < eager->ops.count; i++) {
        const onv_eager_op *op = &eager->ops.at[i];
        for (uint32_t k = 0; k < op->n_in; k++)
            u->last_read[storage_of(eager, op->in[k].tensor)] = i + 1;
        for (uint32_t k = 0; k < op->n_saved; k++) u->savers[op->saved[k]]++;
    }
}

static bool may_overwrite(const onv_eager *eager, const uses *u, uint32_t i)
{
    const onv_eager_op *op = &eager->ops.at[i];
    if (op->n_in == 0 || op->n_out == 0) return false;
    if (op->in_place) return true;
    uint32_t in = storage_of(eager, op->in[0].tensor);
    const onv_eager_storage *storage = &eager->storages.at[in];
    if (storage->kind != ONV_STORAGE_ACTIVATION || storage->on_host || storage->is_output ||
        !onv_aten_ops[op->aten].runs_in_place)
        return false;
    /* A sum is written onto what was made last: out += identity. */
    for (uint32_t k = 1; k < op->n_in; k++)
        if (u->last_writer[storage_of(eager, op->in[k].tensor)] > u->last_writer[in]) return false;
    return u->last_read[in] == i + 1 && u->savers[in] == onv_op_saves(op, in) &&
           eager->tensors.at[op->out[0]].bytes == storage->bytes;
}

static void close_places(const onv_eager *eager, uses *u, onv_places *places)
{
    for (uint32_t i = 0; i < eager->first_loss_op; i++) {
        const onv_eager_op *op = &eager->ops.at[i];
        if (may_overwrite(eager, u, i)) {
            uint32_t in = storage_of(eager, op->in[0].tensor);
            for (uint32_t p = u->last_writer[in]; p > 0 && p <= i; p++) {
                places->is_open[p] = false;
                if (op->in_place) places->is_bare[p] = false;
            }
            u->last_writer[in] = i + 1;
        }
        for (uint32_t k = 0; k < op->n_out; k++) {
            uint32_t out = storage_of(eager, op->out[k]);
            if (u->last_writer[out] == 0) u->last_writer[out] = i + 1;
        }
    }
}

static bool is_told(const onv_borders *borders, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if (onv_border_is_known(&borders->before[i])) return true;
    return false;
}

onv_status onv_places_find(onv_model *model, const onv_eager *eager, onv_arena *arena,
                           onv_places *places, onv_error *err)
{
    uint32_t n = eager->first_loss_op;
    size_t n_storages = eager->storages.count;
    *places = (onv_places){.is_known = ONV_ARENA_ARRAY(arena, bool, n + 1),
                           .is_open = ONV_ARENA_ARRAY(arena, bool, n + 1),
                           .is_bare = ONV_ARENA_ARRAY(arena, bool, n + 1)};
    uses u = {.last_read = ONV_ARENA_ARRAY(arena, uint32_t, n_storages),
              .last_writer = ONV_ARENA_ARRAY(arena, uint32_t, n_storages),
              .savers = ONV_ARENA_ARRAY(arena, uint32_t, n_storages)};
    if (arena->failed) return onv_fail_memory(err);
    ONV_TRY(onv_scopes_find(model, eager, arena, &places->scopes, err));
    ONV_TRY(onv_borders_find(model, eager, &places->scopes, arena, &places->borders, err));
    ONV_TRY(onv_namer_init(&places->namer, model, eager, &places->scopes, &places->borders, arena,
                           err));
    places->is_told = is_told(&places->borders, n);
    for (uint32_t i = 0; i <= n; i++)
        places->is_known[i] = places->is_open[i] = places->is_bare[i] =
            !places->is_told || onv_namer_knows_place(&places->namer, i);
    find_uses(eager, &u);
    close_places(eager, &u, places);
    return ONV_OK;
}

void onv_places_cleanup(onv_places *places)
{
    onv_scopes_cleanup(&places->scopes);
}

uint32_t onv_places_keeper(const onv_places *places, const onv_eager *eager, uint32_t op)
{
    const onv_eager_op *made = &eager->ops.at[op];
    uint32_t keeper = op;
    if (made->n_out != 1) return UINT32_MAX;
    uint32_t out = storage_of(eager, made->out[0]);
    for (uint32_t i = op + 1; i < eager->first_loss_op && i < op + 8; i++)
        if (eager->ops.at[i].in_place && storage_of(eager, eager->ops.at[i].in[0].tensor) == out)
            keeper = i;
    return places->borders.of_op[keeper].kind != NULL ? keeper : UINT32_MAX;
}

static int by_place(const void *a, const void *b)
{
    const onv_tape_segment *x = a, *y = b;
    if (x->first_op != y->first_op) return x->first_op < y->first_op ? -1 : 1;
    return x->last_op != y->last_op ? (x->last_op > y->last_op ? -1 : 1) : 0;
}

void onv_segments_sort(onv_tape_segment *at, size_t n)
{
    qsort(at, n, sizeof *at, by_place);
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

void onv_ops_sort(uint32_t *at, size_t n)
{
    qsort(at, n, sizeof *at, by_number);
}

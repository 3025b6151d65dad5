#include "ckpt/units.h"

#include "base/checked.h"
#include "base/fail.h"

typedef struct finder {
    onv_arena arena;
    const onv_eager *eager;
    const onv_places *places;
    uint32_t n_ops;                 /* before the loss */
    uint32_t *made_by;              /* by tensor: 1 + its operation, 0: none */
    uint32_t *last_read;            /* by tensor: 1 + the last operation that reads it */
    uint32_t *enter, *exit;         /* by place: tensors that begin or end to cross there */
    uint64_t *enter_ids, *exit_ids; /* and the sums of their ids: of a single one, its id */
    bool *is_cut;                   /* by place: before that operation */
    uint32_t *crossing;             /* by place: the tensor, where it is a cut */
} finder;

static onv_status init(finder *f, onv_error *err)
{
    size_t n_tensors = f->eager->tensors.count, n_places = f->n_ops + 1;
    f->made_by = ONV_ARENA_ARRAY(&f->arena, uint32_t, n_tensors);
    f->last_read = ONV_ARENA_ARRAY(&f->arena, uint32_t, n_tensors);
    f->enter = ONV_ARENA_ARRAY(&f->arena, uint32_t, n_places);
    f->exit = ONV_ARENA_ARRAY(&f->arena, uint32_t, n_places);
    f->enter_ids = ONV_ARENA_ARRAY(&f->arena, uint64_t, n_places);
    f->exit_ids = ONV_ARENA_ARRAY(&f->arena, uint64_t, n_places);
    f->is_cut = ONV_ARENA_ARRAY(&f->arena, bool, n_places);
    f->crossing = ONV_ARENA_ARRAY(&f->arena, uint32_t, n_places);
    return f->arena.failed ? onv_fail_memory(err) : ONV_OK;
}

static void find_uses(finder *f)
{
    for (uint32_t i = 0; i < f->eager->ops.count; i++) {
        const onv_eager_op *op = &f->eager->ops.at[i];
        for (uint32_t k = 0; k < op->n_in; k++) f->last_read[op->in[k].tensor] = i + 1;
        for (uint32_t k = 0; k < op->n_out && i < f->n_ops; k++) f->made_by[op->out[k]] = i + 1;
    }
}

/* A tensor that operation m makes and operation r reads last crosses the places m + 1 to r. */
static void find_crossings(finder *f)
{
    for (uint32_t t = 0; t < f->eager->tensors.count; t++) {
        const onv_eager_tensor *tensor = &f->eager->tensors.at[t];
        const onv_eager_storage *storage = &f->eager->storages.at[tensor->storage];
        if (!tensor->needs_grad || storage->kind != ONV_STORAGE_ACTIVATION || storage->is_cached)
            continue;
        if (f->made_by[t] == 0 || f->last_read[t] <= f->made_by[t]) continue;
        f->enter[f->made_by[t]]++;
        f->enter_ids[f->made_by[t]] += t;
        if (f->last_read[t] > f->n_ops) continue;
        f->exit[f->last_read[t]]++;
        f->exit_ids[f->last_read[t]] += t;
    }
    uint64_t count = 0, ids = 0;
    for (uint32_t p = 0; p < f->n_ops; p++) {
        count += f->enter[p] - (uint64_t)f->exit[p];
        ids += f->enter_ids[p] - f->exit_ids[p];
        if (count != 1) continue;
        f->crossing[p] = (uint32_t)ids;
        const onv_eager_op *op = &f->eager->ops.at[p];
        bool inside = p > 0 && onv_eager_same_node(op, op - 1);
        f->is_cut[p] = !inside && f->places->is_open[p];
    }
}

/* What each stretch costs and keeps. A stretch that does neither joins the one before it. */
static uint32_t fill(finder *f, onv_ckpt_unit *units, bool *seen)
{
    uint32_t n = 0;
    for (uint32_t first = 0; first < f->n_ops;) {
        onv_ckpt_unit unit = {.first_op = first,
                              .in = first > 0 ? f->crossing[first] : ONV_NO_TENSOR};
        uint32_t i = first;
        do {
            const onv_eager_op *op = &f->eager->ops.at[i];
            unit.macs = onv_u64_plus(unit.macs, op->macs);
            for (uint32_t k = 0; k < op->n_saved; k++) {
                const onv_eager_storage *storage = &f->eager->storages.at[op->saved[k]];
                if (seen[op->saved[k]] || storage->kind < ONV_STORAGE_ACTIVATION) continue;
                seen[op->saved[k]] = true;
                if (!onv_u64_add(unit.saved_bytes, storage->bytes, &unit.saved_bytes))
                    unit.saved_bytes = UINT64_MAX;
            }
        } while (++i < f->n_ops && !f->is_cut[i]);
        unit.last_op = i - 1;
        first = i;
        if (n > 0 && unit.macs == 0 && unit.saved_bytes == 0)
            units[n - 1].last_op = unit.last_op;
        else
            units[n++] = unit;
    }
    return n;
}

static onv_status find(finder *f, onv_model *model, onv_ckpt_units *units, onv_error *err)
{
    ONV_TRY(init(f, err));
    find_uses(f);
    find_crossings(f);
    uint32_t most = f->n_ops;
    onv_ckpt_unit *all = ONV_ARENA_ARRAY(&f->arena, onv_ckpt_unit, most);
    bool *seen = ONV_ARENA_ARRAY(&f->arena, bool, f->eager->storages.count);
    if (all == NULL || seen == NULL) return onv_fail_memory(err);
    units->count = fill(f, all, seen);
    units->at = onv_arena_copy(&model->arena, all, units->count * sizeof *all);
    units->is_cut = onv_arena_copy(&model->arena, f->is_cut, f->n_ops * sizeof *f->is_cut);
    return units->at != NULL && units->is_cut != NULL ? ONV_OK : onv_fail_memory(err);
}

uint32_t onv_ckpt_units_root(const onv_ckpt_units *units)
{
    uint32_t root = 1;
    while ((uint64_t)root * root + root < units->count) root++; /* (root + 1/2) squared */
    return root;
}

onv_status onv_ckpt_units_find(onv_model *model, const onv_eager *eager, const onv_places *places,
                               onv_ckpt_units *units, onv_error *err)
{
    finder f = {.eager = eager, .places = places, .n_ops = eager->first_loss_op};
    *units = (onv_ckpt_units){0};
    onv_arena_init(&f.arena, SIZE_MAX);
    onv_status status = find(&f, model, units, err);
    onv_arena_cleanup(&f.arena);
    return status;
}

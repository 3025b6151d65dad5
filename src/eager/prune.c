/* Second runs of what backward needs and nothing else.
 *
 *   segment   [ a  b  c  d ]     c saves b's result; d's result goes out, nobody inside saves it
 *   again     [ a  b       ]     b again for c, a again for b
 *             [    b       ]     a's result was kept: so a does not run, nor what comes before it
 *
 * Unlike torch.utils.checkpoint, which runs all of a segment up to the last thing to save, a pruned
 * region runs an operation again only if its result is saved in the segment itself, is needed for
 * such a result, or for the inputs of an inner region. It holds those inputs alone that this takes, and
 * lets them go after its second run, when inner regions hold what they need. What an operation saves and no region makes autograd
 * holds itself. Results of operations that
 * are kept (onv_train_options) are held like inputs, by the innermost region around the operation. */
#include <string.h>

#include "base/fail.h"
#include "eager/simulation.h"

/* --- What runs again --------------------------------------------------------------------------- */

typedef struct pruner {
    onv_simulation *s;
    const onv_ckpt_tables *t;
    bool *is_used; /* by operation: some second run takes its result as kept */
} pruner;

static void need(pruner *p, uint32_t self, uint32_t storage)
{
    if (onv_ckpt_counts(p->s, storage)) p->t->needed_by[storage] = self + 1;
}

static bool makes(const pruner *p, uint32_t op, uint32_t storage)
{
    return p->s->made_by[storage] == op || p->s->eager->ops.at[op].in_place;
}

/* An operation that saves nothing but what comes from outside goes backward without a second run (recompute.py gives autograd such
 * tensors as they are). Regions inside one count as it; what goes to the host is left to the regions. */
static onv_status find_direct(onv_simulation *s, onv_error *err)
{
    uint32_t *made_in = ONV_ARENA_ARRAY(&s->plan_arena, uint32_t, s->eager->storages.count);
    bool leaves = s->options->saves_on_cpu || s->options->offload_until > 0;
    s->is_direct = ONV_ARENA_ARRAY(&s->plan_arena, bool, s->eager->ops.count);
    if (s->plan_arena.failed) return onv_fail_memory(err);
    for (uint32_t i = 0; i < s->eager->ops.count && !leaves; i++) {
        const onv_eager_op *op = &s->eager->ops.at[i];
        uint32_t region = s->region_of[i];
        if (region == ONV_NO_CKPT_REGION) continue;
        while (s->regions[region].parent != ONV_NO_CKPT_REGION) region = s->regions[region].parent;
        s->is_direct[i] = op->n_saved > 0;
        for (uint32_t k = 0; k < op->n_out; k++)
            made_in[onv_sim_storage(s, op->out[k])] = region + 1;
        for (uint32_t k = 0; k < op->n_saved; k++) {
            const onv_eager_storage *storage = &s->eager->storages.at[op->saved[k]];
            s->is_direct[i] &= storage->kind != ONV_STORAGE_EXTRA && !storage->is_cached &&
                               made_in[op->saved[k]] != region + 1;
        }
    }
    return ONV_OK;
}

/* What its own backward saves of an operation of the region; true where the operation makes it for that
 * alone. */
static bool need_saved(pruner *p, uint32_t self, const onv_eager_op *op)
{
    bool has_extra = false;
    for (uint32_t k = 0; k < op->n_saved; k++) {
        bool is_extra = onv_sim_is_extra(p->s, op->saved[k]);
        has_extra |= is_extra;
        if (!is_extra) need(p, self, op->saved[k]);
    }
    return has_extra;
}

static void visit(pruner *p, uint32_t self, uint32_t i)
{
    onv_simulation *s = p->s;
    const onv_eager_op *op = &s->eager->ops.at[i];
    bool runs = s->region_of[i] == self && !s->is_direct[i] && need_saved(p, self, op);
    for (uint32_t k = 0; k < op->n_out; k++) {
        uint32_t out = onv_sim_storage(s, op->out[k]);
        if (p->t->needed_by[out] != self + 1 || !makes(p, i, out)) continue;
        runs = true;
        if (!op->in_place || s->is_kept[i]) p->t->needed_by[out] = 0;
    }
    if (runs && s->is_kept[i]) {
        p->is_used[i] = true;
        return;
    }
    s->regions[self].runs[i - s->regions[self].first_op] = runs;
    for (uint32_t k = 0; k < op->n_in && runs; k++)
        need(p, self, onv_sim_storage(s, op->in[k].tensor));
}

/* Inner regions come behind the ones around them, and are done before. */
static onv_status prune(pruner *p, uint32_t self, onv_error *err)
{
    onv_simulation *s = p->s;
    onv_ckpt_region *region = &s->regions[self];
    uint32_t behind = self + 1; /* the last region inside */
    region->runs =
        ONV_ARENA_ARRAY(&s->plan_arena, bool, (size_t)region->last_op - region->first_op + 1);
    if (region->runs == NULL) return onv_fail_memory(err);
    while (behind < s->n_regions && s->regions[behind].first_op <= region->last_op) behind++;
    for (uint32_t i = region->last_op + 1; i-- > region->first_op;) {
        visit(p, self, i);
        for (; behind > self + 1 && s->regions[behind - 1].first_op == i; behind--) {
            const onv_ckpt_region *inner = &s->regions[behind - 1];
            for (uint32_t k = 0; k < inner->n_inputs && inner->parent == self; k++)
                need(p, self, inner->inputs[k]);
        }
    }
    return onv_ckpt_region_list(s, self, p->t, err);
}

static onv_status prepare_kept(onv_simulation *s, onv_error *err)
{
    size_t n_storages = s->eager->storages.count;
    s->is_kept = ONV_ARENA_ARRAY(&s->plan_arena, bool, s->eager->ops.count);
    s->kept_row = ONV_ARENA_ARRAY(&s->plan_arena, uint32_t, n_storages);
    if (s->plan_arena.failed) return onv_fail_memory(err);
    for (size_t i = 0; i < n_storages; i++) s->kept_row[i] = ONV_NO_ROW;
    for (uint32_t k = 0; k < s->options->n_kept_ops; k++) {
        uint32_t op = s->options->kept_ops[k];
        if (op >= s->eager->first_loss_op || s->region_of[op] == ONV_NO_CKPT_REGION)
            return onv_fail(err, ONV_ERR_USAGE,
                            "operation %u, which is to be kept, is in no segment", op);
        /* What overwrites its input and copies it does so for its backward alone. */
        s->is_kept[op] = !(s->eager->ops.at[op].in_place && s->eager->ops.at[op].extras_first);
    }
    return ONV_OK;
}

/* All runs again up to the region's stop, but what is kept. */
static onv_status select_all(onv_simulation *s, onv_error *err)
{
    for (uint32_t r = 0; r < s->n_regions; r++) {
        onv_ckpt_region *region = &s->regions[r];
        uint32_t first = region->first_op, n = region->last_op - first + 1;
        bool *runs = ONV_ARENA_ARRAY(&s->plan_arena, bool, n);
        if (runs == NULL) return onv_fail_memory(err);
        for (uint32_t i = 0; i < n; i++)
            runs[i] = onv_ckpt_runs(region, first + i) && !s->is_kept[first + i];
        region->runs = runs;
    }
    return ONV_OK;
}

static onv_status prune_all(onv_simulation *s, const onv_ckpt_tables *tables, onv_error *err)
{
    size_t n_ops = s->eager->ops.count;
    pruner p = {.s = s, .t = tables, .is_used = ONV_ARENA_ARRAY(&s->plan_arena, bool, n_ops)};
    ONV_TRY(find_direct(s, err));
    for (uint32_t i = s->n_regions; i-- > 0;) ONV_TRY(prune(&p, i, err));
    memcpy(s->is_kept, p.is_used, n_ops * sizeof *p.is_used);
    return ONV_OK;
}

onv_status onv_ckpt_regions_prune(onv_simulation *s, const onv_ckpt_tables *tables, onv_error *err)
{
    ONV_TRY(prepare_kept(s, err));
    ONV_TRY(s->options->selects ? select_all(s, err) : prune_all(s, tables, err));
    for (uint32_t k = 0; k < s->options->n_kept_ops && s->options->is_kept_used != NULL; k++)
        s->options->is_kept_used[k] = s->is_kept[s->options->kept_ops[k]];
    return ONV_OK;
}

/* --- What is kept ------------------------------------------------------------------------------ */

static void keep(onv_simulation *s, uint32_t storage, bool leaves)
{
    if (!onv_ckpt_counts(s, storage) || s->kept_row[storage] != ONV_NO_ROW) return;
    s->kept_row[storage] = s->row_of[storage];
    onv_sim_hold(s, s->row_of[storage]);
    if (leaves) s->kept_row[storage] = onv_offload_row(s, storage, s->kept_row[storage]);
}

void onv_keep_results(onv_simulation *s, uint32_t index)
{
    const onv_eager_op *op = &s->eager->ops.at[index];
    bool leaves = onv_offload_takes(s, index);
    for (uint32_t k = 0; k < op->n_out; k++) keep(s, onv_sim_storage(s, op->out[k]), leaves);
    for (uint32_t k = 0; k < op->n_saved; k++)
        if (onv_sim_is_extra(s, op->saved[k])) keep(s, op->saved[k], leaves);
}

static void drop_of(onv_simulation *s, const onv_eager_op *op)
{
    for (uint32_t k = 0; k < op->n_out; k++)
        onv_sim_drop(s, &s->kept_row[onv_sim_storage(s, op->out[k])]);
    for (uint32_t k = 0; k < op->n_saved; k++) /* operands may be results of an inner region */
        if (onv_sim_is_extra(s, op->saved[k])) onv_sim_drop(s, &s->kept_row[op->saved[k]]);
}

void onv_drop_results(onv_simulation *s, const onv_ckpt_region *region, uint32_t self)
{
    if (s->is_kept == NULL) return;
    for (uint32_t i = region->first_op; i <= region->last_op; i++) {
        bool is_own = self == ONV_NO_CKPT_REGION || s->region_of[i] == self;
        if (s->is_kept[i] && is_own) drop_of(s, &s->eager->ops.at[i]);
    }
}

/* A result that was kept gets its name again. */
static void name_kept(onv_simulation *s, uint32_t storage)
{
    if (!onv_ckpt_counts(s, storage) || s->row_of[storage] != ONV_NO_ROW) return;
    s->row_of[storage] = s->kept_row[storage];
    onv_sim_hold(s, s->row_of[storage]);
}

void onv_pass_by(onv_simulation *s, uint32_t i, bool own)
{
    const onv_eager_op *op = &s->eager->ops.at[i];
    bool is_kept = onv_sim_is_kept(s, i);
    for (uint32_t k = 0; k < op->n_out && is_kept; k++)
        name_kept(s, onv_sim_storage(s, op->out[k]));
    for (uint32_t k = 0; k < op->n_saved && is_kept && own; k++)
        if (onv_sim_is_extra(s, op->saved[k])) name_kept(s, op->saved[k]);
    if (is_kept && s->options->selects) drop_of(s, op); /* who asks for it has it then */
    if (own) {
        onv_sim_cast_again(s, op);
        onv_sim_save(s, i);
    }
    onv_sim_end_op(s, i, s->again_use);
}

#include <string.h>

#include "base/fail.h"
#include "eager/simulation.h"

/* --- What a segment is ------------------------------------------------------------------------- */

static onv_status check(const onv_simulation *s, onv_error *err)
{
    for (uint32_t i = 0; i < s->n_regions; i++) {
        onv_tape_segment at = s->segments[i];
        if (at.first_op > at.last_op || at.last_op >= s->eager->first_loss_op)
            return onv_fail(err, ONV_ERR_USAGE,
                            "checkpoint segment %u spans operations %u to %u of %u", i, at.first_op,
                            at.last_op, s->eager->first_loss_op);
    }
    return ONV_OK;
}

/* Parents, found with the chain of open segments. */
static onv_status nest(onv_simulation *s, onv_error *err)
{
    uint32_t open = ONV_NO_CKPT_REGION;
    for (uint32_t i = 0; i < s->n_regions; i++) {
        onv_tape_segment at = s->segments[i];
        while (open != ONV_NO_CKPT_REGION && s->regions[open].last_op < at.first_op)
            open = s->regions[open].parent;
        bool sorted = i == 0 || s->regions[i - 1].first_op <= at.first_op;
        if (!sorted || (open != ONV_NO_CKPT_REGION && s->regions[open].last_op < at.last_op))
            return onv_fail(err, ONV_ERR_USAGE,
                            "checkpoint segment %u (operations %u to %u) is out of order or cut by "
                            "another one",
                            i, at.first_op, at.last_op);
        s->regions[i] =
            (onv_ckpt_region){.first_op = at.first_op, .last_op = at.last_op, .parent = open};
        open = i;
    }
    return ONV_OK;
}

static void mark_operations(onv_simulation *s)
{
    uint32_t next = 0, open = ONV_NO_CKPT_REGION;
    for (uint32_t i = 0; i < s->eager->ops.count; i++) {
        while (open != ONV_NO_CKPT_REGION && s->regions[open].last_op < i)
            open = s->regions[open].parent;
        for (; next < s->n_regions && s->regions[next].first_op == i; next++) open = next;
        s->region_of[i] = open;
    }
}

/* Autograd keeps operands before it computes and results after it. */
static bool keeps_results(const onv_simulation *s, const onv_eager_op *op)
{
    for (uint32_t k = 0; k < op->n_saved; k++) {
        uint32_t saved = op->saved[k];
        bool operand = false;
        for (uint32_t i = 0; i < op->n_in; i++)
            operand |= onv_sim_storage(s, op->in[i].tensor) == saved;
        if (!operand || op->in_place) return true;
    }
    return false;
}

/* What ends a second run: the last thing that the segment itself keeps, be it for an operation or
 * as the input of an inner segment. */
static void find_stop(onv_simulation *s, onv_ckpt_region *region, uint32_t self)
{
    region->stop = region->first_save = ONV_NO_OP;
    for (uint32_t i = region->first_op; i <= region->last_op; i++) {
        const onv_eager_op *op = &s->eager->ops.at[i];
        if (op->n_saved == 0) continue;
        if (region->first_save == ONV_NO_OP) region->first_save = i;
        if (s->region_of[i] != self) continue;
        region->stop = i;
    }
    region->runs_stop =
        region->stop != ONV_NO_OP && keeps_results(s, &s->eager->ops.at[region->stop]);
    for (uint32_t i = self + 1; i < s->n_regions && s->regions[i].first_op <= region->last_op;
         i++) {
        bool is_later = region->stop == ONV_NO_OP || s->regions[i].first_op > region->stop;
        if (s->regions[i].parent != self || !is_later) continue;
        region->stop = s->regions[i].first_op;
        region->runs_stop = false;
    }
}

/* With use_reentrant=True all runs again; the segment is one node of autograd, as long as one inside has a backward. */
static void stop_never(onv_simulation *s, onv_ckpt_region *region)
{
    if (region->stop == ONV_NO_OP) return;
    region->stop = region->last_op;
    region->runs_stop = true;
    for (uint32_t i = region->last_op + 1; i-- > region->first_op;)
        if (s->eager->ops.at[i].has_backward) region->first_save = i;
}

onv_status onv_ckpt_region_list(onv_simulation *s, uint32_t self, const onv_ckpt_tables *t,
                                onv_error *err)
{
    onv_ckpt_region *region = &s->regions[self];
    uint32_t n = 0;
    for (uint32_t i = region->first_op; i <= region->last_op; i++) {
        const onv_eager_op *op = &s->eager->ops.at[i];
        for (uint32_t k = 0; k < op->n_in; k++) {
            uint32_t in = onv_sim_storage(s, op->in[k].tensor);
            if (t->needed_by[in] != self + 1) continue;
            t->needed_by[in] = 0;
            t->listed[n++] = in;
        }
    }
    region->inputs = ONV_ARENA_ARRAY(&s->plan_arena, uint32_t, n);
    region->input_rows = ONV_ARENA_ARRAY(&s->plan_arena, uint32_t, n);
    if (region->inputs == NULL || region->input_rows == NULL) return onv_fail_memory(err);
    memcpy(region->inputs, t->listed, n * sizeof *t->listed);
    region->n_inputs = n;
    return ONV_OK;
}

/* Storages made before the segment and read in it. */
static onv_status find_inputs(onv_simulation *s, uint32_t self, const onv_ckpt_tables *t,
                              onv_error *err)
{
    const onv_ckpt_region *region = &s->regions[self];
    for (uint32_t i = region->first_op; i <= region->last_op; i++) {
        const onv_eager_op *op = &s->eager->ops.at[i];
        for (uint32_t k = 0; k < op->n_in; k++) {
            uint32_t in = onv_sim_storage(s, op->in[k].tensor);
            if (s->made_by[in] < region->first_op && onv_ckpt_counts(s, in))
                t->needed_by[in] = self + 1;
        }
    }
    return onv_ckpt_region_list(s, self, t, err);
}

onv_status onv_ckpt_regions_make(onv_simulation *s, onv_error *err)
{
    size_t n = s->eager->storages.count;
    bool is_own = s->options->n_segments == 0 && !s->options->prunes;
    s->segments = is_own ? s->eager->checkpoints.at : s->options->segments;
    s->n_regions = is_own ? (uint32_t)s->eager->checkpoints.count : s->options->n_segments;
    ONV_TRY(check(s, err));
    s->regions = ONV_ARENA_ARRAY(&s->plan_arena, onv_ckpt_region, s->n_regions);
    const onv_ckpt_tables t = {.needed_by = ONV_ARENA_ARRAY(&s->plan_arena, uint32_t, n),
                               .listed = ONV_ARENA_ARRAY(&s->plan_arena, uint32_t, n)};
    if (s->plan_arena.failed) return onv_fail_memory(err);
    ONV_TRY(nest(s, err));
    mark_operations(s);
    for (uint32_t i = 0; i < s->n_regions; i++) {
        find_stop(s, &s->regions[i], i);
        if (s->options->is_reentrant) stop_never(s, &s->regions[i]);
        if (!s->options->prunes) ONV_TRY(find_inputs(s, i, &t, err));
    }
    bool are_own = s->options->selects || s->options->prunes;
    return are_own ? onv_ckpt_regions_prune(s, &t, err) : ONV_OK;
}

/* --- Running again ----------------------------------------------------------------------------- */

void onv_ckpt_regions_reset(onv_simulation *s)
{
    for (uint32_t i = 0; i < s->n_regions; i++) {
        s->regions[i].again = false;
        for (uint32_t k = 0; k < s->regions[i].n_inputs; k++)
            s->regions[i].input_rows[k] = ONV_NO_ROW;
    }
}

void onv_ckpt_region_enter(onv_simulation *s, onv_ckpt_region *region)
{
    if (region->first_save == ONV_NO_OP) return; /* nothing in autograd's graph refers to it */
    for (uint32_t k = 0; k < region->n_inputs; k++) {
        region->input_rows[k] = s->row_of[region->inputs[k]];
        onv_sim_hold(s, region->input_rows[k]);
    }
}

static void let_inputs_go(onv_simulation *s, onv_ckpt_region *region)
{
    for (uint32_t k = 0; k < region->n_inputs; k++) onv_sim_drop(s, &region->input_rows[k]);
}

/* Whether names and calls of modules hold results in the second run, too: it is the network's code that runs again. */
static bool has_names(const onv_simulation *s)
{
    return !s->options->prunes && s->held.until != NULL;
}

static void touch(onv_simulation *s, uint32_t storage, uint32_t op, const onv_ckpt_region *region)
{
    if (onv_sim_is_permanent(s, storage)) return;
    uint32_t named = has_names(s) ? s->held.until[storage] : 0;
    s->row_of[storage] = ONV_NO_ROW;
    /* What is returned, or meant for what is not reached, stays to the end. */
    bool is_late =
        !s->options->prunes && (s->last_use[storage] > region->stop || named > region->stop);
    bool ends = region->runs == NULL && op == region->stop && !region->runs_stop;
    s->again_use[storage] = is_late || ends ? ONV_NO_OP : op > named ? op : named;
}

/* Names that end with that operation. */
static void end_names(onv_simulation *s, uint32_t op)
{
    for (uint32_t k = has_names(s) ? s->held.first[op] : 0; k > 0; k = s->held.next[k - 1])
        if (s->again_use[k - 1] == op) onv_sim_drop(s, &s->row_of[k - 1]);
}

static void prepare(onv_simulation *s, const onv_ckpt_region *region, uint32_t self, uint32_t last)
{
    uint32_t next = self + 1;
    for (uint32_t i = region->first_op; i <= last; i++) {
        const onv_eager_op *op = &s->eager->ops.at[i];
        bool own = s->region_of[i] == self && !onv_sim_is_direct(s, i);
        bool runs = region->runs == NULL || region->runs[i - region->first_op];
        for (; next < s->n_regions && s->regions[next].first_op <= i; next++)
            for (uint32_t k = 0; k < s->regions[next].n_inputs; k++)
                if (s->regions[next].parent == self)
                    touch(s, s->regions[next].inputs[k], i, region);
        for (uint32_t k = 0; k < op->n_in && runs; k++)
            touch(s, onv_sim_storage(s, op->in[k].tensor), i, region);
        for (uint32_t k = 0; k < op->n_out && (runs || s->is_kept[i]); k++)
            touch(s, onv_sim_storage(s, op->out[k]), i, region);
        for (uint32_t k = 0; k < op->n_saved && own; k++) touch(s, op->saved[k], i, region);
    }
    for (uint32_t k = 0; k < region->n_inputs; k++) {
        s->row_of[region->inputs[k]] = region->input_rows[k];
        s->again_use[region->inputs[k]] = ONV_NO_OP;
    }
}

/* The end of a second run: its names go, what was kept is held by who keeps it. */
static void forget(onv_simulation *s, const onv_ckpt_region *region, uint32_t last)
{
    for (uint32_t k = 0; k < region->n_inputs; k++) s->row_of[region->inputs[k]] = ONV_NO_ROW;
    for (uint32_t i = region->first_op; i <= last; i++) {
        const onv_eager_op *op = &s->eager->ops.at[i];
        for (uint32_t k = 0; k < op->n_in + op->n_out; k++) {
            uint32_t tensor = k < op->n_in ? op->in[k].tensor : op->out[k - op->n_in];
            uint32_t storage = onv_sim_storage(s, tensor);
            if (!onv_sim_is_permanent(s, storage)) onv_sim_drop(s, &s->row_of[storage]);
        }
    }
}

/* What the node of a segment has in hand while the backward inside runs: what it gave, anew, and the gradients of that. */
static void hold_results(onv_simulation *s, onv_ckpt_region *region)
{
    for (uint32_t i = region->first_op; i <= region->last_op; i++) {
        const onv_eager_op *op = &s->eager->ops.at[i];
        for (uint32_t k = 0; k < op->n_out; k++) {
            uint32_t storage = onv_sim_storage(s, op->out[k]);
            if (s->last_use[storage] <= region->last_op) continue;
            const uint32_t rows[] = {s->row_of[storage], s->grad[op->out[k]].row};
            for (int r = 0; r < 2; r++) {
                if (rows[r] == ONV_NO_ROW) continue;
                if (!onv_vec_push(&s->in_hand, rows[r])) s->failed = true;
                onv_sim_hold(s, rows[r]);
            }
        }
    }
}

static void run_again(onv_simulation *s, uint32_t self)
{
    onv_ckpt_region *region = &s->regions[self];
    uint32_t next = self + 1, last = region->runs != NULL ? region->last_op : region->stop;
    region->again = true;
    onv_offload_return_region(s, region);
    if (region->runs == NULL && region->stop == ONV_NO_OP) return;
    prepare(s, region, self, last);
    for (uint32_t i = region->first_op; i <= last && !s->failed; i++) {
        for (; next < s->n_regions && s->regions[next].first_op <= i; next++)
            if (s->regions[next].parent == self) onv_ckpt_region_enter(s, &s->regions[next]);
        /* What autograd has passed already needs nothing any more. */
        bool own = i <= s->backward_at && s->region_of[i] == self && !onv_sim_is_direct(s, i);
        if (onv_ckpt_runs(region, i))
            onv_sim_run(s, i, own ? ONV_RUN_KEEPING : ONV_RUN_FORGETTING, s->again_use);
        else
            onv_pass_by(s, i, own);
        end_names(s, i);
    }
    if (s->options->is_reentrant) hold_results(s, region);
    forget(s, region, last);
    onv_drop_results(s, region, self);
    /* The inputs of an inner region were kept by the outer one, and are asked for once. */
    if (s->options->prunes || region->parent != ONV_NO_CKPT_REGION) let_inputs_go(s, region);
}

/* Depth is bounded by that of nesting, so the chain of outer regions is walked, not recursed. */
void onv_ckpt_region_restore(onv_simulation *s, uint32_t index)
{
    uint32_t inner = s->region_of[index];
    if (s->eager->ops.at[index].n_saved == 0 && !s->options->is_reentrant) return;
    if (onv_sim_is_direct(s, index)) return;
    while (inner != ONV_NO_CKPT_REGION && !s->regions[inner].again) {
        uint32_t outer = inner;
        while (s->regions[outer].parent != ONV_NO_CKPT_REGION &&
               !s->regions[s->regions[outer].parent].again)
            outer = s->regions[outer].parent;
        run_again(s, outer);
    }
}

void onv_ckpt_region_leave(onv_simulation *s, uint32_t index)
{
    for (uint32_t f = s->region_of[index]; f != ONV_NO_CKPT_REGION; f = s->regions[f].parent) {
        if (s->regions[f].first_save != index) continue;
        let_inputs_go(s, &s->regions[f]);
        for (size_t k = 0; k < s->in_hand.count; k++) onv_sim_release(s, s->in_hand.at[k]);
        s->in_hand.count = 0;
        onv_drop_results(s, &s->regions[f], ONV_NO_CKPT_REGION);
    }
}

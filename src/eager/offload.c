/* Saved tensors on the host.
 *
 * torch.autograd.graph.save_on_cpu(pin_memory=True) around the forward of a network copies each tensor that an
 * operation saves, parameters too, and as often as operations save it. The copies have the size of the
 * tensors, not of what they are views of. Before the backward of an operation computes anything, all that it
 * saved is copied to new tensors on the device, which go when it is over.
 *
 * The lines of Python that apply plans do the same up to an operation of the tape, but leave parameters and
 * buffers where they are, and the network's inputs, and copy a tensor to the host but once. What checkpoints
 * hold there goes to the host where the forward of the segment ends, results that are kept at once. It comes
 * back before the second run.
 *
 * Copies run on the stream of the kernels, so memory that they read is free for what comes next, as ever. On the
 * host a copy takes a block of pinned memory, of the next power of two, until the next iteration's takes it. */
#include "base/checked.h"
#include "base/fail.h"
#include "eager/simulation.h"

static uint64_t block_of(uint64_t bytes)
{
    uint64_t block = 1;
    while (block < bytes && block <= UINT64_MAX / 2) block *= 2;
    return block < bytes ? bytes : block;
}

static void copy_out(const onv_simulation *s, uint64_t bytes)
{
    if (!onv_sim_is_counted(s) || bytes == 0) return;
    s->program->offloaded_bytes = onv_u64_plus(s->program->offloaded_bytes, bytes);
    s->program->pinned_bytes = onv_u64_plus(s->program->pinned_bytes, block_of(bytes));
}

onv_status onv_offload_prepare(onv_simulation *s, onv_error *err)
{
    uint32_t end = s->options->saves_on_cpu ? s->eager->first_loss_op : s->options->offload_until;
    s->offload_end = end < s->eager->first_loss_op ? end : s->eager->first_loss_op;
    if (s->offload_end == 0) return ONV_OK;
    if (s->options->saves_on_cpu && s->n_regions > 0)
        return onv_fail(err, ONV_ERR_USAGE,
                        "saved tensors go to the host, or there are checkpoints: not both");
    s->is_offloaded = ONV_ARENA_ARRAY(&s->plan_arena, bool, s->eager->tensors.count);
    s->written = ONV_ARENA_ARRAY(&s->plan_arena, uint32_t, s->eager->storages.count);
    return s->plan_arena.failed ? onv_fail_memory(err) : ONV_OK;
}

void onv_offload_begin(onv_simulation *s)
{
    if (s->offload_end == 0) return;
    for (uint32_t i = 0; i < s->eager->tensors.count; i++) s->is_offloaded[i] = false;
    for (uint32_t i = 0; i < s->eager->storages.count; i++) s->written[i] = ONV_NO_TENSOR;
}

bool onv_offload_moves(const onv_simulation *s, uint32_t storage)
{
    if (s->eager->storages.at[storage].on_host) return false;
    return s->options->saves_on_cpu || !onv_sim_is_permanent(s, storage);
}

void onv_offload_note(onv_simulation *s, uint32_t index)
{
    const onv_eager_op *op = &s->eager->ops.at[index];
    for (uint32_t k = 0; k < op->n_out; k++) {
        uint32_t storage = onv_sim_storage(s, op->out[k]);
        if (s->written[storage] == ONV_NO_TENSOR || op->in_place) s->written[storage] = op->out[k];
    }
}

/* --- Tensors of a saved storage ----------------------------------------------------------------- */

static void add_view(onv_simulation *s, uint32_t tensor, bool leaves, uint64_t *sum)
{
    uint64_t bytes = s->eager->tensors.at[tensor].bytes;
    *sum = onv_u64_plus(*sum, bytes);
    if (!leaves) return;
    if (s->options->saves_on_cpu || !s->is_offloaded[tensor]) copy_out(s, bytes);
    s->is_offloaded[tensor] = true;
}

/* An operation saves operands, all of its views of the storage, or its result. `leaves`: they go to the
 * host now. */
static uint64_t sum_views(onv_simulation *s, const onv_eager_op *op, uint32_t storage, bool leaves)
{
    uint64_t sum = 0;
    bool is_operand = false;
    for (uint32_t k = 0; k < op->n_in && !op->in_place; k++) {
        if (onv_sim_storage(s, op->in[k].tensor) != storage) continue;
        is_operand = true;
        bool is_again = false;
        for (uint32_t j = 0; j < k; j++) is_again |= op->in[j].tensor == op->in[k].tensor;
        if (!is_again || s->options->saves_on_cpu) add_view(s, op->in[k].tensor, leaves, &sum);
    }
    for (uint32_t k = 0; k < op->n_out && !is_operand; k++) {
        if (onv_sim_storage(s, op->out[k]) != storage) continue;
        is_operand = true;
        add_view(s, op->out[k], leaves, &sum);
    }
    if (is_operand) return sum;
    sum = s->eager->storages.at[storage].bytes;
    if (leaves) copy_out(s, sum);
    return sum;
}

/* --- Out, and back ------------------------------------------------------------------------------ */

void onv_offload_saved(onv_simulation *s, uint32_t index)
{
    const onv_eager_op *op = &s->eager->ops.at[index];
    for (uint32_t k = 0; k < op->n_saved; k++) {
        uint32_t *at = &s->saved_row[s->first_saved[index] + k];
        if (*at >= ONV_HOST_ROW || !onv_offload_moves(s, op->saved[k])) continue;
        sum_views(s, op, op->saved[k], true);
        onv_sim_release(s, *at);
        *at = ONV_HOST_ROW;
    }
}

static uint32_t come_back(onv_simulation *s, uint64_t bytes, const char *label)
{
    if (onv_sim_is_counted(s))
        s->program->returned_bytes = onv_u64_plus(s->program->returned_bytes, bytes);
    return onv_sim_alloc(s, bytes, ONV_BUFFER_ACTIVATION, label);
}

void onv_offload_return_saved(onv_simulation *s, uint32_t index)
{
    const onv_eager_op *op = &s->eager->ops.at[index];
    for (uint32_t k = 0; k < op->n_saved; k++) {
        uint32_t *at = &s->saved_row[s->first_saved[index] + k];
        if (*at != ONV_HOST_ROW) continue;
        *at = come_back(s, sum_views(s, op, op->saved[k], false),
                        s->eager->storages.at[op->saved[k]].label);
    }
}

uint32_t onv_offload_row(onv_simulation *s, uint32_t storage, uint32_t row)
{
    uint32_t tensor = s->written[storage];
    if (row >= ONV_HOST_ROW || !onv_offload_moves(s, storage)) return row;
    if (tensor == ONV_NO_TENSOR || !s->is_offloaded[tensor])
        copy_out(s, s->eager->storages.at[storage].bytes);
    if (tensor != ONV_NO_TENSOR) s->is_offloaded[tensor] = true;
    onv_sim_release(s, row);
    return ONV_HOST_ROW;
}

void onv_offload_region(onv_simulation *s, onv_ckpt_region *region)
{
    for (uint32_t k = 0; k < region->n_inputs; k++)
        region->input_rows[k] = onv_offload_row(s, region->inputs[k], region->input_rows[k]);
}

static void return_row(onv_simulation *s, uint32_t storage, uint32_t *row)
{
    const onv_eager_storage *at = &s->eager->storages.at[storage];
    if (*row == ONV_HOST_ROW) *row = come_back(s, at->bytes, at->label);
}

void onv_offload_return_region(onv_simulation *s, onv_ckpt_region *region)
{
    if (region->first_op >= s->offload_end) return;
    onv_sim_step(s, ONV_PHASE_BACKWARD, ONV_NO_NODE, "copy from the host");
    for (uint32_t k = 0; k < region->n_inputs; k++)
        return_row(s, region->inputs[k], &region->input_rows[k]);
    for (uint32_t i = region->first_op; i <= region->last_op && s->is_kept != NULL; i++) {
        const onv_eager_op *op = &s->eager->ops.at[i];
        if (!s->is_kept[i]) continue;
        for (uint32_t k = 0; k < op->n_out; k++) {
            uint32_t storage = onv_sim_storage(s, op->out[k]);
            return_row(s, storage, &s->kept_row[storage]);
        }
        for (uint32_t k = 0; k < op->n_saved; k++)
            return_row(s, op->saved[k], &s->kept_row[op->saved[k]]);
    }
}

#include <string.h>

#include "eager/simulation.h"

void onv_sim_gather(onv_simulation *s, const onv_eager_op *op)
{
    if (s->options->zero_stage < 3) return;
    for (uint32_t k = 0; k < op->n_in; k++) {
        const onv_eager_storage *storage =
            &s->eager->storages.at[onv_sim_storage(s, op->in[k].tensor)];
        if (storage->kind == ONV_STORAGE_PARAMETER)
            onv_sim_temporary(s, storage->bytes, "gathered parameter");
    }
}

/* What autograd's graph of the pass before holds beside saved tensors goes with its loss. */
static void drop_lingering(onv_simulation *s)
{
    uint32_t left = (uint32_t)s->lingering.count - s->n_lingering;
    for (uint32_t i = 0; i < s->n_lingering; i++) onv_sim_release(s, s->lingering.at[i]);
    for (uint32_t i = 0; i < left; i++) s->lingering.at[i] = s->lingering.at[s->n_lingering + i];
    s->lingering.count = left;
    s->n_lingering = 0;
}

/* The storage of the quantized matrix that a product reads, or none. */
static bool reads_quantized(const onv_simulation *s, const onv_eager_op *op, uint32_t *weight)
{
    if (s->quantized_rows == NULL || op->n_in < 2 || op->n_out != 1) return false;
    *weight = onv_sim_storage(s, op->in[ONV_PRODUCT_WEIGHT].tensor);
    return s->quantized_rows[*weight] > 0 && onv_sim_storage(s, op->out[0]) != *weight;
}

/* LLM.int8() multiplies without PyTorch's cuBLAS, and without a workspace. */
static bool multiplies_bytes(const onv_simulation *s, const onv_eager_op *op)
{
    uint32_t weight;
    return reads_quantized(s, op, &weight) && s->options->weights->block == 0;
}

/* What the matrix is made into, if it is quantized; the input is kept by who the format says. */
void onv_sim_dequantize(onv_simulation *s, const onv_eager_op *op, bool backward)
{
    uint32_t weight;
    uint64_t made[ONV_MAX_WEIGHT_MADE];
    if (!reads_quantized(s, op, &weight)) return;
    const onv_weight_format *format = s->options->weights;
    uint64_t elems = s->eager->storages.at[weight].elems;
    uint64_t bytes = onv_weight_temps(format, op, s->eager, elems, backward);
    uint64_t *most = &s->program->parts.dequantized_bytes;
    if (bytes > *most) *most = bytes;
    uint32_t n = onv_weight_made(format, op, s->eager, elems, backward, made);
    for (uint32_t k = 0; k < n; k++) onv_sim_temporary(s, made[k], "dequantized weight");
}

/* A step of its own: what looks for outliers is gone before the product. */
static void quantize_input(onv_simulation *s, const onv_eager_op *op)
{
    uint32_t weight;
    if (!reads_quantized(s, op, &weight)) return;
    onv_weight_input in = onv_weight_input_of(s->options->weights, op, s->eager);
    if (in.bytes == 0 || s->failed) return;
    onv_sim_temporary(s, in.half, "input in float16");
    uint32_t scales = onv_sim_alloc(s, in.scales, ONV_BUFFER_TEMPORARY, "quantized input");
    uint32_t bytes = onv_sim_alloc(s, in.bytes, ONV_BUFFER_TEMPORARY, "quantized input");
    onv_sim_temporary(s, in.magnitudes, "outliers");
    onv_sim_temporary(s, in.mask, "outliers");
    if (s->failed) return;
    onv_sim_step(s, s->phase, op->node, op->name);
    onv_sim_release(s, scales);
    onv_sim_release(s, bytes);
}

/* As an attribute of autograd's node, which no backward frees. */
static void keep_input(onv_simulation *s, const onv_eager_op *op)
{
    uint32_t weight;
    if (!reads_quantized(s, op, &weight) || !s->options->weights->keeps_input) return;
    uint32_t in = onv_sim_storage(s, op->in[ONV_PRODUCT_INPUT].tensor);
    if (!op->has_backward || onv_sim_is_permanent(s, in) || s->row_of[in] == ONV_NO_ROW) return;
    onv_sim_hold(s, s->row_of[in]);
    if (!onv_vec_push(&s->lingering, s->row_of[in])) s->failed = true;
}

/* What forward returns. */
static bool is_result(const onv_simulation *s, uint32_t index)
{
    return s->eager->storages.at[index].is_output && s->made_by[index] < s->eager->first_loss_op;
}

/* The name that held the last iteration's result or loss, or a module's weight, now has this one's. */
static void bind_anew(onv_simulation *s, uint32_t index)
{
    bool is_last = s->eager->loss == ONV_NO_TENSOR || onv_sim_storage(s, s->eager->loss) == index;
    if (s->eager->storages.at[index].is_output && is_last) drop_lingering(s);
    onv_sim_release(s, s->output_row[index]);
    s->output_row[index] = s->made_row[index];
}

/* `again`: nobody outside waits for the result. */
static void produce(onv_simulation *s, uint32_t index, bool again)
{
    const onv_eager_storage *storage = &s->eager->storages.at[index];
    if (onv_sim_is_permanent(s, index) || s->row_of[index] != ONV_NO_ROW) return;
    s->row_of[index] = onv_sim_alloc(s, storage->bytes, ONV_BUFFER_ACTIVATION, storage->label);
    s->made_row[index] = s->row_of[index];
    if (!again && s->held.until != NULL && s->held.until[index] > 0) {
        s->held.row[index] = s->row_of[index];
        onv_sim_hold(s, s->row_of[index]);
    }
    if (!again && s->noted.until != NULL && s->noted.until[index] > 0)
        s->noted.row[index] = s->row_of[index];
    if ((!storage->is_output && !storage->is_attribute) || again) return;
    onv_sim_hold(s, s->row_of[index]);
    if (!is_result(s, index)) bind_anew(s, index);
}

/* An extra one is made for who keeps it, and is gone at once where nobody does. */
static void make_extras(onv_simulation *s, const onv_eager_op *op, bool first)
{
    for (uint32_t k = 0, n = 0; k < op->n_saved; k++)
        if (onv_sim_is_extra(s, op->saved[k]) && (n++ < op->extras_first) == first)
            produce(s, op->saved[k], true);
}

/* The name of a storage goes, if this operation is the last one to use it; what autocast caches, when it ends. */
static void let_go(onv_simulation *s, uint32_t tensor, uint32_t op, const uint32_t *last_use)
{
    uint32_t storage = onv_sim_storage(s, tensor);
    if (last_use[storage] == op && onv_ckpt_counts(s, storage))
        onv_sim_drop(s, &s->row_of[storage]);
}

void onv_sim_end_op(onv_simulation *s, uint32_t index, const uint32_t *last_use)
{
    const onv_eager_op *op = &s->eager->ops.at[index];
    for (uint32_t k = 0; k < op->n_saved && s->makes_extras[index]; k++)
        if (onv_sim_is_extra(s, op->saved[k])) onv_sim_drop(s, &s->row_of[op->saved[k]]);
    for (uint32_t k = 0; k < op->n_in; k++) let_go(s, op->in[k].tensor, index, last_use);
    for (uint32_t k = 0; k < op->n_out; k++) let_go(s, op->out[k], index, last_use);
}

void onv_sim_save(onv_simulation *s, uint32_t index)
{
    const onv_eager_op *op = &s->eager->ops.at[index];
    for (uint32_t k = 0; k < op->n_saved; k++) {
        uint32_t row = s->row_of[op->saved[k]];
        onv_sim_hold(s, row);
        s->saved_row[s->first_saved[index] + k] = row;
    }
}

void onv_sim_forget(onv_simulation *s, uint32_t index, bool lingers)
{
    for (uint32_t k = 0; k < s->eager->ops.at[index].n_saved; k++) {
        uint32_t *row = &s->saved_row[s->first_saved[index] + k];
        if (!lingers)
            onv_sim_release(s, *row);
        else if (*row != ONV_NO_ROW && !onv_vec_push(&s->lingering, *row))
            s->failed = true;
        *row = ONV_NO_ROW;
    }
}

void onv_sim_cast_again(onv_simulation *s, const onv_eager_op *op)
{
    for (uint32_t k = 0; k < op->n_in; k++) {
        uint32_t storage = onv_sim_storage(s, op->in[k].tensor);
        if (s->eager->storages.at[storage].is_cached) produce(s, storage, true);
    }
}

void onv_sim_run(onv_simulation *s, uint32_t index, onv_run run, const uint32_t *last_use)
{
    const onv_eager_op *op = &s->eager->ops.at[index];
    bool again = last_use == s->again_use;
    onv_phase phase = index < s->eager->first_loss_op ? ONV_PHASE_FORWARD : ONV_PHASE_LOSS;
    onv_sim_step(s, again ? ONV_PHASE_BACKWARD : phase, op->node, op->name);
    quantize_input(s, op);
    onv_sim_work(s, index, again);
    onv_sim_gather(s, op);
    if (again) onv_sim_cast_again(s, op);
    if (s->quantized_rows != NULL) onv_sim_dequantize(s, op, false);
    if (op->workspace.state_bytes > 0)
        onv_sim_last(s, ONV_LASTING_RANDOM, op->workspace.state_bytes, "cuDNN's random numbers");
    uint32_t copies = onv_sim_copy(s, op, op->copies_first ? op->forward_temp_bytes : 0);
    /* What overwrites its input copies it for a backward alone. */
    if (op->extras_first > 0 && (run == ONV_RUN_KEEPING || !op->in_place)) make_extras(s, op, true);
    for (uint32_t k = 0; k < op->n_out; k++) produce(s, onv_sim_storage(s, op->out[k]), again);
    uint32_t beside =
        op->workspace.stands_long
            ? onv_sim_alloc(s, op->workspace.bytes, ONV_BUFFER_WORKSPACE, op->workspace.library)
            : ONV_NO_ROW;
    if (s->makes_extras[index]) make_extras(s, op, false);
    if (!again && s->offload_end > 0) onv_offload_note(s, index);
    if (!again && onv_sim_is_kept(s, index)) onv_keep_results(s, index);
    if (run == ONV_RUN_KEEPING || (!again && onv_sim_is_direct(s, index))) onv_sim_save(s, index);
    if (run == ONV_RUN_KEEPING && !again && onv_offload_takes(s, index))
        onv_offload_saved(s, index);
    onv_sim_release(s, beside);
    bool within = op->workspace.stands_within && op->forward_temp_bytes > 0;
    uint32_t temp = onv_sim_copy(s, op, within ? op->forward_temp_bytes : 0);
    if (!op->workspace.stands_long && !multiplies_bytes(s, op))
        onv_sim_workspace(s, &op->workspace);
    onv_sim_release(s, temp);
    if (run == ONV_RUN_KEEPING) keep_input(s, op);
    if (!within && !op->copies_first) onv_sim_temporary(s, op->forward_temp_bytes, op->name);
    onv_sim_release(s, copies);
    onv_sim_end_op(s, index, last_use);
}

static void note_hold(onv_simulation *s, uint32_t row)
{
    if (row == ONV_NO_ROW) return;
    onv_noted_hold hold = {row, (uint32_t)s->timeline->steps.count - 1};
    if (!onv_vec_push(&s->program->holds, hold)) s->failed = true;
}

/* Calls that return after operation `op`, and names that end with it, let go what they held. */
static void end_holds(onv_simulation *s, uint32_t op)
{
    onv_holds *held = &s->held, *noted = &s->noted;
    for (uint32_t i = held->until != NULL ? held->first[op] : 0; i > 0; i = held->next[i - 1])
        onv_sim_drop(s, &held->row[i - 1]);
    for (uint32_t i = noted->until != NULL ? noted->first[op] : 0; i > 0; i = noted->next[i - 1]) {
        note_hold(s, noted->row[i - 1]);
        noted->row[i - 1] = ONV_NO_ROW;
    }
}

/* What comes into the last part of checkpoint_sequential has a name in its loop, where nobody else may
 * hold it. It is there still when the operation before the last part is over, for that reads it. */
static void hold_loop_input(onv_simulation *s, uint32_t op)
{
    if (op + 1 == s->options->loop_from && s->eager->ops.at[op].n_out > 0) {
        uint32_t storage = onv_sim_storage(s, s->eager->ops.at[op].out[0]);
        s->loop_row = onv_sim_is_permanent(s, storage) ? ONV_NO_ROW : s->row_of[storage];
        onv_sim_hold(s, s->loop_row);
    }
}

/* The caller's names get the results: until then they hold those of before. */
static void return_results(onv_simulation *s)
{
    for (uint32_t i = 0; i < s->eager->storages.count; i++)
        if (!onv_sim_is_permanent(s, i) && is_result(s, i)) bind_anew(s, i);
}

/* No tensor is left to which operations lead that lead to no loss and no output: nothing holds them. */
static void drop_unreached(onv_simulation *s, uint32_t op)
{
    for (uint32_t i = s->first_ended[op]; i > 0; i = s->next_ended[i - 1])
        onv_sim_forget(s, i - 1, false);
}

/* Of the regions whose last operation this is, the outermost one holds what they begin from. */
static void leave_regions(onv_simulation *s, uint32_t op)
{
    uint32_t region = s->region_of[op];
    if (region == ONV_NO_CKPT_REGION) return;
    while (s->regions[region].parent != ONV_NO_CKPT_REGION) region = s->regions[region].parent;
    if (s->regions[region].last_op == op && onv_offload_takes(s, s->regions[region].first_op))
        onv_offload_region(s, &s->regions[region]);
}

static void begin(onv_simulation *s)
{
    for (uint32_t i = 0; i < s->eager->storages.count; i++)
        if (!onv_sim_is_permanent(s, i)) s->row_of[i] = ONV_NO_ROW;
    onv_offload_begin(s);
    s->n_lingering = (uint32_t)s->lingering.count;
    onv_shard_begin_pass(s);
}

static void run(onv_simulation *s, uint32_t i)
{
    bool keeps = s->region_of[i] == ONV_NO_CKPT_REGION && s->notes == NULL;
    if (s->sharding != NULL) onv_shard_before(s, i);
    onv_sim_run(s, i, keeps ? ONV_RUN_KEEPING : ONV_RUN_FORGETTING, s->last_use);
    leave_regions(s, i);
    end_holds(s, i);
    if (i + 1 == s->eager->first_loss_op) return_results(s);
    if (s->notes != NULL) onv_plain_note(s, &s->notes->forward[i]);
}

/* What is there anyway, and what the plan holds of it. */
static void play(onv_simulation *s, uint32_t i)
{
    if (onv_sim_is_kept(s, i)) onv_keep_results(s, i);
    if (s->region_of[i] == ONV_NO_CKPT_REGION || onv_sim_is_direct(s, i)) onv_sim_save(s, i);
    onv_plain_play(s, s->plain->forward[i]);
}

void onv_sim_forward(onv_simulation *s)
{
    size_t n_bytes = s->eager->storages.count * sizeof *s->row_of;
    uint32_t next = 0; /* the next region to enter */
    if (s->plain != NULL) {
        memcpy(s->row_of, s->plain->row_of, n_bytes);
        s->meter->counts = true;
    } else {
        begin(s);
    }
    onv_ckpt_regions_reset(s);
    for (uint32_t i = 0; i < s->eager->ops.count && !s->failed; i++) {
        for (; next < s->n_regions && s->regions[next].first_op == i; next++)
            if (s->regions[next].parent == ONV_NO_CKPT_REGION)
                onv_ckpt_region_enter(s, &s->regions[next]);
        (s->plain != NULL ? play : run)(s, i);
        drop_unreached(s, i);
        hold_loop_input(s, i);
        if (i + 1 == s->eager->first_loss_op) onv_sim_drop(s, &s->loop_row);
        if (s->sharding != NULL) onv_shard_after(s, i);
    }
    if (s->plain != NULL) memcpy(s->row_of, s->plain->row_after, n_bytes);
    for (uint32_t i = 0; i < s->eager->storages.count && !s->failed && s->plain == NULL; i++)
        if (s->eager->storages.at[i].is_cached) onv_sim_drop(s, &s->row_of[i]);
}

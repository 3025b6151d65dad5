/* What is always there, as it comes to the device: parameters, buffers, inputs. */
#include "base/checked.h"
#include "eager/simulation.h"

/* The tensors that stand for a quantized matrix. It comes to the device as it is, by rows as float16, and is gone when
 * they are made; with it the scales that are quantized in their turn. */
static void place_quantized(onv_simulation *s, uint32_t index)
{
    const onv_eager_storage *storage = &s->eager->storages.at[index];
    const onv_weight_format *format = s->options->weights;
    uint64_t bytes[ONV_MAX_WEIGHT_PARTS];
    if (s->n_steps == 0) onv_sim_step(s, ONV_PHASE_FORWARD, ONV_NO_NODE, "quantize");
    onv_sim_temporary(s, format->block == 0 ? 2 * storage->elems : storage->bytes, storage->label);
    if (format->second_block > 0)
        for (uint32_t k = 0; k < 2; k++)
            onv_sim_temporary(s, sizeof(float) * onv_weight_scales(format, storage->elems, 0),
                              storage->label);
    uint32_t n = onv_weight_parts(format, storage->elems, s->quantized_rows[index], bytes);
    for (uint32_t k = 0; k < n && !s->failed; k++) {
        uint32_t row = onv_sim_alloc(s, bytes[k], ONV_BUFFER_WEIGHT, storage->label);
        if (k == 0) s->row_of[index] = s->made_row[index] = row;
        s->program->parameter_bytes = onv_u64_plus(s->program->parameter_bytes, bytes[k]);
        s->program->parts.quantized_bytes =
            onv_u64_plus(s->program->parts.quantized_bytes, bytes[k]);
    }
    onv_sim_step(s, ONV_PHASE_FORWARD, ONV_NO_NODE, "quantize");
}

static onv_buffer_kind kind_of(const onv_eager_storage *storage)
{
    static const onv_buffer_kind kinds[] = {ONV_BUFFER_INPUT, ONV_BUFFER_WEIGHT,
                                            ONV_BUFFER_STATISTIC, ONV_BUFFER_STATISTIC};
    return kinds[storage->kind];
}

static void place(onv_simulation *s, uint32_t index, onv_buffer_kind kind)
{
    const onv_eager_storage *storage = &s->eager->storages.at[index];
    if (s->failed) return;
    if (s->quantized_rows != NULL && s->quantized_rows[index] > 0) {
        place_quantized(s, index);
        return;
    }
    bool parameter = storage->kind == ONV_STORAGE_PARAMETER;
    bool is_sharded =
        s->options->parallel == ONV_PARALLEL_FSDP; /* what is shared out is the master */
    uint64_t whole = is_sharded ? onv_sim_optimized_bytes(s, storage) : storage->bytes;
    uint64_t bytes = parameter ? onv_shard_of(s, storage, whole, 3) : storage->bytes;
    if (parameter && is_sharded && s->options->offload != ONV_OFFLOAD_NOTHING) {
        s->program->parts.host_bytes = onv_u64_plus(s->program->parts.host_bytes, bytes);
        bytes = 0;
    }
    s->row_of[index] = onv_sim_alloc(s, bytes, kind, storage->label);
    s->made_row[index] = s->row_of[index];
    if (parameter) s->program->parameter_bytes += bytes;
    if (!parameter || !storage->trained) return;
    s->program->trained_elems += storage->elems;
    if (s->options->offload < ONV_OFFLOAD_GRADIENTS)
        s->program->gradient_bytes += onv_shard_of(s, storage, whole, 2);
}

/* What .to(memory_format=torch.channels_last) gives for four dims is a new tensor, and the old one goes: module by module
 * (torch/nn/modules/module.py), so that the allocator has as many holes. */
static void lay_out(onv_simulation *s, uint32_t index)
{
    const onv_eager_storage *storage = &s->eager->storages.at[index];
    uint32_t old = s->row_of[index], rank = storage->rank;
    if (storage->kind == ONV_STORAGE_INPUT && onv_is_value(storage->value))
        rank = (uint32_t)onv_model_value(s->model, storage->value)->type.rank;
    if (s->failed || rank != 4 || old == ONV_NO_ROW ||
        (s->quantized_rows != NULL && s->quantized_rows[index] > 0))
        return;
    uint64_t bytes = onv_sim_bytes(s, old);
    if (bytes == 0) return;
    onv_sim_step(s, ONV_PHASE_FORWARD, ONV_NO_NODE, "channels_last");
    s->row_of[index] = s->made_row[index] =
        onv_sim_alloc(s, bytes, kind_of(storage), storage->label);
    onv_sim_release(s, old);
}

/* By storage of a parameter: the recurrent module that reads it, as it is or as autocast casts it (onv_eager_op.rnn); 0: none.
 * NULL: nothing is flattened. */
static uint32_t *find_flattened(onv_simulation *s)
{
    const onv_eager *eager = s->eager;
    bool is_plain = s->options->lower.cuda.compute_capability > 0 && s->quantized_rows == NULL &&
                    s->options->parallel != ONV_PARALLEL_FSDP;
    if (eager->rnns.count == 0 || !is_plain) return NULL;
    uint32_t *module = ONV_ARENA_ARRAY(&s->arena, uint32_t, eager->storages.count);
    uint32_t *cast_to = ONV_ARENA_ARRAY(&s->arena, uint32_t, eager->storages.count);
    s->failed |= module == NULL || cast_to == NULL;
    for (size_t i = 0; i < eager->ops.count && !s->failed; i++) {
        const onv_eager_op *op = &eager->ops.at[i];
        if (op->aten == ONV_ATEN_to && op->n_in == 1 && op->n_out == 1)
            cast_to[onv_sim_storage(s, op->in[0].tensor)] = 1 + onv_sim_storage(s, op->out[0]);
        if (op->rnn == 0) continue;
        for (uint32_t k = eager->rnns.at[op->rnn - 1].first_weight; k < op->n_in; k++)
            module[onv_sim_storage(s, op->in[k].tensor)] = op->rnn;
    }
    for (size_t i = 0; i < eager->storages.count && !s->failed; i++)
        if (cast_to[i] > 0 && eager->storages.at[i].kind == ONV_STORAGE_PARAMETER)
            module[i] = module[cast_to[i] - 1];
    return s->failed ? NULL : module;
}

/* nn.RNNBase makes its weights views of one tensor once it has moved (flatten_parameters of torch/nn/modules/rnn.py), and the old ones,
 * which count as no tensors of the network, go: those from `first` on, before `end`, of the places of what moves. */
static void flatten(onv_simulation *s, uint32_t first, uint32_t end)
{
    uint64_t bytes = 0;
    for (uint32_t i = first; i < end && !s->failed; i++)
        bytes = onv_u64_plus(bytes, onv_sim_bytes(s, s->row_of[s->eager->order.moved[i]]));
    if (bytes == 0 || s->failed) return;
    onv_sim_step(s, ONV_PHASE_FORWARD, ONV_NO_NODE, "flatten_parameters");
    uint32_t flat = onv_sim_alloc(s, bytes, ONV_BUFFER_WEIGHT, "weights of a recurrent module");
    for (uint32_t i = first; i < end; i++) {
        onv_sim_release(s, s->row_of[s->eager->order.moved[i]]);
        s->row_of[s->eager->order.moved[i]] = s->made_row[s->eager->order.moved[i]] = flat;
        if (i > first) onv_sim_hold(s, flat);
    }
    onv_sim_step(s, ONV_PHASE_FORWARD, ONV_NO_NODE, "to"); /* where the old ones are gone */
}

static void move(onv_simulation *s)
{
    const uint32_t *module = find_flattened(s);
    for (uint32_t i = 0, first = 0; i < s->eager->order.count; i++) {
        const onv_eager_storage *at = &s->eager->storages.at[s->eager->order.moved[i]];
        uint32_t own = module != NULL ? module[s->eager->order.moved[i]] : 0;
        place(s, s->eager->order.moved[i], own > 0 ? ONV_BUFFER_WORKSPACE : kind_of(at));
        bool ends = i + 1 == s->eager->order.count ||
                    (own > 0 && module[s->eager->order.moved[i + 1]] != own);
        if (own > 0 && ends) flatten(s, first, i + 1);
        if (own == 0 || ends) first = i + 1;
    }
}

void onv_sim_place_permanent(onv_simulation *s)
{
    bool turns = s->options->lower.cuda.channels_last;
    move(s);
    for (uint32_t i = 0; turns && i < s->eager->order.count; i++)
        lay_out(s, s->eager->order.moved[i]);
    for (uint32_t i = 0; i < s->eager->storages.count; i++)
        if (s->eager->storages.at[i].kind == ONV_STORAGE_INPUT) place(s, i, ONV_BUFFER_INPUT);
    for (uint32_t i = 0; turns && i < s->eager->storages.count; i++)
        if (s->eager->storages.at[i].kind == ONV_STORAGE_INPUT) lay_out(s, i);
}

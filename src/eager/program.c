#include "eager/program.h"

#include <limits.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/quota.h"
#include "eager/calls.h"
#include "eager/simulation.h"

uint64_t onv_sim_shard(const onv_simulation *s, uint64_t bytes, uint32_t stage)
{
    if (s->options->zero_stage < stage) return bytes;
    return bytes / s->world + (bytes % s->world != 0);
}

/* --- Before the first iteration ---------------------------------------------------------------- */

static onv_status make_arrays(onv_simulation *s, onv_error *err)
{
    onv_arena *arena = &s->arena;
    for (int i = 0; i < ONV_N_LASTING; i++) s->lasting_row[i] = ONV_NO_ROW;
    s->loop_row = ONV_NO_ROW;
    size_t n = s->eager->storages.count, n_tensors = s->eager->tensors.count, n_saved = 0;
    uint32_t widest = 0;
    s->first_saved = ONV_ARENA_ARRAY(arena, uint32_t, s->eager->ops.count);
    s->region_of = ONV_ARENA_ARRAY(arena, uint32_t, s->eager->ops.count);
    s->makes_extras = ONV_ARENA_ARRAY(arena, bool, s->eager->ops.count);
    for (size_t i = 0; i < s->eager->ops.count && !arena->failed; i++) {
        const onv_eager_op *op = &s->eager->ops.at[i];
        s->first_saved[i] = (uint32_t)n_saved;
        n_saved += op->n_saved;
        if (op->n_in > widest) widest = op->n_in;
        for (uint32_t k = 0; k < op->n_saved; k++)
            s->makes_extras[i] |= onv_sim_is_extra(s, op->saved[k]);
    }
    s->row_of = ONV_ARENA_ARRAY(arena, uint32_t, n);
    s->made_row = ONV_ARENA_ARRAY(arena, uint32_t, n);
    s->output_row = ONV_ARENA_ARRAY(arena, uint32_t, n);
    s->made_by = ONV_ARENA_ARRAY(arena, uint32_t, n);
    s->last_use = ONV_ARENA_ARRAY(arena, uint32_t, n);
    s->again_use = ONV_ARENA_ARRAY(arena, uint32_t, n);
    s->grad_row = ONV_ARENA_ARRAY(arena, uint32_t, n);
    s->grad = ONV_ARENA_ARRAY(arena, onv_pending_grad, n_tensors);
    s->senders = ONV_ARENA_ARRAY(arena, uint32_t, n_tensors);
    s->senders_left = ONV_ARENA_ARRAY(arena, uint32_t, n_tensors);
    s->saved_row = ONV_ARENA_ARRAY(arena, uint32_t, n_saved);
    s->made = ONV_ARENA_ARRAY(arena, onv_pending_grad, widest);
    if (arena->failed) return onv_fail_memory(err);
    for (size_t i = 0; i < n_saved; i++) s->saved_row[i] = ONV_NO_ROW;
    for (size_t i = 0; i < n; i++)
        s->row_of[i] = s->made_row[i] = s->output_row[i] = s->grad_row[i] = ONV_NO_ROW;
    return ONV_OK;
}

static void count_saved(onv_simulation *s, bool *seen, uint32_t index)
{
    const onv_eager_storage *storage = &s->eager->storages.at[index];
    bool counts = storage->kind == ONV_STORAGE_INPUT || storage->kind >= ONV_STORAGE_ACTIVATION;
    if (seen[index] || !counts || storage->on_host) return;
    seen[index] = true;
    s->program->saved_bytes = onv_u64_plus(s->program->saved_bytes, storage->bytes);
}

/* Distinct storages that stay between forward and backward: what operations outside of checkpoints
 * save, and what enters checkpoints. */
onv_status onv_sim_find_saved(onv_simulation *s, onv_error *err)
{
    bool *seen = ONV_ARENA_ARRAY(&s->plan_arena, bool, s->eager->storages.count);
    if (seen == NULL) return onv_fail_memory(err);
    for (uint32_t i = 0; i < s->eager->ops.count; i++) {
        const onv_eager_op *op = &s->eager->ops.at[i];
        bool in_region = s->region_of[i] != ONV_NO_CKPT_REGION, leaves = onv_offload_takes(s, i);
        if (op->life == ONV_LIFE_FORWARD) continue;
        for (uint32_t k = 0; k < op->n_saved && (!in_region || onv_sim_is_direct(s, i)); k++)
            if (!leaves || !onv_offload_moves(s, op->saved[k])) count_saved(s, seen, op->saved[k]);
        bool is_kept = onv_sim_is_kept(s, i) && !leaves;
        for (uint32_t k = 0; k < op->n_out && is_kept; k++)
            count_saved(s, seen, onv_sim_storage(s, op->out[k]));
        for (uint32_t k = 0; k < op->n_in && in_region; k++) {
            uint32_t in = onv_sim_storage(s, op->in[k].tensor);
            if (s->eager->storages.at[in].kind == ONV_STORAGE_INPUT) count_saved(s, seen, in);
        }
    }
    for (uint32_t i = 0; i < s->n_regions; i++) {
        const onv_ckpt_region *region = &s->regions[i];
        if (region->parent != ONV_NO_CKPT_REGION || region->first_save == ONV_NO_OP) continue;
        bool leaves = onv_offload_takes(s, region->first_op);
        for (uint32_t k = 0; k < region->n_inputs; k++)
            if (!leaves || !onv_offload_moves(s, region->inputs[k]))
                count_saved(s, seen, region->inputs[k]);
    }
    return ONV_OK;
}

/* What is held until an operation after its last use. */
static onv_status list_holds(onv_simulation *s, uint32_t *until, onv_holds *holds, onv_error *err)
{
    size_t n = s->eager->storages.count;
    *holds = (onv_holds){.until = until,
                         .row = ONV_ARENA_ARRAY(&s->arena, uint32_t, n),
                         .next = ONV_ARENA_ARRAY(&s->arena, uint32_t, n),
                         .first = ONV_ARENA_ARRAY(&s->arena, uint32_t, s->eager->ops.count)};
    if (s->arena.failed) return onv_fail_memory(err);
    for (uint32_t i = 0; i < n; i++) {
        holds->row[i] = ONV_NO_ROW;
        if (until[i] <= s->last_use[i]) until[i] = 0;
        if (until[i] == 0) continue;
        holds->next[i] = holds->first[until[i]];
        holds->first[until[i]] = i + 1;
    }
    return ONV_OK;
}

/* What calls of modules and names hold longer than operations read it, to that end; a recording tells all of it. */
onv_status onv_sim_find_holds(onv_simulation *s, onv_held_end end, uint32_t **until, onv_error *err)
{
    const onv_eager *eager = s->eager;
    *until = ONV_ARENA_ARRAY(&s->arena, uint32_t, eager->storages.count);
    if (*until == NULL) return onv_fail_memory(err);
    onv_holding h = {s->model, eager->calls, eager, s->made_by, s->last_use, *until};
    if (!eager->was_recorded) ONV_TRY(onv_calls_hold(&h, end, &s->arena, err));
    for (size_t i = 0; i < eager->storages.count; i++)
        if (eager->storages.at[i].held_until > (*until)[i])
            (*until)[i] = eager->storages.at[i].held_until;
    return ONV_OK;
}

/* As traces tell; and what they can hold beside, if that is noted. */
static onv_status find_held(onv_simulation *s, onv_error *err)
{
    uint32_t *told, *most;
    onv_held_end end = s->options->lower.locals ? ONV_HELD_MOST : ONV_HELD_TOLD;
    ONV_TRY(onv_sim_find_holds(s, end, &told, err));
    ONV_TRY(list_holds(s, told, &s->held, err));
    if (!s->options->notes_holds || s->eager->was_recorded) return ONV_OK;
    ONV_TRY(onv_sim_find_holds(s, ONV_HELD_MOST, &most, err));
    for (size_t i = 0; i < s->eager->storages.count; i++)
        if (most[i] <= told[i]) most[i] = 0;
    return list_holds(s, most, &s->noted, err);
}

/* Autograd's nodes that lead nowhere live as long as a tensor does that they gave, or a node that reads it.
 * `until`: by tensor, as of those that read it. */
static onv_status find_ended(onv_simulation *s, onv_error *err)
{
    uint32_t n = (uint32_t)s->eager->ops.count;
    uint32_t *until = ONV_ARENA_ARRAY(&s->arena, uint32_t, s->eager->tensors.count);
    s->first_ended = ONV_ARENA_ARRAY(&s->arena, uint32_t, n);
    s->next_ended = ONV_ARENA_ARRAY(&s->arena, uint32_t, n);
    if (s->arena.failed) return onv_fail_memory(err);
    for (uint32_t i = n; i-- > 0;) {
        const onv_eager_op *op = &s->eager->ops.at[i];
        if (op->life != ONV_LIFE_FORWARD || !op->has_backward) continue;
        uint32_t last = i;
        for (uint32_t k = 0; k < op->n_out; k++) {
            uint32_t at = onv_sim_storage(s, op->out[k]);
            uint32_t held = s->held.until != NULL ? s->held.until[at] : 0;
            uint32_t ends[] = {until[op->out[k]], s->last_use[at], held};
            for (uint32_t j = 0; j < 3; j++)
                if (ends[j] > last && ends[j] != ONV_NO_OP) last = ends[j];
        }
        for (uint32_t k = 0; k < op->n_in; k++)
            if (op->in[k].grad != ONV_GRAD_NONE && last > until[op->in[k].tensor])
                until[op->in[k].tensor] = last;
        s->next_ended[i] = s->first_ended[last];
        s->first_ended[last] = i + 1;
    }
    return ONV_OK;
}

onv_status onv_sim_prepare(onv_simulation *s, onv_error *err)
{
    ONV_TRY(make_arrays(s, err));
    for (uint32_t i = 0; i < s->eager->ops.count; i++) {
        const onv_eager_op *op = &s->eager->ops.at[i];
        ONV_WORK(2 * (uint64_t)op->n_in);
        for (uint32_t k = 0; k < op->n_in; k++) {
            s->last_use[onv_sim_storage(s, op->in[k].tensor)] = i;
            s->senders[op->in[k].tensor] += op->in[k].grad != ONV_GRAD_NONE;
        }
        for (uint32_t k = 0; k < op->n_out; k++) s->last_use[onv_sim_storage(s, op->out[k])] = i;
    }
    for (size_t i = s->eager->ops.count; i-- > 0;)
        for (uint32_t k = 0; k < s->eager->ops.at[i].n_out; k++)
            s->made_by[onv_sim_storage(s, s->eager->ops.at[i].out[k])] = (uint32_t)i;
    bool trains = s->options->optimizer != NULL; /* inference looks at regions, too */
    if (trains && !s->options->lower.graph_module) ONV_TRY(find_held(s, err));
    return find_ended(s, err);
}

onv_status onv_sim_prepare_plan(onv_simulation *s, onv_error *err)
{
    ONV_TRY(onv_ckpt_regions_make(s, err));
    return onv_offload_prepare(s, err);
}

/* --- The optimizer ----------------------------------------------------------------------------- */

static void zero_grad(onv_simulation *s)
{
    for (uint32_t i = 0; i < s->eager->storages.count && !s->options->keep_grads; i++)
        onv_sim_drop(s, &s->grad_row[i]);
    if (!s->options->keep_grads) onv_shard_zero_grad(s);
}

/* A whole parameter, as the optimizer has it. */
static onv_parameter whole_of(const onv_simulation *s, const onv_eager_storage *storage)
{
    return (onv_parameter){storage->elems, onv_sim_optimized_bytes(s, storage), storage->dims,
                           storage->rank};
}

static uint64_t part_of(const onv_simulation *s, const onv_eager_storage *storage)
{
    return onv_shard_of(s, storage, onv_sim_optimized_bytes(s, storage), 1);
}

/* What the optimizer keeps is on the device, or on the host. */
static void keep(onv_simulation *s, uint64_t bytes, const char *label, uint64_t *sum)
{
    if (s->options->offload != ONV_OFFLOAD_NOTHING) {
        s->program->parts.host_bytes = onv_u64_plus(s->program->parts.host_bytes, bytes);
        return;
    }
    onv_sim_alloc(s, bytes, ONV_BUFFER_STATE, label);
    *sum = onv_u64_plus(*sum, bytes);
}

static bool has_master(const onv_simulation *s, const onv_eager_storage *storage)
{
    return s->options->parallel != ONV_PARALLEL_FSDP && storage->trained &&
           onv_sim_optimized_bytes(s, storage) != storage->bytes;
}

static void make_states(onv_simulation *s, uint64_t counter_bytes)
{
    for (uint32_t i = 0; i < s->eager->order.count && !s->failed; i++) {
        const onv_eager_storage *storage = &s->eager->storages.at[s->eager->order.listed[i]];
        if (!storage->trained) continue;
        onv_parameter whole = whole_of(s, storage);
        uint64_t bytes[ONV_MAX_STATES];
        uint32_t n = s->options->optimizer->states(&whole, bytes);
        if (counter_bytes > 0) keep(s, counter_bytes, "step", &s->program->optimizer_bytes);
        for (uint32_t k = 0; k < n; k++)
            keep(s, onv_shard_of(s, storage, bytes[k], 1), storage->label,
                 &s->program->optimizer_bytes);
    }
}

/* Before the first iteration: what stands beside the network. */
static void place_copies(onv_simulation *s)
{
    uint64_t counter = 0;
    for (uint32_t i = 0; i < s->eager->storages.count && !s->failed; i++) {
        const onv_eager_storage *storage = &s->eager->storages.at[i];
        if (has_master(s, storage))
            keep(s, part_of(s, storage), "master weight", &s->program->parts.master_bytes);
        if (!s->options->ema || storage->on_host ||
            (storage->kind != ONV_STORAGE_PARAMETER && storage->kind != ONV_STORAGE_BUFFER))
            continue;
        uint32_t row = s->row_of[i];
        uint64_t bytes = row != ONV_NO_ROW ? onv_sim_bytes(s, row) : 0;
        onv_sim_alloc(s, bytes, ONV_BUFFER_STATE, "average");
        s->program->parts.ema_bytes = onv_u64_plus(s->program->parts.ema_bytes, bytes);
        counter = sizeof(int64_t);
    }
    if (counter == 0) return;
    onv_sim_alloc(s, counter, ONV_BUFFER_STATE, "n_averaged");
    s->program->parts.ema_bytes = onv_u64_plus(s->program->parts.ema_bytes, counter);
}

/* The gradients in float32, which take the place of those of the parameters. */
static void make_master_grads(onv_simulation *s)
{
    for (uint32_t i = 0; i < s->eager->storages.count && !s->failed; i++) {
        const onv_eager_storage *storage = &s->eager->storages.at[i];
        s->master_rows[i] = ONV_NO_ROW;
        if (!has_master(s, storage) || s->grad_row[i] == ONV_NO_ROW) continue;
        onv_sim_step(s, ONV_PHASE_OPTIMIZER, ONV_NO_NODE, "gradient of a master weight");
        s->master_rows[i] =
            onv_sim_alloc(s, part_of(s, storage), ONV_BUFFER_GRADIENT, "master gradient");
        onv_sim_drop(s, &s->grad_row[i]);
    }
}

/* A tensor for each parameter, all alive until the step ends. */
static void make_list(onv_simulation *s)
{
    for (uint32_t i = 0; i < s->eager->order.count && !s->failed; i++) {
        const onv_eager_storage *storage = &s->eager->storages.at[s->eager->order.listed[i]];
        if (storage->trained) onv_sim_temporary(s, part_of(s, storage), storage->label);
    }
}

static void run_step(onv_simulation *s, const onv_optimizer_temps *temps)
{
    uint64_t most = 0, before = 0;
    for (uint32_t i = 0; i < s->eager->order.count && !s->failed; i++) {
        const onv_eager_storage *storage = &s->eager->storages.at[s->eager->order.listed[i]];
        if (!storage->trained) continue;
        uint64_t bytes = part_of(s, storage), one = temps->keeps ? before : 0;
        for (uint32_t k = 0; k < temps->each; k++) one = onv_u64_plus(one, bytes);
        if (one > most) most = one;
        before = bytes;
    }
    onv_sim_temporary(s, most, s->options->optimizer->name);
    for (uint32_t k = 0; k < temps->lists; k++) make_list(s);
}

static void optimizer_step(onv_simulation *s)
{
    const onv_optimizer *optimizer = s->options->optimizer;
    bool on_device = s->options->offload == ONV_OFFLOAD_NOTHING;
    onv_optimizer_temps temps;
    onv_optimizer_temps_of(optimizer, s->options->impl, s->options->weight_decay, &temps);
    bool masters = s->options->master_weights && on_device;
    if (masters) make_master_grads(s);
    onv_sim_step(s, ONV_PHASE_OPTIMIZER, ONV_NO_NODE, optimizer->name);
    onv_sim_note_ask(s, ONV_N_LASTING);
    if (s->iteration == 0 && !optimizer->states_first) {
        s->states[0] = (uint32_t)s->refs.count;
        make_states(s, temps.counter_bytes);
        s->states[1] = (uint32_t)s->refs.count;
    }
    if (on_device) run_step(s, &temps);
    for (uint32_t i = 0; i < s->eager->storages.count && masters && !s->failed; i++)
        onv_sim_release(s, s->master_rows[i]);
}

/* Those that an optimizer makes when it is made itself. */
static void make_first_states(onv_simulation *s)
{
    onv_optimizer_temps temps;
    onv_optimizer_temps_of(s->options->optimizer, s->options->impl, s->options->weight_decay,
                           &temps);
    make_states(s, temps.counter_bytes);
}

/* --- All together ------------------------------------------------------------------------------ */

uint32_t onv_train_passes(const onv_train_options *options)
{
    if (options->accumulate == 0) return 1;
    if (options->accumulate < 2 * ONV_PASS_CYCLE) return options->accumulate;
    return ONV_PASS_CYCLE + options->accumulate % ONV_PASS_CYCLE;
}

uint32_t onv_train_iterations(const onv_train_options *options)
{
    return options->iterations > 0 ? options->iterations : ONV_TRAIN_ITERATIONS;
}

bool onv_sim_repeats(const onv_simulation *s, uint64_t found[ONV_N_SUMS])
{
    const onv_meter *m = s->meter;
    if (m == NULL || s->requests != NULL || s->sharding != NULL) return false;
    const uint64_t next[ONV_N_SUMS] = {m->there[0], m->there[1], m->going[0], m->going[1],
                                       s->lingering.count};
    bool are_same = memcmp(found, next, sizeof next) == 0;
    memcpy(found, next, sizeof next);
    return are_same;
}

void onv_sim_iterate(onv_simulation *s)
{
    uint32_t passes = onv_train_passes(s->options);
    uint64_t found[ONV_N_SUMS] = {0};
    for (s->pass = 0; s->pass < passes && !s->failed; s->pass++) {
        bool zeroes = s->pass == 0 && s->plain == NULL;
        if (zeroes && !s->options->zero_grad_late) zero_grad(s);
        onv_sim_forward(s);
        if (zeroes && s->options->zero_grad_late) zero_grad(s);
        s->in_backward = true;
        onv_sim_backward(s);
        s->in_backward = false;
        if (onv_sim_repeats(s, found)) break;
    }
    if (!s->failed && s->plain != NULL)
        onv_plain_play(s, s->plain->requests.at.count);
    else if (!s->failed)
        optimizer_step(s);
}

onv_status onv_sim_begin(onv_simulation *s, onv_error *err)
{
    ONV_TRY(onv_shard_prepare(s, err));
    if (s->options->weights != NULL)
        ONV_TRY(onv_weight_find(s->eager, &s->arena, &s->quantized_rows, err));
    s->master_rows = ONV_ARENA_ARRAY(&s->arena, uint32_t, s->eager->storages.count);
    if (s->master_rows == NULL) return onv_fail_memory(err);
    onv_sim_place_permanent(s);
    place_copies(s);
    if (s->options->optimizer->states_first) make_first_states(s);
    return s->failed ? onv_fail_memory(err) : ONV_OK;
}

onv_status onv_sim_start(onv_simulation *s, onv_error *err)
{
    ONV_TRY(onv_sim_prepare(s, err));
    ONV_TRY(onv_sim_prepare_plan(s, err));
    ONV_TRY(onv_sim_find_saved(s, err));
    return onv_sim_begin(s, err);
}

onv_status onv_sim_train(onv_simulation *s, uint32_t iterations, onv_error *err)
{
    for (; s->iteration < iterations; s->iteration++) {
        if (s->iteration == 1 && s->timeline != NULL)
            s->timeline->measured_from = (uint32_t)s->timeline->steps.count;
        if (s->meter != NULL && !onv_requests_mark(s->requests, (uint32_t)s->refs.count))
            s->failed = true;
        onv_sim_iterate(s);
        if (s->meter != NULL) onv_sim_end_step(s);
        if (s->failed) return onv_fail_memory(err);
    }
    return ONV_OK;
}

/* What nobody let go. */
static void end_rows(onv_timeline *t)
{
    for (size_t i = 0; i < t->buffers.count; i++)
        if (t->buffers.at[i].last == UINT32_MAX)
            t->buffers.at[i].last = (uint32_t)t->steps.count - 1;
    onv_vec_fit(&t->steps);
    onv_vec_fit(&t->buffers);
}

/* About what two iterations take: growing step by step would copy all of it, and more than once. */
static bool reserve(onv_simulation *s)
{
    size_t n = s->eager->ops.count;
    return onv_vec_reserve(&s->timeline->steps, 5 * n) &&
           onv_vec_reserve(&s->timeline->buffers, 8 * n) && onv_vec_reserve(&s->refs, 8 * n);
}

onv_status onv_sim_open(onv_simulation *s, onv_model *model, const onv_eager *eager,
                        const onv_train_options *options, onv_train_program *program,
                        onv_error *err)
{
    *program = (onv_train_program){0};
    if (options->zero_stage > 0 && options->parallel != ONV_PARALLEL_NONE)
        return onv_fail(err, ONV_ERR_USAGE, "ZeRO's stages and DDP or FSDP exclude each other");
    if (options->zero_stage > 3)
        return onv_fail(err, ONV_ERR_USAGE, "ZeRO has the stages 1 to 3, not %u",
                        options->zero_stage);
    onv_optimizer_temps temps;
    if (!onv_optimizer_temps_of(options->optimizer, options->impl, false, &temps))
        return onv_fail(err, ONV_ERR_USAGE, "PyTorch has no %s implementation of %s",
                        options->impl == ONV_IMPL_FUSED ? "fused" : "foreach",
                        options->optimizer->name);
    *s = (onv_simulation){.model = model,
                          .eager = eager,
                          .options = options,
                          .program = program,
                          .world = options->world > 0 ? options->world : 1,
                          .asked = UINT_MAX};
    onv_arena_init(&s->arena, SIZE_MAX);
    onv_arena_init(&s->plan_arena, SIZE_MAX);
    return ONV_OK;
}

void onv_sim_close(onv_simulation *s)
{
    onv_arena_cleanup(&s->arena);
    onv_arena_cleanup(&s->plan_arena);
    onv_vec_cleanup(&s->refs);
    onv_vec_cleanup(&s->lingering);
    onv_vec_cleanup(&s->in_hand);
}

onv_status onv_sim_ask(const onv_train_options *options, onv_error *err)
{
    if (options->cancelled == NULL || !options->cancelled(options->cancel_context)) return ONV_OK;
    return onv_fail(err, ONV_ERR_CANCELLED, "the sizing of training was cancelled");
}

onv_status onv_train_program_build(onv_model *model, const onv_eager *eager,
                                   const onv_train_options *options, onv_train_program *program,
                                   onv_error *err)
{
    onv_simulation s;
    ONV_TRY(onv_sim_ask(options, err));
    ONV_TRY(onv_sim_open(&s, model, eager, options, program, err));
    s.timeline = &program->timeline;
    onv_status status = reserve(&s) ? onv_sim_start(&s, err) : onv_fail_memory(err);
    if (status == ONV_OK) status = onv_sim_train(&s, onv_train_iterations(options), err);
    if (status == ONV_OK) end_rows(&program->timeline);
    onv_sim_close(&s);
    if (status != ONV_OK) onv_train_program_cleanup(program);
    return status;
}

void onv_train_program_cleanup(onv_train_program *program)
{
    onv_timeline_cleanup(&program->timeline);
    onv_vec_cleanup(&program->holds);
    *program = (onv_train_program){0};
}

onv_status onv_train_program_check(const onv_train_program *program, onv_error *err)
{
    ONV_TRY(onv_timeline_check(&program->timeline, err));
    if (program->lost > 0)
        return onv_fail(err, ONV_ERR_MODEL, "backward misses %u saved tensors", program->lost);
    return ONV_OK;
}

#include "train/program.h"

#include <string.h>

#include "base/checked.h"

#define NO_ROW UINT32_MAX

typedef struct pending_grad {
    uint32_t row;
    bool dense; /* covers its buffer: may be added to in place, may become a .grad */
} pending_grad;

typedef struct simulation {
    onv_model *model;
    const onv_eager *eager;
    const onv_train_options *options;
    onv_train_program *program;
    ONV_VEC(uint32_t) refs; /* by row: who holds it */
    uint32_t world;
    uint32_t iteration;
    uint32_t *row_of;     /* by storage: its row in this iteration */
    uint32_t *output_row; /* by storage: what the caller still holds of the last iteration */
    uint32_t *last_use;   /* by storage: 1 + the last forward operation that touches it */
    uint32_t *grad_row;   /* by storage of a parameter: its .grad */
    pending_grad *grad;   /* by tensor */
    uint32_t *senders;    /* by leaf tensor: gradients that backward sends it */
    uint32_t *senders_left;
    bool failed; /* memory */
} simulation;

/* --- Steps and rows ---------------------------------------------------------------------------- */

static void step(simulation *s, onv_phase phase, onv_node_id node, const char *label)
{
    onv_train_step next = {
        .phase = (uint8_t)phase, .iteration = s->iteration, .node = node, .label = label};
    if (!onv_vec_push(&s->program->steps, next)) s->failed = true;
}

static uint32_t now(const simulation *s)
{
    return s->program->steps.count == 0 ? 0 : (uint32_t)s->program->steps.count - 1;
}

static uint32_t alloc(simulation *s, uint64_t bytes, onv_train_kind kind, const char *label)
{
    onv_train_buffer row = {bytes, now(s), UINT32_MAX, (uint8_t)kind, label};
    if (s->failed || !onv_vec_push(&s->program->buffers, row) || !onv_vec_push(&s->refs, 1)) {
        s->failed = true;
        return NO_ROW;
    }
    return (uint32_t)s->program->buffers.count - 1;
}

static void hold(simulation *s, uint32_t row)
{
    if (row != NO_ROW) s->refs.at[row]++;
}

static void release(simulation *s, uint32_t row)
{
    if (row != NO_ROW && --s->refs.at[row] == 0) s->program->buffers.at[row].last = now(s);
}

static void temporary(simulation *s, uint64_t bytes, const char *label)
{
    if (bytes != 0) release(s, alloc(s, bytes, ONV_TRAIN_TEMPORARY, label));
}

/* Bytes of a tensor of which each device has its part. */
static uint64_t shard(const simulation *s, uint64_t bytes, uint32_t stage)
{
    if (s->options->zero_stage < stage) return bytes;
    return bytes / s->world + (bytes % s->world != 0);
}

/* --- Before the first iteration ---------------------------------------------------------------- */

static bool is_permanent(const onv_eager_storage *storage)
{
    return storage->kind <= ONV_STORAGE_CONSTANT;
}

static void place_permanent(simulation *s)
{
    static const uint8_t kinds[] = {ONV_TRAIN_INPUT, ONV_TRAIN_PARAMETER, ONV_TRAIN_BUFFER,
                                    ONV_TRAIN_BUFFER};
    for (uint32_t i = 0; i < s->eager->storages.count; i++) {
        const onv_eager_storage *storage = &s->eager->storages.at[i];
        s->row_of[i] = s->output_row[i] = s->grad_row[i] = NO_ROW;
        if (!is_permanent(storage) || s->failed) continue;
        bool parameter = storage->kind == ONV_STORAGE_PARAMETER;
        uint64_t bytes = parameter ? shard(s, storage->bytes, 3) : storage->bytes;
        s->row_of[i] = alloc(s, bytes, (onv_train_kind)kinds[storage->kind], storage->label);
        if (parameter) s->program->parameter_bytes += bytes;
        if (parameter && storage->trained) {
            s->program->trained_elems += storage->elems;
            s->program->gradient_bytes += shard(s, storage->bytes, 2);
        }
    }
}

static void touch(simulation *s, uint32_t tensor, uint32_t op)
{
    s->last_use[s->eager->tensors.at[tensor].storage] = op + 1;
}

static onv_status prepare(simulation *s, onv_error *err)
{
    onv_arena *arena = &s->model->arena;
    size_t n = s->eager->storages.count, n_tensors = s->eager->tensors.count;
    s->row_of = ONV_ARENA_ARRAY(arena, uint32_t, n);
    s->output_row = ONV_ARENA_ARRAY(arena, uint32_t, n);
    s->last_use = ONV_ARENA_ARRAY(arena, uint32_t, n);
    s->grad_row = ONV_ARENA_ARRAY(arena, uint32_t, n);
    s->grad = ONV_ARENA_ARRAY(arena, pending_grad, n_tensors);
    s->senders = ONV_ARENA_ARRAY(arena, uint32_t, n_tensors);
    s->senders_left = ONV_ARENA_ARRAY(arena, uint32_t, n_tensors);
    if (s->row_of == NULL || s->output_row == NULL || s->last_use == NULL || s->grad_row == NULL ||
        s->grad == NULL || s->senders == NULL || s->senders_left == NULL)
        return onv_fail_memory(err);
    for (uint32_t i = 0; i < s->eager->ops.count; i++) {
        const onv_eager_op *op = &s->eager->ops.at[i];
        for (uint32_t k = 0; k < op->n_in; k++) {
            touch(s, op->in[k].tensor, i);
            s->senders[op->in[k].tensor] += op->in[k].grad != ONV_GRAD_NONE;
        }
        for (uint32_t k = 0; k < op->n_out; k++) touch(s, op->out[k], i);
    }
    return ONV_OK;
}

/* --- Forward ----------------------------------------------------------------------------------- */

/* Parameters that are shared out are gathered for the operation that reads them. */
static void gather(simulation *s, const onv_eager_op *op)
{
    if (s->options->zero_stage < 3) return;
    for (uint32_t k = 0; k < op->n_in; k++) {
        uint32_t storage = s->eager->tensors.at[op->in[k].tensor].storage;
        if (s->eager->storages.at[storage].kind == ONV_STORAGE_PARAMETER)
            temporary(s, s->eager->storages.at[storage].bytes, "gathered parameter");
    }
}

static void produce(simulation *s, uint32_t index)
{
    const onv_eager_storage *storage = &s->eager->storages.at[index];
    if (is_permanent(storage) || s->row_of[index] != NO_ROW) return;
    s->row_of[index] = alloc(s, storage->bytes, ONV_TRAIN_ACTIVATION, storage->label);
    if (!storage->is_output) return;
    /* The name that held the last iteration's output is bound anew. */
    if (s->output_row[index] != NO_ROW) release(s, s->output_row[index]);
    s->output_row[index] = s->row_of[index];
    hold(s, s->row_of[index]);
}

static void let_go(simulation *s, uint32_t index, uint32_t op)
{
    const onv_eager_storage *storage = &s->eager->storages.at[index];
    if (is_permanent(storage) || storage->is_cached || s->last_use[index] != op + 1) return;
    if (s->row_of[index] == NO_ROW || storage->kind == ONV_STORAGE_EXTRA) return;
    release(s, s->row_of[index]);
    s->last_use[index] |= UINT32_C(1) << 31; /* done in this iteration */
}

static void run_forward(simulation *s, uint32_t index)
{
    const onv_eager_op *op = &s->eager->ops.at[index];
    step(s, ONV_PHASE_FORWARD, op->node, op->name);
    gather(s, op);
    for (uint32_t k = 0; k < op->n_out; k++) produce(s, s->eager->tensors.at[op->out[k]].storage);
    for (uint32_t k = 0; k < op->n_saved; k++) {
        uint32_t storage = op->saved[k];
        bool is_new = s->row_of[storage] == NO_ROW; /* an extra one: nobody else holds it */
        produce(s, storage);
        if (!is_new) hold(s, s->row_of[storage]);
    }
    temporary(s, op->forward_temp_bytes, op->name);
    for (uint32_t k = 0; k < op->n_in; k++)
        let_go(s, s->eager->tensors.at[op->in[k].tensor].storage, index);
    for (uint32_t k = 0; k < op->n_out; k++)
        let_go(s, s->eager->tensors.at[op->out[k]].storage, index);
}

static void forward(simulation *s)
{
    for (uint32_t i = 0; i < s->eager->storages.count; i++) {
        if (!is_permanent(&s->eager->storages.at[i])) s->row_of[i] = NO_ROW;
        s->last_use[i] &= ~(UINT32_C(1) << 31);
    }
    for (uint32_t i = 0; i < s->eager->ops.count && !s->failed; i++) run_forward(s, i);
    for (uint32_t i = 0; i < s->eager->storages.count && !s->failed; i++)
        if (s->eager->storages.at[i].is_cached) release(s, s->row_of[i]);
}

/* --- Backward ---------------------------------------------------------------------------------- */

/* The parameter's .grad: the gradient itself where nobody else holds it. */
static void accumulate(simulation *s, uint32_t tensor)
{
    pending_grad *grad = &s->grad[tensor];
    const onv_eager_tensor *t = &s->eager->tensors.at[tensor];
    uint32_t *at = &s->grad_row[t->storage];
    if (grad->row == NO_ROW || s->failed) return;
    bool owned = s->refs.at[grad->row] == 1 && grad->dense;
    if (*at != NO_ROW) {
        release(s, grad->row);
    } else if (owned && s->options->zero_stage < 2) {
        *at = grad->row;
    } else {
        step(s, ONV_PHASE_BACKWARD, ONV_NO_NODE, "AccumulateGrad");
        *at = alloc(s, shard(s, t->bytes, 2), ONV_TRAIN_GRADIENT, "gradient");
        release(s, grad->row);
    }
    grad->row = NO_ROW;
}

static void send(simulation *s, uint32_t tensor, pending_grad grad)
{
    pending_grad *at = &s->grad[tensor];
    if (at->row == NO_ROW) {
        *at = grad;
    } else if (s->refs.at[at->row] == 1 && at->dense) {
        release(s, grad.row);
    } else if (!s->failed) {
        step(s, ONV_PHASE_BACKWARD, ONV_NO_NODE, "sum of gradients");
        uint32_t sum = alloc(s, s->eager->tensors.at[tensor].bytes, ONV_TRAIN_GRADIENT, "gradient");
        release(s, at->row);
        release(s, grad.row);
        *at = (pending_grad){sum, true};
    }
    if (s->eager->tensors.at[tensor].is_leaf && --s->senders_left[tensor] == 0)
        accumulate(s, tensor);
}

static bool has_grad(const simulation *s, const onv_eager_op *op)
{
    for (uint32_t k = 0; k < op->n_out; k++)
        if (s->grad[op->out[k]].row != NO_ROW) return true;
    return false;
}

static void make_grads(simulation *s, const onv_eager_op *op, pending_grad *made)
{
    pending_grad out = s->grad[op->out[0]];
    for (uint32_t k = 0; k < op->n_in; k++) {
        const onv_eager_tensor *t = &s->eager->tensors.at[op->in[k].tensor];
        made[k] = (pending_grad){NO_ROW, true};
        if (op->in[k].grad == ONV_GRAD_NONE) continue;
        if (op->in[k].grad == ONV_GRAD_NEW) {
            const char *label = s->eager->storages.at[t->storage].label;
            made[k].row = alloc(s, t->bytes, ONV_TRAIN_GRADIENT, label);
        } else {
            made[k] = (pending_grad){out.row, out.dense && op->in[k].grad == ONV_GRAD_ALIAS};
            hold(s, out.row);
        }
    }
}

static void run_backward(simulation *s, const onv_eager_op *op, pending_grad *made)
{
    bool runs = has_grad(s, op);
    if (runs) {
        step(s, ONV_PHASE_BACKWARD, op->node, op->name);
        gather(s, op);
        make_grads(s, op, made);
        temporary(s, op->backward_temp_bytes, op->name);
    }
    for (uint32_t k = 0; k < op->n_saved; k++) release(s, s->row_of[op->saved[k]]);
    if (!runs) return;
    for (uint32_t k = 0; k < op->n_out; k++) {
        pending_grad *grad = &s->grad[op->out[k]];
        if (grad->row == NO_ROW && op->zeroes_grads)
            temporary(s, s->eager->tensors.at[op->out[k]].bytes, "zeros");
        release(s, grad->row);
        grad->row = NO_ROW;
    }
    for (uint32_t k = 0; k < op->n_in && !s->failed; k++)
        if (made[k].row != NO_ROW) send(s, op->in[k].tensor, made[k]);
}

static void seed(simulation *s, uint32_t tensor)
{
    step(s, ONV_PHASE_BACKWARD, ONV_NO_NODE, "gradient of the loss");
    uint64_t bytes = s->eager->tensors.at[tensor].bytes;
    s->grad[tensor] = (pending_grad){alloc(s, bytes, ONV_TRAIN_GRADIENT, "gradient"), true};
}

static onv_status backward(simulation *s, onv_error *err)
{
    uint32_t widest = 0;
    for (size_t i = 0; i < s->eager->ops.count; i++)
        if (s->eager->ops.at[i].n_in > widest) widest = s->eager->ops.at[i].n_in;
    pending_grad *made = ONV_ARENA_ARRAY(&s->model->arena, pending_grad, widest);
    if (made == NULL) return onv_fail_memory(err);
    for (size_t i = 0; i < s->eager->tensors.count; i++) {
        s->grad[i] = (pending_grad){NO_ROW, true};
        s->senders_left[i] = s->senders[i];
    }
    if (s->eager->loss != ONV_NO_TENSOR) seed(s, s->eager->loss);
    for (size_t i = 0; s->eager->loss == ONV_NO_TENSOR && i < s->eager->outputs.count; i++)
        seed(s, s->eager->outputs.at[i]);
    for (size_t i = s->eager->ops.count; i-- > 0 && !s->failed;)
        if (s->eager->ops.at[i].has_backward) run_backward(s, &s->eager->ops.at[i], made);
    /* Leaves that some operation could have sent more, but backward never came there. */
    for (uint32_t i = 0; i < s->eager->tensors.count && !s->failed; i++)
        if (s->eager->tensors.at[i].is_leaf) accumulate(s, i);
    return s->failed ? onv_fail_memory(err) : ONV_OK;
}

/* --- The optimizer ----------------------------------------------------------------------------- */

static void zero_grad(simulation *s)
{
    for (uint32_t i = 0; i < s->eager->storages.count && !s->options->keep_grads; i++) {
        release(s, s->grad_row[i]);
        s->grad_row[i] = NO_ROW;
    }
}

static onv_parameter parameter_of(const simulation *s, const onv_eager_storage *storage)
{
    return (onv_parameter){storage->elems, shard(s, storage->bytes, 1), storage->dims,
                           storage->rank};
}

static void make_states(simulation *s)
{
    for (uint32_t i = 0; i < s->eager->storages.count && !s->failed; i++) {
        const onv_eager_storage *storage = &s->eager->storages.at[i];
        if (!storage->trained) continue;
        onv_parameter whole = {storage->elems, storage->bytes, storage->dims, storage->rank};
        uint64_t bytes[ONV_MAX_STATES];
        uint32_t n = s->options->optimizer->states(&whole, bytes);
        for (uint32_t k = 0; k < n; k++) {
            uint64_t part = shard(s, bytes[k], 1);
            alloc(s, part, ONV_TRAIN_STATE, storage->label);
            s->program->optimizer_bytes += part;
        }
    }
}

static void optimizer_step(simulation *s)
{
    const onv_optimizer *optimizer = s->options->optimizer;
    step(s, ONV_PHASE_OPTIMIZER, ONV_NO_NODE, optimizer->name);
    if (s->iteration == 0) make_states(s);
    bool is_sgd = optimizer->temp_lists == 0 && optimizer->temp_largest == 0;
    uint32_t lists = optimizer->temp_lists + (is_sgd && s->options->weight_decay);
    uint64_t largest = 0;
    for (uint32_t i = 0; i < s->eager->storages.count && !s->failed; i++) {
        const onv_eager_storage *storage = &s->eager->storages.at[i];
        if (!storage->trained) continue;
        onv_parameter p = parameter_of(s, storage);
        if (p.bytes > largest) largest = p.bytes;
        for (uint32_t k = 0; k < lists; k++) temporary(s, p.bytes, storage->label);
    }
    for (uint32_t k = 0; k < optimizer->temp_largest; k++) temporary(s, largest, optimizer->name);
}

/* --- All together ------------------------------------------------------------------------------ */

static onv_status iterate(simulation *s, onv_error *err)
{
    uint32_t passes = s->options->accumulate > 0 ? s->options->accumulate : 1;
    for (uint32_t pass = 0; pass < passes; pass++) {
        if (pass == 0 && !s->options->zero_grad_late) zero_grad(s);
        forward(s);
        if (pass == 0 && s->options->zero_grad_late) zero_grad(s);
        if (s->failed) return onv_fail_memory(err);
        ONV_TRY(backward(s, err));
    }
    optimizer_step(s);
    return s->failed ? onv_fail_memory(err) : ONV_OK;
}

static onv_status run(simulation *s, onv_error *err)
{
    ONV_TRY(prepare(s, err));
    place_permanent(s);
    uint32_t iterations = s->options->iterations > 0 ? s->options->iterations : 3;
    for (s->iteration = 0; s->iteration < iterations; s->iteration++) {
        if (s->iteration == 1) s->program->measured_from = (uint32_t)s->program->steps.count;
        ONV_TRY(iterate(s, err));
    }
    for (size_t i = 0; i < s->program->buffers.count; i++)
        if (s->program->buffers.at[i].last == UINT32_MAX) s->program->buffers.at[i].last = now(s);
    return ONV_OK;
}

onv_status onv_train_program_build(onv_model *model, const onv_eager *eager,
                                   const onv_train_options *options, onv_train_program *program,
                                   onv_error *err)
{
    *program = (onv_train_program){0};
    if (options->zero_stage > 3)
        return onv_fail(err, ONV_ERR_USAGE, "ZeRO has the stages 1 to 3, not %u",
                        options->zero_stage);
    simulation s = {.model = model, .eager = eager, .options = options, .program = program};
    s.world = options->world > 0 ? options->world : 1;
    onv_status status = run(&s, err);
    onv_vec_cleanup(&s.refs);
    if (status != ONV_OK) onv_train_program_cleanup(program);
    return status;
}

void onv_train_program_cleanup(onv_train_program *program)
{
    onv_vec_cleanup(&program->steps);
    onv_vec_cleanup(&program->buffers);
    *program = (onv_train_program){0};
}

onv_status onv_train_program_check(const onv_train_program *program, onv_error *err)
{
    for (size_t i = 0; i < program->buffers.count; i++) {
        const onv_train_buffer *b = &program->buffers.at[i];
        if (b->first > b->last || b->last >= program->steps.count)
            return onv_fail(err, ONV_ERR_MODEL, "training buffer %zu ('%s') lives from %u to %u", i,
                            b->label, b->first, b->last);
    }
    return ONV_OK;
}

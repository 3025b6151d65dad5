#include <string.h>

#include "base/checked.h"
#include "eager/pytorch.h"
#include "eager/simulation.h"

/* The parameter's .grad: the gradient itself where nobody else holds it. */
static void accumulate(onv_simulation *s, uint32_t tensor)
{
    onv_pending_grad *grad = &s->grad[tensor];
    const onv_eager_tensor *t = &s->eager->tensors.at[tensor];
    uint32_t *at = &s->grad_row[t->storage];
    if (grad->row == ONV_NO_ROW || s->failed) return;
    if (s->eager->storages.at[t->storage].kind == ONV_STORAGE_INPUT) {
        /* Of a view of the batch, which autograd's graph holds until the loss is bound anew. */
        if (!onv_vec_push(&s->lingering, grad->row)) s->failed = true;
        grad->row = ONV_NO_ROW;
        return;
    }
    bool owned = (s->refs.at[grad->row] == 1 || grad->is_joined) && grad->dense && !t->copies_grad;
    if (*at != ONV_NO_ROW) {
        onv_sim_release(s, grad->row);
    } else if (owned && s->options->zero_stage < 2) {
        *at = grad->row;
    } else {
        onv_sim_step(s, ONV_PHASE_BACKWARD, ONV_NO_NODE, "AccumulateGrad");
        *at = onv_sim_alloc(s, onv_sim_shard(s, t->bytes, 2), ONV_BUFFER_GRADIENT, "gradient");
        onv_sim_release(s, grad->row);
    }
    grad->row = ONV_NO_ROW;
    onv_shard_take_grad(s, t->storage);
    if (s->options->offload >= ONV_OFFLOAD_GRADIENTS && s->sharding == NULL) onv_sim_drop(s, at);
}

static void send(onv_simulation *s, uint32_t tensor, onv_pending_grad grad)
{
    onv_pending_grad *at = &s->grad[tensor];
    const onv_eager_tensor *t = &s->eager->tensors.at[tensor];
    if (at->row != ONV_NO_ROW) onv_sim_count_sum(s, t->bytes);
    if (at->row == ONV_NO_ROW) {
        *at = grad;
    } else if (s->refs.at[at->row] == 1 && at->dense && !at->of_view &&
               !onv_before_pytorch(&s->options->lower, ONV_PYTORCH_RELEASE(2, 0))) {
        onv_sim_release(s, grad.row);
    } else if (!s->failed) {
        onv_sim_step(s, ONV_PHASE_BACKWARD, ONV_NO_NODE, "sum of gradients");
        uint32_t sum = onv_sim_alloc(s, t->bytes, ONV_BUFFER_GRADIENT, "gradient");
        onv_sim_release(s, at->row);
        onv_sim_release(s, grad.row);
        *at = (onv_pending_grad){.row = sum, .dense = true};
    }
    if (t->is_leaf && --s->senders_left[tensor] == 0) accumulate(s, tensor);
}

static bool has_grad(const onv_simulation *s, const onv_eager_op *op)
{
    for (uint32_t k = 0; k < op->n_out; k++)
        if (s->grad[op->out[k]].row != ONV_NO_ROW) return true;
    return false;
}

/* The gradient of a view is a view, of a copy that a reshape made too. */
static bool hands_on_view(const onv_simulation *s, const onv_eager_op *op, uint32_t k)
{
    bool shares = onv_sim_storage(s, op->in[k].tensor) == onv_sim_storage(s, op->out[0]);
    return (shares && !op->in_place) || op->aten == ONV_ATEN_reshape;
}

/* The storage of the nth gradient that forward made. */
static uint32_t kept_grad(const onv_simulation *s, uint32_t index, uint32_t nth)
{
    const onv_eager_op *op = &s->eager->ops.at[index];
    for (uint32_t k = 0; k < op->n_saved; k++)
        if (onv_sim_is_extra(s, op->saved[k]) && nth-- == 0)
            return s->saved_row[s->first_saved[index] + k];
    return ONV_NO_ROW;
}

/* The tensor that gradients are parts of: made with the first of them. */
static void make_joined(onv_simulation *s, const onv_eager_op *op, uint32_t k)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < op->n_in; i++) {
        if (!op->in[i].is_joined) continue;
        if (i < k && s->made[i].row != ONV_NO_ROW) {
            s->made[k].row = s->made[i].row;
            onv_sim_hold(s, s->made[k].row);
            break;
        }
        uint64_t bytes = s->eager->tensors.at[op->in[i].tensor].bytes;
        all = onv_u64_plus(all, bytes);
    }
    if (s->made[k].row == ONV_NO_ROW)
        s->made[k].row = onv_sim_alloc(s, all, ONV_BUFFER_GRADIENT, op->name);
    s->made[k].is_joined = true;
}

static void make_new(onv_simulation *s, const onv_eager_op *op, uint32_t k, uint64_t bytes)
{
    const onv_eager_arg *in = &op->in[k];
    const char *label = s->eager->storages.at[s->eager->tensors.at[in->tensor].storage].label;
    uint32_t row = onv_sim_alloc(s, bytes, ONV_BUFFER_GRADIENT, label);
    s->made[k] = (onv_pending_grad){.row = row, .dense = true, .of_view = in->is_turned};
    onv_sim_workspace(s, &in->workspace);
}

static bool is_among_temps(const onv_simulation *s, const onv_eager_op *op, uint32_t k)
{
    for (uint32_t i = 0; i < op->n_temps; i++)
        if (s->eager->temps.at[op->first_temp + i].grad_of == 1 + k) return true;
    return false;
}

/* Of input k; n_kept: of the gradients that forward made, those that were taken. */
static void make_grad(onv_simulation *s, uint32_t index, uint32_t k, uint32_t *n_kept)
{
    const onv_eager_op *op = &s->eager->ops.at[index];
    const onv_eager_arg *in = &op->in[k];
    const onv_eager_tensor *t = &s->eager->tensors.at[in->tensor];
    onv_pending_grad out = s->grad[op->out[0]], *made = &s->made[k];
    *made = (onv_pending_grad){.row = ONV_NO_ROW, .dense = true};
    if (in->grad == ONV_GRAD_NONE || is_among_temps(s, op, k)) return;
    if (in->grad == ONV_GRAD_NEW && in->is_joined) {
        make_joined(s, op, k);
        onv_sim_workspace(s, &in->workspace);
    } else if (in->grad == ONV_GRAD_NEW) {
        make_new(s, op, k, in->grad_bytes > t->bytes ? in->grad_bytes : t->bytes);
    } else if (in->grad == ONV_GRAD_KEPT) {
        made->row = kept_grad(s, index, (*n_kept)++);
        onv_sim_hold(s, made->row);
    } else {
        *made = (onv_pending_grad){out.row, out.dense && in->grad == ONV_GRAD_ALIAS,
                                   out.of_view || hands_on_view(s, op, k), out.is_joined};
        onv_sim_hold(s, out.row);
    }
}

/* One after the other. Temporaries that are still there go at the end. */
static void make_temps(onv_simulation *s, const onv_eager_op *op)
{
    const onv_backward_temp *temps = &s->eager->temps.at[op->first_temp];
    uint32_t rows[ONV_BACKWARD_TEMPS];
    for (uint32_t i = 0; i <= op->n_temps; i++) {
        bool goes = false;
        for (uint32_t k = 0; k < i; k++) {
            bool is_last = i == op->n_temps && temps[k].until > i;
            if (temps[k].grad_of > 0 || (temps[k].until != i && !is_last)) continue;
            onv_sim_release(s, rows[k]);
            goes |= temps[k].bytes > 0;
        }
        if (i == op->n_temps) break;
        if (goes) onv_sim_step(s, ONV_PHASE_BACKWARD, op->node, op->name);
        uint32_t k = temps[i].grad_of - 1;
        if (temps[i].grad_of == 0)
            rows[i] = onv_sim_copy(s, op, temps[i].bytes);
        else if (op->in[k].grad == ONV_GRAD_NEW)
            make_new(s, op, k, temps[i].bytes);
    }
}

static void make_grads(onv_simulation *s, uint32_t index)
{
    const onv_eager_op *op = &s->eager->ops.at[index];
    uint32_t grad = onv_sim_copy(s, op, op->grad_copy_bytes);
    uint32_t copies = onv_sim_copy(s, op, op->copies_first ? op->backward_temp_bytes : 0),
             n_kept = 0;
    for (uint32_t i = 0; i < op->n_in; i++)
        make_grad(s, index, op->swaps_grads && i < 2 ? 1 - i : i, &n_kept);
    if (op->n_temps > 0) {
        uint32_t more = onv_sim_copy(s, op, op->copies_first ? 0 : op->backward_temp_bytes);
        make_temps(s, op);
        onv_sim_release(s, more);
    } else if (!op->copies_first) {
        onv_sim_temporary(s, op->backward_temp_bytes, op->name);
    }
    onv_sim_release(s, copies);
    onv_sim_release(s, grad);
}

/* See onv_rnn_backward. What stands beside both kernels: states, and zeros for a missing gradient. */
static void make_rnn_grads(onv_simulation *s, uint32_t index)
{
    const onv_eager_op *op = &s->eager->ops.at[index];
    const onv_rnn_backward *rnn = &s->eager->rnns.at[op->rnn - 1];
    const onv_eager_workspace workspace = {.library = "cuDNN", .bytes = rnn->workspace_bytes};
    bool has_none = s->grad[op->out[0]].row == ONV_NO_ROW, trains = false;
    uint64_t out = s->eager->tensors.at[op->out[0]].bytes;
    uint32_t zeros = onv_sim_copy(s, op, has_none ? out : 0), n_kept = 0;
    uint32_t states = onv_sim_copy(s, op, op->backward_temp_bytes);
    uint32_t input = onv_sim_copy(s, op, rnn->input_copy);
    uint32_t grad =
        onv_sim_copy(s, op, (has_none ? rnn->copies_zeros : rnn->copies_grad) ? out : 0);
    uint32_t unused = onv_sim_copy(s, op, rnn->input_grad);
    for (uint32_t k = 0; k < rnn->first_weight; k++) make_grad(s, index, k, &n_kept);
    onv_sim_workspace(s, &workspace);
    onv_sim_release(s, grad);
    onv_sim_release(s, input);
    for (uint32_t k = rnn->first_weight; k < op->n_in; k++)
        trains |= op->in[k].grad != ONV_GRAD_NONE;
    onv_sim_step(s, ONV_PHASE_BACKWARD, op->node, op->name);
    input = onv_sim_copy(s, op, trains ? rnn->input_copy : 0);
    for (uint32_t k = rnn->first_weight; k < op->n_in; k++) make_grad(s, index, k, &n_kept);
    if (trains) onv_sim_workspace(s, &workspace);
    onv_sim_release(s, input);
    onv_sim_release(s, unused);
    onv_sim_release(s, states);
    onv_sim_release(s, zeros);
}

/* What an operation saves must be there when its backward runs. */
static void count_lost(onv_simulation *s, uint32_t index)
{
    const onv_eager_op *op = &s->eager->ops.at[index];
    for (uint32_t k = 0; k < op->n_saved; k++)
        if (s->saved_row[s->first_saved[index] + k] == ONV_NO_ROW) s->program->lost++;
}

/* What the operation saved, and what its region holds. */
static void let_go(onv_simulation *s, uint32_t index)
{
    onv_sim_forget(s, index, s->eager->ops.at[index].life == ONV_LIFE_OUTPUT);
    onv_ckpt_region_leave(s, index);
}

/* Where a gradient comes to operation `index`: what it saved is there. */
static void begin_backward(onv_simulation *s, uint32_t index)
{
    s->backward_at = index;
    if (s->options->runs != NULL) onv_sim_count_backward(s, index);
    if (s->sharding != NULL) onv_shard_before_backward(s, index);
    onv_ckpt_region_restore(s, index);
    count_lost(s, index);
}

/* Beside activations the same as without a plan. */
static void play_backward(onv_simulation *s, uint32_t index)
{
    bool runs = s->plain->backward[index] > 0;
    if (runs) {
        begin_backward(s, index);
        onv_plain_play(s, s->plain->turn[index]);
    }
    let_go(s, index);
    if (runs) onv_plain_play(s, s->plain->backward[index]);
}

static void run_backward(onv_simulation *s, uint32_t index)
{
    const onv_eager_op *op = &s->eager->ops.at[index];
    bool runs = has_grad(s, op);
    if (runs) {
        begin_backward(s, index);
        onv_sim_step(s, ONV_PHASE_BACKWARD, op->node, op->name);
        if (onv_offload_takes(s, index)) onv_offload_return_saved(s, index);
        onv_sim_gather(s, op);
        if (s->quantized_rows != NULL) onv_sim_dequantize(s, op, true);
        if (op->rnn > 0)
            make_rnn_grads(s, index);
        else
            make_grads(s, index);
    }
    let_go(s, index);
    if (!runs) return;
    for (uint32_t k = 0; k < op->n_out; k++) {
        onv_pending_grad *grad = &s->grad[op->out[k]];
        if (grad->row == ONV_NO_ROW && op->zeroes_grads)
            onv_sim_temporary(s, s->eager->tensors.at[op->out[k]].bytes, "zeros");
        onv_sim_drop(s, &grad->row);
    }
    if (s->notes != NULL) onv_plain_note(s, &s->notes->turn[index]);
    for (uint32_t k = 0; k < op->n_in && !s->failed; k++)
        if (s->made[k].row != ONV_NO_ROW) send(s, op->in[k].tensor, s->made[k]);
    if (s->notes != NULL) onv_plain_note(s, &s->notes->backward[index]);
}

static void seed(onv_simulation *s, uint32_t tensor)
{
    onv_sim_step(s, ONV_PHASE_BACKWARD, ONV_NO_NODE, "gradient of the loss");
    uint64_t bytes = s->eager->tensors.at[tensor].bytes;
    s->grad[tensor] =
        (onv_pending_grad){onv_sim_alloc(s, bytes, ONV_BUFFER_GRADIENT, "gradient"), .dense = true};
}

static void seed_all(onv_simulation *s)
{
    for (size_t i = 0; i < s->eager->tensors.count; i++) {
        s->grad[i] = (onv_pending_grad){.row = ONV_NO_ROW, .dense = true};
        s->senders_left[i] = s->senders[i];
    }
    if (s->eager->loss != ONV_NO_TENSOR) seed(s, s->eager->loss);
    for (size_t i = 0; s->eager->loss == ONV_NO_TENSOR && i < s->eager->outputs.count; i++)
        seed(s, s->eager->outputs.at[i]);
    if (s->notes != NULL) onv_plain_note(s, &s->notes->seeded);
}

void onv_sim_backward(onv_simulation *s)
{
    if (s->plain != NULL)
        onv_plain_play(s, s->plain->seeded);
    else
        seed_all(s);
    for (uint32_t i = (uint32_t)s->eager->ops.count; i-- > 0 && !s->failed;) {
        if (s->eager->ops.at[i].has_backward)
            (s->plain != NULL ? play_backward : run_backward)(s, i);
        if (s->sharding != NULL) onv_shard_after_backward(s, i);
    }
    /* Leaves that some operation could have sent more, but backward never came there. */
    for (uint32_t i = 0; i < s->eager->tensors.count && !s->failed && s->plain == NULL; i++)
        if (s->eager->tensors.at[i].is_leaf) accumulate(s, i);
    onv_shard_end_backward(s);
}

/* Losses that the network itself computes. */
#include "emit/loss.h"
#include "base/checked.h"
#include "tape/state.h"

static uint32_t emit_nll(onv_tape *t, const onv_program_call *c, uint32_t log_probs)
{
    uint32_t targets = t->in[1];
    onv_eager_tensor p = onv_tensor_at(&t->emit, log_probs);
    uint32_t loss = onv_tape_new(t, onv_call_result(c, 0), p.dtype);
    if (p.rank == 3) /* [N, classes, d], which is viewed as an image */
        targets = onv_emit_contiguous(&t->emit, targets);
    onv_emit_nll(&t->emit, log_probs, targets, t->in[2], loss);
    return loss;
}

/* Labels are smoothed by the negative sum over the classes, in float32 under autocast, and 0 where a target is ignored, which has its
 * part in the loss. */
static uint32_t add_smooth_part(onv_tape *t, uint32_t log_probs, uint32_t loss)
{
    onv_shape all = onv_tape_broadcast(t, log_probs, log_probs);
    if (t->in[2] != ONV_NO_TENSOR) /* of classes */
        log_probs = onv_emit_step(&t->emit, ONV_ATEN_mul, log_probs, t->in[2], ONV_SAVE_B, &all);
    onv_eager_tensor p = onv_tensor_at(&t->emit, log_probs);
    int64_t rows[ONV_MAX_RANK];
    uint32_t n = p.rank > 0 ? p.rank - 1 : 0;
    for (uint32_t i = 0; i < n; i++) rows[i] = p.dims[i == 0 ? 0 : i + 1];
    onv_eager_tensor l = onv_tensor_at(&t->emit, loss);
    uint8_t dtype = t->emit.amp != ONV_UNDEFINED ? (uint8_t)ONV_FLOAT : p.dtype;
    uint32_t part = onv_tensor_new(&t->emit, dtype, n, rows, NULL);
    onv_emit_one(&t->emit, "sum", log_probs, p.dtype == dtype ? ONV_GRAD_PART : ONV_GRAD_NEW, part);
    part = onv_emit_of(&t->emit, "neg", part, ONV_GRAD_NEW, n, rows, NULL);
    onv_eager_tensor s = onv_tensor_at(&t->emit, part);
    onv_emit_begin(&t->emit, "masked_fill_");
    t->emit.op.in_place = true;
    onv_emit_in(&t->emit, part, ONV_GRAD_NEW);
    onv_emit_extra(&t->emit, s.elems, 1, "ignored targets");
    part =
        onv_emit_out(&t->emit, onv_tensor_on(&t->emit, s.storage, s.dtype, s.rank, s.dims, NULL));
    onv_emit_end(&t->emit);
    if (l.rank < n) part = onv_emit_of(&t->emit, "mean", part, ONV_GRAD_NEW, l.rank, l.dims, NULL);
    part = onv_emit_of(&t->emit, "mul", part, ONV_GRAD_NEW, l.rank, l.dims, NULL);
    loss = onv_emit_of(&t->emit, "mul", loss, ONV_GRAD_NEW, l.rank, l.dims, NULL);
    onv_shape shape = onv_tape_broadcast(t, loss, part);
    return onv_emit_step(&t->emit, ONV_ATEN_add, loss, part, 0, &shape);
}

uint32_t onv_tape_cross_entropy(onv_tape *t, const onv_program_call *c)
{
    uint32_t log_probs = onv_emit_log_probs(&t->emit, t->in[0]);
    if (onv_dtype_is_float((onv_dtype)onv_tensor_at(&t->emit, t->in[1]).dtype)) {
        t->in[0] = log_probs;
        return onv_tape_composite(t, c);
    }
    uint32_t loss = emit_nll(t, c, onv_amp_fp32(&t->emit, log_probs));
    bool smooths = onv_call_real(c, "label_smoothing", 0) > 0;
    return smooths ? add_smooth_part(t, log_probs, loss) : loss;
}

uint32_t onv_tape_nll_loss(onv_tape *t, const onv_program_call *c)
{
    return emit_nll(t, c, onv_amp_fp32(&t->emit, t->in[0]));
}

/* What is computed of each element before it is reduced. Kernels of some put that into the storage of the result, which keeps
 * its size. */
void onv_tape_loss(onv_tape *t, const onv_program_call *c)
{
    onv_eager_op *made = onv_tape_op_by_row(t, c);
    if (made == NULL || made->n_out == 0 || made->n_in == 0) return;
    onv_eager_tensor x = onv_tensor_at(&t->emit, made->in[0].tensor);
    onv_eager_tensor y = onv_tensor_at(&t->emit, made->out[0]);
    bool is_weighted = made->aten == ONV_ATEN_bce_with_logits_weighted;
    bool is_logits = is_weighted || made->aten == ONV_ATEN_bce_with_logits;
    if (y.rank != 0 || x.rank == 0) {
        if (is_weighted) made->forward_temp_bytes = 2 * x.bytes;
        return;
    }
    unsigned n_temps = is_weighted                                   ? 3
                       : is_logits                                   ? 2
                       : made->aten == ONV_ATEN_binary_cross_entropy ? 0
                                                                     : 1;
    made->forward_temp_bytes = onv_u64_times(x.bytes, n_temps);
    bool is_apart = is_logits || made->aten == ONV_ATEN_huber_loss || made->aten == ONV_ATEN_dist ||
                    made->aten == ONV_ATEN_dist_l1;
    if (!is_apart && !t->emit.options->on_cpu)
        t->emit.eager->storages.at[y.storage].bytes = x.bytes;
}

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

uint32_t onv_tape_cross_entropy(onv_tape *t, const onv_program_call *c)
{
    uint32_t log_probs = onv_emit_log_probs(&t->emit, t->in[0]);
    t->in[0] = log_probs;
    if (onv_dtype_is_float((onv_dtype)onv_tensor_at(&t->emit, t->in[1]).dtype))
        return onv_tape_composite_of(t, c, ONV_ATEN_cross_entropy_loss);
    uint32_t loss = emit_nll(t, c, onv_amp_fp32(&t->emit, log_probs));
    if (onv_call_real(c, "label_smoothing", 0) <= 0) return loss;
    t->in[3] = loss;
    return onv_tape_composite_of(t, c, ONV_ATEN_cross_entropy_smoothed);
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

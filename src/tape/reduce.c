/* Sums, deviations, similarity. */
#include "emit/layers.h"
#include "tape/state.h"

/* A sum hands its gradient on, repeated; a mean divides it. Under autocast a sum of low precision is float32, and its gradient is
 * cast. */
uint32_t onv_tape_sum(onv_tape *t, const onv_program_call *c)
{
    uint32_t result = onv_call_result(c, 0);
    bool sums = t->row->cast == ONV_CAST_RESULT;
    uint32_t x = t->in[0];
    onv_eager_tensor from = onv_tensor_at(&t->emit, x);
    bool widens = sums && t->emit.amp != ONV_UNDEFINED;
    uint8_t dtype = onv_tape_dtype(t, result, widens ? (uint8_t)ONV_FLOAT : from.dtype);
    uint32_t out = onv_tape_new(t, result, dtype);
    bool hands_on = sums && onv_tensor_at(&t->emit, out).dtype == from.dtype;
    onv_emit_begin_op(&t->emit, onv_aten_as(t->row));
    onv_emit_in(&t->emit, x, hands_on ? ONV_GRAD_PART : ONV_GRAD_NEW);
    onv_emit_reduction(&t->emit, x, out, onv_call_dims(t, c, from.rank), t->row->part);
    onv_emit_out(&t->emit, out);
    onv_emit_end(&t->emit);
    return out;
}

/* Of both in their shape: x / norm(x), of which autograd keeps the norm, and its copy that is bounded below, which has a name in the
 * function, as the quotients have, which are parts of one expression. */
uint32_t onv_tape_cosine(onv_tape *t, const onv_program_call *c)
{
    uint32_t unit[2], bounded[2], *in = t->in;
    for (uint32_t k = 0; k < 2; k++) in[k] = onv_amp_fp32(&t->emit, in[k]);
    onv_shape all = onv_tape_broadcast(t, in[0], in[1]), norm = all;
    int64_t axis = onv_call_int(t, c, "dim", 1), at = axis < 0 ? axis + all.rank : axis;
    if (at >= 0 && at < all.rank) norm.dims[at] = 1;
    for (uint32_t k = 0; k < 2; k++) { /* each is expanded before, as expand_outplace() does */
        if (!onv_tensor_has_dims(&t->emit, in[k], all.rank, all.dims))
            in[k] = onv_emit_expand(&t->emit, in[k], all.rank, all.dims);
        uint32_t length = onv_emit_step(&t->emit, ONV_ATEN_vector_norm_2, in[k], ONV_NO_TENSOR,
                                        ONV_SAVE_A | ONV_SAVE_OUT, &norm);
        bounded[k] = onv_emit_clone(&t->emit, length);
        unit[k] =
            onv_emit_step(&t->emit, ONV_ATEN_div, in[k], bounded[k], ONV_SAVE_A | ONV_SAVE_B, &all);
    }
    unsigned saves = (onv_tensor_needs_grad(&t->emit, unit[1]) ? ONV_SAVE_A : 0) |
                     (onv_tensor_needs_grad(&t->emit, unit[0]) ? ONV_SAVE_B : 0);
    uint32_t product = onv_emit_step(&t->emit, ONV_ATEN_mul, unit[0], unit[1], saves, &all);
    uint8_t dtype = onv_tensor_at(&t->emit, in[0]).dtype;
    uint32_t out = onv_tape_new(t, onv_call_result(c, 0), dtype);
    onv_emit_one(&t->emit, "sum", product, ONV_GRAD_PART, out);
    for (uint32_t k = 0; k < 2; k++) onv_emit_release(&t->emit, unit[k]);
    for (uint32_t k = 0; k < 2; k++) onv_emit_release(&t->emit, bounded[k]);
    return out;
}

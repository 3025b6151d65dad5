/* Sums, deviations, similarity. */
#include <string.h>

#include "emit/layers.h"
#include "tape/state.h"

/* A sum hands its gradient on, repeated; a mean divides it. Under autocast a sum of low precision is float32, and its gradient is
 * cast. */
void onv_tape_sum(onv_tape *t, const onv_program_call *c)
{
    uint32_t result = onv_call_result(c, 0);
    bool sums = t->row->cast == ONV_CAST_RESULT;
    onv_tape_operands(t, c, t->row);
    uint32_t x = onv_tape_operand_of(t, 0);
    onv_eager_tensor from = onv_tensor_at(&t->emit, x);
    if (x == ONV_NO_TENSOR || result == ONV_NO_PROGRAM_VALUE) return;
    bool widens = sums && t->emit.amp != ONV_UNDEFINED;
    uint8_t dtype = onv_tape_dtype(t, result, widens ? (uint8_t)ONV_FLOAT : from.dtype);
    uint32_t out = onv_tape_new(t, result, dtype);
    bool hands_on = sums && onv_tensor_at(&t->emit, out).dtype == from.dtype;
    onv_emit_begin_op(&t->emit, onv_aten_as(t->row));
    onv_emit_in(&t->emit, x, hands_on ? ONV_GRAD_PART : ONV_GRAD_NEW);
    onv_emit_reduction(&t->emit, x, out, onv_call_dims(t, c, from.rank), t->row->part);
    onv_tape_set(t, result, onv_emit_out(&t->emit, out));
    onv_emit_end(&t->emit);
}

/* x / norm(x): autograd keeps the norm, and its copy that is bounded below, which has a name in the function. */
static uint32_t emit_unit(onv_tape *t, uint32_t x, const onv_shape *norm, uint32_t *bounded_norm)
{
    onv_eager_tensor s = onv_tensor_at(&t->emit, x);
    uint32_t length = onv_tensor_new(&t->emit, s.dtype, norm->rank, norm->dims, NULL);
    onv_emit_begin(&t->emit, "vector_norm_2");
    onv_emit_in(&t->emit, x, ONV_GRAD_NEW);
    onv_emit_save(&t->emit, x);
    onv_emit_save(&t->emit, length);
    onv_emit_out(&t->emit, length);
    onv_emit_end(&t->emit);
    uint32_t bounded = *bounded_norm = onv_emit_clone(&t->emit, length);
    uint32_t unit = onv_tensor_new(&t->emit, s.dtype, s.rank, s.dims, NULL);
    onv_emit_begin(&t->emit, "div");
    onv_emit_in(&t->emit, x, ONV_GRAD_NEW);
    onv_emit_in(&t->emit, bounded, ONV_GRAD_NEW);
    onv_emit_save(&t->emit, x);
    onv_emit_save(&t->emit, bounded);
    onv_emit_out(&t->emit, unit);
    onv_emit_end(&t->emit);
    return unit;
}

void onv_tape_cosine(onv_tape *t, const onv_program_call *c)
{
    uint32_t result = onv_call_result(c, 0), unit[2], length[2];
    onv_tape_operands(t, c, t->row);
    uint32_t in[2] = {onv_amp_fp32(&t->emit, onv_tape_operand_of(t, 0)),
                      onv_amp_fp32(&t->emit, onv_tape_operand_of(t, 1))};
    if (in[0] == ONV_NO_TENSOR || in[1] == ONV_NO_TENSOR || result == ONV_NO_PROGRAM_VALUE) return;
    onv_eager_tensor x = onv_tensor_at(&t->emit, in[0]), y = onv_tensor_at(&t->emit, in[1]);
    onv_shape all = {.rank = x.rank > y.rank ? x.rank : y.rank}, norm;
    for (uint32_t i = 0; i < all.rank; i++) {
        int64_t n = i + x.rank < all.rank ? 1 : x.dims[i + x.rank - all.rank];
        int64_t m = i + y.rank < all.rank ? 1 : y.dims[i + y.rank - all.rank];
        all.dims[i] = n == 1 ? m : n;
    }
    int64_t axis = onv_call_int(t, c, "dim", 1), at = axis < 0 ? axis + all.rank : axis;
    norm = all;
    if (at >= 0 && at < all.rank) norm.dims[at] = 1;
    for (uint32_t k = 0; k < 2; k++) { /* each is expanded before, as expand_outplace() does */
        if (!onv_tensor_has_dims(&t->emit, in[k], all.rank, all.dims))
            in[k] = onv_emit_expand(&t->emit, in[k], all.rank, all.dims);
        unit[k] = emit_unit(t, in[k], &norm, &length[k]);
    }
    uint32_t product = onv_tensor_new(&t->emit, x.dtype, all.rank, all.dims, NULL);
    onv_emit_begin(&t->emit, "mul");
    for (uint32_t k = 0; k < 2; k++) {
        onv_emit_in(&t->emit, unit[k], ONV_GRAD_NEW);
        if (onv_tensor_needs_grad(&t->emit, unit[1 - k])) onv_emit_save(&t->emit, unit[k]);
    }
    onv_emit_out(&t->emit, product);
    onv_emit_end(&t->emit);
    onv_emit_begin(&t->emit, "sum");
    onv_emit_in(&t->emit, product, ONV_GRAD_PART);
    onv_tape_set(t, result, onv_emit_out(&t->emit, onv_tape_new(t, result, x.dtype)));
    onv_emit_end(&t->emit);
    /* The quotients are parts of one expression, which is over then. */
    const uint32_t named[] = {unit[0], unit[1], length[0], length[1]};
    for (size_t i = 0; i < 4; i++) onv_emit_release(&t->emit, named[i]);
}

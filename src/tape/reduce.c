/* Sums and means. */
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

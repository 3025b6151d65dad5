/* Operators that PyTorch computes by others (CompositeImplicitAutograd of native_functions.yaml): aten/src/ATen/native/Loss.cpp and
 * Distance.cpp. */
#include <string.h>

#include "tape/state.h"

onv_shape onv_tape_broadcast(const onv_tape *t, uint32_t a, uint32_t b)
{
    onv_eager_tensor x = onv_tensor_at(&t->emit, a), y = onv_tensor_at(&t->emit, b);
    onv_eager_tensor big = x.rank >= y.rank ? x : y, small = x.rank >= y.rank ? y : x;
    onv_shape shape = {.rank = big.rank};
    if (big.rank > 0) memcpy(shape.dims, big.dims, big.rank * sizeof *big.dims);
    for (uint32_t i = 0; i < small.rank; i++) {
        int64_t *dim = &shape.dims[big.rank - small.rank + i];
        if (*dim == 1) *dim = small.dims[i];
    }
    return shape;
}

static uint32_t reduced(onv_tape *t, const onv_program_call *c, uint32_t x)
{
    enum { NONE, MEAN, SUM };
    static const onv_shape number = {0};
    int64_t reduction = onv_call_int(t, c, "reduction", MEAN);
    return reduction == NONE
               ? x
               : onv_emit_step(&t->emit, reduction == MEAN ? ONV_ATEN_mean : ONV_ATEN_sum, x,
                               ONV_NO_TENSOR, 0, &number);
}

/* norm(a - b + eps) over the last dim. */
static uint32_t distance(onv_tape *t, const onv_program_call *c, uint32_t a, uint32_t b)
{
    onv_shape shape = onv_tape_broadcast(t, a, b), rows = shape;
    double p = onv_call_real(c, "p", 2);
    uint32_t x = onv_emit_step(&t->emit, ONV_ATEN_sub, a, b, 0, &shape);
    x = onv_emit_step(&t->emit, ONV_ATEN_add, x, ONV_NO_TENSOR, 0, &shape);
    if (rows.rank > 0) rows.rank--;
    if (onv_call_flag(c, "keepdim", false)) rows.dims[rows.rank++] = 1;
    return onv_emit_step(&t->emit, onv_tape_norm(p), x, ONV_NO_TENSOR,
                         p == 1 ? ONV_SAVE_A : ONV_SAVE_A | ONV_SAVE_OUT, &rows);
}

static uint32_t divergence(onv_tape *t, const onv_program_call *c, uint32_t input, uint32_t target)
{
    onv_shape shape = onv_tape_broadcast(t, input, target);
    onv_shape own = onv_tape_broadcast(t, target, target);
    if (onv_call_flag(c, "log_target", false)) {
        uint32_t p =
            onv_emit_step(&t->emit, ONV_ATEN_exp, target, ONV_NO_TENSOR, ONV_SAVE_OUT, &own);
        uint32_t differ = onv_emit_step(&t->emit, ONV_ATEN_sub, target, input, 0, &shape);
        bool trains = onv_tensor_needs_grad(&t->emit, target);
        return onv_emit_step(&t->emit, ONV_ATEN_mul, p, differ,
                             trains ? ONV_SAVE_A | ONV_SAVE_B : ONV_SAVE_A, &shape);
    }
    uint32_t own_part =
        onv_emit_step(&t->emit, ONV_ATEN_xlogy, target, target, ONV_SAVE_A | ONV_SAVE_B, &own);
    bool trains = onv_tensor_needs_grad(&t->emit, target);
    uint32_t cross = onv_emit_step(&t->emit, ONV_ATEN_mul, target, input,
                                   trains ? ONV_SAVE_A | ONV_SAVE_B : ONV_SAVE_A, &shape);
    return onv_emit_step(&t->emit, ONV_ATEN_sub, own_part, cross, 0, &shape);
}

static uint32_t triplet(onv_tape *t, const onv_program_call *c, uint32_t a, uint32_t p, uint32_t n)
{
    uint32_t near = distance(t, c, a, p), far = distance(t, c, a, n);
    onv_shape rows = onv_tape_broadcast(t, near, far);
    if (onv_call_flag(c, "swap", false)) {
        uint32_t other = distance(t, c, p, n);
        far = onv_emit_step(&t->emit, ONV_ATEN_minimum, far, other, ONV_SAVE_A | ONV_SAVE_B, &rows);
    }
    uint32_t x = onv_emit_step(&t->emit, ONV_ATEN_add, near, ONV_NO_TENSOR, 0, &rows);
    x = onv_emit_step(&t->emit, ONV_ATEN_sub, x, far, 0, &rows);
    return onv_emit_step(&t->emit, ONV_ATEN_clamp_min, x, ONV_NO_TENSOR, ONV_SAVE_A, &rows);
}

static uint32_t absolute(onv_tape *t, uint32_t a, uint32_t b)
{
    onv_shape shape = onv_tape_broadcast(t, a, b);
    uint32_t x = onv_emit_step(&t->emit, ONV_ATEN_sub, a, b, 0, &shape);
    return onv_emit_step(&t->emit, ONV_ATEN_abs, x, ONV_NO_TENSOR, ONV_SAVE_A, &shape);
}

uint32_t onv_tape_composite(onv_tape *t, const onv_program_call *c)
{
    uint32_t *x = t->in;
    for (uint32_t i = 0; i < 3 && t->row->cast == ONV_CAST_FLOAT32; i++)
        x[i] = onv_amp_fp32(&t->emit, x[i]);
    switch (onv_aten_id_of(t->row)) {
    case ONV_ATEN_l1_loss: return reduced(t, c, absolute(t, x[0], x[1]));
    case ONV_ATEN_kl_div: return reduced(t, c, divergence(t, c, x[0], x[1]));
    case ONV_ATEN_triplet_margin_loss: return reduced(t, c, triplet(t, c, x[0], x[1], x[2]));
    default: return distance(t, c, x[0], x[1]);
    }
}

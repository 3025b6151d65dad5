/* Operators that PyTorch computes by others (CompositeImplicitAutograd of native_functions.yaml): aten/src/ATen/native/Loss.cpp and
 * Distance.cpp. */
#include <math.h>
#include <string.h>

#include "tape/state.h"

enum { SAVE_A = 1, SAVE_B = 2, SAVE_OUT = 4 };

/* One kernel of one operand or two; ONV_NO_TENSOR: there is no second one. */
static uint32_t step(onv_tape *t, onv_aten_id id, uint32_t a, uint32_t b, unsigned saves,
                     const onv_shape *shape)
{
    bool hands_on = id == ONV_ATEN_sub || id == ONV_ATEN_add;
    onv_eager_tensor x = onv_tensor_at(&t->emit, a);
    if (a == ONV_NO_TENSOR || t->emit.status != ONV_OK) return ONV_NO_TENSOR;
    onv_emit_begin_op(&t->emit, id);
    onv_emit_in(&t->emit, a, hands_on ? ONV_GRAD_ALIAS : ONV_GRAD_NEW);
    onv_emit_in(&t->emit, b, ONV_GRAD_NEW);
    uint32_t out = onv_tensor_new(&t->emit, x.dtype, shape->rank, shape->dims, NULL);
    if ((saves & SAVE_A) != 0) onv_emit_save(&t->emit, a);
    if ((saves & SAVE_B) != 0) onv_emit_save(&t->emit, b);
    if ((saves & SAVE_OUT) != 0) onv_emit_save(&t->emit, out);
    onv_emit_out(&t->emit, out);
    onv_emit_end(&t->emit);
    return out;
}

/* Of both operands, with dims of size 1 repeated. */
static onv_shape shape_of(const onv_tape *t, uint32_t a, uint32_t b)
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
    return reduction == NONE ? x
                             : step(t, reduction == MEAN ? ONV_ATEN_mean : ONV_ATEN_sum, x,
                                    ONV_NO_TENSOR, 0, &number);
}

/* norm(a - b + eps) over the last dim. */
static uint32_t distance(onv_tape *t, const onv_program_call *c, uint32_t a, uint32_t b)
{
    onv_shape shape = shape_of(t, a, b), rows = shape;
    double p = onv_call_real(c, "p", 2);
    onv_aten_id norm = p == 2     ? ONV_ATEN_vector_norm_2
                       : p == 1   ? ONV_ATEN_vector_norm_1
                       : isinf(p) ? ONV_ATEN_vector_norm_inf
                                  : ONV_ATEN_linalg_vector_norm;
    uint32_t x = step(t, ONV_ATEN_sub, a, b, 0, &shape);
    x = step(t, ONV_ATEN_add, x, ONV_NO_TENSOR, 0, &shape);
    if (rows.rank > 0) rows.rank--;
    if (onv_call_flag(c, "keepdim", false)) rows.dims[rows.rank++] = 1;
    return step(t, norm, x, ONV_NO_TENSOR, p == 1 ? SAVE_A : SAVE_A | SAVE_OUT, &rows);
}

static uint32_t divergence(onv_tape *t, const onv_program_call *c, uint32_t input, uint32_t target)
{
    onv_shape shape = shape_of(t, input, target);
    onv_shape own = shape_of(t, target, target);
    if (onv_call_flag(c, "log_target", false)) {
        uint32_t p = step(t, ONV_ATEN_exp, target, ONV_NO_TENSOR, SAVE_OUT, &own);
        uint32_t differ = step(t, ONV_ATEN_sub, target, input, 0, &shape);
        bool trains = onv_tensor_needs_grad(&t->emit, target);
        return step(t, ONV_ATEN_mul, p, differ, trains ? SAVE_A | SAVE_B : SAVE_A, &shape);
    }
    uint32_t own_part = step(t, ONV_ATEN_xlogy, target, target, SAVE_A | SAVE_B, &own);
    bool trains = onv_tensor_needs_grad(&t->emit, target);
    uint32_t cross =
        step(t, ONV_ATEN_mul, target, input, trains ? SAVE_A | SAVE_B : SAVE_A, &shape);
    return step(t, ONV_ATEN_sub, own_part, cross, 0, &shape);
}

static uint32_t triplet(onv_tape *t, const onv_program_call *c, uint32_t a, uint32_t p, uint32_t n)
{
    uint32_t near = distance(t, c, a, p), far = distance(t, c, a, n);
    onv_shape rows = shape_of(t, near, far);
    if (onv_call_flag(c, "swap", false)) {
        uint32_t other = distance(t, c, p, n);
        far = step(t, ONV_ATEN_minimum, far, other, SAVE_A | SAVE_B, &rows);
    }
    uint32_t x = step(t, ONV_ATEN_add, near, ONV_NO_TENSOR, 0, &rows);
    x = step(t, ONV_ATEN_sub, x, far, 0, &rows);
    return step(t, ONV_ATEN_clamp_min, x, ONV_NO_TENSOR, SAVE_A, &rows);
}

void onv_tape_composite(onv_tape *t, const onv_program_call *c)
{
    uint32_t x[3], out;
    onv_tape_operands(t, c, t->row);
    for (uint32_t i = 0; i < 3; i++) {
        x[i] = onv_tape_operand_of(t, i);
        if (t->row->cast == ONV_CAST_FLOAT32) x[i] = onv_amp_fp32(&t->emit, x[i]);
    }
    if (x[0] == ONV_NO_TENSOR || x[1] == ONV_NO_TENSOR) return;
    if (onv_aten_id_of(t->row) == ONV_ATEN_l1_loss) {
        onv_shape shape = shape_of(t, x[0], x[1]);
        out = step(t, ONV_ATEN_sub, x[0], x[1], 0, &shape);
        out = reduced(t, c, step(t, ONV_ATEN_abs, out, ONV_NO_TENSOR, SAVE_A, &shape));
    } else if (onv_aten_id_of(t->row) == ONV_ATEN_kl_div) {
        out = reduced(t, c, divergence(t, c, x[0], x[1]));
    } else if (onv_aten_id_of(t->row) == ONV_ATEN_triplet_margin_loss) {
        out = reduced(t, c, triplet(t, c, x[0], x[1], x[2]));
    } else {
        out = distance(t, c, x[0], x[1]);
    }
    onv_tape_give(t, c, 0, out);
}

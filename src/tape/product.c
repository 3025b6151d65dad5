/* Products of matrices. */
#include "emit/product.h"

#include "ops/equation.h"
#include "tape/state.h"

void onv_tape_linear(onv_tape *t, const onv_program_call *c)
{
    uint32_t x = onv_call_tensor(t, c, "input"), w = onv_call_tensor(t, c, "weight");
    uint32_t bias = onv_call_tensor(t, c, "bias");
    if (x == ONV_NO_TENSOR || w == ONV_NO_TENSOR) return;
    t->emit.is_linear = true;
    bias = onv_amp_low(&t->emit, bias);
    w = onv_amp_low(&t->emit, w);
    x = onv_amp_low(&t->emit, x);
    if (onv_tensor_at(&t->emit, w).rank == 2) w = onv_emit_swapped(&t->emit, w);
    uint32_t out = bias != ONV_NO_TENSOR ? onv_emit_linear(&t->emit, x, w, bias)
                                         : onv_emit_matmul(&t->emit, x, w);
    t->emit.is_linear = false;
    onv_tape_give(t, c, 0, out);
}

/* A vector is a matrix of one row before a product, of one column behind it. */
static uint32_t widened(onv_tape *t, uint32_t x, bool is_first)
{
    onv_eager_tensor v = onv_tensor_at(&t->emit, x);
    if (x == ONV_NO_TENSOR || v.rank != 1) return x;
    const int64_t dims[] = {is_first ? 1 : v.dims[0], is_first ? v.dims[0] : 1};
    return onv_emit_reshape(&t->emit, x, 2, dims);
}

/* With a workspace of cuBLAS, as all products. */
static uint32_t by_row(onv_tape *t, const onv_program_call *c)
{
    onv_eager_op *op = onv_tape_op_by_row(t, c);
    if (op != NULL) op->workspace = onv_emit_cublas_product(&t->emit);
    return ONV_NO_TENSOR;
}

uint32_t onv_tape_matmul(onv_tape *t, const onv_program_call *c)
{
    uint32_t b = onv_amp_low(&t->emit, t->in[1]);
    uint32_t a = onv_amp_low(&t->emit, t->in[0]);
    onv_eager_tensor x = onv_tensor_at(&t->emit, a), y = onv_tensor_at(&t->emit, b);
    onv_shape shape;
    if (!onv_tape_shape(t, onv_call_result(c, 0), &shape)) return ONV_NO_TENSOR;
    if (x.rank < 2 && y.rank < 2) {
        t->row = &onv_aten_ops[ONV_ATEN_dot];
        return by_row(t, c);
    }
    if (x.rank == 2 && y.rank == 1) {
        onv_added none = {.bias = ONV_NO_TENSOR};
        uint32_t vector = onv_tensor_new(&t->emit, x.dtype, 1, x.dims, NULL);
        return onv_emit_product(&t->emit, "mv", a, b, none, vector);
    }
    uint32_t out = onv_emit_matmul(&t->emit, widened(t, a, true), widened(t, b, false));
    return shape.rank < onv_tensor_at(&t->emit, out).rank
               ? onv_emit_reshape(&t->emit, out, shape.rank, shape.dims)
               : out;
}

/* A recorded bmm() that is matmul()'s reads a view of what that expanded. */
static uint32_t low_factor(onv_tape *t, const onv_program_call *c, uint32_t letter)
{
    uint32_t x = t->in[letter];
    const onv_program_call *by =
        onv_tape_maker(t, onv_call_value(c, letter == 0 ? "self" : "mat2"));
    if (by == NULL || !onv_tape_is(t, by, ONV_ATEN_view)) return onv_amp_low(&t->emit, x);
    return onv_tape_low(t, onv_call_value(by, "self"), x);
}

uint32_t onv_tape_mm(onv_tape *t, const onv_program_call *c)
{
    onv_added none = {.bias = ONV_NO_TENSOR};
    uint32_t b = low_factor(t, c, 1), a = low_factor(t, c, 0);
    return onv_emit_mm(&t->emit, t->row->name, a, b, none);
}

/* alpha and beta. */
static bool scales(const onv_program_call *c, const char *name)
{
    return onv_call_real(c, name, 1) != 1;
}

uint32_t onv_tape_addmm(onv_tape *t, const onv_program_call *c)
{
    uint32_t *in = t->in;
    onv_amp_low_all(&t->emit, in, 3);
    if (in[1] == ONV_NO_TENSOR || in[2] == ONV_NO_TENSOR) return ONV_NO_TENSOR;
    onv_added sum = {
        .bias = in[0], .scales_product = scales(c, "alpha"), .scales_bias = scales(c, "beta")};
    uint32_t target = onv_call_value(c, "self");
    uint32_t out = onv_tape_result(t, c, target, onv_tensor_at(&t->emit, in[1]).dtype);
    onv_emit_product(&t->emit, t->row->name, in[1], in[2], sum, out);
    onv_tape_give_result(t, c, target, out);
    return ONV_NO_TENSOR;
}

/* Products of a vector: mv, dot, addmv. */
uint32_t onv_tape_vectors(onv_tape *t, const onv_program_call *c)
{
    bool adds = onv_aten_id_of(t->row) == ONV_ATEN_addmv;
    uint32_t b = onv_amp_low(&t->emit, t->in[adds ? 2 : 1]);
    uint32_t a = onv_amp_low(&t->emit, t->in[adds ? 1 : 0]);
    if (t->overwrites || a == ONV_NO_TENSOR || b == ONV_NO_TENSOR ||
        onv_tensor_at(&t->emit, a).rank < 2)
        return by_row(t, c);
    onv_added sum = {.bias = adds ? onv_amp_low(&t->emit, t->in[0]) : ONV_NO_TENSOR,
                     .scales_product = scales(c, "alpha"),
                     .scales_bias = scales(c, "beta")};
    uint32_t out = onv_tape_new(t, onv_call_result(c, 0), onv_tensor_at(&t->emit, a).dtype);
    return onv_emit_product(&t->emit, t->row->name, a, b, sum, out);
}

uint32_t onv_tape_einsum(onv_tape *t, const onv_program_call *c)
{
    uint32_t in[ONV_MOST_TERMS], out = ONV_NO_TENSOR, n = 0;
    const char *equation = onv_call_text(c, "equation");
    for (size_t i = 0; i < t->operands.count && n < ONV_MOST_TERMS; i++)
        in[n++] = t->operands.at[i].tensor;
    if (equation != NULL && n == t->operands.count)
        out = onv_emit_einsum(&t->emit, equation, in, n);
    if (out == ONV_NO_TENSOR) onv_tape_by_row(t, c);
    return out;
}

uint32_t onv_tape_bilinear(onv_tape *t, const onv_program_call *c)
{
    uint32_t *in = t->in;
    onv_shape shape;
    if (!onv_tape_shape(t, onv_call_result(c, 0), &shape)) return ONV_NO_TENSOR;
    if (onv_aten_id_of(t->row) == ONV_ATEN__trilinear)
        return onv_emit_bilinear(&t->emit, in[0], in[1], in[2], ONV_NO_TENSOR, &shape);
    return onv_emit_bilinear(&t->emit, in[0], in[2], in[1], in[3], &shape);
}

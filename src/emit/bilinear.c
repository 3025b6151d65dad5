/* F.bilinear. */
#include "base/checked.h"
#include "emit/product.h"

/* _trilinear_backward, one of the outputs after the other: for the first input the products of the gradient and the weight, of
 * each row; for the weight those of the gradient and a row, and the products of rows; for the second input those of rows and
 * the weight. Each adds up in zeros. */
static uint64_t bilinear_temps(onv_emitter *e, const uint32_t in[3])
{
    onv_eager_tensor x = onv_tensor_at(e, in[0]), y = onv_tensor_at(e, in[2]);
    uint64_t inputs = (uint64_t)y.dims[y.rank - 1], made = 0, most = 0;
    uint64_t all = onv_u64_times(x.bytes, inputs),
             matrix = onv_u64_times((uint64_t)x.dims[x.rank - 1], inputs);
    matrix = onv_u64_times(matrix, onv_dtype_bits((onv_dtype)x.dtype) / 8);
    const uint64_t temps[] = {onv_u64_plus(all, x.bytes), onv_u64_plus(x.bytes, matrix),
                              onv_u64_plus(y.bytes, y.bytes)};
    for (uint32_t i = 0; i < 3; i++) {
        if (!onv_tensor_needs_grad(e, in[i])) continue;
        made = onv_u64_plus(made, onv_tensor_at(e, in[i]).bytes);
        uint64_t now = onv_u64_plus(made, temps[i]);
        if (now > most) most = now;
    }
    return most > made ? most - made : 0;
}

static uint32_t rows_of(onv_emitter *e, uint32_t x)
{
    onv_eager_tensor t = onv_tensor_at(e, x);
    if (x == ONV_NO_TENSOR || t.rank < 1 || t.elems == 0) return ONV_NO_TENSOR;
    int64_t last = t.dims[t.rank - 1];
    return onv_emit_reshape(e, x, 2, (const int64_t[]){(int64_t)(t.elems / (uint64_t)last), last});
}

uint32_t onv_emit_bilinear(onv_emitter *e, uint32_t x, uint32_t w, uint32_t y, uint32_t bias,
                           const onv_shape *shape)
{
    uint32_t in[3] = {rows_of(e, x), w, rows_of(e, y)};
    if (in[0] == ONV_NO_TENSOR || in[1] == ONV_NO_TENSOR || in[2] == ONV_NO_TENSOR ||
        shape->rank == 0)
        return ONV_NO_TENSOR;
    onv_eager_tensor a = onv_tensor_at(e, in[0]), b = onv_tensor_at(e, in[2]);
    const int64_t dims[] = {a.dims[0], shape->dims[shape->rank - 1]};
    uint32_t out = onv_tensor_new(e, a.dtype, 2, dims, NULL);
    uint64_t column = a.dims[1] > 0 ? a.bytes / (uint64_t)a.dims[1] : 0;
    onv_emit_begin(e, "_trilinear");
    for (uint32_t k = 0; k < 3; k++) onv_emit_in_saved(e, in[k], ONV_GRAD_NEW);
    onv_emit_temps(e, onv_u64_plus(b.bytes, column), 0);
    e->op.workspace = onv_emit_cublas_product(e);
    e->op.workspace.stands_within = true;
    enum { N = 2 };
    const onv_backward_temp temps[N] = {{bilinear_temps(e, in), N, 0},
                                        {e->op.workspace.bytes, N, 0}};
    onv_emit_backward_temps(e, &e->op, temps, N);
    out = onv_emit_out(e, out);
    onv_emit_end(e);
    if (shape->rank != 2) out = onv_emit_reshape(e, out, shape->rank, shape->dims);
    if (bias == ONV_NO_TENSOR) return out;
    uint32_t sum = onv_tensor_new(e, a.dtype, shape->rank, shape->dims, NULL);
    onv_emit_begin(e, "add");
    onv_emit_in(e, out, ONV_GRAD_ALIAS);
    onv_emit_in(e, bias, ONV_GRAD_NEW);
    onv_emit_sum_workspace(e, bias, sum);
    onv_emit_out(e, sum);
    onv_emit_end(e);
    return sum;
}

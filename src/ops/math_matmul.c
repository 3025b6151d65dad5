/* Matrix products: MatMul, Gemm and the quantised ones. */
#include "ops/rules.h"

/* --- MatMul ----------------------------------------------------------------------------------- */

/* The dim that both operands are multiplied along: the last of input 0, the last but one of b. */
static onv_status inner_dim(onv_op_ctx *c, uint32_t b, onv_dim *inner)
{
    onv_dim x = onv_op_in_dim(c, 0, -1);
    onv_dim y = onv_op_in_dim(c, b, onv_op_in_rank(c, b) == 1 ? 0 : -2);
    if (onv_dim_is_const(x) && onv_dim_is_const(y) && !onv_dim_same(x, y))
        return onv_op_fail(c, "inner dims of %s and %s differ", onv_op_in_text(c, 0),
                           onv_op_in_text(c, b));
    *inner = x;
    return onv_tensor_unify(c, "inner dims", inner, y);
}

onv_status onv_math_matmul_as(onv_op_ctx *c, uint32_t b, onv_dtype dtype)
{
    onv_dim dims[ONV_MAX_RANK + 2], inner;
    int ra = onv_op_in_rank(c, 0), rb = onv_op_in_rank(c, b), rank = 0;
    onv_op_set_out(c, 0, dtype, NULL, -1);
    if (ra == 0 || rb == 0) return onv_op_fail(c, "a matrix product takes no scalar");
    if (ra < 0 || rb < 0) return ONV_OK;
    ONV_TRY(inner_dim(c, b, &inner));
    int batch_a = ra > 2 ? ra - 2 : 0, batch_b = rb > 2 ? rb - 2 : 0;
    int batch = batch_a > batch_b ? batch_a : batch_b;
    for (int axis = 0; axis < batch; axis++) {
        int ka = axis - (batch - batch_a), kb = axis - (batch - batch_b);
        onv_dim x = ka >= 0 ? onv_op_in_dim(c, 0, ka) : onv_dim_const(1);
        onv_dim y = kb >= 0 ? onv_op_in_dim(c, b, kb) : onv_dim_const(1);
        ONV_TRY(onv_rule_broadcast_dim(c, x, y, &dims[rank++]));
    }
    if (ra > 1) dims[rank++] = onv_op_in_dim(c, 0, -2);
    if (rb > 1) dims[rank++] = onv_op_in_dim(c, b, -1);
    return onv_op_set_out(c, 0, dtype, dims, rank);
}

onv_dim onv_math_matmul_macs(onv_op_ctx *c, uint32_t b)
{
    onv_dim inner = ONV_DIM_UNKNOWN;
    if (onv_op_in_rank(c, 0) < 1 || onv_op_in_rank(c, b) < 1) return inner;
    if (inner_dim(c, b, &inner) != ONV_OK) return ONV_DIM_UNKNOWN;
    return onv_dim_mul(c->dims, onv_count_out_elems(c), inner);
}

/* QLinearMatMul: a, its scale and zero point, b, its scale and zero point, those of the result. */
static bool is_qlinear(const onv_op_ctx *c)
{
    return c->op->in.min == 8;
}

static onv_status infer_matmul(onv_op_ctx *c)
{
    if (is_qlinear(c)) return onv_math_matmul_as(c, 3, onv_op_in_dtype(c, 7));
    bool integers = c->op->in.max == 4;
    return onv_math_matmul_as(c, 1, integers ? ONV_INT32 : onv_rule_dtype(c, 0, 2));
}

static onv_dim macs_matmul(onv_op_ctx *c)
{
    return onv_math_matmul_macs(c, is_qlinear(c) ? 3 : 1);
}

/* --- Gemm ------------------------------------------------------------------------------------- */

static onv_dim gemm_dim(onv_op_ctx *c, uint32_t k, int axis)
{
    bool transposed = onv_op_attr_int(c, k == 0 ? "transA" : "transB", 0) != 0;
    return onv_op_in_dim(c, k, transposed ? 1 - axis : axis);
}

/* The bias broadcasts to the result; before opset 7 where `broadcast` is set, else it has the result's rank. */
static onv_status check_bias(onv_op_ctx *c, const onv_dim *dims)
{
    bool may_broadcast = c->version >= 7 || onv_op_attr_int(c, "broadcast", 0) != 0;
    int rank = onv_op_in_rank(c, 2);
    if (rank > 2 || (rank >= 0 && rank < 2 && !may_broadcast))
        return onv_op_fail(c, "bias must have %s, not shape %s",
                           may_broadcast ? "two dims at most" : "two dims without broadcast=1",
                           onv_op_in_text(c, 2));
    return onv_rule_check_fits(c, "bias", 2, dims, 2);
}

static onv_status infer_gemm(onv_op_ctx *c)
{
    onv_dim inner = gemm_dim(c, 0, 1);
    for (uint32_t k = 0; k < 2; k++) {
        int rank = onv_op_in_rank(c, k);
        if (rank >= 0 && rank != 2)
            return onv_op_fail(c, "input %u must be a matrix, not of shape %s", k,
                               onv_op_in_text(c, k));
    }
    ONV_TRY(onv_tensor_unify(c, "inner dims", &inner, gemm_dim(c, 1, 0)));
    onv_dim dims[2] = {gemm_dim(c, 0, 0), gemm_dim(c, 1, 1)};
    ONV_TRY(check_bias(c, dims));
    return onv_op_set_out(c, 0, onv_rule_dtype(c, 0, c->n_in), dims, 2);
}

static onv_dim macs_gemm(onv_op_ctx *c)
{
    onv_dim inner = gemm_dim(c, 0, 1), other = gemm_dim(c, 1, 0);
    if (onv_dim_is_const(other) || !onv_dim_is_known(inner)) inner = other;
    return onv_dim_mul(c->dims, onv_count_out_elems(c), inner);
}

/* --- Rows ------------------------------------------------------------------------------------- */

#define GEMM(version, least)                                                                       \
    ONV_OP("Gemm", version, least, 3, 1, 1, infer_gemm, .macs = macs_gemm, .alike = ONV_BITS(3))

static const onv_op rows[] = {
    ONV_OP("MatMul", 1, 2, 2, 1, 1, infer_matmul, .macs = macs_matmul, .alike = ONV_BITS(2)),
    ONV_OP("MatMulInteger", 10, 2, 4, 1, 1, infer_matmul, .macs = macs_matmul),
    ONV_OP("QLinearMatMul", 10, 8, 8, 1, 1, infer_matmul, .macs = macs_matmul),
    GEMM(1, 3),
    GEMM(7, 3),
    GEMM(11, 2),
};

const onv_op_family onv_ops_math_matmul = {"", rows, sizeof rows / sizeof rows[0]};

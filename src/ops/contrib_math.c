/* com.microsoft: activations, matrix products with quantised weights, mixtures of experts. */
#include "base/fail.h"
#include "ops/contrib.h"
#include "ops/rules.h"

static onv_status infer_murmur_hash(onv_op_ctx *c)
{
    bool positive = onv_op_attr_int(c, "positive", 1) != 0;
    return onv_op_set_out_like(c, 0, 0, positive ? ONV_UINT32 : ONV_INT32);
}

/* --- FusedMatMul ------------------------------------------------------------------------------- */

/* Input k as the product takes it: with transBatch its first axis goes behind the batch, with trans
 * the last two change places. */
static onv_status transpose_factor(onv_op_ctx *c, onv_op_ctx *as, uint32_t k, const char *trans,
                                   const char *trans_batch)
{
    onv_type *type = &as->in[k].type;
    int rank = onv_op_in_rank(c, k);
    if (rank < 2) return ONV_OK;
    onv_dim *dims = onv_arena_copy(c->arena, type->dims, (size_t)rank * sizeof *dims);
    if (dims == NULL) return onv_fail_memory(c->err);
    if (onv_op_attr_int(c, trans_batch, 0) != 0) {
        for (int i = 0; i < rank - 2; i++) dims[i] = type->dims[i + 1];
        dims[rank - 2] = type->dims[0];
    }
    if (onv_op_attr_int(c, trans, 0) != 0) {
        onv_dim last = dims[rank - 1];
        dims[rank - 1] = dims[rank - 2];
        dims[rank - 2] = last;
    }
    type->dims = dims;
    return ONV_OK;
}

static onv_status read_factors(onv_op_ctx *c, onv_borrow *b)
{
    ONV_TRY(onv_borrow_init(c, c->op, c->version, NULL, 0, b));
    ONV_TRY(transpose_factor(c, &b->c, 0, "transA", "transBatchA"));
    return transpose_factor(c, &b->c, 1, "transB", "transBatchB");
}

static onv_status infer_fused_matmul(onv_op_ctx *c)
{
    onv_borrow b;
    ONV_TRY(read_factors(c, &b));
    return onv_math_matmul_as(&b.c, 1, onv_rule_dtype(c, 0, 2));
}

static onv_dim macs_fused_matmul(onv_op_ctx *c)
{
    onv_borrow b;
    if (read_factors(c, &b) != ONV_OK) return ONV_DIM_UNKNOWN;
    return onv_math_matmul_macs(&b.c, 1);
}

/* --- Rows -------------------------------------------------------------------------------------- */

#define SAME(op, least, most, rule, ...)                                                           \
    ONV_OP(op, 1, least, most, 1, 1, rule, .traits = {.inplace = ONV_BIT(0), __VA_ARGS__})
#define SAVES_X   .save_in = ONV_BIT(0)
#define SAVES_X_B .save_in = ONV_BIT(0) | ONV_BIT(1)
/* The bias is a vector along the last axis. */
#define BIASED(op, least, most, ...)                                                               \
    ONV_SAYS(op, 1, least, most, 1, 1, "(x[..., n], bias[n]): like x",                             \
             .traits = {.inplace = ONV_BIT(0), __VA_ARGS__})
#define PRODUCT(op, least, most, outs, line)                                                       \
    ONV_SAYS(op, 1, least, most, 1, outs, line, .traits = {.save_in = ONV_BIT(0)})
#define MATMUL(op)                                                                                 \
    ONV_OP(op, 1, 2, 2, 1, 1, infer_fused_matmul, .macs = macs_fused_matmul,                       \
           .traits = {.save_in = ONV_BIT(0) | ONV_BIT(1)})
/* Weights are a blob whose matrix attributes tell. */
#define PACKED "(x[..., attr.K]): [x.:-1, attr.N]; x.elems * attr.N"
/* How many bits of a byte each weight of an expert takes, of which columns are packed into bytes. */
#define BITS(matrix) "(attr." matrix "_expert_weight_bits or attr.expert_weight_bits or 4)"
#define BY_ROWS      "(x, w[n, _]): [x.:-1, n]; x.elems * n"

static const onv_op rows[] = {
    SAME("Gelu", 1, 1, onv_infer_same, SAVES_X),
    SAME("QuickGelu", 1, 1, onv_infer_same, SAVES_X),
    BIASED("FastGelu", 1, 2, SAVES_X_B),
    BIASED("BiasGelu", 2, 2, SAVES_X_B),
    BIASED("BiasAdd", 3, 3, 0),
    SAME("GatedAdd", 3, 3, onv_infer_same, SAVES_X_B),
    SAME("ScaledSiLU", 1, 2, onv_infer_same, SAVES_X),
    SAME("SampleOp", 1, 1, onv_infer_same, 0),
    SAME("QLinearSigmoid", 4, 5, onv_infer_same, 0),
    SAME("QLinearLeakyRelu", 4, 5, onv_infer_same, 0),
    SAME("QLinearSoftmax", 5, 5, onv_infer_same, 0),
    SAME("QOrderedGelu", 3, 3, onv_infer_same, 0),
    /* The result alone gives the gradient of a softmax. */
    ONV_OP("BiasSoftmax", 1, 2, 2, 1, 1, onv_infer_same,
           .traits = {.inplace = ONV_BIT(0), .save_out = ONV_BIT(0)}),
    /* One half of the last axis gates the other. */
    ONV_SAYS("BiasSplitGelu", 1, 2, 2, 1, 1, "(x[..., n], bias[n]): [x.:-1, exact(n / 2)]",
             .traits = {.save_in = ONV_BIT(0) | ONV_BIT(1)}),
    ONV_OP("MurmurHash3", 1, 1, 1, 1, 1, infer_murmur_hash),
    ONV_SAYS("IsAllFinite", 1, 1, ONV_OP_MAX_ARITY, 1, 1, "(x): [] bool"),
    ONV_OP("ComplexMul", 1, 2, 2, 1, 1, onv_infer_broadcast,
           .traits = {.save_in = ONV_BIT(0) | ONV_BIT(1)}),
    ONV_OP("ComplexMulConj", 1, 2, 2, 1, 1, onv_infer_broadcast,
           .traits = {.save_in = ONV_BIT(0) | ONV_BIT(1)}),
    MATMUL("FusedMatMul"),
    MATMUL("FusedMatMulActivation"),
    MATMUL("TransposeMatMul"),
    MATMUL("SparseToDenseMatMul"),
    /* The distance of each row of a to each row of b. */
    ONV_SAYS("CDist", 1, 2, 2, 1, 1, "(a[m, k], b[n, k]): [m, n]; m * n * k",
             .traits = {.save_in = ONV_BIT(0) | ONV_BIT(1)}),
    PRODUCT("MatMulNBits", 3, 6, 1, PACKED),
    /* Without transB it multiplies the other way round. */
    PRODUCT("MatMulBnb4", 3, 3, 1,
            "(x): [x.:-1, if(attr.transB or 1, attr.N, attr.K)]; x.elems * if(attr.transB or 1, "
            "attr.N, attr.K)"),
    PRODUCT("MatMulFpQ4", 3, 3, 1, "(x, w, sizes): [x.:-1, sizes[1]]; x.elems * sizes[1]"),
    PRODUCT("MatMulBlockQuantizedFp8Weight", 3, 5, 1, BY_ROWS),
    PRODUCT("MatMulBlockQuantizedFp4Weight", 4, 6, 1, BY_ROWS),
    /* A normalised input times two matrices, one gating the other. */
    PRODUCT("MatMulNBitsMlp", 8, 9, 2,
            "(x[..., attr.K]): [x.:-1, attr.N], like x; 2 * x.elems * attr.N"),
    PRODUCT("MatMulNBitsQkv", 11, 12, 4,
            "(x[..., attr.K]): [x.:-1, attr.Nq], [x.:-1, attr.Nkv], [x.:-1, attr.Nkv], like x; "
            "x.elems * (attr.Nq + 2 * attr.Nkv)"),
    PRODUCT("MoE", 5, 8, 1,
            "(x[_, _, ...], router[_, _], up[_, a, b], c, down, d, gate): like x; "
            "x.elems / x.-1 * (attr.k or 1) * (a * b + down.1 * down.2 + (gate.1 or 0) * (gate.2 "
            "or 0))"),
    PRODUCT("QMoE", 6, 21, 1,
            "(x[_, _, ...], router[_, _], up[_, a, b], c, d, down, e, f, gate): like x; "
            "x.elems / x.-1 * (attr.k or 1) * (a * b * 8 / " BITS(
                "fc1") " + down.1 * down.2 * 8 / " BITS("fc2") " + (gate.1 or 0) * (gate.2 or 0) * "
                                                               "8 / " BITS("fc3") ")"),
};

const onv_op_family onv_ops_contrib_math = {"com.microsoft", rows, sizeof rows / sizeof rows[0]};

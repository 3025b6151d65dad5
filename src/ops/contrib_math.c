/* com.microsoft: activations, matrix products with quantised weights, mixtures of experts. */
#include "base/fail.h"
#include "ops/contrib.h"
#include "ops/math.h"
#include "ops/rules.h"
#include "ops/tensor.h"

/* --- Pointwise --------------------------------------------------------------------------------- */

/* Bias, where there is one, is a vector along the last axis. */
static onv_status check_bias(onv_op_ctx *c, uint32_t k, onv_dim length)
{
    ONV_TRY(onv_tensor_need_rank(c, k, 1, 1));
    return onv_tensor_unify(c, "the length of the bias", length, onv_op_in_dim(c, k, 0), &length);
}

static onv_status infer_bias_like(onv_op_ctx *c)
{
    onv_infer_same(c);
    return check_bias(c, 1, onv_op_in_dim(c, 0, -1));
}

/* BiasSplitGelu: one half of the last axis gates the other. */
static onv_status infer_bias_split_gelu(onv_op_ctx *c)
{
    onv_dim width = onv_op_in_dim(c, 0, -1);
    ONV_TRY(check_bias(c, 1, width));
    if (onv_dim_is_const(width) && width.raw % 2 != 0)
        return onv_op_fail(c, "a width of %lld does not split in two", (long long)width.raw);
    onv_contrib_last(c, 0, onv_op_in_dtype(c, 0),
                     onv_dim_floordiv(c->dims, width, onv_dim_const(2)));
    return ONV_OK;
}

static onv_status infer_murmur_hash(onv_op_ctx *c)
{
    bool positive = onv_op_attr_int(c, "positive", 1) != 0;
    onv_op_set_out_like(c, 0, 0, positive ? ONV_UINT32 : ONV_INT32);
    return ONV_OK;
}

static onv_status infer_is_all_finite(onv_op_ctx *c)
{
    onv_op_set_out(c, 0, ONV_BOOL, NULL, 0);
    return ONV_OK;
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
    return onv_math_matmul_as(&b.c, 0, 1, onv_rule_dtype(c, 0, 2));
}

static onv_dim macs_fused_matmul(onv_op_ctx *c)
{
    onv_borrow b;
    if (read_factors(c, &b) != ONV_OK) return ONV_DIM_UNKNOWN;
    return onv_math_matmul_macs(&b.c, 0, 1);
}

/* --- Products with packed weights -------------------------------------------------------------- */

/* The weights are a blob whose matrix only attributes (or an input of sizes) tell. */
typedef struct packed_product {
    onv_dim k, n;
} packed_product;

static onv_status read_packed(onv_op_ctx *c, packed_product *p)
{
    int64_t n, k;
    ONV_TRY(onv_contrib_attr(c, "N", &n));
    ONV_TRY(onv_contrib_attr(c, "K", &k));
    *p = (packed_product){.k = onv_dim_const(k), .n = onv_dim_const(n)};
    /* MatMulBnb4 without transB multiplies the other way round. */
    if (onv_op_attr_int(c, "transB", 1) == 0) *p = (packed_product){.k = p->n, .n = p->k};
    return onv_tensor_unify(c, "the width of the input", p->k, onv_op_in_dim(c, 0, -1), &p->k);
}

static onv_status infer_packed(onv_op_ctx *c)
{
    packed_product p;
    ONV_TRY(read_packed(c, &p));
    onv_contrib_last(c, 0, onv_op_in_dtype(c, 0), p.n);
    return ONV_OK;
}

static onv_dim macs_packed(onv_op_ctx *c)
{
    packed_product p;
    if (read_packed(c, &p) != ONV_OK) return ONV_DIM_UNKNOWN;
    return onv_dim_mul(c->dims, onv_count_out_elems(c), p.k);
}

/* MatMulFpQ4: input 2 holds the shape [K, N]. */
static onv_status infer_fpq4(onv_op_ctx *c)
{
    onv_dim n;
    ONV_TRY(onv_tensor_size_at(c, 2, 1, &n));
    onv_contrib_last(c, 0, onv_op_in_dtype(c, 0), n);
    return ONV_OK;
}

/* Weights [N, K], perhaps packed along K. */
static onv_status infer_by_rows(onv_op_ctx *c)
{
    ONV_TRY(onv_tensor_need_rank(c, 1, 2, 2));
    onv_contrib_last(c, 0, onv_op_in_dtype(c, 0), onv_op_in_dim(c, 1, 0));
    return ONV_OK;
}

static onv_dim macs_by_width(onv_op_ctx *c)
{
    return onv_dim_mul(c->dims, onv_count_out_elems(c), onv_op_in_dim(c, 0, -1));
}

/* MatMulNBitsMlp: a normalised input times two matrices, one gating the other. */
static onv_status infer_packed_mlp(onv_op_ctx *c)
{
    ONV_TRY(infer_packed(c));
    onv_contrib_like(c, 1, 0);
    return ONV_OK;
}

static onv_dim macs_packed_mlp(onv_op_ctx *c)
{
    return onv_dim_mul(c->dims, macs_packed(c), onv_dim_const(2));
}

/* MatMulNBitsQkv: the same for queries, keys and values. */
static onv_status infer_packed_qkv(onv_op_ctx *c)
{
    int64_t q, kv, k;
    ONV_TRY(onv_contrib_attr(c, "Nq", &q));
    ONV_TRY(onv_contrib_attr(c, "Nkv", &kv));
    ONV_TRY(onv_contrib_attr(c, "K", &k));
    onv_contrib_last(c, 0, onv_op_in_dtype(c, 0), onv_dim_const(q));
    onv_contrib_last(c, 1, onv_op_in_dtype(c, 0), onv_dim_const(kv));
    onv_contrib_last(c, 2, onv_op_in_dtype(c, 0), onv_dim_const(kv));
    onv_contrib_like(c, 3, 0);
    return ONV_OK;
}

static onv_dim macs_packed_qkv(onv_op_ctx *c)
{
    onv_dim kv = onv_dim_const(onv_op_attr_int(c, "Nkv", 0));
    onv_dim n = onv_dim_add(c->dims, onv_dim_const(onv_op_attr_int(c, "Nq", 0)),
                            onv_dim_mul(c->dims, kv, onv_dim_const(2)));
    return onv_dim_mul(c->dims, onv_op_in_elems(c, 0), n);
}

/* --- Mixtures of experts ----------------------------------------------------------------------- */

/* The elements of one expert's matrix, from input k of [experts, rows, columns]; `bits` of one where
 * the columns are packed into bytes. */
static onv_dim expert_elems(onv_op_ctx *c, uint32_t k, int64_t bits)
{
    if (bits < 1 || bits > 8) return ONV_DIM_UNKNOWN;
    onv_dim bytes = onv_dim_mul(c->dims, onv_op_in_dim(c, k, 1), onv_op_in_dim(c, k, 2));
    return onv_dim_floordiv(c->dims, onv_dim_mul(c->dims, bytes, onv_dim_const(8)),
                            onv_dim_const(bits));
}

static onv_status infer_moe(onv_op_ctx *c)
{
    onv_infer_same(c);
    ONV_TRY(onv_tensor_need_rank(c, 0, 2, 3));
    ONV_TRY(onv_tensor_need_rank(c, 2, 3, 3));
    return onv_tensor_need_rank(c, 1, 2, 2);
}

/* Each token goes through k experts, and all of their two or three matrices. */
static onv_dim macs_of_experts(onv_op_ctx *c, onv_dim expert)
{
    int64_t experts = onv_op_attr_int(c, "k", 1);
    if (experts < 1 || onv_op_in_rank(c, 0) < 2) return ONV_DIM_UNKNOWN;
    onv_dim tokens = onv_contrib_product(c, 0, 0, -1);
    tokens = onv_dim_mul(c->dims, tokens, onv_dim_const(experts));
    return onv_dim_mul(c->dims, tokens, expert);
}

static onv_dim macs_moe(onv_op_ctx *c)
{
    onv_dim elems = onv_dim_add(c->dims, expert_elems(c, 2, 8), expert_elems(c, 4, 8));
    if (onv_op_has_in(c, 6)) elems = onv_dim_add(c->dims, elems, expert_elems(c, 6, 8));
    return macs_of_experts(c, elems);
}

static onv_dim macs_qmoe(onv_op_ctx *c)
{
    static const char *const names[] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits",
                                        "fc3_expert_weight_bits"};
    int64_t bits = onv_op_attr_int(c, "expert_weight_bits", 4);
    onv_dim elems = onv_dim_const(0);
    for (uint32_t i = 0; i < 3; i++)
        if (i < 2 || onv_op_has_in(c, 2 + 3 * i))
            elems = onv_dim_add(c->dims, elems,
                                expert_elems(c, 2 + 3 * i, onv_op_attr_int(c, names[i], bits)));
    return macs_of_experts(c, elems);
}

/* --- Others ------------------------------------------------------------------------------------ */

/* CDist: the distance of each row of A to each row of B. */
static onv_status infer_cdist(onv_op_ctx *c)
{
    onv_dim width, dims[2] = {onv_op_in_dim(c, 0, 0), onv_op_in_dim(c, 1, 0)};
    ONV_TRY(onv_tensor_need_rank(c, 0, 2, 2));
    ONV_TRY(onv_tensor_need_rank(c, 1, 2, 2));
    ONV_TRY(onv_tensor_unify(c, "the widths of the points", onv_op_in_dim(c, 0, 1),
                             onv_op_in_dim(c, 1, 1), &width));
    onv_op_set_out(c, 0, onv_rule_dtype(c, 0, 2), dims, 2);
    return ONV_OK;
}

/* --- Rows -------------------------------------------------------------------------------------- */

#define SAME(op, least, most, rule, ...)                                                           \
    ONV_OP(op, 1, least, most, 1, 1, rule, .traits = {.inplace = ONV_BIT(0), __VA_ARGS__})
#define SAVES_X   .save_in = ONV_BIT(0)
#define SAVES_X_B .save_in = ONV_BIT(0) | ONV_BIT(1)
#define PRODUCT(op, least, most, outs, rule, count)                                                \
    ONV_OP(op, 1, least, most, 1, outs, rule, .macs = count, .traits = {.save_in = ONV_BIT(0)})
#define MATMUL(op, rule, count)                                                                    \
    ONV_OP(op, 1, 2, 2, 1, 1, rule, .macs = count, .traits = {.save_in = ONV_BIT(0) | ONV_BIT(1)})

static const onv_op rows[] = {
    SAME("Gelu", 1, 1, onv_infer_same, SAVES_X),
    SAME("QuickGelu", 1, 1, onv_infer_same, SAVES_X),
    SAME("FastGelu", 1, 2, infer_bias_like, SAVES_X_B),
    SAME("BiasGelu", 2, 2, infer_bias_like, SAVES_X_B),
    SAME("BiasAdd", 3, 3, infer_bias_like, 0),
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
    ONV_OP("BiasSplitGelu", 1, 2, 2, 1, 1, infer_bias_split_gelu,
           .traits = {.save_in = ONV_BIT(0) | ONV_BIT(1)}),
    ONV_OP("MurmurHash3", 1, 1, 1, 1, 1, infer_murmur_hash),
    ONV_OP("IsAllFinite", 1, 1, ONV_OP_MAX_ARITY, 1, 1, infer_is_all_finite),
    ONV_OP("ComplexMul", 1, 2, 2, 1, 1, onv_infer_broadcast,
           .traits = {.save_in = ONV_BIT(0) | ONV_BIT(1)}),
    ONV_OP("ComplexMulConj", 1, 2, 2, 1, 1, onv_infer_broadcast,
           .traits = {.save_in = ONV_BIT(0) | ONV_BIT(1)}),
    MATMUL("FusedMatMul", infer_fused_matmul, macs_fused_matmul),
    MATMUL("FusedMatMulActivation", infer_fused_matmul, macs_fused_matmul),
    MATMUL("TransposeMatMul", infer_fused_matmul, macs_fused_matmul),
    MATMUL("SparseToDenseMatMul", infer_fused_matmul, macs_fused_matmul),
    MATMUL("CDist", infer_cdist, macs_by_width),
    PRODUCT("MatMulNBits", 3, 6, 1, infer_packed, macs_packed),
    PRODUCT("MatMulBnb4", 3, 3, 1, infer_packed, macs_packed),
    PRODUCT("MatMulFpQ4", 3, 3, 1, infer_fpq4, macs_by_width),
    PRODUCT("MatMulBlockQuantizedFp8Weight", 3, 5, 1, infer_by_rows, macs_by_width),
    PRODUCT("MatMulBlockQuantizedFp4Weight", 4, 6, 1, infer_by_rows, macs_by_width),
    PRODUCT("MatMulNBitsMlp", 8, 9, 2, infer_packed_mlp, macs_packed_mlp),
    PRODUCT("MatMulNBitsQkv", 11, 12, 4, infer_packed_qkv, macs_packed_qkv),
    PRODUCT("MoE", 5, 8, 1, infer_moe, macs_moe),
    PRODUCT("QMoE", 6, 21, 1, infer_moe, macs_qmoe),
};

const onv_op_family onv_ops_contrib_math = {"com.microsoft", rows, sizeof rows / sizeof rows[0]};

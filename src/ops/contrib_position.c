/* com.microsoft: what stands around attention: positions, padding. */
#include "ops/contrib.h"
#include "ops/rules.h"
#include "ops/tensor.h"

/* RelativePositionBias: table [buckets, heads], and two lengths as numbers. */
static onv_status infer_position_bias(onv_op_ctx *c)
{
    onv_dim dims[4] = {onv_dim_const(1), onv_op_in_dim(c, 0, 1)};
    ONV_TRY(onv_tensor_need_rank(c, 0, 2, 2));
    ONV_TRY(onv_tensor_size_at(c, 1, 0, &dims[2]));
    ONV_TRY(onv_tensor_size_at(c, 2, 0, &dims[3]));
    onv_op_set_out(c, 0, onv_op_in_dtype(c, 0), dims, 4);
    return ONV_OK;
}

/* GatedRelativePositionBias: query [batch, length, width]; or packed tokens, and token_offset
 * [batch, length]. */
static onv_status infer_gated_position_bias(onv_op_ctx *c)
{
    uint32_t from = onv_op_has_in(c, 6) ? 6 : 0;
    int64_t heads;
    onv_dim length = onv_op_in_dim(c, from, 1);
    ONV_TRY(onv_contrib_attr(c, "num_heads", &heads));
    ONV_TRY(onv_tensor_need_rank(c, 0, 2, 3));
    onv_dim dims[4] = {onv_op_in_dim(c, from, 0), onv_dim_const(heads), length, length};
    onv_op_set_out(c, 0, onv_op_in_dtype(c, 0), dims, 4);
    return ONV_OK;
}

/* RemovePadding: [batch, length, width] becomes [tokens, width]. */
static onv_status infer_remove_padding(onv_op_ctx *c)
{
    ONV_TRY(onv_tensor_need_rank(c, 0, 3, 3));
    onv_dim batch = onv_op_in_dim(c, 0, 0);
    onv_dim most = onv_dim_mul(c->dims, batch, onv_op_in_dim(c, 0, 1));
    onv_dim tokens[2] = {onv_dim_fresh(c->dims, "tokens", most), onv_op_in_dim(c, 0, 2)};
    onv_dim offsets[2] = {batch, onv_op_in_dim(c, 0, 1)};
    onv_dim sums = onv_dim_add(c->dims, batch, onv_dim_const(1)), one = onv_dim_const(1);
    onv_op_set_out(c, 0, onv_op_in_dtype(c, 0), tokens, 2);
    onv_op_set_out(c, 1, ONV_INT32, offsets, 2);
    onv_op_set_out(c, 2, ONV_INT32, &sums, 1);
    onv_op_set_out(c, 3, ONV_INT32, &one, 1);
    return ONV_OK;
}

static onv_status infer_restore_padding(onv_op_ctx *c)
{
    onv_dim dims[3] = {onv_op_in_dim(c, 1, 0), onv_op_in_dim(c, 1, 1), onv_op_in_dim(c, 0, 1)};
    ONV_TRY(onv_tensor_need_rank(c, 0, 2, 2));
    ONV_TRY(onv_tensor_need_rank(c, 1, 2, 2));
    onv_op_set_out(c, 0, onv_op_in_dtype(c, 0), dims, 3);
    return ONV_OK;
}

/* --- Rows -------------------------------------------------------------------------------------- */

#define ROTARY(op)                                                                                 \
    ONV_OP(op, 1, 4, 4, 1, 1, onv_infer_same, .traits = {.save_in = ONV_BIT(2) | ONV_BIT(3)})

static const onv_op rows[] = {
    ROTARY("RotaryEmbedding"),
    ROTARY("MRotaryEmbedding"),
    ONV_OP("GemmaRotaryEmbedding", 1, 5, 5, 2, 2, onv_infer_like, .like = "13",
           .traits = {.save_in = ONV_BIT(0)}),
    ONV_OP("RelativePositionBias", 1, 3, 3, 1, 1, infer_position_bias),
    ONV_OP("GatedRelativePositionBias", 1, 6, 7, 1, 1, infer_gated_position_bias),
    ONV_OP("RemovePadding", 1, 2, 2, 4, 4, infer_remove_padding, .flags = ONV_OP_DATA_DEPENDENT),
    ONV_OP("RestorePadding", 1, 2, 2, 1, 1, infer_restore_padding),
};

const onv_op_family onv_ops_contrib_position = {"com.microsoft", rows,
                                                sizeof rows / sizeof rows[0]};

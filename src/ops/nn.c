/* What of ONNX's nn folder is neither convolution, pooling nor normalisation: Dropout, Flatten. */
#include "ops/op.h"
#include "ops/rules.h"

/* --- Flatten ----------------------------------------------------------------------------------- */

static onv_status infer_flatten(onv_op_ctx *c)
{
    int rank = onv_op_in_rank(c, 0);
    int64_t axis = onv_op_attr_int(c, "axis", 1);
    if (rank < 0) return onv_op_set_out_rank(c, onv_op_in_dtype(c, 0), 2);
    if (axis < -rank || axis > rank)
        return onv_op_fail(c, "axis %lld is out of range for rank %d", (long long)axis, rank);
    int split = (int)(axis < 0 ? axis + rank : axis);
    onv_dim dims[2] = {onv_op_in_product(c, 0, 0, split), onv_op_in_product(c, 0, split, rank)};
    return onv_op_set_like(c, dims, 2);
}

/* --- Dropout ----------------------------------------------------------------------------------- */

enum { RATIO = 1, TRAINING = 2 }; /* inputs since opset 12 */

static bool is_zero(onv_op_ctx *c, uint32_t k)
{
    const onv_known *known = onv_op_in_known(c, k);
    if (known == NULL || known->count != 1) return false;
    onv_scalar s = known->elems[0];
    if (!onv_dtype_is_float((onv_dtype)known->dtype)) return onv_dim_is(s.i, 0);
    return onv_scalar_is_real(s) && s.f == 0;
}

/* Whether it certainly passes its input through. An attribute decides in the first versions, inputs
 * in the newer ones; those between are for inference alone. */
static bool passes_through(onv_op_ctx *c)
{
    if (c->version < 7) return onv_op_attr_int(c, "is_test", 0) != 0;
    if (c->version < 12) return true;
    return !onv_op_has_in(c, TRAINING) || is_zero(c, TRAINING) || is_zero(c, RATIO);
}

static onv_status fold_dropout(onv_op_ctx *c)
{
    return passes_through(c) ? onv_fold_same(c) : ONV_OK;
}

static onv_op_traits dropout_traits(onv_op_ctx *c)
{
    if (passes_through(c)) return (onv_op_traits){.view_of = 1, .inplace = ONV_BIT(0)};
    return (onv_op_traits){.inplace = ONV_BIT(0), .save_out = ONV_BIT(1)};
}

#define DROPOUT(since, inputs, mask, random)                                                       \
    ONV_SAYS("Dropout", since, 1, inputs, 1, 2,                                                    \
             "(x, ratio, training) where one = 1, one = ratio.elems, one = training.elems: "       \
             "like x, like x" mask,                                                                \
             .fold = fold_dropout, .traits_fn = dropout_traits, .flags = random)

static const onv_op rows[] = {
    DROPOUT(1, 1, "", ONV_OP_RANDOM),
    DROPOUT(7, 1, "", 0),
    DROPOUT(10, 1, " bool", 0),
    DROPOUT(12, 3, " bool", ONV_OP_RANDOM),
    ONV_OP("Flatten", 1, 1, 1, 1, 1, infer_flatten, .fold = onv_fold_same,
           .traits = {.view_of = 1}),
};

const onv_op_family onv_ops_nn = {"", rows, sizeof rows / sizeof rows[0]};

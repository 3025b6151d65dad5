/* What of ONNX's nn folder is neither convolution, pooling nor normalisation: Dropout, Flatten. */
#include "ops/op.h"
#include "ops/tensor.h"

/* --- Flatten ----------------------------------------------------------------------------------- */

static onv_dim product(onv_op_ctx *c, const onv_type *type, int first, int end)
{
    onv_type part = {.kind = ONV_TYPE_TENSOR,
                     .rank = (int16_t)(end - first),
                     .dims = end > first ? type->dims + first : NULL};
    return onv_type_elems(c->dims, &part);
}

static onv_status infer_flatten(onv_op_ctx *c)
{
    const onv_type *type = onv_op_in(c, 0);
    onv_dtype dtype = onv_op_in_dtype(c, 0);
    int rank = onv_op_in_rank(c, 0);
    int64_t axis = onv_op_attr_int(c, "axis", 1);
    if (rank < 0) {
        onv_op_set_out_rank(c, 0, dtype, 2);
        return ONV_OK;
    }
    if (axis < -rank || axis > rank)
        return onv_op_fail(c, "axis %lld is out of range for rank %d", (long long)axis, rank);
    int split = (int)(axis < 0 ? axis + rank : axis);
    onv_dim dims[2] = {product(c, type, 0, split), product(c, type, split, rank)};
    onv_op_set_out(c, 0, dtype, dims, 2);
    return ONV_OK;
}

static onv_status fold_same_elements(onv_op_ctx *c)
{
    onv_fold_copy(c, 0, onv_op_in_known(c, 0));
    return ONV_OK;
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

static onv_status infer_dropout(onv_op_ctx *c)
{
    onv_dtype dtype = onv_op_in_dtype(c, 0);
    for (uint32_t k = RATIO; k <= TRAINING; k++)
        if (onv_op_in_rank(c, k) > 0 &&
            onv_dim_always_ne(c->dims, onv_op_in_elems(c, k), onv_dim_const(1)))
            return onv_op_fail(c, "input %u must be a scalar, not %s", k,
                               onv_op_shape_text(c, onv_op_in(c, k)));
    onv_op_set_out_like(c, 0, 0, dtype);
    onv_op_set_out_like(c, 1, 0, c->version < 10 ? dtype : ONV_BOOL);
    return ONV_OK;
}

static onv_status fold_dropout(onv_op_ctx *c)
{
    if (!passes_through(c)) return ONV_OK;
    onv_fold_copy(c, 0, onv_op_in_known(c, 0));
    return ONV_OK;
}

static onv_op_traits dropout_traits(onv_op_ctx *c)
{
    if (passes_through(c)) return (onv_op_traits){.view_of = 1, .inplace = ONV_BIT(0)};
    return (onv_op_traits){.inplace = ONV_BIT(0), .save_out = ONV_BIT(1)};
}

#define DROPOUT(since, inputs, random)                                                             \
    {                                                                                              \
        "Dropout", since, {1, inputs}, {1, 2}, .infer = infer_dropout, .fold = fold_dropout,       \
                                               .traits_fn = dropout_traits, .flags = random        \
    }

static const onv_op rows[] = {
    DROPOUT(1, 1, ONV_OP_RANDOM),
    DROPOUT(7, 1, 0),
    DROPOUT(12, 3, ONV_OP_RANDOM),
    ONV_OP("Flatten", 1, 1, 1, 1, 1, infer_flatten, .fold = fold_same_elements,
           .traits = {.view_of = 1}),
};

const onv_op_family onv_ops_nn = {"", rows, sizeof rows / sizeof rows[0]};

/* QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear. */
#include "ops/math.h"

/* The scale is one number; or a vector along `axis`; or, in blocks, of the input's shape with the
 * axis divided by the block size. */
static onv_status check_blocks(onv_op_ctx *c, int axis, int64_t block)
{
    for (int i = 0; i < onv_op_in_rank(c, 0); i++) {
        onv_dim dim = onv_op_in_dim(c, 0, i), ignored;
        if (i == axis) dim = onv_dim_ceildiv(c->dims, dim, onv_dim_const(block));
        ONV_TRY(
            onv_math_unify(c, "dims of scale and blocks", dim, onv_op_in_dim(c, 1, i), &ignored));
    }
    return ONV_OK;
}

static onv_status check_scale(onv_op_ctx *c)
{
    int rank = onv_op_in_rank(c, 0), scale = onv_op_in_rank(c, 1), axis;
    int64_t block = onv_op_attr_int(c, "block_size", 0);
    onv_dim size = onv_op_in_dim(c, 1, 0), ignored;
    if (rank < 0 || scale < 1 || onv_dim_is(onv_op_in_elems(c, 1), 1)) return ONV_OK;
    if (scale > 1 && block <= 0)
        return onv_op_fail(c, "scale %s is neither a number nor a vector",
                           onv_op_shape_text(c, onv_op_in(c, 1)));
    if (block > 0 && scale != rank)
        return onv_op_fail(c, "scale %s has another rank than %s",
                           onv_op_shape_text(c, onv_op_in(c, 1)),
                           onv_op_shape_text(c, onv_op_in(c, 0)));
    /* A vector has one axis, whatever the attribute and its default say. */
    int64_t given = rank == 1 ? 0 : onv_op_attr_int(c, "axis", 1);
    ONV_TRY(onv_op_axis(c, given, rank, &axis));
    if (block > 0) return check_blocks(c, axis, block);
    return onv_math_unify(c, "lengths of the scale and its axis", onv_op_in_dim(c, 0, axis), size,
                          &ignored);
}

static onv_status infer_quantize(onv_op_ctx *c)
{
    onv_dtype dtype = onv_op_attr_dtype(c, "output_dtype", ONV_UNDEFINED);
    if (onv_op_has_in(c, 2))
        dtype = onv_op_in_dtype(c, 2);
    else if (dtype == ONV_UNDEFINED)
        dtype = ONV_UINT8;
    onv_op_set_out_like(c, 0, 0, dtype);
    return check_scale(c);
}

static onv_status infer_dequantize(onv_op_ctx *c)
{
    onv_dtype dtype = onv_op_attr_dtype(c, "output_dtype", ONV_UNDEFINED);
    if (dtype == ONV_UNDEFINED) dtype = onv_op_in_dtype(c, 1);
    if (dtype == ONV_UNDEFINED && c->version < 19) dtype = ONV_FLOAT; /* the only one then */
    onv_op_set_out_like(c, 0, 0, dtype);
    return check_scale(c);
}

static onv_status infer_dynamic_quantize(onv_op_ctx *c)
{
    onv_op_set_out_like(c, 0, 0, ONV_UINT8);
    onv_op_set_out(c, 1, ONV_FLOAT, NULL, 0);
    onv_op_set_out(c, 2, ONV_UINT8, NULL, 0);
    return ONV_OK;
}

static const onv_op rows[] = {
    {.name = "QuantizeLinear", .since = 10, .in = {2, 3}, .out = {1, 1}, .infer = infer_quantize},
    {.name = "DequantizeLinear",
     .since = 10,
     .in = {2, 3},
     .out = {1, 1},
     .infer = infer_dequantize},
    {.name = "DynamicQuantizeLinear",
     .since = 11,
     .in = {1, 1},
     .out = {3, 3},
     .infer = infer_dynamic_quantize},
};

const onv_op_family onv_ops_quantization = {"", rows, sizeof rows / sizeof rows[0]};

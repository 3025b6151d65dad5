/* QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear. */
#include <math.h>

#include "ops/rules.h"

/* Sizes that were quantised together with the rest of a model are few. */
enum { MAX_FOLDED = 64 };

/* The scale is one number; or a vector along `axis`; or, in blocks, of the input's shape with the
 * axis divided by the block size. */
static onv_status check_blocks(onv_op_ctx *c, int axis, int64_t block)
{
    for (int i = 0; i < onv_op_in_rank(c, 0); i++) {
        onv_dim dim = onv_op_in_dim(c, 0, i);
        if (i == axis) dim = onv_dim_ceildiv(c->dims, dim, onv_dim_const(block));
        ONV_TRY(onv_tensor_unify(c, "dims of scale and blocks", &dim, onv_op_in_dim(c, 1, i)));
    }
    return ONV_OK;
}

static onv_status check_scale(onv_op_ctx *c)
{
    int rank = onv_op_in_rank(c, 0), scale = onv_op_in_rank(c, 1), axis;
    int64_t block = onv_op_attr_int(c, "block_size", 0);
    if (rank < 0 || scale < 1 || onv_dim_is(onv_op_in_elems(c, 1), 1)) return ONV_OK;
    if (scale > 1 && block <= 0)
        return onv_op_fail(c, "scale %s is neither a number nor a vector", onv_op_in_text(c, 1));
    if (block > 0 && scale != rank)
        return onv_op_fail(c, "scale %s has another rank than %s", onv_op_in_text(c, 1),
                           onv_op_in_text(c, 0));
    /* A vector has one axis, whatever the attribute and its default say. */
    int64_t given = rank == 1 ? 0 : onv_op_attr_int(c, "axis", 1);
    ONV_TRY(onv_op_axis(c, given, rank, &axis));
    if (block > 0) return check_blocks(c, axis, block);
    onv_dim size = onv_op_in_dim(c, 0, axis);
    return onv_tensor_unify(c, "lengths of the scale and its axis", &size, onv_op_in_dim(c, 1, 0));
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

/* --- Contents ---------------------------------------------------------------------------------- */

/* Input 2, 0 where it is absent. */
static bool zero_point(const onv_op_ctx *c, const onv_scalar *in, double *zero)
{
    *zero = 0;
    if (!onv_op_has_in(c, 2)) return true;
    *zero = (double)in[2].i.raw;
    return onv_dim_is_const(in[2].i);
}

static onv_scalar quantize(onv_op_ctx *c, onv_dtype dtype, const onv_scalar *in, uint32_t n)
{
    const onv_dtype to = (onv_dtype)c->out[0].type.dtype;
    double zero;
    int64_t low, high;
    (void)n;
    if (!onv_scalar_is_real(in[0]) || !onv_scalar_is_real(in[1]) || !(in[1].f > 0) ||
        !zero_point(c, in, &zero) || !onv_dtype_is_integer(to) || onv_dtype_bits(to) > 16)
        return onv_scalar_unknown();
    onv_scalar_range(to, &low, &high);
    double value = nearbyint(onv_dtype_round(dtype, in[0].f / in[1].f)) + zero;
    return onv_scalar_int(onv_dim_const((int64_t)fmax((double)low, fmin((double)high, value))));
}

static onv_scalar dequantize(onv_op_ctx *c, onv_dtype dtype, const onv_scalar *in, uint32_t n)
{
    double zero;
    (void)dtype;
    (void)n;
    if (!onv_dim_is_const(in[0].i) || !onv_scalar_is_real(in[1]) || !zero_point(c, in, &zero))
        return onv_scalar_unknown();
    return onv_scalar_real(((double)in[0].i.raw - zero) * in[1].f);
}

/* Per tensor only: sizes are not quantised along an axis. */
static bool is_foldable(const onv_op_ctx *c, bool from_float)
{
    onv_dim elems = onv_op_in_elems(c, 0);
    return onv_dim_is_const(elems) && elems.raw <= MAX_FOLDED &&
           onv_dim_is(onv_op_in_elems(c, 1), 1) &&
           onv_dtype_is_float(onv_op_in_dtype(c, 0)) == from_float;
}

static onv_status fold_quantize(onv_op_ctx *c)
{
    return is_foldable(c, true) ? onv_fold_elementwise(c, quantize) : ONV_OK;
}

static onv_status fold_dequantize(onv_op_ctx *c)
{
    return is_foldable(c, false) ? onv_fold_elementwise(c, dequantize) : ONV_OK;
}

static const onv_op rows[] = {
    ONV_OP("QuantizeLinear", 10, 2, 3, 1, 1, infer_quantize, .fold = fold_quantize),
    ONV_OP("DequantizeLinear", 10, 2, 3, 1, 1, infer_dequantize, .fold = fold_dequantize),
    ONV_SAYS("DynamicQuantizeLinear", 11, 1, 1, 3, 3, "(x): like x u8, [] f32, [] u8"),
};

const onv_op_family onv_ops_quantization = {"", rows, sizeof rows / sizeof rows[0]};

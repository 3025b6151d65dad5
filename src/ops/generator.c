/* Operators that make tensors: random numbers, ranges, constants of a shape. */
#include <math.h>

#include "ops/rules.h"

/* --- Random ----------------------------------------------------------------------------------- */

static onv_status infer_random(onv_op_ctx *c)
{
    uint32_t rank;
    onv_dim dims[ONV_MAX_RANK];
    const int64_t *shape = onv_op_attr_ints(c, "shape", &rank);
    if (onv_op_attr(c, "shape") == NULL) return onv_op_fail(c, "attribute 'shape' is missing");
    if (rank > ONV_MAX_RANK) return onv_op_fail(c, "the shape has %u dims", rank);
    for (uint32_t i = 0; i < rank; i++) {
        if (shape[i] < 0) return onv_op_fail(c, "the shape has a dim of %lld", (long long)shape[i]);
        dims[i] = onv_dim_const(shape[i]);
    }
    return onv_op_set_out(c, 0, onv_op_attr_dtype(c, "dtype", ONV_FLOAT), dims, (int)rank);
}

/* --- EyeLike ---------------------------------------------------------------------------------- */

static onv_status fold_eye(onv_op_ctx *c)
{
    onv_known *out = onv_op_new_known(c, 0);
    int64_t diagonal = onv_op_attr_int(c, "k", 0);
    if (out == NULL) return ONV_OK;
    for (uint32_t i = 0; i < out->count; i++) {
        int64_t row = i / out->dims[1], column = i % out->dims[1];
        out->elems[i] = onv_scalar_number(out->dtype, column - row == diagonal);
    }
    return ONV_OK;
}

/* --- Range ------------------------------------------------------------------------------------ */

/* A one-element input in canonical form. */
static onv_scalar scalar_in(onv_op_ctx *c, uint32_t k)
{
    const onv_known *known = onv_op_in_known(c, k);
    if (known == NULL || known->count != 1) return onv_scalar_unknown();
    return onv_scalar_canonical(known->dtype, known->elems[0]);
}

/* ceil(span / delta), where the quotient of reals is taken in double. */
static onv_dim steps_between(onv_op_ctx *c, onv_dtype dtype, onv_scalar span, onv_scalar delta)
{
    if (!onv_dtype_is_float(dtype)) {
        if (!onv_dim_is_const(delta.i)) return onv_dim_exact_div(c->dims, span.i, delta.i);
        if (delta.i.raw > 0) return onv_dim_ceildiv(c->dims, span.i, delta.i);
        return onv_dim_ceildiv(c->dims, onv_dim_neg(c->dims, span.i),
                               onv_dim_neg(c->dims, delta.i));
    }
    onv_scalar steps =
        onv_scalar_ceil(c->dims, ONV_DOUBLE, onv_scalar_div(c->dims, ONV_DOUBLE, span, delta));
    if (!onv_scalar_is_known(ONV_DOUBLE, steps) || fabs(steps.f) >= 0x1p61 ||
        steps.f != floor(steps.f))
        return ONV_DIM_UNKNOWN;
    return onv_dim_mul(c->dims, steps.i, onv_dim_const((int64_t)steps.f));
}

static onv_status infer_range(onv_op_ctx *c)
{
    onv_dtype dtype = onv_rule_dtype(c, 0, 3);
    onv_scalar start = scalar_in(c, 0), limit = scalar_in(c, 1), delta = scalar_in(c, 2);
    onv_scalar none = onv_scalar_number(dtype, 0);
    for (uint32_t k = 0; k < 3; k++) {
        onv_dim elems = onv_op_in_elems(c, k);
        if (onv_dim_is_const(elems) && elems.raw != 1)
            return onv_op_fail(c, "input %u must be a scalar, not of shape %s", k,
                               onv_op_in_text(c, k));
    }
    if (onv_scalar_equal(c->dims, dtype, delta, none) == ONV_ALWAYS)
        return onv_op_fail(c, "delta is 0");
    onv_scalar span = onv_scalar_sub(c->dims, dtype, limit, start);
    onv_dim count = ONV_DIM_UNKNOWN;
    if (onv_scalar_is_known(dtype, span) && onv_scalar_is_known(dtype, delta))
        count = steps_between(c, dtype, span, delta);
    count = onv_dim_max(c->dims, count, onv_dim_const(0));
    if (!onv_dim_is_known(count)) count = onv_dim_fresh(c->dims, "range", ONV_DIM_UNKNOWN);
    onv_op_set_out(c, 0, dtype, &count, 1);
    onv_known *out = onv_op_new_known(c, 0);
    for (uint32_t i = 0; out != NULL && i < out->count; i++) {
        onv_scalar index = onv_scalar_number(out->dtype, (int)i);
        onv_scalar offset = onv_scalar_mul(c->dims, out->dtype, index, delta);
        out->elems[i] =
            onv_scalar_fit(c->dims, out->dtype, onv_scalar_add(c->dims, out->dtype, start, offset));
    }
    return ONV_OK;
}

/* --- Constants -------------------------------------------------------------------------------- */

static const onv_tensor *value_attr(onv_op_ctx *c)
{
    const onv_attr *attr = onv_op_attr(c, "value");
    return attr != NULL && attr->kind == ONV_ATTR_TENSOR ? attr->tensor : NULL;
}

static onv_status infer_constant_of_shape(onv_op_ctx *c)
{
    onv_dim dims[ONV_MAX_RANK];
    uint32_t rank;
    const onv_tensor *value = value_attr(c);
    onv_dtype dtype = value != NULL ? (onv_dtype)value->type.dtype : ONV_FLOAT;
    onv_op_set_out(c, 0, dtype, NULL, -1);
    onv_dim length = onv_op_in_rank(c, 0) == 1 ? onv_op_in_dim(c, 0, 0) : ONV_DIM_UNKNOWN;
    if (onv_op_in_rank(c, 0) > 1) return onv_op_fail(c, "the shape must be a vector");
    if (onv_dim_is_const(length) && length.raw > ONV_MAX_RANK)
        return onv_op_fail(c, "the shape has %lld dims", (long long)length.raw);
    if (!onv_op_in_ints(c, 0, &rank)) {
        if (onv_dim_is_const(length)) onv_op_set_out_rank(c, dtype, (int)length.raw);
        return ONV_OK;
    }
    for (uint32_t i = 0; i < rank && i < ONV_MAX_RANK; i++) {
        dims[i] = onv_op_in_int(c, 0, i);
        if (onv_dim_is_const(dims[i]) && dims[i].raw < 0)
            return onv_op_fail(c, "the shape has a dim of %lld", (long long)dims[i].raw);
        if (onv_dim_is_infinite(dims[i])) return onv_op_fail(c, "the shape has a dim without end");
    }
    onv_op_set_out(c, 0, dtype, dims, (int)rank);
    onv_known *out = onv_op_new_known(c, 0);
    if (out == NULL) return ONV_OK;
    onv_scalar element = onv_scalar_real(0);
    if (value != NULL) {
        const onv_known *known = c->read_tensor != NULL ? c->read_tensor(c, value) : NULL;
        if (known == NULL || known->count == 0) return ONV_OK;
        element = onv_scalar_fit(c->dims, known->dtype,
                                 onv_scalar_canonical(known->dtype, known->elems[0]));
    }
    for (uint32_t i = 0; i < out->count; i++) out->elems[i] = element;
    return ONV_OK;
}

/* --- Rows ------------------------------------------------------------------------------------- */

#define RANDOM(op, version, line) ONV_SAYS(op, version, 1, 1, 1, 1, line, .flags = ONV_OP_RANDOM)

static const onv_op rows[] = {
    ONV_OP("RandomNormal", 1, 0, 0, 1, 1, infer_random, .flags = ONV_OP_RANDOM),
    ONV_OP("RandomUniform", 1, 0, 0, 1, 1, infer_random, .flags = ONV_OP_RANDOM),
    RANDOM("RandomNormalLike", 1, "(x): like x attr.dtype or like x"),
    RANDOM("RandomUniformLike", 1, "(x): like x attr.dtype or like x"),
    RANDOM("Multinomial", 7, "(x[n, _]): [n, attr.sample_size or 1] attr.dtype or i32"),
    RANDOM("Bernoulli", 15, "(x): like x attr.dtype or like x"),
    ONV_SAYS("EyeLike", 9, 1, 1, 1, 1, "(x[m, n]): [m, n] attr.dtype or like x", .fold = fold_eye),
    ONV_OP("Range", 11, 3, 3, 1, 1, infer_range, .alike = ONV_BITS(3),
           .flags = ONV_OP_DATA_DEPENDENT),
    /* It is read when the model is loaded: its output has its type already. */
    ONV_SAYS("Constant", 1, 0, 0, 1, 1, "(): ?"),
    ONV_OP("ConstantOfShape", 9, 1, 1, 1, 1, infer_constant_of_shape),
};

const onv_op_family onv_ops_generator = {"", rows, sizeof rows / sizeof rows[0]};

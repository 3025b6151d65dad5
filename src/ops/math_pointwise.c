/* Pointwise operators: one input, two, or any number. */
#include <math.h>

#include "ops/rules.h"

/* --- Shapes ------------------------------------------------------------------------------------ */

static onv_status fail_shapes(onv_op_ctx *c, uint32_t k)
{
    return onv_op_fail(c, "shapes %s and %s must be the same", onv_op_in_text(c, 0),
                       onv_op_in_text(c, k));
}

/* Output 0 has the shape that all inputs share, as before broadcasting came; fails where they differ. */
static onv_status same_as(onv_op_ctx *c, onv_dtype dtype)
{
    onv_dim dims[ONV_MAX_RANK];
    int rank = -1;
    for (uint32_t k = 0; k < c->n_in; k++) {
        int r = onv_op_in_rank(c, k);
        if (r < 0) continue;
        if (rank >= 0 && r != rank) return fail_shapes(c, k);
        for (int axis = 0; axis < r; axis++) {
            onv_dim d = onv_op_in_dim(c, k, axis);
            if (rank < 0) dims[axis] = d;
            ONV_TRY(onv_tensor_unify(c, "dims", &dims[axis], d));
        }
        rank = r;
    }
    return onv_op_set_out(c, 0, dtype, dims, rank);
}

/* Broadcasting before opset 7: output 0 has the shape of the first input; the second one has the same, or with `broadcast` set a
 * part of it that starts at `axis`, or one element. */
static onv_status legacy_as(onv_op_ctx *c, onv_dtype dtype)
{
    if (onv_op_attr_int(c, "broadcast", 0) == 0) return same_as(c, dtype);
    onv_dim dims[ONV_MAX_RANK];
    int rank = onv_op_in_rank(c, 0), part = onv_op_in_rank(c, 1);
    for (int axis = 0; axis < rank; axis++) dims[axis] = onv_op_in_dim(c, 0, axis);
    if (rank < 0 || part < 0 || onv_dim_is(onv_op_in_elems(c, 1), 1))
        return onv_op_set_out(c, 0, dtype, dims, rank);
    int64_t start = onv_op_attr_int(c, "axis", rank - part);
    if (start < 0) start += rank;
    if (start < 0 || part > rank || start > rank - part)
        return onv_op_fail(c, "shape %s does not fit into %s at axis %lld", onv_op_in_text(c, 1),
                           onv_op_in_text(c, 0), (long long)start);
    for (int axis = 0; axis < part; axis++) {
        onv_dim b = onv_op_in_dim(c, 1, axis);
        /* The text rules out dims of 1 here, the runtimes of the time did not. */
        if (onv_dim_is(b, 1)) continue;
        ONV_TRY(onv_tensor_unify(c, "dims", &dims[start + axis], b));
    }
    return onv_op_set_out(c, 0, dtype, dims, rank);
}

static onv_status infer_legacy(onv_op_ctx *c)
{
    return legacy_as(c, onv_rule_dtype(c, 0, 2));
}

onv_status onv_infer_legacy_compare(onv_op_ctx *c)
{
    return legacy_as(c, ONV_BOOL);
}

/* Whether input j broadcasts into input k's shape as it stands. */
static bool fits_into(const onv_op_ctx *c, uint32_t j, uint32_t k)
{
    int small = onv_op_in_rank(c, j), large = onv_op_in_rank(c, k);
    if (small < 0 || small > large) return false;
    for (int axis = 1; axis <= small; axis++) {
        onv_dim d = onv_op_in_dim(c, j, -axis);
        if (!onv_dim_is(d, 1) && !onv_dim_same(d, onv_op_in_dim(c, k, -axis))) return false;
    }
    return true;
}

onv_op_traits onv_math_broadcast_traits(onv_op_ctx *c)
{
    onv_op_traits traits = c->op->traits;
    uint32_t shaped = 0;
    /* Bit 31 stands for all the rest and promises nothing. */
    for (uint32_t k = 0; k < c->n_in && k < 31; k++) {
        bool holds_all = onv_op_has_in(c, k);
        for (uint32_t j = 0; j < c->n_in && holds_all; j++)
            holds_all = !onv_op_has_in(c, j) || fits_into(c, j, k);
        if (holds_all) shaped |= ONV_BIT(k);
    }
    if (c->version < 7 && onv_op_attr_int(c, "broadcast", 0) != 0) shaped |= ONV_BIT(0);
    traits.inplace &= shaped;
    return traits;
}

/* --- Unary ------------------------------------------------------------------------------------ */

static onv_scalar by_number(onv_dtype dtype, onv_scalar s, double (*function)(double))
{
    if (!onv_scalar_is_real(s) || !onv_dtype_is_float(dtype)) return onv_scalar_unknown();
    return onv_scalar_real(onv_dtype_round(dtype, function(s.f)));
}

ONV_FOLD(abs, onv_scalar_abs(pool, t, in[0]))
ONV_FOLD(neg, onv_scalar_neg(pool, t, in[0]))
ONV_FOLD(sign, onv_scalar_sign(pool, t, in[0]))
ONV_FOLD(floor, onv_scalar_floor(pool, t, in[0]))
ONV_FOLD(ceil, onv_scalar_ceil(pool, t, in[0]))
ONV_FOLD(round, onv_scalar_round(pool, t, in[0]))
ONV_FOLD(relu, onv_scalar_max(pool, t, in[0], onv_scalar_number(t, 0)))
ONV_FOLD(reciprocal, onv_scalar_div(pool, t, onv_scalar_real(1), in[0]))
ONV_FOLD(sqrt, by_number(t, in[0], sqrt))
ONV_FOLD(exp, by_number(t, in[0], exp))
ONV_FOLD(log, by_number(t, in[0], log))

/* A NaN is not tracked, so an element that is known is none. */
ONV_FOLD(isnan,
         onv_scalar_is_known(t, in[0]) ? onv_scalar_int(onv_dim_const(0)) : onv_scalar_unknown())

static onv_scalar infinite(onv_op_ctx *c, onv_dtype t, const onv_scalar *in)
{
    if (!onv_scalar_is_known(t, in[0])) return onv_scalar_unknown();
    bool wanted = onv_op_attr_int(c, in[0].f < 0 ? "detect_negative" : "detect_positive", 1) != 0;
    return onv_scalar_int(onv_dim_const(wanted && isinf(in[0].f)));
}

ONV_FOLD(isinf, infinite(c, t, in))

/* --- Binary and variadic ---------------------------------------------------------------------- */

ONV_FOLD(add, onv_scalar_add(pool, t, in[0], in[1]))
ONV_FOLD(sub, onv_scalar_sub(pool, t, in[0], in[1]))
ONV_FOLD(mul, onv_scalar_mul(pool, t, in[0], in[1]))
ONV_FOLD(div, onv_scalar_div(pool, t, in[0], in[1]))
ONV_FOLD(pow, onv_scalar_pow(pool, onv_op_in_dtype(c, 0), in[0], in[1]))
ONV_FOLD(mod, onv_scalar_mod(pool, t, in[0], in[1], onv_op_attr_int(c, "fmod", 0) != 0))

typedef onv_scalar (*binary)(onv_dims *pool, onv_dtype dtype, onv_scalar a, onv_scalar b);

static onv_scalar over_all(onv_dims *pool, onv_dtype dtype, const onv_scalar *in, uint32_t n,
                           binary op)
{
    onv_scalar sum = in[0];
    for (uint32_t k = 1; k < n; k++) sum = op(pool, dtype, sum, in[k]);
    return sum;
}

ONV_FOLD(sum, over_all(pool, t, in, n, onv_scalar_add))
ONV_FOLD(min, over_all(pool, t, in, n, onv_scalar_min))
ONV_FOLD(max, over_all(pool, t, in, n, onv_scalar_max))
ONV_FOLD(mean,
         onv_scalar_div(pool, t, over_all(pool, t, in, n, onv_scalar_add), onv_scalar_real(n)))

/* The exponent has a type of its own. */
static onv_status infer_pow(onv_op_ctx *c)
{
    return onv_rule_broadcast_as(c, onv_op_in_dtype(c, 0));
}

static onv_status infer_legacy_pow(onv_op_ctx *c)
{
    return legacy_as(c, onv_op_in_dtype(c, 0));
}

static onv_status infer_same_all(onv_op_ctx *c)
{
    return same_as(c, onv_rule_dtype(c, 0, c->n_in));
}

/* --- Clip, PRelu ------------------------------------------------------------------------------ */

static onv_scalar limit_of(onv_op_ctx *c, onv_dtype t, const onv_scalar *in, uint32_t n, uint32_t k)
{
    if (n > 1) return k < n ? in[k] : onv_scalar_unknown();
    double limit = onv_op_attr_float(c, k == 1 ? "min" : "max", NAN);
    return onv_scalar_real(onv_dtype_round(t, limit));
}

static bool has_limit(onv_op_ctx *c, uint32_t k)
{
    return onv_op_has_in(c, k) || onv_op_attr(c, k == 1 ? "min" : "max") != NULL;
}

static onv_scalar clipped(onv_op_ctx *c, onv_dtype t, const onv_scalar *in, uint32_t n)
{
    onv_scalar s = in[0];
    if (has_limit(c, 1)) s = onv_scalar_max(c->dims, t, s, limit_of(c, t, in, n, 1));
    if (has_limit(c, 2)) s = onv_scalar_min(c->dims, t, s, limit_of(c, t, in, n, 2));
    return s;
}

ONV_FOLD(clip, clipped(c, t, in, n))

static onv_status infer_prelu(onv_op_ctx *c)
{
    const onv_type *x = onv_op_in(c, 0);
    onv_op_set_out_like(c, 0, 0, onv_rule_dtype(c, 0, 2));
    /* Before opset 7 the slope was one number, or one per channel. */
    if (c->version < 7 || !onv_type_has_rank(x)) return ONV_OK;
    ONV_TRY(onv_rule_check_fits(c, "slope", 1, x->dims, x->rank));
    return onv_tensor_need_rank(c, 1, 0, x->rank);
}

/* --- Rows ------------------------------------------------------------------------------------- */

#define UNARY(op, version, ...)                                                                    \
    ONV_OP(op, version, 1, 1, 1, 1, onv_infer_same, .traits = {.inplace = ONV_ALL},                \
           .traits_fn = onv_math_broadcast_traits, __VA_ARGS__)
#define BINARY(op, version, rule, fold_rule)                                                       \
    ONV_OP(op, version, 2, 2, 1, 1, rule, .fold = fold_rule, .alike = ONV_BITS(2),                 \
           .traits = {.inplace = ONV_ALL}, .traits_fn = onv_math_broadcast_traits)
#define VARIADIC(op, version, rule, fold_rule)                                                     \
    ONV_OP(op, version, 1, ONV_OP_MAX_ARITY, 1, 1, rule, .fold = fold_rule, ONV_ALL_ALIKE,         \
           .traits = {.inplace = ONV_ALL}, .traits_fn = onv_math_broadcast_traits)
#define POW(version, rule)                                                                         \
    ONV_OP("Pow", version, 2, 2, 1, 1, rule, .fold = fold_pow, .traits = {.inplace = ONV_BIT(0)},  \
           .traits_fn = onv_math_broadcast_traits)

static const onv_op rows[] = {
    UNARY("Abs", 1, .fold = fold_abs),
    UNARY("Acos", 7),
    UNARY("Acosh", 9),
    UNARY("Asin", 7),
    UNARY("Asinh", 9),
    UNARY("Atan", 7),
    UNARY("Atanh", 9),
    UNARY("Ceil", 1, .fold = fold_ceil),
    UNARY("Celu", 12),
    UNARY("Cos", 7),
    UNARY("Cosh", 9),
    UNARY("Elu", 1),
    UNARY("Erf", 9),
    UNARY("Exp", 1, .fold = fold_exp),
    UNARY("Floor", 1, .fold = fold_floor),
    UNARY("Gelu", 20),
    UNARY("HardSigmoid", 1),
    UNARY("HardSwish", 14),
    UNARY("LeakyRelu", 1),
    UNARY("Log", 1, .fold = fold_log),
    UNARY("Mish", 18),
    UNARY("Neg", 1, .fold = fold_neg),
    UNARY("Reciprocal", 1, .fold = fold_reciprocal),
    UNARY("Relu", 1, .fold = fold_relu),
    UNARY("Round", 11, .fold = fold_round),
    UNARY("Selu", 1),
    UNARY("Shrink", 9),
    UNARY("Sigmoid", 1),
    UNARY("Sign", 9, .fold = fold_sign),
    UNARY("Sin", 7),
    UNARY("Sinh", 9),
    UNARY("Softplus", 1),
    UNARY("Softsign", 1),
    UNARY("Sqrt", 1, .fold = fold_sqrt),
    UNARY("Swish", 24),
    UNARY("Tan", 7),
    UNARY("Tanh", 1),
    UNARY("ThresholdedRelu", 10),
    ONV_SAYS("IsNaN", 9, 1, 1, 1, 1, "(x): like x bool", .fold = fold_isnan),
    ONV_SAYS("IsInf", 10, 1, 1, 1, 1, "(x): like x bool", .fold = fold_isinf),

    BINARY("Add", 1, infer_legacy, fold_add),
    BINARY("Add", 7, onv_infer_broadcast, fold_add),
    BINARY("Sub", 1, infer_legacy, fold_sub),
    BINARY("Sub", 7, onv_infer_broadcast, fold_sub),
    BINARY("Mul", 1, infer_legacy, fold_mul),
    BINARY("Mul", 7, onv_infer_broadcast, fold_mul),
    BINARY("Div", 1, infer_legacy, fold_div),
    BINARY("Div", 7, onv_infer_broadcast, fold_div),
    BINARY("Mod", 10, onv_infer_broadcast, fold_mod),
    POW(1, infer_legacy_pow),
    POW(7, infer_pow),
    BINARY("SwiGLU", 28, infer_same_all, NULL),

    VARIADIC("Sum", 1, infer_same_all, fold_sum),
    VARIADIC("Sum", 8, onv_infer_broadcast, fold_sum),
    VARIADIC("Mean", 1, infer_same_all, fold_mean),
    VARIADIC("Mean", 8, onv_infer_broadcast, fold_mean),
    VARIADIC("Max", 1, infer_same_all, fold_max),
    VARIADIC("Max", 8, onv_infer_broadcast, fold_max),
    VARIADIC("Min", 1, infer_same_all, fold_min),
    VARIADIC("Min", 8, onv_infer_broadcast, fold_min),

    UNARY("Clip", 1, .fold = fold_clip),
    ONV_OP("Clip", 11, 1, 3, 1, 1, onv_infer_same, .fold = fold_clip, .alike = ONV_BITS(3),
           .traits = {.inplace = ONV_BIT(0)}),
    ONV_OP("PRelu", 1, 2, 2, 1, 1, infer_prelu, .alike = ONV_BITS(2),
           .traits = {.inplace = ONV_BIT(0)}),
};

const onv_op_family onv_ops_math_pointwise = {"", rows, sizeof rows / sizeof rows[0]};

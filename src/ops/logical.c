/* Logic, comparison and bits. Comparisons of expressions are known where they hold for all values
 * of the symbols. */
#include <string.h>

#include "ops/rules.h"

static onv_scalar truth(onv_truth value)
{
    return value == ONV_MAYBE ? onv_scalar_unknown() : onv_scalar_int(onv_dim_const(value));
}

static onv_truth truth_of(onv_scalar s)
{
    return onv_dim_is_const(s.i) ? (s.i.raw != 0 ? ONV_ALWAYS : ONV_NEVER) : ONV_MAYBE;
}

static onv_truth both(onv_truth a, onv_truth b)
{
    if (a == ONV_NEVER || b == ONV_NEVER) return ONV_NEVER;
    return a == ONV_ALWAYS && b == ONV_ALWAYS ? ONV_ALWAYS : ONV_MAYBE;
}

static onv_truth negated(onv_truth a)
{
    return a == ONV_MAYBE ? a : a == ONV_ALWAYS ? ONV_NEVER : ONV_ALWAYS;
}

static onv_truth either(onv_truth a, onv_truth b)
{
    return negated(both(negated(a), negated(b)));
}

static onv_truth differ(onv_truth a, onv_truth b)
{
    if (a == ONV_MAYBE || b == ONV_MAYBE) return ONV_MAYBE;
    return a != b ? ONV_ALWAYS : ONV_NEVER;
}

ONV_FOLD(and, truth(both(truth_of(in[0]), truth_of(in[1]))))
ONV_FOLD(or, truth(either(truth_of(in[0]), truth_of(in[1]))))
ONV_FOLD(xor, truth(differ(truth_of(in[0]), truth_of(in[1]))))
ONV_FOLD(not, truth(negated(truth_of(in[0]))))
ONV_FOLD(equal, truth(onv_scalar_equal(pool, t, in[0], in[1])))
ONV_FOLD(less, truth(onv_scalar_less(pool, t, in[0], in[1])))
ONV_FOLD(greater, truth(onv_scalar_less(pool, t, in[1], in[0])))
ONV_FOLD(less_equal, truth(onv_scalar_less_equal(pool, t, in[0], in[1])))
ONV_FOLD(greater_equal, truth(onv_scalar_less_equal(pool, t, in[1], in[0])))

/* --- Bits ------------------------------------------------------------------------------------- */

static bool numbers(const onv_scalar *in)
{
    return onv_dim_is_const(in[0].i) && onv_dim_is_const(in[1].i);
}

static onv_scalar bits(bool known, int64_t value)
{
    return known ? onv_scalar_int(onv_dim_const(value)) : onv_scalar_unknown();
}

ONV_FOLD(bit_and, bits(numbers(in), in[0].i.raw &in[1].i.raw))
ONV_FOLD(bit_or, bits(numbers(in), in[0].i.raw | in[1].i.raw))
ONV_FOLD(bit_xor, bits(numbers(in), in[0].i.raw ^ in[1].i.raw))
ONV_FOLD(bit_not, bits(onv_dim_is_const(in[0].i), ~in[0].i.raw))

/* A shift of an unsigned number is a product or a quotient by a power of two. */
static onv_scalar shifted(onv_op_ctx *c, onv_dtype t, const onv_scalar *in)
{
    if (!onv_dim_is_const(in[1].i) || in[1].i.raw < 0 || in[1].i.raw > 60)
        return onv_scalar_unknown();
    onv_scalar power = onv_scalar_int(onv_dim_const((int64_t)1 << in[1].i.raw));
    bool right = strcmp(onv_op_attr_string(c, "direction", ""), "RIGHT") == 0;
    return right ? onv_scalar_div(c->dims, t, in[0], power)
                 : onv_scalar_mul(c->dims, t, in[0], power);
}

ONV_FOLD(shift, shifted(c, t, in))

static onv_status infer_shift(onv_op_ctx *c)
{
    const char *direction = onv_op_attr_string(c, "direction", NULL);
    if (direction == NULL || (strcmp(direction, "LEFT") != 0 && strcmp(direction, "RIGHT") != 0))
        return onv_op_fail(c, "attribute 'direction' must be LEFT or RIGHT");
    return onv_infer_broadcast(c);
}

/* --- Rows ------------------------------------------------------------------------------------- */

#define COMPARE(op, version, rule, fold_rule)                                                      \
    ONV_OP(op, version, 2, 2, 1, 1, rule, .fold = fold_rule, .alike = ONV_BITS(2))
/* Operands of the result's own type, which may take its place. */
#define POINTWISE(op, version, arity, rule, fold_rule)                                             \
    ONV_OP(op, version, arity, arity, 1, 1, rule, .fold = fold_rule, .alike = ONV_BITS(arity),     \
           .traits = {.inplace = ONV_ALL}, .traits_fn = onv_math_broadcast_traits)

static const onv_op rows[] = {
    POINTWISE("And", 1, 2, onv_infer_legacy_compare, fold_and),
    POINTWISE("And", 7, 2, onv_infer_compare, fold_and),
    POINTWISE("Or", 1, 2, onv_infer_legacy_compare, fold_or),
    POINTWISE("Or", 7, 2, onv_infer_compare, fold_or),
    POINTWISE("Xor", 1, 2, onv_infer_legacy_compare, fold_xor),
    POINTWISE("Xor", 7, 2, onv_infer_compare, fold_xor),
    POINTWISE("Not", 1, 1, onv_infer_compare, fold_not),
    COMPARE("Equal", 1, onv_infer_legacy_compare, fold_equal),
    COMPARE("Equal", 7, onv_infer_compare, fold_equal),
    COMPARE("Less", 1, onv_infer_legacy_compare, fold_less),
    COMPARE("Less", 7, onv_infer_compare, fold_less),
    COMPARE("Greater", 1, onv_infer_legacy_compare, fold_greater),
    COMPARE("Greater", 7, onv_infer_compare, fold_greater),
    COMPARE("LessOrEqual", 12, onv_infer_compare, fold_less_equal),
    COMPARE("GreaterOrEqual", 12, onv_infer_compare, fold_greater_equal),
    POINTWISE("BitShift", 11, 2, infer_shift, fold_shift),
    POINTWISE("BitwiseAnd", 18, 2, onv_infer_broadcast, fold_bit_and),
    POINTWISE("BitwiseOr", 18, 2, onv_infer_broadcast, fold_bit_or),
    POINTWISE("BitwiseXor", 18, 2, onv_infer_broadcast, fold_bit_xor),
    POINTWISE("BitwiseNot", 18, 1, onv_infer_same, fold_bit_not),
};

const onv_op_family onv_ops_logical = {"", rows, sizeof rows / sizeof rows[0]};

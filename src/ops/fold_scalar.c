/* Arithmetic on one element: numbers as the element type computes them, expressions exactly. */
#include <math.h>

#include "ops/rules.h"

/* Fractions p/q up to this q are recognised in a float factor: strides, scales and patch sizes. */
enum { MAX_DENOMINATOR = 64 };

static bool is_real_type(onv_dtype dtype)
{
    return dtype == ONV_FLOAT || dtype == ONV_DOUBLE || dtype == ONV_FLOAT16 ||
           dtype == ONV_BFLOAT16;
}

/* --- Forms ------------------------------------------------------------------------------------ */

onv_scalar onv_scalar_canonical(onv_dtype dtype, onv_scalar s)
{
    if (!onv_dim_is_known(s.i)) return onv_scalar_unknown();
    if (!onv_dtype_is_float(dtype)) return onv_scalar_int(s.i);
    if (isnan(s.f) || onv_dim_is_infinite(s.i)) return onv_scalar_unknown();
    if (onv_dim_is_const(s.i)) return onv_scalar_real(s.f * (double)s.i.raw);
    return s.f == 0 ? onv_scalar_real(0) : s;
}

onv_scalar onv_scalar_number(onv_dtype dtype, int value)
{
    return onv_dtype_is_float(dtype) ? onv_scalar_real(value)
                                     : onv_scalar_int(onv_dim_const(value));
}

/* f * i in a float type. A product of a number is rounded; a factor of an expression is kept as
 * exact as a double holds it. */
static onv_scalar make(onv_dtype dtype, double f, onv_dim i)
{
    onv_scalar s = onv_scalar_canonical(dtype, (onv_scalar){.i = i, .f = f});
    if (onv_scalar_is_real(s)) s.f = onv_dtype_round(dtype, s.f);
    if (!onv_scalar_is_real(s) && !isfinite(s.f)) return onv_scalar_unknown();
    return s;
}

static onv_scalar real(onv_dtype dtype, double value)
{
    return isnan(value) ? onv_scalar_unknown() : onv_scalar_real(onv_dtype_round(dtype, value));
}

static bool unknown(onv_scalar s)
{
    return !onv_dim_is_known(s.i) || isnan(s.f);
}

static bool both_real(onv_scalar a, onv_scalar b)
{
    return onv_scalar_is_real(a) && onv_scalar_is_real(b);
}

/* Numbers are computed here and not in the pool, which reports overflow as a fault of the model:
 * data may wrap. */
static onv_dim int_const(int64_t value, bool overflow)
{
    if (overflow) return ONV_DIM_UNKNOWN;
    onv_dim d = onv_dim_const(value);
    return onv_dim_is_const(d) ? d : ONV_DIM_UNKNOWN;
}

static bool both_const(onv_scalar a, onv_scalar b)
{
    return onv_dim_is_const(a.i) && onv_dim_is_const(b.i);
}

void onv_scalar_range(onv_dtype dtype, int64_t *low, int64_t *high)
{
    uint32_t bits = onv_dtype_bits(dtype);
    bool is_unsigned = dtype == ONV_UINT8 || dtype == ONV_UINT16 || dtype == ONV_UINT32 ||
                       dtype == ONV_UINT64 || dtype == ONV_UINT4 || dtype == ONV_UINT2;
    *low = is_unsigned ? 0 : bits == 64 ? INT64_MIN : -((int64_t)1 << (bits - 1));
    *high = bits == 64 ? INT64_MAX : ((int64_t)1 << (is_unsigned ? bits : bits - 1)) - 1;
}

onv_scalar onv_scalar_fit(onv_dims *pool, onv_dtype dtype, onv_scalar s)
{
    if (unknown(s)) return onv_scalar_unknown();
    if (onv_dtype_is_float(dtype)) return is_real_type(dtype) ? s : onv_scalar_unknown();
    if (dtype == ONV_BOOL) return s;
    if (!onv_dtype_is_integer(dtype)) return onv_scalar_unknown();
    const uint32_t bits = onv_dtype_bits(dtype);
    int64_t low, high;
    onv_scalar_range(dtype, &low, &high);
    if (onv_dim_is_const(s.i)) {
        if (s.i.raw >= low && s.i.raw <= high) return s;
        if (bits == 64) return onv_scalar_unknown();
        uint64_t rest = (uint64_t)s.i.raw & (((uint64_t)1 << bits) - 1);
        int64_t wrapped = (int64_t)rest;
        if (wrapped > high) wrapped -= (int64_t)1 << bits;
        return onv_scalar_int(onv_dim_const(wrapped));
    }
    /* Sizes are taken to fit 32 bits, as the models that compute with them do. */
    if (low == 0 && onv_dim_lower(pool, s.i).raw < 0) return onv_scalar_unknown();
    if (bits < 32 && (onv_dim_lower(pool, s.i).raw < low || onv_dim_upper(pool, s.i).raw > high))
        return onv_scalar_unknown();
    return s;
}

/* --- Fractions -------------------------------------------------------------------------------- */

/* f as p/q, to the precision of the type. */
static bool to_fraction(onv_dtype dtype, double f, int64_t *p, int64_t *q)
{
    double exact = onv_dtype_round(dtype, f);
    for (int64_t d = 1; d <= MAX_DENOMINATOR; d++) {
        double n = nearbyint(f * (double)d);
        if (n == 0 || fabs(n) > INT32_MAX) continue;
        if (onv_dtype_round(dtype, n / (double)d) != exact) continue;
        *p = (int64_t)n;
        *q = d;
        return true;
    }
    return false;
}

static onv_dim times(onv_dims *pool, onv_dim d, int64_t factor)
{
    return onv_dim_mul(pool, d, onv_dim_const(factor));
}

/* Both over one factor: a = f * x, b = f * y, where f > 0. */
static bool common_factor(onv_dims *pool, onv_dtype dtype, onv_scalar a, onv_scalar b, double *f,
                          onv_dim *x, onv_dim *y)
{
    int64_t pa = 0, qa = 1, pb = 0, qb = 1;
    if (unknown(a) || unknown(b)) return false;
    if (fabs(a.f) == fabs(b.f) && a.f != 0 && isfinite(a.f)) {
        *f = fabs(a.f);
        *x = a.f > 0 ? a.i : onv_dim_neg(pool, a.i);
        *y = b.f > 0 ? b.i : onv_dim_neg(pool, b.i);
        return true;
    }
    if (a.f != 0 && !to_fraction(dtype, a.f, &pa, &qa)) return false;
    if (b.f != 0 && !to_fraction(dtype, b.f, &pb, &qb)) return false;
    int64_t q = qa % qb == 0 ? qa : qb % qa == 0 ? qb : qa * qb;
    *f = 1 / (double)q;
    *x = times(pool, a.i, pa * (q / qa));
    *y = times(pool, b.i, pb * (q / qb));
    return onv_dim_is_known(*x) && onv_dim_is_known(*y);
}

/* --- Sums and products ------------------------------------------------------------------------ */

onv_scalar onv_scalar_add(onv_dims *pool, onv_dtype dtype, onv_scalar a, onv_scalar b)
{
    double f;
    onv_dim x, y;
    if (unknown(a) || unknown(b)) return onv_scalar_unknown();
    if (!onv_dtype_is_float(dtype)) {
        if (both_const(a, b)) return onv_scalar_int(int_const(a.i.raw + b.i.raw, false));
        return onv_scalar_int(onv_dim_add(pool, a.i, b.i));
    }
    if (both_real(a, b)) return real(dtype, a.f + b.f);
    if (!common_factor(pool, dtype, a, b, &f, &x, &y)) return onv_scalar_unknown();
    return make(dtype, f, onv_dim_add(pool, x, y));
}

onv_scalar onv_scalar_neg(onv_dims *pool, onv_dtype dtype, onv_scalar a)
{
    if (unknown(a)) return a;
    if (onv_dtype_is_float(dtype)) return (onv_scalar){.i = a.i, .f = -a.f};
    return onv_scalar_int(onv_dim_neg(pool, a.i));
}

onv_scalar onv_scalar_sub(onv_dims *pool, onv_dtype dtype, onv_scalar a, onv_scalar b)
{
    return onv_scalar_add(pool, dtype, a, onv_scalar_neg(pool, dtype, b));
}

onv_scalar onv_scalar_mul(onv_dims *pool, onv_dtype dtype, onv_scalar a, onv_scalar b)
{
    bool is_float = onv_dtype_is_float(dtype);
    /* 0 * x is 0 for every integer x, known or not. */
    if (!is_float && (onv_dim_is(a.i, 0) || onv_dim_is(b.i, 0)))
        return onv_scalar_int(onv_dim_const(0));
    if (unknown(a) || unknown(b)) return onv_scalar_unknown();
    if (!is_float && both_const(a, b)) {
        int64_t product;
        bool overflow = __builtin_mul_overflow(a.i.raw, b.i.raw, &product);
        return onv_scalar_int(int_const(overflow ? 0 : product, overflow));
    }
    if (!is_float) return onv_scalar_int(onv_dim_mul(pool, a.i, b.i));
    if (both_real(a, b)) return real(dtype, a.f * b.f);
    return make(dtype, a.f * b.f, onv_dim_mul(pool, a.i, b.i));
}

static onv_scalar int_div(onv_dims *pool, onv_scalar a, onv_scalar b)
{
    if (onv_dim_is_infinite(a.i) || onv_dim_is_infinite(b.i) || onv_dim_is(b.i, 0))
        return onv_scalar_unknown();
    if (both_const(a, b)) return onv_scalar_int(onv_dim_const(a.i.raw / b.i.raw));
    onv_dim exact = onv_dim_exact_div(pool, a.i, b.i);
    if (onv_dim_is_known(exact)) return onv_scalar_int(exact);
    /* Truncation is the floor where nothing is negative, else towards 0 from either side: in
     * (h - 1) / 8 for an h that could be 0. */
    onv_dim quotient = onv_dim_floordiv(pool, a.i, b.i), zero = onv_dim_const(0);
    if (onv_dim_lower(pool, a.i).raw >= 0 && onv_dim_lower(pool, b.i).raw >= 0)
        return onv_scalar_int(quotient);
    if (!onv_dim_is_const(b.i) || b.i.raw < 0) return onv_scalar_unknown();
    onv_dim above = onv_dim_max(pool, quotient, zero);
    if (onv_dim_lower(pool, a.i).raw > -b.i.raw) return onv_scalar_int(above);
    onv_dim below = onv_dim_min(pool, onv_dim_ceildiv(pool, a.i, b.i), zero);
    return onv_scalar_int(onv_dim_add(pool, above, below));
}

onv_scalar onv_scalar_div(onv_dims *pool, onv_dtype dtype, onv_scalar a, onv_scalar b)
{
    if (unknown(a) || unknown(b)) return onv_scalar_unknown();
    if (!onv_dtype_is_float(dtype)) return int_div(pool, a, b);
    if (both_real(a, b)) return real(dtype, a.f / b.f);
    if (b.f == 0) return onv_scalar_unknown();
    return make(dtype, a.f / b.f, onv_dim_exact_div(pool, a.i, b.i));
}

static bool never_negative(const onv_dims *pool, onv_scalar a, onv_scalar b)
{
    return onv_dim_lower(pool, a.i).raw >= 0 && onv_dim_lower(pool, b.i).raw >= 0;
}

onv_scalar onv_scalar_mod(onv_dims *pool, onv_dtype dtype, onv_scalar a, onv_scalar b,
                          bool truncated)
{
    if (unknown(a) || unknown(b)) return onv_scalar_unknown();
    if (!onv_dtype_is_float(dtype)) {
        if (onv_dim_is(b.i, 0) || onv_dim_is_infinite(a.i) || onv_dim_is_infinite(b.i))
            return onv_scalar_unknown();
        if (truncated && both_const(a, b)) return onv_scalar_int(onv_dim_const(a.i.raw % b.i.raw));
        if (truncated && !never_negative(pool, a, b)) return onv_scalar_unknown();
        return onv_scalar_int(onv_dim_mod(pool, a.i, b.i));
    }
    if (!both_real(a, b)) return onv_scalar_unknown();
    double rest = fmod(a.f, b.f);
    if (!truncated && rest != 0 && (rest < 0) != (b.f < 0)) rest += b.f;
    return real(dtype, rest);
}

/* The exponent's own type does not matter: an integer has f = 1, a real i = 1. */
onv_scalar onv_scalar_pow(onv_dims *pool, onv_dtype dtype, onv_scalar a, onv_scalar b)
{
    if (unknown(a) || unknown(b) || !onv_dim_is_const(b.i)) return onv_scalar_unknown();
    double exponent = b.f * (double)b.i.raw;
    if (onv_dtype_is_float(dtype) && onv_scalar_is_real(a)) return real(dtype, pow(a.f, exponent));
    if (exponent != floor(exponent) || exponent < 0 || exponent > 64) return onv_scalar_unknown();
    onv_scalar power =
        onv_dtype_is_float(dtype) ? onv_scalar_real(1) : onv_scalar_int(onv_dim_const(1));
    for (int k = 0; k < (int)exponent; k++) power = onv_scalar_mul(pool, dtype, power, a);
    return power;
}

/* --- Order ------------------------------------------------------------------------------------ */

/* Brings two elements into the form of dims that compare like them. Reals are compared first. */
static bool comparable(onv_dims *pool, onv_dtype dtype, onv_scalar a, onv_scalar b, onv_dim *x,
                       onv_dim *y)
{
    double f;
    *x = a.i;
    *y = b.i;
    if (unknown(a) || unknown(b)) return false;
    /* Infinities stand for different large numbers. */
    if (onv_dim_is_infinite(a.i) && onv_dim_same(a.i, b.i)) return false;
    return !onv_dtype_is_float(dtype) || common_factor(pool, dtype, a, b, &f, x, y);
}

onv_truth onv_scalar_equal(onv_dims *pool, onv_dtype dtype, onv_scalar a, onv_scalar b)
{
    onv_dim x, y;
    if (onv_dtype_is_float(dtype) && both_real(a, b)) return a.f == b.f ? ONV_ALWAYS : ONV_NEVER;
    if (!comparable(pool, dtype, a, b, &x, &y)) return ONV_MAYBE;
    if (onv_dim_same(x, y)) return ONV_ALWAYS;
    return onv_dim_always_ne(pool, x, y) ? ONV_NEVER : ONV_MAYBE;
}

onv_truth onv_scalar_less(onv_dims *pool, onv_dtype dtype, onv_scalar a, onv_scalar b)
{
    onv_dim x, y;
    if (onv_dtype_is_float(dtype) && both_real(a, b)) return a.f < b.f ? ONV_ALWAYS : ONV_NEVER;
    if (!comparable(pool, dtype, a, b, &x, &y)) return ONV_MAYBE;
    if (onv_dim_always_lt(pool, x, y)) return ONV_ALWAYS;
    return onv_dim_always_le(pool, y, x) ? ONV_NEVER : ONV_MAYBE;
}

onv_truth onv_scalar_less_equal(onv_dims *pool, onv_dtype dtype, onv_scalar a, onv_scalar b)
{
    onv_truth greater = onv_scalar_less(pool, dtype, b, a);
    if (greater == ONV_MAYBE) return ONV_MAYBE;
    return greater == ONV_ALWAYS ? ONV_NEVER : ONV_ALWAYS;
}

static onv_scalar extremum(onv_dims *pool, onv_dtype dtype, onv_scalar a, onv_scalar b,
                           onv_dim (*pick)(onv_dims *, onv_dim, onv_dim), bool take_less)
{
    double f;
    onv_dim x, y;
    if (unknown(a) || unknown(b)) return onv_scalar_unknown();
    if (!onv_dtype_is_float(dtype)) return onv_scalar_int(pick(pool, a.i, b.i));
    if (both_real(a, b)) return (a.f < b.f) == take_less ? a : b;
    if (!common_factor(pool, dtype, a, b, &f, &x, &y)) return onv_scalar_unknown();
    return make(dtype, f, pick(pool, x, y));
}

onv_scalar onv_scalar_min(onv_dims *pool, onv_dtype dtype, onv_scalar a, onv_scalar b)
{
    return extremum(pool, dtype, a, b, onv_dim_min, true);
}

onv_scalar onv_scalar_max(onv_dims *pool, onv_dtype dtype, onv_scalar a, onv_scalar b)
{
    return extremum(pool, dtype, a, b, onv_dim_max, false);
}

onv_scalar onv_scalar_abs(onv_dims *pool, onv_dtype dtype, onv_scalar a)
{
    if (unknown(a)) return a;
    if (onv_dtype_is_float(dtype)) {
        if (onv_scalar_is_real(a)) return onv_scalar_real(fabs(a.f));
        if (onv_dim_lower(pool, a.i).raw < 0) return onv_scalar_unknown();
        return make(dtype, fabs(a.f), a.i);
    }
    return onv_scalar_int(onv_dim_max(pool, a.i, onv_dim_neg(pool, a.i)));
}

onv_scalar onv_scalar_sign(onv_dims *pool, onv_dtype dtype, onv_scalar a)
{
    onv_scalar none = onv_scalar_number(dtype, 0);
    if (onv_scalar_equal(pool, dtype, a, none) == ONV_ALWAYS) return none;
    if (onv_scalar_less(pool, dtype, none, a) == ONV_ALWAYS) return onv_scalar_number(dtype, 1);
    if (onv_scalar_less(pool, dtype, a, none) == ONV_ALWAYS) return onv_scalar_number(dtype, -1);
    return onv_scalar_unknown();
}

/* --- Rounding --------------------------------------------------------------------------------- */

static onv_scalar round_with(onv_dims *pool, onv_dtype dtype, onv_scalar a,
                             double (*number)(double),
                             onv_dim (*quotient)(onv_dims *, onv_dim, onv_dim))
{
    int64_t p, q;
    if (unknown(a) || !onv_dtype_is_float(dtype)) return a;
    if (onv_scalar_is_real(a)) return real(dtype, number(a.f));
    if (a.f == floor(a.f)) return a;
    if (!to_fraction(dtype, a.f, &p, &q)) return onv_scalar_unknown();
    if (q == 1) return make(dtype, (double)p, a.i);
    if (quotient == NULL) return onv_scalar_unknown();
    return make(dtype, 1, quotient(pool, times(pool, a.i, p), onv_dim_const(q)));
}

onv_scalar onv_scalar_floor(onv_dims *pool, onv_dtype dtype, onv_scalar a)
{
    return round_with(pool, dtype, a, floor, onv_dim_floordiv);
}

onv_scalar onv_scalar_ceil(onv_dims *pool, onv_dtype dtype, onv_scalar a)
{
    return round_with(pool, dtype, a, ceil, onv_dim_ceildiv);
}

/* nearbyint rounds ties to even, as Round does; a fraction of an expression has no such form. */
onv_scalar onv_scalar_round(onv_dims *pool, onv_dtype dtype, onv_scalar a)
{
    return round_with(pool, dtype, a, nearbyint, NULL);
}

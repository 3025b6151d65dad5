/* Division, remainder, minimum and maximum of dim expressions. */
#include <stdlib.h>
#include <string.h>

#include "ir/dim.h"
#include "ir/dim_expr.h"

/* --- Exact division ---------------------------------------------------------------------------- */

/* Removes the atoms of `b` from those of `a` (both sorted); false if one is missing. */
static bool divide_atoms(onv_dim *a, uint32_t *n, const onv_dim *b, uint32_t m)
{
    uint32_t kept = 0, j = 0;
    for (uint32_t i = 0; i < *n; i++) {
        if (j < m && a[i].raw == b[j].raw)
            j++;
        else
            a[kept++] = a[i];
    }
    *n = kept;
    return j == m;
}

/* term / (coef * monomial) as a term; a quotient without atoms has d = constant 1. */
static bool divide_term(onv_dims *pool, onv_dim_term term, onv_dim_term by, onv_dim_term *quotient)
{
    if (term.coef % by.coef != 0) return false;
    onv_dim a[ONV_DIM_MAX_TERMS], b[ONV_DIM_MAX_TERMS];
    uint32_t n = onv_dim_atoms(pool, &term.d, a);
    uint32_t m = onv_dim_atoms(pool, &by.d, b);
    if (!divide_atoms(a, &n, b, m)) return false;
    quotient->coef = term.coef / by.coef;
    quotient->d = n == 0 ? onv_dim_const(1) : onv_dim_product(pool, a, n);
    return onv_dim_is_known(quotient->d);
}

/* Graded order of monomials (degree, then the earlier atoms); compatible with multiplication, as
 * polynomial division needs. */
static int compare_monomials(const onv_dims *pool, onv_dim x, onv_dim y)
{
    onv_dim a[ONV_DIM_MAX_TERMS], b[ONV_DIM_MAX_TERMS];
    uint32_t n = onv_dim_atoms(pool, &x, a);
    uint32_t m = onv_dim_atoms(pool, &y, b);
    if (n != m) return n > m ? 1 : -1;
    for (uint32_t i = 0; i < n; i++)
        if (a[i].raw != b[i].raw) return a[i].raw < b[i].raw ? 1 : -1;
    return 0;
}

static const onv_dim_term *leading_term(const onv_dims *pool, const onv_poly *poly)
{
    const onv_dim_term *best = NULL;
    for (uint32_t i = 0; i < poly->n; i++)
        if (best == NULL || compare_monomials(pool, poly->terms[i].d, best->d) > 0)
            best = &poly->terms[i];
    return best;
}

/* rest -= q * b, where q is one term. */
static bool subtract_multiple(onv_dims *pool, onv_poly *rest, onv_dim_term q, const onv_poly *b)
{
    onv_poly factor = {.n = 0};
    if (onv_dim_is(q.d, 1))
        factor.c = q.coef;
    else
        onv_poly_add_term(&factor, q.coef, q.d);
    onv_dim product = onv_dim_mul(pool, onv_poly_intern(pool, &factor), onv_poly_intern(pool, b));
    onv_poly_add_dim(rest, pool, -1, product);
    return !rest->bad;
}

static onv_dim divide_by_constant(onv_dims *pool, onv_poly *a, int64_t b)
{
    if (a->c % b != 0) return ONV_DIM_UNKNOWN;
    a->c /= b;
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->terms[i].coef % b != 0) return ONV_DIM_UNKNOWN;
        a->terms[i].coef /= b;
    }
    return onv_poly_intern(pool, a);
}

static onv_dim divide_polys(onv_dims *pool, onv_poly *rest, const onv_poly *b)
{
    const onv_dim_term lead = *leading_term(pool, b);
    onv_poly quotient = {.n = 0};
    for (int round = 0; round < ONV_DIM_MAX_TERMS; round++) {
        const onv_dim_term *top = leading_term(pool, rest);
        if (top == NULL) break;
        onv_dim_term q;
        if (!divide_term(pool, *top, lead, &q)) return ONV_DIM_UNKNOWN;
        if (!subtract_multiple(pool, rest, q, b)) return ONV_DIM_UNKNOWN;
        if (onv_dim_is(q.d, 1))
            quotient.c += q.coef;
        else
            onv_poly_add_term(&quotient, q.coef, q.d);
    }
    if (rest->n != 0 || rest->c != 0 || quotient.bad) return ONV_DIM_UNKNOWN;
    return onv_poly_intern(pool, &quotient);
}

onv_dim onv_dim_exact_div(onv_dims *pool, onv_dim a, onv_dim b)
{
    if (!onv_dim_is_known(a) || !onv_dim_is_known(b)) return ONV_DIM_UNKNOWN;
    if (onv_dim_is_infinite(a) || onv_dim_is_infinite(b) || onv_dim_is(b, 0))
        return ONV_DIM_UNKNOWN;
    if (onv_dim_is(b, 1)) return a;
    if (onv_dim_same(a, b)) return onv_dim_const(1);
    if (onv_dim_is(a, 0)) return a;
    onv_poly x, y;
    onv_poly_init(&x, pool, a);
    if (onv_dim_is_const(b)) return divide_by_constant(pool, &x, b.raw);
    if (onv_dim_is_const(a)) return ONV_DIM_UNKNOWN;
    onv_poly_init(&y, pool, b);
    return divide_polys(pool, &x, &y);
}

/* --- Floor division ---------------------------------------------------------------------------- */

/* floor((x + c)/b) where x is floor(y/d): floor((y + c*d)/(d*b)), for constants d, b > 0. */
static bool merge_nested(onv_dims *pool, const onv_poly *a, int64_t b, onv_dim *result)
{
    if (a->n != 1 || a->terms[0].coef != 1) return false;
    const onv_dim_expr *inner = onv_dim_get(pool, a->terms[0].d);
    if (inner->kind != ONV_DIM_FLOOR || !onv_dim_is_const(inner->terms[1].d)) return false;
    int64_t d = inner->terms[1].d.raw;
    if (d <= 0) return false;
    onv_dim divisor = onv_dim_mul(pool, onv_dim_const(d), onv_dim_const(b));
    onv_dim shift = onv_dim_mul(pool, onv_dim_const(d), onv_dim_const(a->c));
    onv_dim y = onv_dim_add(pool, inner->terms[0].d, shift);
    if (!onv_dim_is_known(divisor) || !onv_dim_is_known(y)) return false;
    *result = onv_dim_floordiv(pool, y, divisor);
    return true;
}

static onv_dim floordiv_by_constant(onv_dims *pool, onv_poly *a, int64_t b)
{
    /* Multiples of b leave the floor; the constant keeps its remainder. */
    onv_poly whole = {.n = 0};
    onv_poly rest = {.n = 0};
    int64_t common = b;
    for (uint32_t i = 0; i < a->n; i++) {
        int64_t coef = a->terms[i].coef;
        if (coef % b == 0) {
            onv_poly_add_term(&whole, coef / b, a->terms[i].d);
        } else {
            onv_poly_add_term(&rest, coef, a->terms[i].d);
            common = onv_i64_gcd(common, coef < 0 ? -coef : coef);
        }
    }
    whole.c = onv_i64_floordiv(a->c, b);
    rest.c = a->c - whole.c * b;
    if (rest.n == 0) return onv_poly_intern(pool, &whole);
    if (common > 1) {
        for (uint32_t i = 0; i < rest.n; i++) rest.terms[i].coef /= common;
        rest.c /= common; /* in [0, b): rounds down, which floor allows */
        b /= common;
    }
    onv_dim floor;
    if (!merge_nested(pool, &rest, b, &floor)) {
        onv_dim numerator = onv_poly_intern(pool, &rest);
        if (!onv_dim_is_known(numerator)) return numerator;
        onv_dim low = onv_dim_lower(pool, numerator), high = onv_dim_upper(pool, numerator);
        if (low.raw >= 0 && high.raw < b) {
            floor = onv_dim_const(0);
        } else {
            onv_dim_term terms[2] = {{1, numerator}, {1, onv_dim_const(b)}};
            floor = onv_dim_intern(pool, ONV_DIM_FLOOR, 0, terms, 2);
        }
    }
    return onv_dim_add(pool, onv_poly_intern(pool, &whole), floor);
}

/* Cancels the atoms that every term of `a` shares with the monomial `b`. */
static void cancel_common_atoms(onv_dims *pool, onv_dim *a, onv_dim *b)
{
    const onv_dim_expr *divisor = onv_dim_get(pool, *b);
    if (divisor->kind == ONV_DIM_SUM) return;
    onv_dim atoms[ONV_DIM_MAX_TERMS];
    uint32_t n = onv_dim_atoms(pool, b, atoms);
    for (uint32_t i = 0; i < n; i++) {
        onv_dim quotient = onv_dim_exact_div(pool, *a, atoms[i]);
        onv_dim rest = onv_dim_exact_div(pool, *b, atoms[i]);
        if (!onv_dim_is_known(quotient) || !onv_dim_is_known(rest)) continue;
        *a = quotient;
        *b = rest;
        if (!onv_dim_is_expr(*b)) return;
    }
}

onv_dim onv_dim_floordiv(onv_dims *pool, onv_dim a, onv_dim b)
{
    if (!onv_dim_is_known(a) || !onv_dim_is_known(b) || onv_dim_is(b, 0)) return ONV_DIM_UNKNOWN;
    if (onv_dim_is_infinite(a) || onv_dim_is_infinite(b)) return ONV_DIM_UNKNOWN;
    if (onv_dim_is_const(a) && onv_dim_is_const(b))
        return onv_dim_const(onv_i64_floordiv(a.raw, b.raw));
    onv_dim exact = onv_dim_exact_div(pool, a, b);
    if (onv_dim_is_known(exact)) return exact;
    if (onv_dim_is_expr(b)) cancel_common_atoms(pool, &a, &b);
    if (onv_dim_is_const(b)) {
        if (b.raw < 0) return onv_dim_floordiv(pool, onv_dim_neg(pool, a), onv_dim_const(-b.raw));
        onv_poly x;
        onv_poly_init(&x, pool, a);
        return floordiv_by_constant(pool, &x, b.raw);
    }
    onv_dim_term terms[2] = {{1, a}, {1, b}};
    return onv_dim_intern(pool, ONV_DIM_FLOOR, 0, terms, 2);
}

onv_dim onv_dim_ceildiv(onv_dims *pool, onv_dim a, onv_dim b)
{
    onv_dim shifted = onv_dim_sub(pool, onv_dim_add(pool, a, b), onv_dim_const(1));
    return onv_dim_floordiv(pool, shifted, b);
}

onv_dim onv_dim_mod(onv_dims *pool, onv_dim a, onv_dim b)
{
    if (!onv_dim_is_known(a) || !onv_dim_is_known(b) || onv_dim_is(b, 0)) return ONV_DIM_UNKNOWN;
    if (onv_dim_is_infinite(a) || onv_dim_is_infinite(b)) return ONV_DIM_UNKNOWN;
    if (onv_dim_is_const(a) && onv_dim_is_const(b))
        return onv_dim_const(a.raw - b.raw * onv_i64_floordiv(a.raw, b.raw));
    if (onv_dim_is_known(onv_dim_exact_div(pool, a, b))) return onv_dim_const(0);
    if (onv_dim_is_const(b) && b.raw > 0) {
        onv_poly x, rest = {.n = 0};
        onv_poly_init(&x, pool, a);
        for (uint32_t i = 0; i < x.n; i++)
            onv_poly_add_term(&rest, x.terms[i].coef % b.raw, x.terms[i].d);
        rest.c = x.c - b.raw * onv_i64_floordiv(x.c, b.raw);
        a = onv_poly_intern(pool, &rest);
        if (!onv_dim_is_known(a)) return a;
        if (onv_dim_is_const(a)) return onv_dim_mod(pool, a, b);
        if (onv_dim_lower(pool, a).raw >= 0 && onv_dim_upper(pool, a).raw < b.raw) return a;
    }
    onv_dim_term terms[2] = {{1, a}, {1, b}};
    return onv_dim_intern(pool, ONV_DIM_MOD, 0, terms, 2);
}

/* --- Order ------------------------------------------------------------------------------------- */

/* The least value that a - b takes. */
static int64_t least_difference(const onv_dims *pool, onv_dim a, onv_dim b)
{
    onv_poly difference;
    onv_poly_init(&difference, pool, a);
    onv_poly_add_dim(&difference, pool, -1, b);
    if (difference.bad) return -ONV_DIM_INFINITY_RAW;
    return onv_dim_bound_of_sum(pool, difference.c, difference.terms, difference.n, false);
}

/* Operands of a min or max; any other dim is its own single operand. */
static uint32_t operands(const onv_dims *pool, onv_dim_kind kind, onv_dim d, onv_dim_term *single,
                         const onv_dim_term **list)
{
    if (onv_dim_is_expr(d)) {
        const onv_dim_expr *e = onv_dim_get(pool, d);
        if (e->kind == kind) {
            *list = e->terms;
            return e->n;
        }
    }
    *single = (onv_dim_term){1, d};
    *list = single;
    return 1;
}

/* a + gap <= b for certain, without looking inside min and max. */
static bool plain_le(const onv_dims *pool, onv_dim a, onv_dim b, int64_t gap)
{
    if (a.raw == -ONV_DIM_INFINITY_RAW || b.raw == ONV_DIM_INFINITY_RAW) return a.raw != b.raw;
    if (onv_dim_is_infinite(a) || onv_dim_is_infinite(b)) return false;
    return least_difference(pool, b, a) >= gap;
}

/* One operand of a min on the left, or of a max on the right, is enough; of a max on the left and
 * of a min on the right every one is needed. One level deep: deeper nests are rare and only lose
 * a simplification. */
static bool certain_le(const onv_dims *pool, onv_dim a, onv_dim b, int64_t gap)
{
    if (onv_dim_is_const(a) && onv_dim_is_const(b)) return a.raw + gap <= b.raw;
    if (!onv_dim_is_known(a) || !onv_dim_is_known(b)) return false;
    if (plain_le(pool, a, b, gap)) return true;
    onv_dim_term x, y;
    const onv_dim_term *left, *right;
    uint32_t n = operands(pool, ONV_DIM_MIN, a, &x, &left);
    for (uint32_t i = 0; i < n; i++)
        if (n > 1 && plain_le(pool, left[i].d, b, gap)) return true;
    uint32_t m = operands(pool, ONV_DIM_MAX, b, &y, &right);
    for (uint32_t i = 0; i < m; i++)
        if (m > 1 && plain_le(pool, a, right[i].d, gap)) return true;
    n = operands(pool, ONV_DIM_MAX, a, &x, &left);
    m = operands(pool, ONV_DIM_MIN, b, &y, &right);
    if (n == 1 && m == 1) return false;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < m; j++)
            if (!plain_le(pool, left[i].d, right[j].d, gap)) return false;
    return true;
}

bool onv_dim_always_le(onv_dims *pool, onv_dim a, onv_dim b)
{
    return onv_dim_same(a, b) || certain_le(pool, a, b, 0);
}

bool onv_dim_always_lt(onv_dims *pool, onv_dim a, onv_dim b)
{
    return certain_le(pool, a, b, 1);
}

bool onv_dim_always_ne(onv_dims *pool, onv_dim a, onv_dim b)
{
    return certain_le(pool, a, b, 1) || certain_le(pool, b, a, 1);
}

static int compare_terms(const void *a, const void *b)
{
    int64_t x = ((const onv_dim_term *)a)->d.raw, y = ((const onv_dim_term *)b)->d.raw;
    return (x > y) - (x < y);
}

static onv_dim extremum(onv_dims *pool, onv_dim_kind kind, onv_dim a, onv_dim b)
{
    if (!onv_dim_is_known(a) || !onv_dim_is_known(b)) return ONV_DIM_UNKNOWN;
    if (onv_dim_always_le(pool, a, b)) return kind == ONV_DIM_MIN ? a : b;
    if (onv_dim_always_le(pool, b, a)) return kind == ONV_DIM_MIN ? b : a;
    if (onv_dim_is_infinite(a) || onv_dim_is_infinite(b)) return ONV_DIM_UNKNOWN;
    onv_dim_term x, y, kept[2 * ONV_DIM_MAX_OPERANDS];
    const onv_dim_term *left, *right;
    uint32_t n = operands(pool, kind, a, &x, &left);
    uint32_t m = operands(pool, kind, b, &y, &right);
    memcpy(kept, left, n * sizeof *kept);
    memcpy(kept + n, right, m * sizeof *kept);
    uint32_t total = n + m, count = 0;
    for (uint32_t i = 0; i < total; i++) {
        bool dominated = false;
        for (uint32_t j = 0; j < total && !dominated; j++) {
            if (j == i) continue;
            onv_dim low = kind == ONV_DIM_MIN ? kept[j].d : kept[i].d;
            onv_dim high = kind == ONV_DIM_MIN ? kept[i].d : kept[j].d;
            /* Of two equal operands the first stays. */
            dominated = onv_dim_same(low, high) ? j < i : certain_le(pool, low, high, 0);
        }
        if (dominated) kept[i].coef = 0;
    }
    for (uint32_t i = 0; i < total; i++)
        if (kept[i].coef != 0) kept[count++] = kept[i];
    if (count == 0) return a; /* operands equal for all values, in different forms */
    if (count == 1) return kept[0].d;
    if (count > ONV_DIM_MAX_OPERANDS) {
        pool->too_large++;
        return ONV_DIM_UNKNOWN;
    }
    qsort(kept, count, sizeof *kept, compare_terms);
    return onv_dim_intern(pool, kind, 0, kept, count);
}

onv_dim onv_dim_min(onv_dims *pool, onv_dim a, onv_dim b)
{
    return extremum(pool, ONV_DIM_MIN, a, b);
}

onv_dim onv_dim_max(onv_dims *pool, onv_dim a, onv_dim b)
{
    return extremum(pool, ONV_DIM_MAX, a, b);
}

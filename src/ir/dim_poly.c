/* Sums and products of dims, as polynomials over atoms. */
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/strings.h"
#include "ir/dim_expr.h"

/* --- Polynomials ------------------------------------------------------------------------------- */

void onv_poly_init(onv_poly *poly, const onv_dims *pool, onv_dim d)
{
    poly->c = 0;
    poly->n = 0;
    poly->bad = false;
    if (!onv_dim_is_expr(d)) {
        poly->c = d.raw;
        return;
    }
    const onv_dim_expr *e = onv_dim_get(pool, d);
    if (e->kind != ONV_DIM_SUM) {
        poly->terms[0] = (onv_dim_term){1, d};
        poly->n = 1;
        return;
    }
    poly->c = e->c;
    poly->n = e->n;
    memcpy(poly->terms, e->terms, e->n * sizeof *e->terms);
}

/* sum += coef * constant; marks the sum bad when that does not fit. */
static void add_constant(onv_poly *sum, int64_t coef, int64_t constant)
{
    int64_t product;
    if (__builtin_mul_overflow(coef, constant, &product) || !onv_dim_fits(product) ||
        !onv_dim_fits(sum->c + product))
        sum->bad = true;
    else
        sum->c += product;
}

/* Adds a term that belongs at `at` or behind it; returns where. */
static uint32_t add_term(onv_poly *sum, uint32_t at, int64_t coef, onv_dim d)
{
    if (coef == 0 || sum->bad) return at;
    while (at < sum->n && sum->terms[at].d.raw < d.raw) at++;
    onv_dim_term *here = &sum->terms[at];
    if (at < sum->n && here->d.raw == d.raw) {
        here->coef += coef;
        if (!onv_dim_fits(here->coef)) sum->bad = true;
        if (here->coef == 0) memmove(here, here + 1, (--sum->n - at) * sizeof *here);
    } else if (sum->n == ONV_DIM_MAX_TERMS || !onv_dim_fits(coef)) {
        sum->bad = true;
    } else {
        memmove(here + 1, here, (sum->n++ - at) * sizeof *here);
        *here = (onv_dim_term){coef, d};
    }
    return at;
}

void onv_poly_add_term(onv_poly *sum, int64_t coef, onv_dim d)
{
    add_term(sum, 0, coef, d);
}

void onv_poly_add_dim(onv_poly *sum, const onv_dims *pool, int64_t coef, onv_dim d)
{
    if (!onv_dim_is_known(d) || onv_dim_is_infinite(d)) {
        sum->bad = true;
    } else if (!onv_dim_is_expr(d)) {
        add_constant(sum, coef, d.raw);
    } else if (onv_dim_get(pool, d)->kind != ONV_DIM_SUM) {
        onv_poly_add_term(sum, coef, d);
    } else {
        const onv_dim_expr *e = onv_dim_get(pool, d);
        add_constant(sum, coef, e->c);
        for (uint32_t i = 0, at = 0; i < e->n; i++)
            at = add_term(sum, at, onv_sat_mul(coef, e->terms[i].coef), e->terms[i].d);
    }
}

static int compare_dims(const void *a, const void *b)
{
    int64_t x = ((const onv_dim *)a)->raw, y = ((const onv_dim *)b)->raw;
    return (x > y) - (x < y);
}

onv_dim onv_poly_intern(onv_dims *pool, const onv_poly *poly)
{
    if (poly->bad) {
        pool->too_large++;
        return ONV_DIM_UNKNOWN;
    }
    if (poly->n == 0) return onv_dim_const(poly->c);
    if (poly->n == 1 && poly->c == 0 && poly->terms[0].coef == 1) return poly->terms[0].d;
    return onv_dim_intern(pool, ONV_DIM_SUM, poly->c, poly->terms, poly->n);
}

uint32_t onv_dim_atoms(const onv_dims *pool, const onv_dim *monomial, onv_dim *atoms)
{
    const onv_dim_expr *e = onv_dim_get(pool, *monomial);
    if (e->kind != ONV_DIM_PRODUCT) {
        atoms[0] = *monomial;
        return 1;
    }
    for (uint32_t i = 0; i < e->n; i++) atoms[i] = e->terms[i].d;
    return e->n;
}

onv_dim onv_dim_product(onv_dims *pool, onv_dim *atoms, uint32_t n)
{
    if (n == 1) return atoms[0];
    if (n > ONV_DIM_MAX_TERMS) {
        pool->too_large++;
        return ONV_DIM_UNKNOWN;
    }
    qsort(atoms, n, sizeof *atoms, compare_dims);
    onv_dim_term terms[ONV_DIM_MAX_TERMS];
    for (uint32_t i = 0; i < n; i++) terms[i] = (onv_dim_term){1, atoms[i]};
    return onv_dim_intern(pool, ONV_DIM_PRODUCT, 0, terms, n);
}

/* --- Sums and products ------------------------------------------------------------------------- */

static bool either_unknown(onv_dim a, onv_dim b)
{
    return !onv_dim_is_known(a) || !onv_dim_is_known(b);
}

static onv_dim checked_const(onv_dims *pool, int64_t value, bool overflow)
{
    if (!overflow && onv_dim_fits(value)) return (onv_dim){value};
    pool->overflows++;
    return ONV_DIM_UNKNOWN;
}

/* Sizes of neighbouring tensors are made of the same factors, so most results were just made. What failed
 * or was too large is made again, and counted again. */
static onv_dim_made *find_made(onv_dims *pool, onv_dim a, onv_dim b, bool is_product)
{
    if (pool->made == NULL) pool->made = onv_heap_calloc(ONV_DIMS_MADE, sizeof *pool->made);
    if (pool->made == NULL) return NULL;
    uint64_t mixed = onv_hash_u64((uint64_t)a.raw * 3 + (uint64_t)b.raw * 5 + is_product);
    return &pool->made[mixed % ONV_DIMS_MADE];
}

static bool is_made(const onv_dim_made *made, onv_dim a, onv_dim b, bool is_product)
{
    return made != NULL && made->a.raw == a.raw && made->b.raw == b.raw &&
           made->is_product == is_product && onv_dim_is_known(made->result);
}

static onv_dim keep_made(onv_dim_made *made, onv_dim a, onv_dim b, bool is_product, onv_dim result)
{
    if (made != NULL && onv_dim_is_known(result)) *made = (onv_dim_made){a, b, result, is_product};
    return result;
}

onv_dim onv_dim_add(onv_dims *pool, onv_dim a, onv_dim b)
{
    if (onv_dim_is_const(a) && onv_dim_is_const(b))
        return checked_const(pool, a.raw + b.raw, false);
    if (either_unknown(a, b)) return ONV_DIM_UNKNOWN;
    if (onv_dim_is_infinite(a) && onv_dim_is_infinite(b))
        return a.raw == b.raw ? a : ONV_DIM_UNKNOWN;
    if (onv_dim_is_infinite(a)) return a;
    if (onv_dim_is_infinite(b)) return b;
    if (onv_dim_is(a, 0)) return b;
    if (onv_dim_is(b, 0)) return a;
    onv_dim_made *made = find_made(pool, a, b, false);
    if (is_made(made, a, b, false)) return made->result;
    onv_poly sum;
    onv_poly_init(&sum, pool, a);
    onv_poly_add_dim(&sum, pool, 1, b);
    return keep_made(made, a, b, false, onv_poly_intern(pool, &sum));
}

onv_dim onv_dim_neg(onv_dims *pool, onv_dim a)
{
    return onv_dim_mul(pool, a, onv_dim_const(-1));
}

onv_dim onv_dim_sub(onv_dims *pool, onv_dim a, onv_dim b)
{
    if (onv_dim_is_const(a) && onv_dim_is_const(b))
        return checked_const(pool, a.raw - b.raw, false);
    return onv_dim_add(pool, a, onv_dim_neg(pool, b));
}

static onv_dim multiply_monomials(onv_dims *pool, onv_dim a, onv_dim b)
{
    onv_dim atoms[2 * ONV_DIM_MAX_TERMS];
    uint32_t n = onv_dim_atoms(pool, &a, atoms);
    n += onv_dim_atoms(pool, &b, atoms + n);
    return onv_dim_product(pool, atoms, n);
}

static onv_dim multiply_polys(onv_dims *pool, const onv_poly *a, const onv_poly *b)
{
    onv_poly product = {.n = 0};
    add_constant(&product, a->c, b->c);
    for (uint32_t i = 0; i < a->n; i++)
        onv_poly_add_term(&product, onv_sat_mul(a->terms[i].coef, b->c), a->terms[i].d);
    for (uint32_t i = 0; i < b->n; i++)
        onv_poly_add_term(&product, onv_sat_mul(b->terms[i].coef, a->c), b->terms[i].d);
    for (uint32_t i = 0; i < a->n && !product.bad; i++) {
        for (uint32_t j = 0; j < b->n; j++) {
            onv_dim d = multiply_monomials(pool, a->terms[i].d, b->terms[j].d);
            if (!onv_dim_is_known(d)) return d;
            onv_poly_add_term(&product, onv_sat_mul(a->terms[i].coef, b->terms[j].coef), d);
        }
    }
    return onv_poly_intern(pool, &product);
}

onv_dim onv_dim_mul(onv_dims *pool, onv_dim a, onv_dim b)
{
    if (onv_dim_is_const(a) && onv_dim_is_const(b)) {
        int64_t product = 0;
        bool overflow = __builtin_mul_overflow(a.raw, b.raw, &product);
        return checked_const(pool, product, overflow);
    }
    if (either_unknown(a, b)) return ONV_DIM_UNKNOWN;
    if (onv_dim_is(a, 0) || onv_dim_is(b, 0)) return onv_dim_const(0);
    if (onv_dim_is(a, 1)) return b;
    if (onv_dim_is(b, 1)) return a;
    if (onv_dim_is_infinite(a) || onv_dim_is_infinite(b)) {
        bool finite_sign = onv_dim_is_const(a) || onv_dim_is_const(b);
        if (!finite_sign) return ONV_DIM_UNKNOWN;
        return (onv_dim){(a.raw < 0) == (b.raw < 0) ? ONV_DIM_INFINITY_RAW : -ONV_DIM_INFINITY_RAW};
    }
    onv_dim_made *made = find_made(pool, a, b, true);
    if (is_made(made, a, b, true)) return made->result;
    onv_poly x, y;
    onv_poly_init(&x, pool, a);
    onv_poly_init(&y, pool, b);
    return keep_made(made, a, b, true, multiply_polys(pool, &x, &y));
}

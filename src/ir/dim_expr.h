/* The inside of dim expressions; only the dim_*.c files see it.
 *
 * Kinds and their terms:
 *   SYMBOL    none
 *   SUM       c + sum of coef * d, where d is an atom or a PRODUCT; sorted by d, no coef is 0
 *   PRODUCT   atoms, sorted, repeated for powers; at least two
 *   FLOOR     floor(terms[0] / terms[1])
 *   MOD       terms[0] - terms[1] * floor(terms[0] / terms[1])
 *   MIN, MAX  sorted operands, at least two
 * Everything but SUM and PRODUCT is an atom. An expression is never changed once interned, so its
 * bounds and its size as a tree are computed once.
 */
#ifndef ONV_IR_DIM_EXPR_H
#define ONV_IR_DIM_EXPR_H

#include "ir/dim.h"

typedef enum onv_dim_kind {
    ONV_DIM_SYMBOL,
    ONV_DIM_SUM,
    ONV_DIM_PRODUCT,
    ONV_DIM_FLOOR,
    ONV_DIM_MOD,
    ONV_DIM_MIN,
    ONV_DIM_MAX,
} onv_dim_kind;

typedef struct onv_dim_term {
    int64_t coef; /* 1 except in SUM */
    onv_dim d;
} onv_dim_term;

struct onv_dim_expr {
    uint8_t kind;
    uint8_t depth;      /* of nested atoms */
    bool data;          /* holds a symbol made by onv_dim_fresh */
    bool varying;       /* SYMBOL: made by onv_dim_fresh_varying */
    uint32_t n;         /* terms */
    uint32_t tree_size; /* nodes when written out */
    uint32_t symbol;    /* SYMBOL: its number */
    uint64_t hash;
    int64_t c; /* SUM */
    onv_dim_term *terms;
    const char *name;  /* SYMBOL */
    onv_dim bound;     /* SYMBOL: what the data cannot exceed */
    int64_t low, high; /* for all values of the symbols; +-ONV_DIM_INFINITY_RAW: none */
};

/* A sum being built: terms are sorted by d, and no coef is 0. */
typedef struct onv_poly {
    int64_t c;
    uint32_t n;
    bool bad; /* too many terms, or a coefficient that does not fit: the result is unknown */
    onv_dim_term terms[ONV_DIM_MAX_TERMS];
} onv_poly;

static inline const onv_dim_expr *onv_dim_get(const onv_dims *pool, onv_dim d)
{
    return &pool->exprs.at[d.raw - ONV_DIM_INFINITY_RAW - 1];
}

/* The least and the greatest value that a known dim can have. */
static inline int64_t onv_dim_low_bound(const onv_dims *pool, onv_dim d)
{
    return onv_dim_is_expr(d) ? onv_dim_get(pool, d)->low : d.raw;
}

static inline int64_t onv_dim_high_bound(const onv_dims *pool, onv_dim d)
{
    return onv_dim_is_expr(d) ? onv_dim_get(pool, d)->high : d.raw;
}

static inline bool onv_dim_fits(int64_t value)
{
    return value > -ONV_DIM_INFINITY_RAW && value < ONV_DIM_INFINITY_RAW;
}

/* The interned expression; terms are copied. Unknown on failure or beyond the limits. */
onv_dim onv_dim_intern(onv_dims *pool, onv_dim_kind kind, int64_t c, const onv_dim_term *terms,
                       uint32_t n);

/* Known, finite dims as polynomials and back. */
void onv_poly_init(onv_poly *poly, const onv_dims *pool, onv_dim d);
void onv_poly_add_term(onv_poly *sum, int64_t coef, onv_dim d); /* of an atom or a PRODUCT */
/* sum += coef * d; `bad` where d is unknown or infinite. */
void onv_poly_add_dim(onv_poly *sum, const onv_dims *pool, int64_t coef, onv_dim d);
onv_dim onv_poly_intern(onv_dims *pool, const onv_poly *poly);

/* The least, or the greatest, that a sum can be, from what its terms can. */
int64_t onv_dim_bound_of_sum(const onv_dims *pool, int64_t c, const onv_dim_term *terms, uint32_t n,
                             bool greatest);

/* The atoms of a monomial (an atom or a PRODUCT): count, and pointers to terms. */
uint32_t onv_dim_atoms(const onv_dims *pool, const onv_dim *monomial, onv_dim *atoms);

/* The product of `n` atoms (unsorted, 1 <= n). */
onv_dim onv_dim_product(onv_dims *pool, onv_dim *atoms, uint32_t n);

/* floor(a / b) for integers, b != 0. */
static inline int64_t onv_i64_floordiv(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

static inline int64_t onv_i64_gcd(int64_t a, int64_t b)
{
    for (int64_t rest; b != 0; b = rest) {
        rest = a % b;
        a = b;
    }
    return a;
}

/* Saturating at +-ONV_DIM_INFINITY_RAW. */
int64_t onv_sat_add(int64_t a, int64_t b);
int64_t onv_sat_mul(int64_t a, int64_t b);

#endif

/* Comparison of sums with floors in them: floor(h/4) is at most half of floor(h/2). */
#include <stdlib.h>

#include "ir/dim_expr.h"

/* Divisors of floors that are tried as the finest one; few occur in a model (its strides). */
enum { MAX_DIVISORS = 16 };

static bool is_kind(const onv_dims *pool, onv_dim d, onv_dim_kind kind)
{
    return onv_dim_is_expr(d) && onv_dim_get(pool, d)->kind == kind;
}

/* The divisor of floor(p / b), b a number above 1; 0 for what is none. */
static int64_t divisor_of(const onv_dims *pool, onv_dim atom)
{
    if (!is_kind(pool, atom, ONV_DIM_FLOOR)) return 0;
    onv_dim by = onv_dim_get(pool, atom)->terms[1].d;
    return onv_dim_is_const(by) && by.raw > 1 ? by.raw : 0;
}

static uint32_t list_divisors(const onv_dims *pool, const onv_poly *p, int64_t *divisors)
{
    onv_dim atoms[ONV_DIM_MAX_TERMS];
    uint32_t n = 0;
    divisors[n++] = 1;
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t n_atoms = onv_dim_atoms(pool, &p->terms[i].d, atoms);
        for (uint32_t k = 0; k < n_atoms; k++) {
            int64_t b = divisor_of(pool, atoms[k]);
            uint32_t at = 0;
            while (at < n && divisors[at] != b) at++;
            if (b != 0 && at == n && n < MAX_DIVISORS) divisors[n++] = b;
        }
    }
    return n;
}

/* What a min is at most: the last of its operands that is no number. Everything else is itself. */
static onv_dim least_operand(const onv_dims *pool, onv_dim atom)
{
    if (!is_kind(pool, atom, ONV_DIM_MIN)) return atom;
    const onv_dim_expr *e = onv_dim_get(pool, atom);
    for (uint32_t i = e->n; i-- > 0;)
        if (onv_dim_is_expr(e->terms[i].d)) return e->terms[i].d;
    return atom;
}

/* coarser * monomial is at most the result: each floor(p / b) of it with b a multiple of `finest` and
 * larger is at most floor(p / finest) / (b / finest). */
static onv_dim raise_floors(onv_dims *pool, onv_dim monomial, int64_t finest, int64_t *coarser)
{
    onv_dim atoms[ONV_DIM_MAX_TERMS], product = onv_dim_const(1);
    uint32_t n = onv_dim_atoms(pool, &monomial, atoms);
    bool is_same = true;
    *coarser = 1;
    for (uint32_t k = 0; k < n; k++) {
        int64_t b = divisor_of(pool, atoms[k]);
        onv_dim atom = least_operand(pool, atoms[k]);
        if (b > finest && b % finest == 0) {
            *coarser = onv_sat_mul(*coarser, b / finest);
            atom =
                onv_dim_floordiv(pool, onv_dim_get(pool, atom)->terms[0].d, onv_dim_const(finest));
        }
        is_same &= atom.raw == atoms[k].raw;
        atoms[k] = atom;
    }
    for (uint32_t k = 0; k < n && !is_same; k++) product = onv_dim_mul(pool, product, atoms[k]);
    return is_same ? monomial : product;
}

/* A multiple of something that is at most `p`; `bad` where numbers or expressions become too large. */
static void lower_multiple(onv_dims *pool, const onv_poly *p, int64_t finest, onv_poly *multiple)
{
    int64_t factor = 1, coarser;
    *multiple = (onv_poly){.n = 0};
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->terms[i].coef >= 0) continue;
        raise_floors(pool, p->terms[i].d, finest, &coarser);
        multiple->bad |= coarser >= ONV_DIM_INFINITY_RAW;
        if (multiple->bad) return;
        factor = onv_sat_mul(factor, coarser / onv_i64_gcd(factor, coarser));
    }
    onv_poly_add_dim(multiple, pool, factor, onv_dim_const(p->c));
    for (uint32_t i = 0; i < p->n; i++) {
        onv_dim monomial = p->terms[i].d;
        coarser = 1;
        if (p->terms[i].coef < 0) monomial = raise_floors(pool, monomial, finest, &coarser);
        onv_poly_add_dim(multiple, pool, onv_sat_mul(p->terms[i].coef, factor / coarser), monomial);
    }
}

/* Certain that p >= 0: no part of it is negative. */
static bool is_covered(const onv_dims *pool, const onv_poly *p)
{
    if (p->bad) return false;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->terms[i].coef < 0 || onv_dim_get(pool, p->terms[i].d)->low < 0) return false;
    return p->c >= 0;
}

/* Raising a factor raises the product where no factor is negative. */
static bool has_negative_atom(const onv_dims *pool, const onv_poly *p)
{
    onv_dim atoms[ONV_DIM_MAX_TERMS];
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t n = onv_dim_atoms(pool, &p->terms[i].d, atoms);
        for (uint32_t k = 0; k < n; k++)
            if (onv_dim_get(pool, atoms[k])->low < 0) return true;
    }
    return false;
}

bool onv_dim_never_above(onv_dims *pool, onv_dim a, onv_dim b)
{
    if (!onv_dim_is_known(b) || onv_dim_is_infinite(b)) return false;
    onv_poly gap, below;
    onv_poly_init(&gap, pool, b);
    onv_poly_add_dim(&gap, pool, -1, a);
    if (gap.bad || has_negative_atom(pool, &gap)) return false;
    int64_t divisors[MAX_DIVISORS];
    uint32_t n = list_divisors(pool, &gap, divisors);
    for (uint32_t i = 0; i < n; i++) {
        lower_multiple(pool, &gap, divisors[i], &below);
        if (is_covered(pool, &below)) return true;
    }
    return false;
}

bool onv_dim_is_sum_of_symbols(const onv_dims *pool, onv_dim d)
{
    uint32_t n = 0;
    if (!is_kind(pool, d, ONV_DIM_SUM)) return false;
    const onv_dim_expr *e = onv_dim_get(pool, d);
    for (uint32_t i = 0; i < e->n; i++) n += is_kind(pool, e->terms[i].d, ONV_DIM_SYMBOL);
    return n >= 2;
}

/* --- Where a size overtakes another ------------------------------------------------------------ */

enum { MAX_DEGREE = 15 };

/* A sum as a polynomial in one symbol, times a product of symbols. */
typedef struct univariate {
    onv_dim symbol;
    int64_t coefs[MAX_DEGREE + 1]; /* by power */
} univariate;

/* The symbols that stand in every term, as often as they do there. Returns their number. */
static uint32_t common_symbols(const onv_dims *pool, const onv_poly *p, onv_dim *common)
{
    onv_dim atoms[ONV_DIM_MAX_TERMS];
    uint32_t n = p->c == 0 ? onv_dim_atoms(pool, &p->terms[0].d, common) : 0;
    for (uint32_t i = 1; i < p->n && n > 0; i++) {
        uint32_t n_atoms = onv_dim_atoms(pool, &p->terms[i].d, atoms), kept = 0;
        for (uint32_t k = 0, at = 0; k < n; k++) {
            while (at < n_atoms && atoms[at].raw < common[k].raw) at++;
            if (at < n_atoms && atoms[at].raw == common[k].raw) common[kept++] = common[k], at++;
        }
        n = kept;
    }
    uint32_t kept = 0;
    for (uint32_t k = 0; k < n; k++)
        if (is_kind(pool, common[k], ONV_DIM_SYMBOL)) common[kept++] = common[k];
    return kept;
}

static bool as_univariate(const onv_dims *pool, const onv_poly *p, univariate *u)
{
    onv_dim common[ONV_DIM_MAX_TERMS], atoms[ONV_DIM_MAX_TERMS];
    uint32_t n_common = common_symbols(pool, p, common);
    *u = (univariate){.symbol = ONV_DIM_UNKNOWN};
    u->coefs[0] = p->c;
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t n = onv_dim_atoms(pool, &p->terms[i].d, atoms), power = 0;
        for (uint32_t k = 0, at = 0; k < n; k++) {
            if (at < n_common && atoms[k].raw == common[at].raw) {
                at++;
                continue;
            }
            if (!onv_dim_is_known(u->symbol)) u->symbol = atoms[k];
            if (u->symbol.raw != atoms[k].raw || ++power > MAX_DEGREE) return false;
        }
        u->coefs[power] = p->terms[i].coef;
    }
    return onv_dim_is_known(u->symbol) && is_kind(pool, u->symbol, ONV_DIM_SYMBOL);
}

/* Saturates; at least 0 only where the polynomial is. */
static int64_t value_at(const univariate *u, int64_t x)
{
    int64_t positive = 0, negative = 0, power = 1;
    for (int i = 0; i <= MAX_DEGREE; i++) {
        int64_t part = onv_sat_mul(u->coefs[i], power);
        if (part >= 0)
            positive = onv_sat_add(positive, part);
        else
            negative = onv_sat_add(negative, -part);
        power = onv_sat_mul(power, x);
    }
    return positive - negative; /* both are at most 2^61 */
}

bool onv_dim_overtakes(onv_dims *pool, onv_dim below, onv_dim above, onv_dim *symbol, int64_t *from)
{
    onv_dim gap = onv_dim_sub(pool, above, below);
    if (!onv_dim_is_expr(gap)) return false;
    onv_poly p;
    univariate u;
    onv_poly_init(&p, pool, gap);
    if (!as_univariate(pool, &p, &u)) return false;
    /* One change of sign among the coefficients, one positive root. */
    int changes = 0, sign = 0;
    for (int i = 0; i <= MAX_DEGREE; i++) {
        if (u.coefs[i] == 0) continue;
        int here = u.coefs[i] > 0 ? 1 : -1;
        changes += sign != 0 && here != sign;
        sign = here;
    }
    if (changes != 1 || sign < 0) return false;
    int64_t low = 1, high = (int64_t)1 << 31;
    if (value_at(&u, low) > 0 || value_at(&u, high) <= 0) return false;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (value_at(&u, middle) > 0)
            high = middle;
        else
            low = middle;
    }
    *symbol = u.symbol;
    *from = high;
    return true;
}

/* --- Parts ------------------------------------------------------------------------------------- */

uint32_t onv_dim_factors(const onv_dims *pool, onv_dim product, onv_dim *factors)
{
    return onv_dim_is_expr(product) ? onv_dim_atoms(pool, &product, factors) : 0;
}

static int compare_parts(const void *a, const void *b)
{
    const onv_dim_part *x = a, *y = b;
    if (x->n_factors != y->n_factors) return x->n_factors > y->n_factors ? -1 : 1;
    return (x->product.raw > y->product.raw) - (x->product.raw < y->product.raw);
}

uint32_t onv_dim_parts(const onv_dims *pool, onv_dim d, onv_dim_part *parts)
{
    onv_dim factors[ONV_DIM_MAX_TERMS];
    if (!onv_dim_is_known(d) || onv_dim_is_infinite(d)) return 0;
    onv_poly p;
    onv_poly_init(&p, pool, d);
    for (uint32_t i = 0; i < p.n; i++)
        parts[i] = (onv_dim_part){.coef = p.terms[i].coef,
                                  .n_factors = onv_dim_factors(pool, p.terms[i].d, factors),
                                  .product = p.terms[i].d};
    qsort(parts, p.n, sizeof *parts, compare_parts);
    if (p.c != 0 || p.n == 0)
        parts[p.n++] = (onv_dim_part){.coef = p.c, .product = onv_dim_const(1)};
    return p.n;
}

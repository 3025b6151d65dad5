#include "graph/formula.h"

#include <inttypes.h>
#include <string.h>

#include "base/heap.h"
#include "base/quota.h"
#include "base/strings.h"

enum {
    DEGREE = 3, /* of all dims together: a batch, and a sequence twice */
    SIDE = DEGREE + 1,
    N_TERMS = SIDE * SIDE * SIDE,
    MOST_VALUES = 1000,
    FACTOR = 6 /* all terms times it are whole: 3! */
};

__extension__ typedef __int128 wide;

typedef struct seen {
    int64_t at[ONV_SAMPLED_DIMS]; /* in units; 0 where there is no dim */
    uint64_t values[ONV_SAMPLED_FIGURES];
    bool has;
} seen;

/* By powers of the dims, each times FACTOR; powers together are DEGREE at most. */
typedef struct polynomial {
    wide term[N_TERMS];
} polynomial;

typedef struct finder {
    onv_sampled *sampled;
    onv_dims *pool;
    onv_arena *arena;
    onv_sampled_value value;
    void *context;
    seen *list; /* points first */
    uint32_t n_seen;
    polynomial pieces[ONV_SAMPLED_PIECES];
} finder;

/* --- Values ------------------------------------------------------------------------------------ */

/* NULL in `found`: there are too many already. */
static onv_status look(finder *f, const int64_t *at, const seen **found, onv_error *err)
{
    const onv_sampled *s = f->sampled;
    int64_t sizes[ONV_SAMPLED_DIMS];
    *found = NULL;
    ONV_WORK(1 + f->n_seen / 64);
    for (uint32_t i = 0; i < f->n_seen; i++)
        if (memcmp(f->list[i].at, at, sizeof f->list[i].at) == 0) {
            *found = &f->list[i];
            return ONV_OK;
        }
    if (f->n_seen == MOST_VALUES) return ONV_OK;
    seen *row = &f->list[f->n_seen];
    *row = (seen){.has = false};
    memcpy(row->at, at, sizeof row->at);
    for (uint32_t d = 0; d < s->n_dims; d++) sizes[d] = at[d] * s->dims[d].unit;
    ONV_TRY(f->value(f->context, sizes, row->values, &row->has, err));
    f->n_seen++;
    *found = row;
    return ONV_OK;
}

/* Doubling ranges are as likely as each other. */
static int64_t draw(const onv_sampled_dim *dim, uint64_t random)
{
    int64_t low = dim->low, span = dim->high / dim->low;
    uint32_t octaves = 0;
    while (span > 1) {
        span /= 2;
        octaves++;
    }
    low *= (int64_t)1 << random % (octaves + 1);
    int64_t high = 2 * low - 1 < dim->high ? 2 * low - 1 : dim->high;
    return low + (int64_t)((random >> 32) % (uint64_t)(high - low + 1));
}

static onv_status take_points(finder *f, onv_error *err)
{
    onv_sampled *s = f->sampled;
    enum { TRIES = 10 * ONV_SAMPLED_POINTS };
    for (uint64_t k = 0; k < TRIES && f->n_seen < ONV_SAMPLED_POINTS; k++) {
        int64_t at[ONV_SAMPLED_DIMS] = {0};
        const seen *found;
        for (uint32_t d = 0; d < s->n_dims; d++)
            at[d] = draw(&s->dims[d], onv_hash_u64(ONV_SAMPLED_DIMS * k + d + 1));
        ONV_TRY(look(f, at, &found, err));
    }
    s->n_points = f->n_seen;
    return ONV_OK;
}

/* --- Polynomials ------------------------------------------------------------------------------- */

/* Times (sign * (k - from) - less), k being a dim. False: a number is too large. */
static bool multiply(polynomial *p, uint32_t dim, int64_t sign, int64_t from, int64_t less)
{
    polynomial result = {{0}};
    static const uint32_t strides[] = {SIDE * SIDE, SIDE, 1};
    const wide constant = -(wide)sign * from - less;
    for (uint32_t i = 0; i < N_TERMS; i++) {
        wide part;
        if (p->term[i] == 0) continue;
        if (__builtin_mul_overflow(p->term[i], constant, &part) ||
            __builtin_add_overflow(result.term[i], part, &result.term[i]))
            return false;
        result.term[i + strides[dim]] += sign * p->term[i];
    }
    *p = result;
    return true;
}

static bool value_at(const polynomial *p, const int64_t *at, wide *sum)
{
    *sum = 0;
    for (uint32_t i = 0; i < N_TERMS; i++) {
        uint32_t powers[ONV_SAMPLED_DIMS] = {i / (SIDE * SIDE), i / SIDE % SIDE, i % SIDE};
        wide term = p->term[i];
        for (uint32_t d = 0; d < ONV_SAMPLED_DIMS; d++)
            for (uint32_t k = 0; k < powers[d]; k++)
                if (__builtin_mul_overflow(term, (wide)at[d], &term)) return false;
        if (__builtin_add_overflow(*sum, term, sum)) return false;
    }
    return true;
}

/* What is near a point, by Newton's formula: differences of values on a lattice that begins there and goes by `signs`. */
static onv_status fit(finder *f, const seen *from, const int64_t *signs, uint32_t figure,
                      polynomial *result, bool *done, onv_error *err)
{
    const uint32_t n = f->sampled->n_dims;
    static const int64_t factorials[] = {1, 1, 2, 6};
    wide difference[N_TERMS] = {0};
    *done = false;
    *result = (polynomial){{0}};
    for (uint32_t i = 0; i < N_TERMS; i++) {
        uint32_t steps[ONV_SAMPLED_DIMS] = {i / (SIDE * SIDE), i / SIDE % SIDE, i % SIDE}, sum = 0;
        int64_t at[ONV_SAMPLED_DIMS] = {0};
        const seen *found;
        for (uint32_t d = 0; d < ONV_SAMPLED_DIMS; d++) sum += d < n ? steps[d] : steps[d] * SIDE;
        if (sum > DEGREE) continue;
        for (uint32_t d = 0; d < ONV_SAMPLED_DIMS; d++) {
            at[d] = d < n ? from->at[d] + signs[d] * steps[d] : 0;
            if (d < n && at[d] < 1) return ONV_OK;
        }
        ONV_TRY(look(f, at, &found, err));
        if (found == NULL || !found->has) return ONV_OK;
        difference[i] = (wide)found->values[figure];
    }
    static const uint32_t strides[] = {SIDE * SIDE, SIDE, 1};
    for (uint32_t d = 0; d < n; d++)
        for (uint32_t level = 1; level <= DEGREE; level++)
            for (uint32_t i = N_TERMS; i-- > 0;)
                if (i / strides[d] % SIDE >= level) difference[i] -= difference[i - strides[d]];
    for (uint32_t i = 0; i < N_TERMS; i++) {
        uint32_t powers[ONV_SAMPLED_DIMS] = {i / (SIDE * SIDE), i / SIDE % SIDE, i % SIDE};
        polynomial term = {{0}};
        if (powers[0] + powers[1] + powers[2] > DEGREE || difference[i] == 0) continue;
        term.term[0] =
            difference[i] *
            (FACTOR / (factorials[powers[0]] * factorials[powers[1]] * factorials[powers[2]]));
        for (uint32_t d = 0; d < n; d++)
            for (uint32_t k = 0; k < powers[d]; k++)
                if (!multiply(&term, d, signs[d], from->at[d], k)) return ONV_OK;
        for (uint32_t k = 0; k < N_TERMS; k++) result->term[k] += term.term[k];
    }
    *done = true;
    return ONV_OK;
}

/* --- Pieces ------------------------------------------------------------------------------------ */

/* Never above a value, as one of those whose largest is the figure. */
static bool is_below(const finder *f, const polynomial *p, uint32_t figure)
{
    for (uint32_t i = 0; i < f->sampled->n_points; i++) {
        wide value;
        if (!f->list[i].has) continue;
        if (!value_at(p, f->list[i].at, &value) || value > (wide)f->list[i].values[figure] * FACTOR)
            return false;
    }
    return true;
}

static bool is_met(const finder *f, uint32_t n_pieces, const seen *point, uint32_t figure)
{
    for (uint32_t k = 0; k < n_pieces; k++) {
        wide value;
        if (value_at(&f->pieces[k], point->at, &value) &&
            value == (wide)point->values[figure] * FACTOR)
            return true;
    }
    return false;
}

/* As an expression of sizes; unknown where a factor is not whole. */
static onv_dim express(const finder *f, const polynomial *p)
{
    const onv_sampled *s = f->sampled;
    onv_dim sum = onv_dim_const(0);
    for (uint32_t i = 0; i < N_TERMS; i++) {
        uint32_t powers[ONV_SAMPLED_DIMS] = {i / (SIDE * SIDE), i / SIDE % SIDE, i % SIDE};
        wide divisor = FACTOR;
        if (p->term[i] == 0) continue;
        for (uint32_t d = 0; d < ONV_SAMPLED_DIMS; d++)
            for (uint32_t k = 0; k < powers[d]; k++) divisor *= s->dims[d].unit;
        wide factor = p->term[i] / divisor;
        if (factor * divisor != p->term[i] || factor > INT64_MAX / 2 || factor < INT64_MIN / 2)
            return ONV_DIM_UNKNOWN;
        onv_dim term = onv_dim_const((int64_t)factor);
        for (uint32_t d = 0; d < ONV_SAMPLED_DIMS; d++)
            for (uint32_t k = 0; k < powers[d]; k++)
                term = onv_dim_mul(f->pool, term, onv_dim_symbol_named(f->pool, s->dims[d].name));
        sum = onv_dim_add(f->pool, sum, term);
    }
    return sum;
}

static const char *name_point(const finder *f, const seen *point)
{
    const onv_sampled *s = f->sampled;
    const char *text = "";
    for (uint32_t d = 0; d < s->n_dims && text != NULL; d++)
        text = onv_arena_printf(f->arena, "%s%s%s = %" PRId64, text, d > 0 ? ", " : "",
                                s->dims[d].name, point->at[d] * s->dims[d].unit);
    return text != NULL ? text : "";
}

/* The polynomial that a point asks for. */
static onv_status add_piece(finder *f, const seen *point, uint32_t figure, uint32_t *n_pieces,
                            onv_error *err)
{
    onv_sampled_figure *of = &f->sampled->figures[figure];
    for (uint32_t signs = 0; signs < 1U << f->sampled->n_dims; signs++) {
        int64_t by[ONV_SAMPLED_DIMS];
        polynomial p;
        bool done;
        for (uint32_t d = 0; d < ONV_SAMPLED_DIMS; d++) by[d] = (signs >> d & 1) != 0 ? -1 : 1;
        ONV_TRY(fit(f, point, by, figure, &p, &done, err));
        if (!done || *n_pieces == ONV_SAMPLED_PIECES || !is_below(f, &p, figure)) continue;
        onv_dim bytes = express(f, &p);
        if (!onv_dim_is_known(bytes)) continue;
        f->pieces[*n_pieces] = p;
        of->pieces[(*n_pieces)++] = bytes;
        return ONV_OK;
    }
    of->why_not = onv_arena_printf(f->arena,
                                   "no polynomial of degree %d with whole factors holds "
                                   "around %s",
                                   DEGREE, name_point(f, point));
    return of->why_not != NULL ? ONV_OK : onv_fail_memory(err);
}

static onv_status find_figure(finder *f, uint32_t figure, onv_error *err)
{
    onv_sampled_figure *of = &f->sampled->figures[figure];
    uint32_t n_pieces = 0;
    for (uint32_t i = 0; i < f->sampled->n_points && of->why_not == NULL; i++)
        if (f->list[i].has && !is_met(f, n_pieces, &f->list[i], figure))
            ONV_TRY(add_piece(f, &f->list[i], figure, &n_pieces, err));
    of->n_pieces = of->why_not == NULL ? n_pieces : 0;
    return ONV_OK;
}

static onv_status find(finder *f, onv_error *err)
{
    onv_sampled *s = f->sampled;
    uint32_t n_values = 0;
    ONV_TRY(take_points(f, err));
    for (uint32_t i = 0; i < s->n_points; i++) n_values += f->list[i].has;
    if (n_values < s->n_points) {
        s->why_not = onv_arena_printf(f->arena, "%u of %u points have no figure",
                                      (unsigned)(s->n_points - n_values), (unsigned)s->n_points);
        return s->why_not != NULL ? ONV_OK : onv_fail_memory(err);
    }
    for (uint32_t i = 0; i < s->n_figures; i++) ONV_TRY(find_figure(f, i, err));
    return ONV_OK;
}

onv_status onv_sampled_find(onv_sampled *sampled, onv_dims *pool, onv_arena *arena,
                            onv_sampled_value value, void *context, onv_error *err)
{
    finder *f = onv_heap_calloc(1, sizeof *f);
    seen *list = onv_heap_calloc(MOST_VALUES, sizeof *list);
    onv_status status = ONV_OK;
    if (f == NULL || list == NULL) {
        status = onv_fail_memory(err);
    } else {
        *f = (finder){.sampled = sampled,
                      .pool = pool,
                      .arena = arena,
                      .value = value,
                      .context = context,
                      .list = list};
        status = find(f, err);
    }
    onv_heap_free(list);
    onv_heap_free(f);
    return status;
}

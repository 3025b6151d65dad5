/* Shapes of terms, some of whose dims are not known yet, and what terms are built of. */
#include <string.h>

#include "base/checked.h"
#include "lower/folded_solver.h"

#define FROM_UNKNOWN(k) (-1 - (int64_t)(k))
#define TO_UNKNOWN(dim) ((uint32_t)(-1 - (dim)))

/* --- Shapes ------------------------------------------------------------------------------------ */

int64_t onv_term_resolve(const int64_t *sizes, int64_t dim)
{
    for (uint32_t n = 0; dim < 0 && n <= ONV_TERM_MOST_UNKNOWNS && sizes[TO_UNKNOWN(dim)] != 0; n++)
        dim = sizes[TO_UNKNOWN(dim)];
    return dim;
}

int64_t onv_term_dim(const onv_folded_plan *plan, int64_t dim)
{
    dim = onv_term_resolve(plan->sizes, dim);
    return dim < 0 ? 0 : dim;
}

bool onv_term_unknown(onv_solver *s, int64_t likely, int64_t *dim)
{
    if (s->now.n_unknowns == ONV_TERM_MOST_UNKNOWNS) return false;
    s->now.sizes[s->now.n_unknowns] = 0;
    s->now.likely[s->now.n_unknowns] = likely;
    *dim = FROM_UNKNOWN(s->now.n_unknowns++);
    return true;
}

void onv_term_set_likely(onv_solver *s, int64_t dim, int64_t likely)
{
    dim = onv_term_resolve(s->now.sizes, dim);
    if (dim < 0) s->now.likely[TO_UNKNOWN(dim)] = likely;
}

void onv_term_set(onv_solver *s, int64_t dim, int64_t size)
{
    dim = onv_term_resolve(s->now.sizes, dim);
    if (dim < 0) s->now.sizes[TO_UNKNOWN(dim)] = size;
}

static bool same_dim(onv_solver *s, int64_t a, int64_t b)
{
    a = onv_term_resolve(s->now.sizes, a);
    b = onv_term_resolve(s->now.sizes, b);
    if (a == b) return true;
    if (a >= 0 && b >= 0) return false;
    if (a < 0)
        s->now.sizes[TO_UNKNOWN(a)] = b;
    else
        s->now.sizes[TO_UNKNOWN(b)] = a;
    return true;
}

bool onv_term_count(const onv_solver *s, const onv_term_shape *shape, int64_t *known,
                    uint32_t *n_unknown, int64_t *unknown)
{
    *known = 1;
    *n_unknown = 0;
    for (uint32_t i = 0; i < shape->dims.rank; i++) {
        int64_t dim = onv_term_resolve(s->now.sizes, shape->dims.dims[i]);
        if (dim < 0) {
            *unknown = dim;
            ++*n_unknown;
        } else if (dim == 0 || !onv_i64_mul(*known, dim, known)) {
            return false;
        }
    }
    return true;
}

static bool has_as_many(onv_solver *s, const onv_term_shape *a, const onv_term_shape *b)
{
    int64_t known[2], unknown[2] = {0, 0};
    uint32_t n[2];
    if (!onv_term_count(s, a, &known[0], &n[0], &unknown[0]) ||
        !onv_term_count(s, b, &known[1], &n[1], &unknown[1]))
        return false;
    if (n[0] == 0 && n[1] == 0) return known[0] == known[1];
    for (uint32_t k = 0; k < 2; k++)
        if (n[k] == 1 && n[1 - k] == 0)
            return known[1 - k] % known[k] == 0 && same_dim(s, unknown[k], known[1 - k] / known[k]);
    return true;
}

static bool same_shape(onv_solver *s, const onv_term_shape *a, const onv_term_shape *b)
{
    if (a->is_wild || b->is_wild) return has_as_many(s, a, b);
    bool same = a->dims.rank == b->dims.rank;
    for (uint32_t i = 0; i < a->dims.rank && same; i++)
        same = same_dim(s, a->dims.dims[i], b->dims.dims[i]);
    return same;
}

onv_term_shape onv_term_matrix(int64_t rows, int64_t columns)
{
    return (onv_term_shape){.dims = {2, {rows, columns}}};
}

/* --- Terms ------------------------------------------------------------------------------------- */

bool onv_term_add(onv_solver *s, onv_term term, uint16_t *at)
{
    if (s->now.n_terms == ONV_TERM_MOST) return false;
    s->terms[s->now.n_terms] = term;
    *at = (uint16_t)s->now.n_terms++;
    return true;
}

bool onv_term_add_call(onv_solver *s, uint32_t c, const onv_term_shape *shape, const uint16_t *in,
                       uint32_t n_in, uint16_t *at)
{
    onv_term term = {.kind = s->calls[c].kind,
                     .name = s->calls[c].name,
                     .form = s->calls[c].kind->form,
                     .n_in = (uint8_t)n_in,
                     .shape = *shape};
    for (uint32_t k = 0; k < n_in; k++) term.in[k] = in[k];
    return onv_term_add(s, term, at);
}

bool onv_set_is_one(uint32_t set)
{
    return set != 0 && (set & (set - 1)) == 0;
}

uint32_t onv_set_first(uint32_t set)
{
    uint32_t i = 0;
    while ((set >> i & 1) == 0) i++;
    return i;
}

uint32_t onv_set_size(uint32_t set)
{
    uint32_t n = 0;
    for (; set != 0; set &= set - 1) n++;
    return n;
}

uint32_t onv_term_calls_of(const onv_solver *s, uint32_t calls, onv_term_form form)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < s->n_calls; i++)
        if ((calls >> i & 1) != 0 && s->calls[i].kind->form == form) found |= UINT32_C(1) << i;
    return found;
}

bool onv_term_is_unknown_buffer(const onv_solver *s, uint32_t leaves)
{
    const onv_leaf *only = onv_set_is_one(leaves) ? &s->leaves[onv_set_first(leaves)] : NULL;
    return only != NULL && only->is_buffer && !only->is_known;
}

/* What other terms make of the parameter: the dims that they tell, and while there is a choice none that they leave open. */
static bool fits_others(onv_solver *s, const onv_leaf *leaf, const onv_term_shape *shape)
{
    size_t listed = onv_listed_find(s->l, leaf->name);
    const onv_shape *open = listed != SIZE_MAX ? &s->l->folded.open_leaves[listed] : NULL;
    if (open == NULL || open->rank == UINT32_MAX || shape->is_wild) return true;
    bool fits = open->rank == shape->dims.rank;
    for (uint32_t i = 0; i < open->rank && fits; i++) {
        int64_t dim = onv_term_resolve(s->now.sizes, shape->dims.dims[i]);
        fits = open->dims[i] > 0 ? same_dim(s, dim, open->dims[i]) : dim < 0 || !s->is_strict;
    }
    return fits || !s->is_strict;
}

bool onv_term_use_leaf(onv_solver *s, uint32_t i, const onv_term_shape *shape, uint16_t *at)
{
    const onv_leaf *from = &s->leaves[i];
    int64_t known, unknown;
    uint32_t n_unknown;
    if (onv_term_is_unknown_buffer(s, UINT32_C(1) << i) &&
        onv_term_calls_of(s, ONV_ALL_CALLS, ONV_TERM_ROWS) == 0 &&
        onv_term_calls_of(s, ONV_ALL_CALLS, ONV_TERM_LINEAR) == 0 &&
        (!onv_term_count(s, shape, &known, &n_unknown, &unknown) || n_unknown > 0))
        return false;
    if (from->is_known && !same_shape(s, &from->shape, shape)) return false;
    if (!from->is_known && !fits_others(s, from, shape)) return false;
    if (s->now.leaf_term[i] != ONV_NO_TERM) {
        *at = s->now.leaf_term[i];
        return from->is_known || same_shape(s, &s->terms[*at].shape, shape);
    }
    onv_term term = {.name = from->name,
                     .form = ONV_TERM_LEAF,
                     .shape = from->is_known && shape->is_wild ? from->shape : *shape};
    if (!onv_term_add(s, term, at)) return false;
    s->now.leaf_term[i] = *at;
    return true;
}

bool onv_term_ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), n = strlen(end);
    return length >= n && strcmp(name + length - n, end) == 0;
}

/* The inside of the search for a term: sets of calls and of leaves are bits by their places in the note. */
#ifndef ONV_LOWER_FOLDED_SOLVER_H
#define ONV_LOWER_FOLDED_SOLVER_H

#include "lower/folded_terms.h"
#include "lower/lowering.h"

enum {
    ONV_TERM_MOST_CALLS = 24,
    ONV_TERM_MOST_LEAVES = 8,
    ONV_TERM_MOST_STEPS = 8000,
    ONV_TERM_VIEW_LATE = 4,
    ONV_NO_TERM = UINT16_MAX
};

#define ONV_ALL_CALLS UINT32_MAX

typedef struct onv_call {
    const onv_term_kind *kind;
    const char *name; /* interned */
    uint32_t number;
} onv_call;

typedef struct onv_leaf {
    const char *name;
    bool is_known, is_buffer;
    onv_term_shape shape;
} onv_leaf;

/* What an attempt that leads nowhere takes back. */
typedef struct onv_attempt {
    uint32_t n_terms, n_unknowns;
    bool
        is_assumed; /* a factor has the shape of what it is multiplied by, where it may be smaller */
    int64_t sizes[ONV_TERM_MOST_UNKNOWNS], likely[ONV_TERM_MOST_UNKNOWNS];
    uint16_t leaf_term[ONV_TERM_MOST_LEAVES];
} onv_attempt;

typedef struct onv_solver {
    onv_lowering *l;
    const onv_value *value;
    onv_call calls[ONV_TERM_MOST_CALLS];
    onv_leaf leaves[ONV_TERM_MOST_LEAVES];
    uint32_t n_calls, n_leaves, steps;
    bool is_strict;   /* parameters have the shapes that other terms give them */
    uint32_t n_parts; /* that the file has of what the constant is a part of */
    onv_term terms[ONV_TERM_MOST];
    onv_attempt now;
} onv_solver;

/* --- folded_shapes.c ---------------------------------------------------------------------------- */

bool onv_set_is_one(uint32_t set);
uint32_t onv_set_first(uint32_t set);
uint32_t onv_set_size(uint32_t set);

int64_t onv_term_resolve(const int64_t *sizes, int64_t dim);
/* A new one; `likely`: what is taken where nothing tells it. */
bool onv_term_unknown(onv_solver *s, int64_t likely, int64_t *dim);
/* Where nothing else tells it. */
void onv_term_set(onv_solver *s, int64_t dim, int64_t size);
void onv_term_set_likely(onv_solver *s, int64_t dim, int64_t likely);
onv_term_shape onv_term_matrix(int64_t rows, int64_t columns);
/* The product of the dims that are known, and how many are not; false where it does not fit. */
bool onv_term_count(const onv_solver *s, const onv_term_shape *shape, int64_t *known,
                    uint32_t *n_unknown, int64_t *unknown);

bool onv_term_add(onv_solver *s, onv_term term, uint16_t *at);
bool onv_term_add_call(onv_solver *s, uint32_t c, const onv_term_shape *shape, const uint16_t *in,
                       uint32_t n_in, uint16_t *at);
/* Those of the form, of these. */
uint32_t onv_term_calls_of(const onv_solver *s, uint32_t calls, onv_term_form form);
/* One leaf: a buffer that the file lacks. */
bool onv_term_is_unknown_buffer(const onv_solver *s, uint32_t leaves);
bool onv_term_use_leaf(onv_solver *s, uint32_t i, const onv_term_shape *shape, uint16_t *at);
bool onv_term_ends_with(const char *name, const char *end);

/* --- folded_terms.c, folded_forms.c -------------------------------------------------------------- */

/* A term of that shape, of all these calls and leaves; the second: whose last call is `c`, which is not among them. */
bool onv_term_solve(onv_solver *s, const onv_term_shape *shape, uint32_t calls, uint32_t leaves,
                    uint16_t *at);
bool onv_term_solve_call(onv_solver *s, uint32_t c, const onv_term_shape *shape, uint32_t calls,
                         uint32_t leaves, uint16_t *at);

#endif

/* Dims: sizes that may be numbers or expressions over named symbols.
 *
 * A dim is one 64-bit word:
 *
 *     constant      |raw| < 2^61         the number itself (also negative: see below)
 *     +-infinity    raw = +-2^61         a number too large to hold, e.g. INT64_MAX as a slice end
 *     expression    raw >  2^61          an index into the pool's table
 *     unknown       raw = INT64_MIN      nothing is known
 *
 * A fully bound model therefore runs on plain integers and never touches the pool.
 *
 * Expressions are hash-consed in a normal form, so that equal forms are the same word:
 *   - sums of integer multiples of products of atoms (products are distributed over sums);
 *   - an atom is a symbol, floor(a/b), mod(a,b), min(a,...) or max(a,...);
 *   - ceil(a/b) is floor((a+b-1)/b); nested divisions by constants are folded together.
 * Symbols stand for sizes, so they are >= 0; the simplifier uses that (max(0, batch) is batch), and
 * that a divisor is not 0. Dims double as the elements of integer tensors whose value is tracked
 * (shape arithmetic), which is why they may be negative.
 *
 * Arithmetic on an unknown operand is unknown; on an infinity too, except where the result is
 * certain (min, max, comparison). Overflow of a constant and expressions that grow beyond the
 * limits below give unknown and count in `pool->overflows` / `pool->too_large`, which the caller
 * turns into an error or a diagnostic that names the node.
 */
#ifndef ONV_IR_DIM_H
#define ONV_IR_DIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "base/strings.h"
#include "base/vec.h"

typedef struct onv_dim {
    int64_t raw;
} onv_dim;

#define ONV_DIM_INFINITY_RAW ((int64_t)1 << 61)
#define ONV_DIM_UNKNOWN      ((onv_dim){INT64_MIN})
#define ONV_DIM_INFINITY     ((onv_dim){ONV_DIM_INFINITY_RAW})

enum {
    ONV_DIM_MAX_TERMS = 64,    /* of a sum, factors of a product */
    ONV_DIM_MAX_OPERANDS = 16, /* of min and max */
    ONV_DIM_MAX_DEPTH = 32,    /* nesting of floor, mod, min and max */
    ONV_DIM_MAX_TREE = 4096,   /* parts when written out, unless the pool is told otherwise */
};

typedef struct onv_dim_expr onv_dim_expr;

/* Names of fresh symbols: "range#7" is made by the node with index 7, a second one of that kind by
 * the same node is "range#7.1". So a name does not depend on which other sizes are bound. */
enum { ONV_DIM_MAX_FRESH_KINDS = 6 };

typedef struct onv_dim_scope {
    uint32_t number; /* of the node; UINT32_MAX: symbols are numbered in order of creation */
    uint32_t n_kinds;
    struct {
        const char *name;
        uint32_t count;
    } kinds[ONV_DIM_MAX_FRESH_KINDS];
} onv_dim_scope;

/* A size given for a fresh symbol, by name, before it is made. */
typedef struct onv_dim_given {
    const char *name;
    int64_t size;
    bool used;
    bool too_large; /* beyond `bound` */
    onv_dim bound;
} onv_dim_given;

/* A sum or product that was made lately; the result is known unless the place is empty. */
enum { ONV_DIMS_MADE = 512 };

typedef struct onv_dim_made {
    onv_dim a, b, result;
    bool is_product;
} onv_dim_made;

typedef struct onv_dims {
    onv_arena *arena; /* not owned */
    onv_dim_made *made;
    ONV_VEC(onv_dim_expr) exprs;
    uint32_t *slots; /* hash-consing table: index + 1 of the expression, 0 where empty */
    uint32_t n_slots;
    uint32_t *symbols; /* by symbol number: index of its expression */
    uint32_t n_symbols, symbol_capacity;
    uint32_t max_tree; /* parts of an expression when written out */
    onv_dim_scope scope;
    onv_dim_given *given; /* not owned */
    uint32_t n_given;
    uint64_t overflows; /* constants that did not fit */
    uint64_t too_large; /* expressions beyond the limits */
    bool failed;        /* memory ran out: results since then are unknown */
} onv_dims;

void onv_dims_init(onv_dims *pool, onv_arena *arena);
void onv_dims_cleanup(onv_dims *pool);

/* A pool of its own in which every dim of the other means the same; `from` must outlive it, as parts
 * of its expressions are shared. False when memory is short. */
bool onv_dims_copy(const onv_dims *from, onv_arena *arena, onv_dims *to);

/* Constants. Values beyond +-2^61 become an infinity. */
static inline onv_dim onv_dim_const(int64_t value)
{
    if (value >= ONV_DIM_INFINITY_RAW) return (onv_dim){ONV_DIM_INFINITY_RAW};
    if (value <= -ONV_DIM_INFINITY_RAW) return (onv_dim){-ONV_DIM_INFINITY_RAW};
    return (onv_dim){value};
}

static inline bool onv_dim_is_known(onv_dim d) /* anything but unknown */
{
    return d.raw != INT64_MIN;
}

static inline bool onv_dim_is_const(onv_dim d) /* a finite number */
{
    return d.raw > -ONV_DIM_INFINITY_RAW && d.raw < ONV_DIM_INFINITY_RAW;
}

static inline bool onv_dim_is_infinite(onv_dim d)
{
    return d.raw == ONV_DIM_INFINITY_RAW || d.raw == -ONV_DIM_INFINITY_RAW;
}

static inline bool onv_dim_is_expr(onv_dim d) /* symbols included */
{
    return d.raw > ONV_DIM_INFINITY_RAW;
}

static inline bool onv_dim_is(onv_dim d, int64_t value) /* this very number */
{
    return d.raw == value;
}

/* Same form. True for two unknowns never. */
static inline bool onv_dim_same(onv_dim a, onv_dim b)
{
    return a.raw == b.raw && onv_dim_is_known(a);
}

/* Whether a file's name of a dim names nothing: it has no letter ("?", "-1"), or is a word that exporters
 * write on every free axis ("None", "unk", "unknown"). Then each axis has a size of its own. */
bool onv_dim_name_is_anonymous(const char *name);

/* The symbol of that name (an interned string), made if new. */
onv_dim onv_dim_symbol(onv_dims *pool, const char *name);

/* The first symbol of that name, unknown if there is none. */
onv_dim onv_dim_symbol_named(const onv_dims *pool, const char *name);

/* A new symbol whose value only the data decides, at most `bound` (ONV_DIM_UNKNOWN: no bound).
 * Its name is made from `name`, e.g. "nonzero#3". Where pool->given has a size for that name it is
 * that size. */
onv_dim onv_dim_fresh(onv_dims *pool, const char *name, onv_dim bound);

/* The same for the one at a fixed place among those that a node may make of that kind: its name does
 * not depend on how many of them are made. */
onv_dim onv_dim_fresh_at(onv_dims *pool, const char *name, uint32_t place, onv_dim bound);

/* The same for a value that differs from one iteration to the next: no size can be given for it. */
onv_dim onv_dim_fresh_varying(onv_dims *pool, const char *name, onv_dim bound);

/* The size given for the symbol that onv_dim_fresh_at(pool, name, 0, ...) would make, unknown if
 * there is none. */
onv_dim onv_dim_given_size(const onv_dims *pool, const char *name);

/* Whether the symbol was made by onv_dim_fresh or onv_dim_fresh_at. */
bool onv_dim_is_bindable(const onv_dims *pool, onv_dim symbol);

/* Fresh symbols are now made by the node with that number. */
static inline void onv_dims_enter(onv_dims *pool, uint32_t number)
{
    pool->scope.number = number;
    pool->scope.n_kinds = 0;
}

bool onv_dim_is_symbol(const onv_dims *pool, onv_dim d);
const char *onv_dim_symbol_name(const onv_dims *pool, onv_dim symbol);

/* Whether it is a sum with two symbols or more among its terms: "past + sequence". */
bool onv_dim_is_sum_of_symbols(const onv_dims *pool, onv_dim d);

/* Whether the expression holds a symbol made by onv_dim_fresh with a bound / that symbol. */
bool onv_dim_has_bound(const onv_dims *pool, onv_dim d);
/* Calls back for every symbol that stands in the expression, once for each time it does. */
void onv_dim_each_symbol(const onv_dims *pool, onv_dim d,
                         void (*use)(void *context, onv_dim symbol), void *context);
bool onv_dim_contains(const onv_dims *pool, onv_dim d, onv_dim symbol);

/* Arithmetic. Division is floor division. */
onv_dim onv_dim_add(onv_dims *pool, onv_dim a, onv_dim b);
onv_dim onv_dim_sub(onv_dims *pool, onv_dim a, onv_dim b);
onv_dim onv_dim_neg(onv_dims *pool, onv_dim a);
onv_dim onv_dim_mul(onv_dims *pool, onv_dim a, onv_dim b);
onv_dim onv_dim_floordiv(onv_dims *pool, onv_dim a, onv_dim b);
onv_dim onv_dim_ceildiv(onv_dims *pool, onv_dim a, onv_dim b);
onv_dim onv_dim_mod(onv_dims *pool, onv_dim a, onv_dim b);
onv_dim onv_dim_min(onv_dims *pool, onv_dim a, onv_dim b);
onv_dim onv_dim_max(onv_dims *pool, onv_dim a, onv_dim b);

/* a / b where b divides a for every value of the symbols; else unknown. */
onv_dim onv_dim_exact_div(onv_dims *pool, onv_dim a, onv_dim b);

/* The bounds that hold for all values of the symbols (>= 0, and <= their bound where they have
 * one): a number or an infinity. Conservative. */
onv_dim onv_dim_lower(const onv_dims *pool, onv_dim d);
onv_dim onv_dim_upper(const onv_dims *pool, onv_dim d);

/* Certain for all values of the symbols? False also means "cannot tell". */
bool onv_dim_always_le(onv_dims *pool, onv_dim a, onv_dim b);
bool onv_dim_always_lt(onv_dims *pool, onv_dim a, onv_dim b);
bool onv_dim_always_ne(onv_dims *pool, onv_dim a, onv_dim b);

/* The same as onv_dim_always_le, and for floors of one size by several divisors, as strides make them.
 * Slower. */
bool onv_dim_never_above(onv_dims *pool, onv_dim a, onv_dim b);

/* Whether `above` is at most `below` while one symbol is less than `from`, and more from there on,
 * whatever the others are (>= 1). False also means "cannot tell". */
bool onv_dim_overtakes(onv_dims *pool, onv_dim below, onv_dim above, onv_dim *symbol,
                       int64_t *from);

/* The expression with every symbol one larger, but for those with `from_zero` (by symbol number): what
 * holds of it for symbols >= 0 holds of `d` where the others are >= 1. */
onv_dim onv_dim_from_one(onv_dims *pool, onv_dim d, const bool *from_zero);

/* Replaces data-dependent symbols by their bounds: what memory counts. Unknown where one has none.
 * Exact for expressions that grow with the symbol, otherwise an upper bound. */
onv_dim onv_dim_substitute_bounds(onv_dims *pool, onv_dim d);

/* The expression with `symbol` replaced. */
onv_dim onv_dim_substitute(onv_dims *pool, onv_dim d, onv_dim symbol, onv_dim value);

/* The value where symbol k (in order of creation, onv_dim_symbol_index) has values[k]; unknown if
 * a value needed is unknown. */
uint32_t onv_dim_symbol_index(const onv_dims *pool, onv_dim symbol);
onv_dim onv_dim_symbol_at(const onv_dims *pool, uint32_t index);
onv_dim onv_dim_eval(onv_dims *pool, onv_dim d, const onv_dim *values);

/* A sum in parts: each a number times a product of symbols and what cannot be taken apart (floors, min,
 * max). Products of more factors come first, a number alone last. */
typedef struct onv_dim_part {
    int64_t coef;
    uint32_t n_factors;
    onv_dim product; /* 1: the number alone */
} onv_dim_part;

/* `parts` has room for ONV_DIM_MAX_TERMS + 1. Returns their number; 0 for what is no finite, known dim. */
uint32_t onv_dim_parts(const onv_dims *pool, onv_dim d, onv_dim_part *parts);

/* The factors of a product, into room for ONV_DIM_MAX_TERMS. Returns their number. */
uint32_t onv_dim_factors(const onv_dims *pool, onv_dim product, onv_dim *factors);

/* Text like "batch", "seq + past", "heads*64", "floor((h - 1)/2) + 1", "?", in the arena; NULL when
 * memory is short. */
const char *onv_dim_text(const onv_dims *pool, onv_arena *arena, onv_dim d);

/* An expression in postfix order, for a stack: numbers and symbols are pushed, an operation takes the
 * upper two. Nothing comes of an unknown or infinite dim. */
typedef enum onv_dim_op {
    ONV_DIM_OP_NUMBER,
    ONV_DIM_OP_SYMBOL,
    ONV_DIM_OP_ADD,
    ONV_DIM_OP_MULTIPLY,
    ONV_DIM_OP_FLOOR_DIVIDE,
    ONV_DIM_OP_MODULO,
    ONV_DIM_OP_MIN,
    ONV_DIM_OP_MAX,
} onv_dim_op;

/* `d` is the number or the symbol. */
typedef void (*onv_dim_op_fn)(void *context, onv_dim_op op, onv_dim d);
void onv_dim_each_op(const onv_dims *pool, onv_dim d, onv_dim_op_fn visit, void *context);

/* How an expression is written: what stands before, between and behind operands. */
typedef struct onv_dim_syntax {
    const char *floor[3], *mod[3];
    const char *min, *max;                                    /* with the opening bracket */
    bool two_operands;                                        /* min and max take no more */
    const char *(*name)(const void *context, onv_dim symbol); /* NULL: the symbols' own names */
    const void *context;
} onv_dim_syntax;

extern const onv_dim_syntax onv_dim_syntax_text;

const char *onv_dim_text_in(const onv_dims *pool, onv_arena *arena, onv_dim d,
                            const onv_dim_syntax *syntax);

/* Sizes as sympy writes them, in programs and in names of dims, become dims: srepr ("Mul(Integer(2), Symbol('s77', ...))", PyTorch 2.7
 * and later) or str ("2*s77 + 1", before).
 *
 * Fractions are exact inside of an expression: a size is a whole number, so that their floor is the size. What has
 * no dim (Where, bit operations, functions of the user's) is unknown. Nesting is bounded.
 */

/* Symbols are made in `pool`, with names in `strings`. *unread is, where *dim is unknown, what has no dim: a static text, or one
 * in `strings`. ONV_ERR_FORMAT: the text is no expression; ONV_ERR_LIMIT: nested too deep. */
onv_status onv_dim_read(const char *text, onv_dims *pool, onv_strings *strings, onv_dim *dim,
                        const char **unread, onv_error *err);

#endif

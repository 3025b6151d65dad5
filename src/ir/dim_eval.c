/* Bounds, substitution, evaluation and text of dim expressions. All recursions end: an expression's
 * size as a tree is limited when it is made. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ir/dim.h"
#include "ir/dim_expr.h"

onv_dim onv_dim_lower(const onv_dims *pool, onv_dim d)
{
    if (!onv_dim_is_known(d)) return (onv_dim){-ONV_DIM_INFINITY_RAW};
    if (!onv_dim_is_expr(d)) return d;
    return (onv_dim){onv_dim_get(pool, d)->low};
}

onv_dim onv_dim_upper(const onv_dims *pool, onv_dim d)
{
    if (!onv_dim_is_known(d)) return ONV_DIM_INFINITY;
    if (!onv_dim_is_expr(d)) return d;
    return (onv_dim){onv_dim_get(pool, d)->high};
}

bool onv_dim_has_bound(const onv_dims *pool, onv_dim d)
{
    return onv_dim_is_expr(d) && onv_dim_get(pool, d)->data;
}

bool onv_dim_contains(const onv_dims *pool, onv_dim d, onv_dim symbol)
{
    if (d.raw == symbol.raw) return true;
    if (!onv_dim_is_expr(d)) return false;
    const onv_dim_expr *e = onv_dim_get(pool, d);
    for (uint32_t i = 0; i < e->n; i++)
        if (onv_dim_contains(pool, e->terms[i].d, symbol)) return true;
    return false;
}

void onv_dim_each_symbol(const onv_dims *pool, onv_dim d,
                         void (*use)(void *context, onv_dim symbol), void *context)
{
    if (!onv_dim_is_expr(d)) return;
    const onv_dim_expr *e = onv_dim_get(pool, d);
    if (e->kind == ONV_DIM_SYMBOL) use(context, d);
    for (uint32_t i = 0; i < e->n; i++) onv_dim_each_symbol(pool, e->terms[i].d, use, context);
}

/* Rebuilds an expression from new operands. */
static onv_dim rebuild(onv_dims *pool, onv_dim_kind kind, onv_dim so_far, int64_t coef, onv_dim d)
{
    switch (kind) {
    case ONV_DIM_SUM: return onv_dim_add(pool, so_far, onv_dim_mul(pool, onv_dim_const(coef), d));
    case ONV_DIM_PRODUCT: return onv_dim_mul(pool, so_far, d);
    case ONV_DIM_FLOOR: return onv_dim_floordiv(pool, so_far, d);
    case ONV_DIM_MOD: return onv_dim_mod(pool, so_far, d);
    case ONV_DIM_MIN: return onv_dim_min(pool, so_far, d);
    case ONV_DIM_MAX: return onv_dim_max(pool, so_far, d);
    case ONV_DIM_SYMBOL: break;
    }
    return ONV_DIM_UNKNOWN;
}

/* Expressions move when the pool grows, so their fields are copied before anything is rebuilt; the
 * terms stay where they are. */
typedef onv_dim (*replace_symbol)(onv_dims *pool, onv_dim symbol, const void *context);

static onv_dim map_symbols(onv_dims *pool, onv_dim d, replace_symbol replace, const void *context)
{
    if (!onv_dim_is_expr(d)) return d;
    const onv_dim_expr e = *onv_dim_get(pool, d);
    if (e.kind == ONV_DIM_SYMBOL) return replace(pool, d, context);
    onv_dim result = onv_dim_const(e.kind == ONV_DIM_PRODUCT ? 1 : e.c);
    for (uint32_t i = 0; i < e.n; i++) {
        onv_dim part = map_symbols(pool, e.terms[i].d, replace, context);
        bool first = i == 0 && e.kind != ONV_DIM_SUM && e.kind != ONV_DIM_PRODUCT;
        result = first ? part : rebuild(pool, (onv_dim_kind)e.kind, result, e.terms[i].coef, part);
    }
    return result;
}

typedef struct substitution {
    onv_dim symbol, value;
} substitution;

static onv_dim replace_one(onv_dims *pool, onv_dim symbol, const void *context)
{
    (void)pool;
    const substitution *s = context;
    return symbol.raw == s->symbol.raw ? s->value : symbol;
}

onv_dim onv_dim_substitute(onv_dims *pool, onv_dim d, onv_dim symbol, onv_dim value)
{
    if (!onv_dim_contains(pool, d, symbol)) return d;
    return map_symbols(pool, d, replace_one, &(substitution){symbol, value});
}

static onv_dim replace_by_next(onv_dims *pool, onv_dim symbol, const void *context)
{
    const bool *from_zero = context;
    if (from_zero[onv_dim_get(pool, symbol)->symbol]) return symbol;
    return onv_dim_add(pool, symbol, onv_dim_const(1));
}

onv_dim onv_dim_from_one(onv_dims *pool, onv_dim d, const bool *from_zero)
{
    return map_symbols(pool, d, replace_by_next, from_zero);
}

static onv_dim replace_by_value(onv_dims *pool, onv_dim symbol, const void *context)
{
    const onv_dim *values = context;
    return values[onv_dim_get(pool, symbol)->symbol];
}

onv_dim onv_dim_eval(onv_dims *pool, onv_dim d, const onv_dim *values)
{
    return map_symbols(pool, d, replace_by_value, values);
}

/* The largest (or smallest) value over the data-dependent symbols, the others left in place. */
static onv_dim extreme(onv_dims *pool, onv_dim d, bool largest)
{
    if (!onv_dim_has_bound(pool, d)) return d;
    const onv_dim_expr e = *onv_dim_get(pool, d);
    switch ((onv_dim_kind)e.kind) {
    case ONV_DIM_SYMBOL: return largest ? extreme(pool, e.bound, true) : onv_dim_const(0);
    case ONV_DIM_MOD: {
        if (!largest) return onv_dim_const(0);
        return onv_dim_sub(pool, extreme(pool, e.terms[1].d, true), onv_dim_const(1));
    }
    case ONV_DIM_FLOOR: {
        onv_dim divisor = extreme(pool, e.terms[1].d, !largest);
        divisor = onv_dim_max(pool, divisor, onv_dim_const(1));
        return onv_dim_floordiv(pool, extreme(pool, e.terms[0].d, largest), divisor);
    }
    default: break;
    }
    onv_dim result = onv_dim_const(e.kind == ONV_DIM_PRODUCT ? 1 : e.c);
    for (uint32_t i = 0; i < e.n; i++) {
        bool direction = e.terms[i].coef > 0 ? largest : !largest;
        onv_dim part = extreme(pool, e.terms[i].d, direction);
        bool first = i == 0 && (e.kind == ONV_DIM_MIN || e.kind == ONV_DIM_MAX);
        result = first ? part : rebuild(pool, (onv_dim_kind)e.kind, result, e.terms[i].coef, part);
    }
    return result;
}

onv_dim onv_dim_substitute_bounds(onv_dims *pool, onv_dim d)
{
    return extreme(pool, d, true);
}

/* --- Postfix order ----------------------------------------------------------------------------- */

static void visit_sum(const onv_dims *pool, const onv_dim_expr *e, onv_dim_op_fn visit,
                      void *context)
{
    bool is_first = e->c == 0;
    if (!is_first) visit(context, ONV_DIM_OP_NUMBER, onv_dim_const(e->c));
    for (uint32_t i = 0; i < e->n; i++) {
        onv_dim_each_op(pool, e->terms[i].d, visit, context);
        if (e->terms[i].coef != 1) {
            visit(context, ONV_DIM_OP_NUMBER, onv_dim_const(e->terms[i].coef));
            visit(context, ONV_DIM_OP_MULTIPLY, ONV_DIM_UNKNOWN);
        }
        if (!is_first) visit(context, ONV_DIM_OP_ADD, ONV_DIM_UNKNOWN);
        is_first = false;
    }
}

void onv_dim_each_op(const onv_dims *pool, onv_dim d, onv_dim_op_fn visit, void *context)
{
    static const onv_dim_op ops[] = {[ONV_DIM_PRODUCT] = ONV_DIM_OP_MULTIPLY,
                                     [ONV_DIM_FLOOR] = ONV_DIM_OP_FLOOR_DIVIDE,
                                     [ONV_DIM_MOD] = ONV_DIM_OP_MODULO,
                                     [ONV_DIM_MIN] = ONV_DIM_OP_MIN,
                                     [ONV_DIM_MAX] = ONV_DIM_OP_MAX};
    if (onv_dim_is_const(d)) visit(context, ONV_DIM_OP_NUMBER, d);
    if (!onv_dim_is_expr(d)) return;
    const onv_dim_expr *e = onv_dim_get(pool, d);
    if (e->kind == ONV_DIM_SYMBOL) {
        visit(context, ONV_DIM_OP_SYMBOL, d);
        return;
    }
    if (e->kind == ONV_DIM_SUM) {
        visit_sum(pool, e, visit, context);
        return;
    }
    for (uint32_t i = 0; i < e->n; i++) {
        onv_dim_each_op(pool, e->terms[i].d, visit, context);
        if (i > 0) visit(context, ops[e->kind], ONV_DIM_UNKNOWN);
    }
}

/* --- Text -------------------------------------------------------------------------------------- */

/* A bounded output cursor that keeps counting past the end, like snprintf. */
typedef struct text {
    char *at;
    size_t size, length;
    const onv_dims *pool;
    const onv_dim_syntax *syntax;
} text;

const onv_dim_syntax onv_dim_syntax_text = {
    .floor = {"floor(", "/", ")"}, .mod = {"mod(", ", ", ")"}, .min = "min(", .max = "max("};

static void put(text *t, const char *s)
{
    size_t n = strlen(s);
    if (t->at != NULL && t->length + n < t->size) memcpy(t->at + t->length, s, n + 1);
    t->length += n;
}

static void put_number(text *t, int64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, value);
    put(t, digits);
}

static void put_dim(text *t, onv_dim d);

static bool is_sum(const onv_dims *pool, onv_dim d)
{
    return onv_dim_is_expr(d) && onv_dim_get(pool, d)->kind == ONV_DIM_SUM;
}

static void put_product(text *t, const onv_dim_expr *e)
{
    for (uint32_t i = 0; i < e->n; i++) {
        if (i > 0) put(t, "*");
        put_dim(t, e->terms[i].d);
    }
}

static void put_extremum(text *t, const onv_dim_expr *e, const char *open)
{
    put(t, open);
    for (uint32_t i = 0; i < e->n; i++) {
        if (i > 0) put(t, ", ");
        if (i > 0 && i + 1 < e->n && t->syntax->two_operands) put(t, open);
        put_dim(t, e->terms[i].d);
    }
    for (uint32_t i = 2; i < e->n && t->syntax->two_operands; i++) put(t, ")");
    put(t, ")");
}

static void put_sum(text *t, const onv_dim_expr *e)
{
    for (uint32_t i = 0; i < e->n; i++) {
        int64_t coef = e->terms[i].coef;
        if (i > 0)
            put(t, coef < 0 ? " - " : " + ");
        else if (coef < 0)
            put(t, "-");
        put_dim(t, e->terms[i].d);
        if (coef != 1 && coef != -1) {
            put(t, "*");
            put_number(t, coef < 0 ? -coef : coef);
        }
    }
    if (e->c == 0) return;
    put(t, e->c < 0 ? " - " : " + ");
    put_number(t, e->c < 0 ? -e->c : e->c);
}

/* a and b; a sum is bracketed where it would read wrongly. */
static void put_division(text *t, const onv_dim_expr *e, const char *const *parts)
{
    bool is_call = parts[1][0] == ',';
    put(t, parts[0]);
    bool bracket = is_sum(t->pool, e->terms[0].d) && !is_call;
    if (bracket) put(t, "(");
    put_dim(t, e->terms[0].d);
    if (bracket) put(t, ")");
    put(t, parts[1]);
    bracket = onv_dim_is_expr(e->terms[1].d) && !is_call;
    if (bracket) put(t, "(");
    put_dim(t, e->terms[1].d);
    if (bracket) put(t, ")");
    put(t, parts[2]);
}

static void put_symbol(text *t, onv_dim d, const onv_dim_expr *e)
{
    const onv_dim_syntax *syntax = t->syntax;
    put(t, syntax->name != NULL ? syntax->name(syntax->context, d) : e->name);
}

static void put_dim(text *t, onv_dim d)
{
    if (!onv_dim_is_known(d)) {
        put(t, "?");
        return;
    }
    if (onv_dim_is_infinite(d)) {
        put(t, d.raw > 0 ? "inf" : "-inf");
        return;
    }
    if (!onv_dim_is_expr(d)) {
        put_number(t, d.raw);
        return;
    }
    const onv_dim_expr *e = onv_dim_get(t->pool, d);
    switch ((onv_dim_kind)e->kind) {
    case ONV_DIM_SYMBOL: put_symbol(t, d, e); break;
    case ONV_DIM_SUM: put_sum(t, e); break;
    case ONV_DIM_PRODUCT: put_product(t, e); break;
    case ONV_DIM_FLOOR: put_division(t, e, t->syntax->floor); break;
    case ONV_DIM_MOD: put_division(t, e, t->syntax->mod); break;
    case ONV_DIM_MIN: put_extremum(t, e, t->syntax->min); break;
    case ONV_DIM_MAX: put_extremum(t, e, t->syntax->max); break;
    }
}

const char *onv_dim_text_in(const onv_dims *pool, onv_arena *arena, onv_dim d,
                            const onv_dim_syntax *syntax)
{
    text count = {.pool = pool, .syntax = syntax};
    put_dim(&count, d);
    char *at = onv_arena_alloc(arena, count.length + 1);
    if (at == NULL) return NULL;
    text out = {at, count.length + 1, 0, pool, syntax};
    at[0] = '\0';
    put_dim(&out, d);
    return at;
}

const char *onv_dim_text(const onv_dims *pool, onv_arena *arena, onv_dim d)
{
    return onv_dim_text_in(pool, arena, d, &onv_dim_syntax_text);
}

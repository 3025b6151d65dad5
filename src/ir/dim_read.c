#include "ir/dim.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/quota.h"
#include "base/vec.h"

/* Each level of nesting takes some stack; powers and digits behind the point stay small numbers. */
enum { MOST_DEPTH = 64, MOST_POWER = 16, MOST_DIGITS = 15, MANY = 255 };

/* A number over a number that is not 0: whole where `under` is 1. Unknown where `over` is. */
typedef struct part {
    onv_dim over, under;
} part;

typedef struct parser {
    const char *text, *at;
    onv_dims *pool;
    onv_strings *strings;
    ONV_VEC(part) arguments; /* of the calls that are read now */
    uint32_t depth;
    const char *unread;
    onv_error *err;
} parser;

static onv_status parse_expression(parser *p, part *result);

/* --- Parts ------------------------------------------------------------------------------------- */

static part whole(onv_dim d)
{
    return (part){d, onv_dim_const(1)};
}

static const part unknown = {ONV_DIM_UNKNOWN, {1}};

static bool is_whole(part a)
{
    return onv_dim_is(a.under, 1);
}

static part add(parser *p, part a, part b)
{
    onv_dims *d = p->pool;
    if (onv_dim_same(a.under, b.under)) return (part){onv_dim_add(d, a.over, b.over), a.under};
    return (part){onv_dim_add(d, onv_dim_mul(d, a.over, b.under), onv_dim_mul(d, b.over, a.under)),
                  onv_dim_mul(d, a.under, b.under)};
}

static part multiply(parser *p, part a, part b)
{
    return (part){onv_dim_mul(p->pool, a.over, b.over), onv_dim_mul(p->pool, a.under, b.under)};
}

static part negative(parser *p, part a)
{
    return (part){onv_dim_neg(p->pool, a.over), a.under};
}

static part divide(parser *p, part a, part b)
{
    if (onv_dim_is(b.over, 0) || !onv_dim_is_known(b.over)) return unknown;
    return multiply(p, a, (part){b.under, b.over});
}

/* The floor, or what is next above. */
static onv_dim round_part(parser *p, part a, bool up)
{
    if (is_whole(a)) return a.over;
    if (!onv_dim_is_known(a.over) || !onv_dim_is_known(a.under)) return ONV_DIM_UNKNOWN;
    if (onv_dim_is_const(a.under) && a.under.raw < 0) {
        a.over = onv_dim_neg(p->pool, a.over);
        a.under = onv_dim_neg(p->pool, a.under);
    }
    return up ? onv_dim_ceildiv(p->pool, a.over, a.under)
              : onv_dim_floordiv(p->pool, a.over, a.under);
}

static part power(parser *p, part base, part exponent)
{
    int64_t n = exponent.over.raw;
    part result = whole(onv_dim_const(1));
    if (!is_whole(exponent) || !onv_dim_is_const(exponent.over) || n > MOST_POWER ||
        n < -MOST_POWER)
        return unknown;
    for (int64_t i = n < 0 ? -n : n; i > 0; i--) result = multiply(p, result, base);
    return n < 0 ? divide(p, whole(onv_dim_const(1)), result) : result;
}

/* --- Functions --------------------------------------------------------------------------------- */

typedef enum function {
    F_SAME, /* the first argument as it is */
    F_ADD,
    F_MUL,
    F_POW,
    F_DIVIDE,
    F_FLOOR_DIVIDE,
    F_CEIL_DIVIDE,
    F_MOD,
    F_MAX,
    F_MIN,
    F_FLOOR,
    F_CEIL,
    F_ABS,
    F_MODULAR_INDEX,
} function;

static const struct {
    const char *name;
    uint8_t function, least, most; /* arguments */
} functions[] = {
    {"Integer", F_SAME, 1, 1},
    {"Float", F_SAME, 1, 1},
    {"ToFloat", F_SAME, 1, 1},
    {"Identity", F_SAME, 1, 1},
    {"Symbol", F_SAME, 1, 1},
    {"Add", F_ADD, 0, MANY},
    {"Mul", F_MUL, 0, MANY},
    {"Pow", F_POW, 2, 2},
    {"PowByNatural", F_POW, 2, 2},
    {"FloatPow", F_POW, 2, 2},
    {"Rational", F_DIVIDE, 2, 2},
    {"CleanDiv", F_DIVIDE, 2, 2},
    {"TrueDiv", F_DIVIDE, 2, 2},
    {"IntTrueDiv", F_DIVIDE, 2, 2},
    {"FloatTrueDiv", F_DIVIDE, 2, 2},
    {"FloorDiv", F_FLOOR_DIVIDE, 2, 2},
    {"CeilDiv", F_CEIL_DIVIDE, 2, 2},
    {"Mod", F_MOD, 2, 2},
    {"PythonMod", F_MOD, 2, 2},
    {"Max", F_MAX, 1, MANY},
    {"Min", F_MIN, 1, MANY},
    {"floor", F_FLOOR, 1, 1},
    {"FloorToInt", F_FLOOR, 1, 1},
    {"TruncToInt", F_FLOOR, 1, 1}, /* sizes are at least 0 */
    {"TruncToFloat", F_FLOOR, 1, 1},
    {"trunc", F_FLOOR, 1, 1},
    {"ceiling", F_CEIL, 1, 1},
    {"CeilToInt", F_CEIL, 1, 1},
    {"Abs", F_ABS, 1, 1},
    {"ModularIndexing", F_MODULAR_INDEX, 3, 3},
};

/* The first one with each one after it. */
static part fold(parser *p, function f, const part *a, uint32_t n)
{
    part result = n > 0 ? a[0] : whole(onv_dim_const(f == F_MUL));
    for (uint32_t i = 1; i < n; i++) {
        if (f == F_ADD) result = add(p, result, a[i]);
        if (f == F_MUL) result = multiply(p, result, a[i]);
        if (f != F_MAX && f != F_MIN) continue;
        if (!is_whole(result) || !is_whole(a[i])) return unknown;
        result = whole(f == F_MAX ? onv_dim_max(p->pool, result.over, a[i].over)
                                  : onv_dim_min(p->pool, result.over, a[i].over));
    }
    return result;
}

static part modulo(parser *p, part a, part b)
{
    if (!is_whole(a) || !is_whole(b) || onv_dim_is(b.over, 0)) return unknown;
    return whole(onv_dim_mod(p->pool, a.over, b.over));
}

static part apply(parser *p, function f, const part *a, uint32_t n)
{
    switch (f) {
    case F_SAME: return a[0];
    case F_ADD:
    case F_MUL:
    case F_MAX:
    case F_MIN: return fold(p, f, a, n);
    case F_POW: return power(p, a[0], a[1]);
    case F_DIVIDE: return divide(p, a[0], a[1]);
    case F_FLOOR_DIVIDE: return whole(round_part(p, divide(p, a[0], a[1]), false));
    case F_CEIL_DIVIDE: return whole(round_part(p, divide(p, a[0], a[1]), true));
    case F_MOD: return modulo(p, a[0], a[1]);
    case F_FLOOR: return whole(round_part(p, a[0], false));
    case F_CEIL: return whole(round_part(p, a[0], true));
    case F_ABS:
        return is_whole(a[0])
                   ? whole(onv_dim_max(p->pool, a[0].over, onv_dim_neg(p->pool, a[0].over)))
                   : unknown;
    case F_MODULAR_INDEX:
        return modulo(p, whole(round_part(p, divide(p, a[0], a[1]), false)), a[2]);
    }
    return unknown;
}

/* --- Text -------------------------------------------------------------------------------------- */

static char peek(parser *p)
{
    while (*p->at == ' ') p->at++;
    return *p->at;
}

static bool take(parser *p, const char *token)
{
    size_t n = strlen(token);
    (void)peek(p);
    if (strncmp(p->at, token, n) != 0) return false;
    p->at += n;
    return true;
}

static onv_status malformed(const parser *p)
{
    return onv_fail(
        p->err, ONV_ERR_FORMAT,
        "expected an expression of a size as sympy writes it, found '%.200s' (at '%.40s')", p->text,
        p->at);
}

static onv_status too_deep(const parser *p)
{
    return onv_fail(p->err, ONV_ERR_LIMIT, "a size is nested more than %d levels deep", MOST_DEPTH);
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

static const char *read_name(parser *p, size_t *length)
{
    const char *from = p->at;
    while (is_name(*p->at)) p->at++;
    *length = (size_t)(p->at - from);
    return from;
}

static bool is(const char *name, size_t length, const char *text)
{
    return strlen(text) == length && memcmp(name, text, length) == 0;
}

/* "12", "1.5"; more digits than a dim has are unknown. */
static onv_status parse_number(parser *p, part *result)
{
    int64_t number = 0, under = 1;
    uint32_t digits = 0;
    bool after = false, fits = true;
    for (; isdigit((unsigned char)*p->at) || (*p->at == '.' && !after); p->at++) {
        if (*p->at == '.') {
            after = true;
            continue;
        }
        if (++digits > MOST_DIGITS + 3 || (after && digits > MOST_DIGITS)) fits = false;
        if (!fits) continue;
        number = 10 * number + (*p->at - '0');
        if (after) under *= 10;
    }
    if (*p->at == 'e' || *p->at == 'E') return malformed(p);
    *result = (part){onv_dim_const(number), onv_dim_const(under)};
    if (after && number % under == 0) *result = whole(onv_dim_const(number / under));
    if (!fits) *result = unknown;
    return ONV_OK;
}

/* A text in quotes, which is a number or a name. */
static onv_status parse_quoted(parser *p, part *result)
{
    char quote = *p->at++;
    const char *from = p->at;
    while (*p->at != '\0' && *p->at != quote) p->at++;
    if (*p->at == '\0') return malformed(p);
    size_t length = (size_t)(p->at - from);
    if (length > 0 && (isdigit((unsigned char)*from) || *from == '-')) {
        parser inner = *p;
        inner.at = from + (*from == '-');
        if (!isdigit((unsigned char)*inner.at)) return malformed(p);
        ONV_TRY(parse_number(&inner, result));
        if (inner.at != p->at) return malformed(p);
        if (*from == '-') *result = negative(p, *result);
    } else {
        const char *name = onv_intern_n(p->strings, from, length);
        if (name == NULL) return onv_fail_memory(p->err);
        *result = whole(onv_dim_symbol(p->pool, name));
    }
    p->at++;
    return ONV_OK;
}

/* "Name(" was read: its arguments, at the end of the parser's. Those with a name ("integer=True") say nothing of the size. */
static onv_status parse_arguments(parser *p)
{
    if (take(p, ")")) return ONV_OK;
    do {
        part a;
        size_t length;
        (void)peek(p);
        const char *before = p->at;
        (void)read_name(p, &length);
        bool is_named = length > 0 && peek(p) == '=' && p->at[1] != '=';
        p->at = is_named ? p->at + 1 : before;
        ONV_TRY(parse_expression(p, &a));
        if (!is_named && !onv_vec_push(&p->arguments, a)) return onv_fail_memory(p->err);
    } while (take(p, ","));
    return take(p, ")") ? ONV_OK : malformed(p);
}

/* Only the last part of a function's name counts. Names of dims have it in capital letters, or in small ones. */
static onv_status parse_call(parser *p, const char *name, size_t length, part *result)
{
    size_t first = p->arguments.count;
    const char *dot = memrchr(name, '.', length);
    if (dot != NULL) length -= (size_t)(dot + 1 - name);
    if (dot != NULL) name = dot + 1;
    ONV_TRY(parse_arguments(p));
    size_t n = p->arguments.count - first;
    p->arguments.count = first;
    *result = unknown;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (strlen(functions[i].name) != length ||
            strncasecmp(name, functions[i].name, length) != 0)
            continue;
        if (n < functions[i].least || n > functions[i].most) return malformed(p);
        const part *a = n > 0 ? p->arguments.at + first : NULL;
        *result = apply(p, (function)functions[i].function, a, (uint32_t)n);
        return ONV_OK;
    }
    p->unread = onv_intern_n(p->strings, name, length);
    return p->unread != NULL ? ONV_OK : onv_fail_memory(p->err);
}

/* Without arguments: a symbol, or a number that has a name. */
static onv_status parse_word(parser *p, const char *name, size_t length, part *result)
{
    *result = unknown;
    if (is(name, length, "oo") || is(name, length, "int_oo") || is(name, length, "inf")) {
        *result = whole(ONV_DIM_INFINITY);
        return ONV_OK;
    }
    if (is(name, length, "True") || is(name, length, "False") || is(name, length, "None"))
        return ONV_OK;
    const char *symbol = onv_intern_n(p->strings, name, length);
    if (symbol == NULL) return onv_fail_memory(p->err);
    *result = whole(onv_dim_symbol(p->pool, symbol));
    return ONV_OK;
}

static onv_status parse_atom(parser *p, part *result)
{
    char c = peek(p);
    if (isdigit((unsigned char)c)) return parse_number(p, result);
    if (c == '\'' || c == '"') return parse_quoted(p, result);
    if (take(p, "(")) {
        ONV_TRY(parse_expression(p, result));
        return take(p, ")") ? ONV_OK : malformed(p);
    }
    size_t length;
    const char *name = read_name(p, &length);
    if (length == 0) return malformed(p);
    return take(p, "(") ? parse_call(p, name, length, result) : parse_word(p, name, length, result);
}

/* As in Python, a sign binds weaker than a power before it and stronger in its exponent. */
static onv_status parse_signed(parser *p, part *result)
{
    bool is_negative = false;
    while (peek(p) == '-' || peek(p) == '+') is_negative ^= *p->at++ == '-';
    ONV_TRY(parse_atom(p, result));
    if (take(p, "**")) {
        part exponent;
        if (p->depth == MOST_DEPTH) return too_deep(p);
        p->depth++;
        ONV_TRY(parse_signed(p, &exponent));
        p->depth--;
        *result = power(p, *result, exponent);
    }
    if (is_negative) *result = negative(p, *result);
    return ONV_OK;
}

static onv_status parse_product(parser *p, part *result)
{
    static const struct {
        const char *sign;
        function function;
    } signs[] = {{"//", F_FLOOR_DIVIDE}, {"*", F_MUL}, {"/", F_DIVIDE}, {"%", F_MOD}};
    enum { N = sizeof signs / sizeof signs[0] };
    ONV_TRY(parse_signed(p, result));
    for (;;) {
        size_t i = 0;
        while (i < N && !take(p, signs[i].sign)) i++;
        if (i == N) return ONV_OK;
        part operands[2] = {*result};
        ONV_TRY(parse_signed(p, &operands[1]));
        *result = apply(p, signs[i].function, operands, 2);
    }
}

static onv_status parse_sum(parser *p, part *result)
{
    part b;
    ONV_TRY(parse_product(p, result));
    while (peek(p) == '+' || peek(p) == '-') {
        bool is_negative = *p->at++ == '-';
        ONV_TRY(parse_product(p, &b));
        *result = add(p, *result, is_negative ? negative(p, b) : b);
    }
    return ONV_OK;
}

/* Sums that are compared or joined are conditions, and no sizes. */
static onv_status parse_expression(parser *p, part *result)
{
    if (p->depth == MOST_DEPTH) return too_deep(p);
    p->depth++;
    ONV_TRY(parse_sum(p, result));
    while (peek(p) != '\0' && strchr("<>=!&|", *p->at) != NULL) {
        part b;
        p->unread = "a condition";
        while (*p->at != '\0' && strchr("<>=!&|", *p->at) != NULL) p->at++;
        ONV_TRY(parse_sum(p, &b));
        *result = unknown;
    }
    p->depth--;
    return ONV_OK;
}

onv_status onv_dim_read(const char *text, onv_dims *pool, onv_strings *strings, onv_dim *dim,
                        const char **unread, onv_error *err)
{
    part result = unknown;
    parser p = {.text = text, .at = text, .pool = pool, .strings = strings, .err = err};
    p.unread = "it";
    ONV_WORK(1 + strlen(text));
    onv_status status = parse_expression(&p, &result);
    if (status == ONV_OK && peek(&p) != '\0') status = malformed(&p);
    onv_vec_cleanup(&p.arguments);
    *unread = p.unread;
    *dim = round_part(&p, result, false);
    if (status == ONV_OK && pool->failed) return onv_fail_memory(err);
    return status;
}

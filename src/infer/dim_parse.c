/* Names of dims that are expressions.
 *
 * PyTorch's dynamo exporter names a dim "past + sequence" or "2*s0 // 3" where it follows from
 * others. Such a name is read as what it says, so that binding the parts binds the whole and equal
 * sizes are recognised. A name that does not read as an expression stays a plain symbol.
 *
 *     sum     = product { ("+" | "-") product }
 *     product = factor { ("*" | "//" | "/" | "%") factor }
 *     factor  = number | name | "(" sum ")" | ("max" | "min") "(" sum "," sum ")"
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "infer/driver.h"

enum { MAX_NESTING = 16, MAX_NAME = 128 };

typedef struct reader {
    onv_dims *dims;
    const char *at;
    int nesting;
    bool failed;
} reader;

static onv_dim read_sum(reader *r);

static void skip_spaces(reader *r)
{
    while (*r->at == ' ') r->at++;
}

static bool accept(reader *r, const char *token)
{
    skip_spaces(r);
    size_t length = strlen(token);
    if (strncmp(r->at, token, length) != 0) return false;
    r->at += length;
    return true;
}

static onv_dim fail(reader *r)
{
    r->failed = true;
    return ONV_DIM_UNKNOWN;
}

static onv_dim read_number(reader *r)
{
    int64_t value = 0;
    for (; isdigit((unsigned char)*r->at); r->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *r->at - '0', &value))
            return fail(r);
    return onv_dim_const(value);
}

static onv_dim read_call(reader *r, bool largest)
{
    onv_dim a = read_sum(r);
    if (r->failed || !accept(r, ",")) return fail(r);
    onv_dim b = read_sum(r);
    if (r->failed || !accept(r, ")")) return fail(r);
    return largest ? onv_dim_max(r->dims, a, b) : onv_dim_min(r->dims, a, b);
}

static onv_dim read_name(reader *r)
{
    char name[MAX_NAME];
    size_t length = 0;
    for (; isalnum((unsigned char)*r->at) || *r->at == '_' || *r->at == '.'; r->at++) {
        if (length + 1 == sizeof name) return fail(r);
        name[length++] = *r->at;
    }
    name[length] = '\0';
    bool largest = strcasecmp(name, "max") == 0;
    if ((largest || strcasecmp(name, "min") == 0) && accept(r, "(")) return read_call(r, largest);
    return length > 0 ? onv_dim_symbol(r->dims, name) : fail(r);
}

static onv_dim read_factor(reader *r)
{
    skip_spaces(r);
    if (isdigit((unsigned char)*r->at)) return read_number(r);
    if (!accept(r, "(")) return read_name(r);
    onv_dim inner = read_sum(r);
    return !r->failed && accept(r, ")") ? inner : fail(r);
}

static onv_dim read_product(reader *r)
{
    onv_dim left = read_factor(r);
    while (!r->failed) {
        if (accept(r, "*"))
            left = onv_dim_mul(r->dims, left, read_factor(r));
        else if (accept(r, "//") || accept(r, "/"))
            left = onv_dim_floordiv(r->dims, left, read_factor(r));
        else if (accept(r, "%"))
            left = onv_dim_mod(r->dims, left, read_factor(r));
        else
            break;
    }
    return left;
}

static onv_dim read_sum(reader *r)
{
    if (++r->nesting > MAX_NESTING) return fail(r);
    onv_dim left = read_product(r);
    while (!r->failed) {
        if (accept(r, "+"))
            left = onv_dim_add(r->dims, left, read_product(r));
        else if (accept(r, "-"))
            left = onv_dim_sub(r->dims, left, read_product(r));
        else
            break;
    }
    r->nesting--;
    return left;
}

/* Whether a name could be meant as an expression: it has an operator between two words. */
static bool looks_like_expression(const char *name)
{
    return strpbrk(name, "+*/%(") != NULL || strstr(name, " - ") != NULL;
}

onv_dim onv_dim_from_name(onv_dims *dims, const char *name)
{
    if (!looks_like_expression(name)) return ONV_DIM_UNKNOWN;
    reader r = {.dims = dims, .at = name};
    onv_dim d = read_sum(&r);
    skip_spaces(&r);
    return r.failed || *r.at != '\0' ? ONV_DIM_UNKNOWN : d;
}

/* Terms of an --op-shapes file. Grammar:
 *
 *     sum     = product {("+" | "-") product}
 *     product = operand {("*" | "/" | "%") operand}
 *     operand = "-" operand | plain ["or" operand]
 *     plain   = number | "(" sum ")" | ("min" | "max") "(" sum {"," sum} ")" | "if" "(" sum "," sum "," sum ")"
 *             | "given" "(" input ")" | "known" "(" sum ")" | "attr" "." name "in" "(" name {"," name} ")"
 *             | ("ceil" | "exact") "(" sum ")" | "upto" "(" sum ["," name] ")" | input "." (integer | "rank" | "elems")
 *             | input "[" number "]" | "attr" "." name ["." number] | dim
 */
#include "ops/op_shapes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"

onv_status(onv_shape_refuse)(onv_shape_parser *p, const char *format, ...)
{
    char message[256];
    va_list args;
    if (p->arena->failed) return onv_fail_memory(p->err);
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return onv_fail(p->err, ONV_ERR_FORMAT, "%s:%u:%u: %s", p->path, p->line,
                    (unsigned)(p->at - p->start + 1), message);
}

/* --- Words ------------------------------------------------------------------------------------- */

void onv_shape_skip_space(onv_shape_parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\r')) p->at++;
}

bool onv_shape_is_at(onv_shape_parser *p, char sign)
{
    onv_shape_skip_space(p);
    return p->at < p->end && *p->at == sign;
}

bool onv_shape_take(onv_shape_parser *p, char sign)
{
    if (!onv_shape_is_at(p, sign)) return false;
    p->at++;
    return true;
}

onv_status onv_shape_need(onv_shape_parser *p, char sign)
{
    if (onv_shape_take(p, sign)) return ONV_OK;
    return onv_shape_refuse(p, "'%c' is expected", sign);
}

static bool is_letter(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';
}

static bool is_digit(char ch)
{
    return ch >= '0' && ch <= '9';
}

const char *onv_shape_word(onv_shape_parser *p, const char *more)
{
    onv_shape_skip_space(p);
    const char *from = p->at;
    if (from == p->end || !is_letter(*from)) return NULL;
    while (p->at < p->end && (is_letter(*p->at) || is_digit(*p->at) ||
                              (*p->at != '\0' && strchr(more, *p->at) != NULL)))
        p->at++;
    return onv_arena_strndup(p->arena, from, (size_t)(p->at - from));
}

bool onv_shape_take_word(onv_shape_parser *p, const char *text)
{
    if (!onv_shape_is_at(p, text[0])) return false;
    size_t length = strlen(text);
    if ((size_t)(p->end - p->at) < length || memcmp(p->at, text, length) != 0) return false;
    const char *after = p->at + length;
    if (after < p->end && (is_letter(*after) || is_digit(*after))) return false;
    p->at = after;
    return true;
}

onv_status onv_shape_number(onv_shape_parser *p, int64_t *value)
{
    onv_shape_skip_space(p);
    if (p->at == p->end || !is_digit(*p->at)) return onv_shape_refuse(p, "a number is expected");
    *value = 0;
    for (; p->at < p->end && is_digit(*p->at); p->at++)
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, *p->at - '0', value) || *value >= ONV_DIM_INFINITY_RAW)
            return onv_shape_refuse(p, "the number is too large");
    return ONV_OK;
}

onv_status onv_shape_integer(onv_shape_parser *p, int64_t *value)
{
    bool negative = onv_shape_take(p, '-');
    ONV_TRY(onv_shape_number(p, value));
    if (negative) *value = -*value;
    return ONV_OK;
}

int32_t onv_shape_find(const char *const *names, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return (int32_t)i;
    return -1;
}

onv_status onv_shape_input(onv_shape_parser *p, int32_t *index)
{
    onv_shape_skip_space(p);
    const char *from = p->at, *name = onv_shape_word(p, "");
    *index = name != NULL ? onv_shape_find(p->inputs, p->n_inputs, name) : -1;
    if (*index >= 0) return ONV_OK;
    p->at = from;
    return onv_shape_refuse(p, "the name of an input is expected");
}

/* --- Expressions ------------------------------------------------------------------------------- */

static onv_status sum(onv_shape_parser *p);
static onv_status operand(onv_shape_parser *p);

/* Operands add to the stack, operators of two take one off. */
static onv_status emit(onv_shape_parser *p, onv_shape_code code)
{
    if (code.op < ONV_SHAPE_NEG) p->depth++;
    if (code.op >= ONV_SHAPE_ADD) p->depth--;
    if (code.op == ONV_SHAPE_IF) p->depth--;
    if (p->n_code == p->most_code || p->depth > ONV_CUSTOM_OP_MAX_STACK)
        return onv_shape_refuse(p, "the expression is too long");
    p->code[p->n_code++] = code;
    return ONV_OK;
}

static onv_status emit_op(onv_shape_parser *p, onv_shape_op op)
{
    return emit(p, (onv_shape_code){.op = (uint8_t)op});
}

onv_status onv_shape_attribute(onv_shape_parser *p, onv_shape_code *code)
{
    *code = (onv_shape_code){.op = ONV_SHAPE_ATTR, .a = -1, .b = -1};
    ONV_TRY(onv_shape_need(p, '.'));
    code->name = onv_shape_word(p, "");
    if (code->name == NULL) return onv_shape_refuse(p, "the name of an attribute is expected");
    return onv_shape_take(p, '.') ? onv_shape_number(p, &code->b) : ONV_OK;
}

/* (forward, reverse): the words that an attribute may be. */
static onv_status words(onv_shape_parser *p, onv_shape_code *code)
{
    const char *list[ONV_CUSTOM_OP_MAX_LIST + 1] = {NULL};
    uint32_t n = 0;
    code->op = ONV_SHAPE_WORD;
    do {
        ONV_TRY(onv_shape_need(p, n == 0 ? '(' : ','));
        if (n == ONV_CUSTOM_OP_MAX_LIST || (list[n++] = onv_shape_word(p, "")) == NULL)
            return onv_shape_refuse(p, "at most %d words are expected", ONV_CUSTOM_OP_MAX_LIST);
    } while (onv_shape_is_at(p, ','));
    code->words = onv_arena_copy(p->arena, list, (n + 1) * sizeof *list);
    return code->words != NULL ? onv_shape_need(p, ')') : onv_fail_memory(p->err);
}

static onv_status attribute(onv_shape_parser *p)
{
    onv_shape_code code;
    ONV_TRY(onv_shape_attribute(p, &code));
    if (onv_shape_take_word(p, "in")) ONV_TRY(words(p, &code));
    return emit(p, code);
}

/* Whether what follows is a call of that name; inputs may have it, too. */
static bool take_call(onv_shape_parser *p, const char *name)
{
    const char *from = p->at;
    if (onv_shape_take_word(p, name) && onv_shape_take(p, '(')) return true;
    p->at = from;
    return false;
}

/* known(a), given(x) */
static onv_status known(onv_shape_parser *p)
{
    ONV_TRY(sum(p));
    ONV_TRY(emit_op(p, ONV_SHAPE_KNOWN));
    return onv_shape_need(p, ')');
}

static onv_status given(onv_shape_parser *p)
{
    int32_t index;
    ONV_TRY(onv_shape_input(p, &index));
    ONV_TRY(emit(p, (onv_shape_code){.op = ONV_SHAPE_GIVEN, .a = index}));
    return onv_shape_need(p, ')');
}

/* x.0, x.-1, x.rank, x.elems, x[0], and the name of a dim */
static onv_status of_input(onv_shape_parser *p)
{
    int32_t index;
    onv_shape_code code = {.op = ONV_SHAPE_DIM};
    onv_shape_skip_space(p);
    const char *from = p->at, *name = onv_shape_word(p, "");
    index = name != NULL ? onv_shape_find(p->names, p->n_names, name) : -1;
    if (index >= 0) return emit(p, (onv_shape_code){.op = ONV_SHAPE_NAMED, .a = index});
    p->at = from;
    ONV_TRY(onv_shape_input(p, &index));
    code.a = index;
    if (onv_shape_take(p, '[')) {
        code.op = ONV_SHAPE_VALUE;
        ONV_TRY(onv_shape_number(p, &code.b));
        if (code.b >= ONV_KNOWN_MAX_ELEMS)
            return onv_shape_refuse(p, "the contents are not read that far");
        ONV_TRY(onv_shape_need(p, ']'));
        return emit(p, code);
    }
    ONV_TRY(onv_shape_need(p, '.'));
    if (onv_shape_take_word(p, "rank"))
        code.op = ONV_SHAPE_RANK;
    else if (onv_shape_take_word(p, "elems"))
        code.op = ONV_SHAPE_ELEMS;
    else
        ONV_TRY(onv_shape_integer(p, &code.b));
    return emit(p, code);
}

/* min(a, b, ...) and max(a, b, ...) */
static onv_status extreme(onv_shape_parser *p, onv_shape_op op)
{
    ONV_TRY(onv_shape_need(p, '('));
    ONV_TRY(sum(p));
    while (onv_shape_take(p, ',')) {
        ONV_TRY(sum(p));
        ONV_TRY(emit_op(p, op));
    }
    return onv_shape_need(p, ')');
}

/* ceil(a / b), exact(a / b) */
static onv_status quotient(onv_shape_parser *p, onv_shape_op op)
{
    ONV_TRY(onv_shape_need(p, '('));
    ONV_TRY(sum(p));
    onv_shape_code *last = &p->code[p->n_code - 1];
    if (last->op != ONV_SHAPE_DIV)
        return onv_shape_refuse(p, "%s() takes a quotient a / b",
                                op == ONV_SHAPE_CEIL ? "ceil" : "exact");
    last->op = (uint8_t)op;
    return onv_shape_need(p, ')');
}

/* upto(a), upto(a, name) */
static onv_status up_to(onv_shape_parser *p)
{
    onv_shape_code code = {.op = ONV_SHAPE_UP_TO};
    ONV_TRY(onv_shape_need(p, '('));
    ONV_TRY(sum(p));
    if (onv_shape_take(p, ',')) {
        code.name = onv_shape_word(p, "");
        if (code.name == NULL) return onv_shape_refuse(p, "the name of the size is expected");
    }
    ONV_TRY(emit(p, code));
    return onv_shape_need(p, ')');
}

/* if(a, b, c) */
static onv_status choice(onv_shape_parser *p)
{
    static const onv_shape_op ends[] = {ONV_SHAPE_ELSE, ONV_SHAPE_END, ONV_SHAPE_IF};
    uint32_t after[3];
    for (int i = 0; i < 3; i++) {
        ONV_TRY(onv_shape_need(p, i == 0 ? '(' : ','));
        ONV_TRY(sum(p));
        ONV_TRY(emit_op(p, ends[i]));
        after[i] = p->n_code;
    }
    p->code[after[0] - 1].a = after[1];
    p->code[after[1] - 1].a = after[2] - 1;
    return onv_shape_need(p, ')');
}

static onv_status plain_operand(onv_shape_parser *p)
{
    onv_shape_skip_space(p);
    if (p->at < p->end && is_digit(*p->at)) {
        onv_shape_code code = {.op = ONV_SHAPE_NUMBER};
        ONV_TRY(onv_shape_number(p, &code.a));
        return emit(p, code);
    }
    if (onv_shape_take(p, '(')) {
        ONV_TRY(sum(p));
        return onv_shape_need(p, ')');
    }
    if (onv_shape_take_word(p, "min")) return extreme(p, ONV_SHAPE_MIN);
    if (onv_shape_take_word(p, "max")) return extreme(p, ONV_SHAPE_MAX);
    if (onv_shape_take_word(p, "ceil")) return quotient(p, ONV_SHAPE_CEIL);
    if (onv_shape_take_word(p, "exact")) return quotient(p, ONV_SHAPE_EXACT);
    if (onv_shape_take_word(p, "upto")) return up_to(p);
    if (onv_shape_take_word(p, "if")) return choice(p);
    if (onv_shape_take_word(p, "attr")) return attribute(p);
    if (take_call(p, "known")) return known(p);
    if (take_call(p, "given")) return given(p);
    return of_input(p);
}

/* a or b: b where the input or the attribute of a is absent. */
static onv_status otherwise(onv_shape_parser *p, uint32_t first)
{
    onv_shape_code *code = &p->code[first];
    bool is_read =
        p->n_code == first + 1 && code->op >= ONV_SHAPE_DIM && code->op < ONV_SHAPE_NAMED;
    if (!is_read)
        return onv_shape_refuse(p, "what stands before 'or' is read of one input or attribute");
    onv_shape_code either = *code;
    code->may_lack = true;
    ONV_TRY(operand(p));
    either.op = ONV_SHAPE_OR;
    return emit(p, either);
}

static onv_status operand(onv_shape_parser *p)
{
    if (++p->nesting > ONV_CUSTOM_OP_MAX_NESTING)
        return onv_shape_refuse(p, "the expression is nested too deeply");
    if (onv_shape_take(p, '-')) {
        ONV_TRY(operand(p));
        ONV_TRY(emit_op(p, ONV_SHAPE_NEG));
    } else {
        uint32_t first = p->n_code;
        ONV_TRY(plain_operand(p));
        if (onv_shape_take_word(p, "or")) ONV_TRY(otherwise(p, first));
    }
    p->nesting--;
    return ONV_OK;
}

static onv_status product(onv_shape_parser *p)
{
    ONV_TRY(operand(p));
    for (;;) {
        onv_shape_op op = onv_shape_is_at(p, '*')   ? ONV_SHAPE_MUL
                          : onv_shape_is_at(p, '/') ? ONV_SHAPE_DIV
                          : onv_shape_is_at(p, '%') ? ONV_SHAPE_MOD
                                                    : ONV_SHAPE_NUMBER;
        if (op == ONV_SHAPE_NUMBER) return ONV_OK;
        p->at++;
        ONV_TRY(operand(p));
        ONV_TRY(emit_op(p, op));
    }
}

static onv_status sum(onv_shape_parser *p)
{
    ONV_TRY(product(p));
    for (;;) {
        bool minus = onv_shape_is_at(p, '-');
        if (!minus && !onv_shape_is_at(p, '+')) return ONV_OK;
        p->at++;
        ONV_TRY(product(p));
        ONV_TRY(emit_op(p, minus ? ONV_SHAPE_SUB : ONV_SHAPE_ADD));
    }
}

onv_status onv_shape_term(onv_shape_parser *p, onv_shape_item *item)
{
    p->n_code = p->depth = p->nesting = 0;
    ONV_TRY(sum(p));
    *item = (onv_shape_item){.n_code = p->n_code};
    item->code = onv_arena_copy(p->arena, p->code, p->n_code * sizeof *p->code);
    return item->code != NULL ? ONV_OK : onv_fail_memory(p->err);
}

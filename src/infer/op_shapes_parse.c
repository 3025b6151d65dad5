/* The lines of an --op-shapes file. Grammar:
 *
 *     line    = ["!"] [domain "::"] name ["@" version] "(" [input {"," input}] ")" ":" out {"," out}
 *     out     = "?" | "like" input [dtype] | "[" [item {"," item}] "]" [dtype]
 *     dtype   = "f16", "int64" ... | "like" input
 *     item    = input "." [integer] ":" [integer] | sum
 *     sum     = product {("+" | "-") product}
 *     product = operand {("*" | "/" | "%") operand}
 *     operand = "-" operand | number | "(" sum ")" | ("min" | "max") "(" sum {"," sum} ")"
 *             | "ceil" "(" sum ")" | "upto" "(" sum ")" | input "." (integer | "rank")
 *             | input "[" number "]" | "attr" "." name ["." number] ["or" integer]
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "infer/op_shapes.h"

typedef struct parser {
    onv_arena *arena;
    const char *path;
    uint32_t line;
    const char *start, *at, *end; /* of the line */
    const char *inputs[ONV_CUSTOM_OP_MAX_LIST];
    uint32_t n_inputs;
    onv_shape_code *code; /* of one expression, ONV_CUSTOM_OP_MAX_CODE of them */
    uint32_t n_code;
    uint32_t nesting, depth; /* depth: of the stack */
    onv_error *err;
} parser;

static onv_status fail_at(parser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Short of memory, words are missing that are in the file. */
static onv_status fail_at(parser *p, const char *format, ...)
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

#define fail(...) (fail_at(__VA_ARGS__) == ONV_ERR_MEMORY ? ONV_ERR_MEMORY : ONV_ERR_FORMAT)

/* --- Words ------------------------------------------------------------------------------------- */

static void skip_space(parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\r')) p->at++;
}

static bool looking_at(parser *p, char sign)
{
    skip_space(p);
    return p->at < p->end && *p->at == sign;
}

static bool take(parser *p, char sign)
{
    if (!looking_at(p, sign)) return false;
    p->at++;
    return true;
}

static onv_status need(parser *p, char sign)
{
    if (take(p, sign)) return ONV_OK;
    return fail(p, "'%c' is expected", sign);
}

static bool is_letter(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';
}

static bool is_digit(char ch)
{
    return ch >= '0' && ch <= '9';
}

/* A word of letters, digits and the signs in `more`, in the arena; NULL where there is none. */
static const char *word(parser *p, const char *more)
{
    skip_space(p);
    const char *from = p->at;
    if (from == p->end || !is_letter(*from)) return NULL;
    while (p->at < p->end && (is_letter(*p->at) || is_digit(*p->at) ||
                              (*p->at != '\0' && strchr(more, *p->at) != NULL)))
        p->at++;
    return onv_arena_strndup(p->arena, from, (size_t)(p->at - from));
}

/* The word if it is this one. */
static bool take_word(parser *p, const char *text)
{
    skip_space(p);
    size_t length = strlen(text);
    if ((size_t)(p->end - p->at) < length || memcmp(p->at, text, length) != 0) return false;
    const char *after = p->at + length;
    if (after < p->end && (is_letter(*after) || is_digit(*after))) return false;
    p->at = after;
    return true;
}

static onv_status number(parser *p, int64_t *value)
{
    skip_space(p);
    if (p->at == p->end || !is_digit(*p->at)) return fail(p, "a number is expected");
    *value = 0;
    for (; p->at < p->end && is_digit(*p->at); p->at++)
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, *p->at - '0', value) || *value >= ONV_DIM_INFINITY_RAW)
            return fail(p, "the number is too large");
    return ONV_OK;
}

static onv_status integer(parser *p, int64_t *value)
{
    bool negative = take(p, '-');
    ONV_TRY(number(p, value));
    if (negative) *value = -*value;
    return ONV_OK;
}

static int32_t find_input(const parser *p, const char *name)
{
    for (uint32_t i = 0; i < p->n_inputs; i++)
        if (strcmp(p->inputs[i], name) == 0) return (int32_t)i;
    return -1;
}

static onv_status input(parser *p, int32_t *index)
{
    skip_space(p);
    const char *from = p->at, *name = word(p, "");
    *index = name != NULL ? find_input(p, name) : -1;
    if (*index >= 0) return ONV_OK;
    p->at = from;
    return fail(p, "the name of an input is expected");
}

/* --- Expressions ------------------------------------------------------------------------------- */

static onv_status sum(parser *p);

/* Operands add to the stack, operators of two take one off. */
static onv_status emit(parser *p, onv_shape_code code)
{
    if (code.op < ONV_SHAPE_NEG) p->depth++;
    if (code.op >= ONV_SHAPE_ADD) p->depth--;
    if (p->n_code == ONV_CUSTOM_OP_MAX_CODE || p->depth > ONV_CUSTOM_OP_MAX_STACK)
        return fail(p, "the expression is too long");
    p->code[p->n_code++] = code;
    return ONV_OK;
}

static onv_status emit_op(parser *p, onv_shape_op op)
{
    return emit(p, (onv_shape_code){.op = (uint8_t)op});
}

/* attr.name, attr.name.2, attr.name or 1 */
static onv_status attribute(parser *p)
{
    onv_shape_code code = {.op = ONV_SHAPE_ATTR, .b = -1};
    ONV_TRY(need(p, '.'));
    code.name = word(p, "");
    if (code.name == NULL) return fail(p, "the name of an attribute is expected");
    if (take(p, '.')) ONV_TRY(number(p, &code.b));
    if (take_word(p, "or")) {
        code.has_default = true;
        ONV_TRY(integer(p, &code.a));
    }
    return emit(p, code);
}

/* x.0, x.-1, x.rank, x[0] */
static onv_status of_input(parser *p)
{
    int32_t index;
    onv_shape_code code = {.op = ONV_SHAPE_DIM};
    ONV_TRY(input(p, &index));
    code.a = index;
    if (take(p, '[')) {
        code.op = ONV_SHAPE_VALUE;
        ONV_TRY(number(p, &code.b));
        if (code.b >= ONV_KNOWN_MAX_ELEMS) return fail(p, "the contents are not read that far");
        ONV_TRY(need(p, ']'));
        return emit(p, code);
    }
    ONV_TRY(need(p, '.'));
    if (take_word(p, "rank"))
        code.op = ONV_SHAPE_RANK;
    else
        ONV_TRY(integer(p, &code.b));
    return emit(p, code);
}

/* min(a, b, ...) and max(a, b, ...) */
static onv_status extreme(parser *p, onv_shape_op op)
{
    ONV_TRY(need(p, '('));
    ONV_TRY(sum(p));
    while (take(p, ',')) {
        ONV_TRY(sum(p));
        ONV_TRY(emit_op(p, op));
    }
    return need(p, ')');
}

static onv_status round_up(parser *p)
{
    ONV_TRY(need(p, '('));
    ONV_TRY(sum(p));
    onv_shape_code *last = &p->code[p->n_code - 1];
    if (last->op != ONV_SHAPE_DIV) return fail(p, "ceil() rounds a quotient a / b");
    last->op = ONV_SHAPE_CEIL;
    return need(p, ')');
}

static onv_status up_to(parser *p)
{
    ONV_TRY(need(p, '('));
    ONV_TRY(sum(p));
    ONV_TRY(emit_op(p, ONV_SHAPE_UP_TO));
    return need(p, ')');
}

static onv_status plain_operand(parser *p)
{
    skip_space(p);
    if (p->at < p->end && is_digit(*p->at)) {
        onv_shape_code code = {.op = ONV_SHAPE_NUMBER};
        ONV_TRY(number(p, &code.a));
        return emit(p, code);
    }
    if (take(p, '(')) {
        ONV_TRY(sum(p));
        return need(p, ')');
    }
    if (take_word(p, "min")) return extreme(p, ONV_SHAPE_MIN);
    if (take_word(p, "max")) return extreme(p, ONV_SHAPE_MAX);
    if (take_word(p, "ceil")) return round_up(p);
    if (take_word(p, "upto")) return up_to(p);
    if (take_word(p, "attr")) return attribute(p);
    return of_input(p);
}

static onv_status operand(parser *p)
{
    if (++p->nesting > ONV_CUSTOM_OP_MAX_NESTING)
        return fail(p, "the expression is nested too deeply");
    if (take(p, '-')) {
        ONV_TRY(operand(p));
        ONV_TRY(emit_op(p, ONV_SHAPE_NEG));
    } else {
        ONV_TRY(plain_operand(p));
    }
    p->nesting--;
    return ONV_OK;
}

static onv_status product(parser *p)
{
    ONV_TRY(operand(p));
    for (;;) {
        onv_shape_op op = looking_at(p, '*')   ? ONV_SHAPE_MUL
                          : looking_at(p, '/') ? ONV_SHAPE_DIV
                          : looking_at(p, '%') ? ONV_SHAPE_MOD
                                               : ONV_SHAPE_NUMBER;
        if (op == ONV_SHAPE_NUMBER) return ONV_OK;
        p->at++;
        ONV_TRY(operand(p));
        ONV_TRY(emit_op(p, op));
    }
}

static onv_status sum(parser *p)
{
    ONV_TRY(product(p));
    for (;;) {
        bool minus = looking_at(p, '-');
        if (!minus && !looking_at(p, '+')) return ONV_OK;
        p->at++;
        ONV_TRY(product(p));
        ONV_TRY(emit_op(p, minus ? ONV_SHAPE_SUB : ONV_SHAPE_ADD));
    }
}

/* --- Outputs ----------------------------------------------------------------------------------- */

/* x.1:-1, where it is one; otherwise the parser stays where it was. */
static onv_status slice(parser *p, onv_shape_item *item, bool *found)
{
    skip_space(p);
    const char *from = p->at, *name = word(p, "");
    *item = (onv_shape_item){.end = INT64_MAX};
    item->input = name != NULL ? find_input(p, name) : -1;
    *found = false;
    if (item->input >= 0 && take(p, '.') && !take_word(p, "rank")) {
        if (!looking_at(p, ':')) ONV_TRY(integer(p, &item->first));
        *found = take(p, ':');
    }
    if (!*found) {
        p->at = from;
        return ONV_OK;
    }
    if (looking_at(p, ',') || looking_at(p, ']')) return ONV_OK;
    return integer(p, &item->end);
}

static onv_status parse_item(parser *p, onv_shape_item *item)
{
    bool found;
    ONV_TRY(slice(p, item, &found));
    if (found) return ONV_OK;
    p->n_code = p->depth = p->nesting = 0;
    ONV_TRY(sum(p));
    item->n_code = p->n_code;
    item->code = onv_arena_copy(p->arena, p->code, p->n_code * sizeof *p->code);
    return item->code != NULL ? ONV_OK : onv_fail_memory(p->err);
}

/* "float16", or short "f16". */
static onv_dtype dtype_of(const char *name)
{
    static const struct {
        const char *brief, *full;
    } prefixes[] = {{"f", "float"}, {"bf", "bfloat"}, {"i", "int"}, {"u", "uint"}};
    char full[64];
    snprintf(full, sizeof full, "%s", name);
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        size_t length = strlen(prefixes[i].brief);
        if (strncmp(name, prefixes[i].brief, length) == 0 && is_digit(name[length]))
            snprintf(full, sizeof full, "%s%s", prefixes[i].full, name + length);
    }
    for (int t = ONV_UNDEFINED + 1; t < ONV_DTYPE_COUNT; t++)
        if (strcmp(onv_dtype_name((onv_dtype)t), full) == 0) return (onv_dtype)t;
    return ONV_UNDEFINED;
}

static onv_status parse_dtype(parser *p, onv_shape_out *out)
{
    if (take_word(p, "like")) return input(p, &out->dtype_like);
    skip_space(p);
    const char *from = p->at, *name = word(p, "");
    if (name == NULL) return ONV_OK;
    out->dtype = (uint8_t)dtype_of(name);
    if (out->dtype != ONV_UNDEFINED) return ONV_OK;
    p->at = from;
    return fail(p, "'%.32s' is not an element type", name);
}

static onv_status parse_list(parser *p, onv_shape_out *out)
{
    onv_shape_item items[ONV_MAX_RANK];
    out->listed = true;
    while (!looking_at(p, ']')) {
        if (out->n_items > 0) ONV_TRY(need(p, ','));
        if (out->n_items == ONV_MAX_RANK) return fail(p, "more than %d dims", ONV_MAX_RANK);
        ONV_TRY(parse_item(p, &items[out->n_items]));
        out->n_items++;
    }
    out->item = onv_arena_copy(p->arena, items, out->n_items * sizeof *items);
    if (out->item == NULL) return onv_fail_memory(p->err);
    return need(p, ']');
}

static onv_status parse_out(parser *p, onv_shape_out *out)
{
    *out = (onv_shape_out){.known = true, .dtype_like = p->n_inputs > 0 ? 0 : -1};
    if (take(p, '?')) {
        out->known = false;
        return ONV_OK;
    }
    if (take_word(p, "like")) {
        ONV_TRY(input(p, &out->like));
        out->dtype_like = out->like;
    } else if (take(p, '[')) {
        ONV_TRY(parse_list(p, out));
    } else {
        return fail(p, "an output is expected: [...], like INPUT or ?");
    }
    return parse_dtype(p, out);
}

/* --- Lines ------------------------------------------------------------------------------------- */

static onv_status parse_name(parser *p, onv_custom_op *t)
{
    enum { LONGEST_VERSION = INT32_MAX };
    int64_t version = 1;
    const char *name = word(p, ".-");
    if (name == NULL) return fail(p, "the name of an operator is expected");
    t->domain = "";
    if (p->end - p->at >= 2 && p->at[0] == ':' && p->at[1] == ':') {
        p->at += 2;
        t->domain = strcmp(name, "ai.onnx") == 0 ? "" : name;
        name = word(p, ".-");
        if (name == NULL) return fail(p, "the name of an operator is expected");
    }
    t->row.name = name;
    if (take(p, '@')) ONV_TRY(number(p, &version));
    if (version < 1 || version > LONGEST_VERSION) return fail(p, "that is not a version");
    t->row.since = (int32_t)version;
    return ONV_OK;
}

static onv_status parse_inputs(parser *p, onv_custom_op *t)
{
    static const char *const reserved[] = {"attr", "like", "min", "max", "ceil", "upto"};
    ONV_TRY(need(p, '('));
    p->n_inputs = 0;
    while (!looking_at(p, ')')) {
        if (p->n_inputs > 0) ONV_TRY(need(p, ','));
        const char *name = word(p, "");
        if (name == NULL) return fail(p, "the name of an input is expected");
        if (p->n_inputs == ONV_CUSTOM_OP_MAX_LIST)
            return fail(p, "more than %d inputs", ONV_CUSTOM_OP_MAX_LIST);
        for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++)
            if (strcmp(name, reserved[i]) == 0) return fail(p, "no input can be called '%s'", name);
        if (find_input(p, name) >= 0) return fail(p, "two inputs are called '%.32s'", name);
        p->inputs[p->n_inputs++] = name;
    }
    p->at++;
    t->inputs = onv_arena_copy(p->arena, p->inputs, p->n_inputs * sizeof *p->inputs);
    t->n_inputs = p->n_inputs;
    return t->inputs != NULL ? ONV_OK : onv_fail_memory(p->err);
}

static onv_status parse_outs(parser *p, onv_custom_op *t)
{
    onv_shape_out outs[ONV_CUSTOM_OP_MAX_LIST];
    ONV_TRY(need(p, ':'));
    do {
        if (t->n_outs == ONV_CUSTOM_OP_MAX_LIST)
            return fail(p, "more than %d outputs", ONV_CUSTOM_OP_MAX_LIST);
        ONV_TRY(parse_out(p, &outs[t->n_outs]));
        t->n_outs++;
    } while (take(p, ','));
    t->outs = onv_arena_copy(p->arena, outs, t->n_outs * sizeof *outs);
    return t->outs != NULL ? ONV_OK : onv_fail_memory(p->err);
}

static onv_status parse_line(parser *p, onv_custom_op *t)
{
    t->overrides = take(p, '!');
    ONV_TRY(parse_name(p, t));
    ONV_TRY(parse_inputs(p, t));
    ONV_TRY(parse_outs(p, t));
    skip_space(p);
    if (p->at < p->end) return fail(p, "nothing more is expected here");
    t->file = p->path;
    t->line = p->line;
    t->row.in.min = (int16_t)t->n_inputs;
    t->row.in.max = t->row.out.max = ONV_OP_MAX_ARITY;
    t->row.infer = onv_op_shapes_infer;
    return ONV_OK;
}

static onv_status add_row(parser *p, onv_op_shapes *table, const onv_custom_op ***link,
                          onv_custom_op *t)
{
    for (const onv_custom_op *other = table->first; other != NULL; other = other->next)
        if (other->row.since == t->row.since && strcmp(other->row.name, t->row.name) == 0 &&
            strcmp(other->domain, t->domain) == 0) {
            p->at = p->start;
            return fail(p, "'%.64s' is already declared in line %u", t->row.name, other->line);
        }
    if (table->count == ONV_CUSTOM_OP_MAX_ROWS)
        return fail(p, "more than %d operators", ONV_CUSTOM_OP_MAX_ROWS);
    **link = t;
    *link = &t->next;
    table->count++;
    return ONV_OK;
}

static onv_status parse_text(parser *p, onv_op_shapes *table, const char *text, size_t bytes)
{
    const onv_custom_op **link = &table->first;
    const char *end = text + bytes;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        p->start = p->at = text;
        p->end = newline != NULL ? newline : end;
        p->line++;
        text = newline != NULL ? newline + 1 : end;
        if (p->end - p->start > ONV_CUSTOM_OP_MAX_LINE)
            return fail(p, "the line is longer than %d bytes", ONV_CUSTOM_OP_MAX_LINE);
        const char *comment = memchr(p->start, '#', (size_t)(p->end - p->start));
        if (comment != NULL) p->end = comment;
        skip_space(p);
        if (p->at == p->end) continue;
        onv_custom_op *t = ONV_ARENA_ARRAY(p->arena, onv_custom_op, 1);
        if (t == NULL) return onv_fail_memory(p->err);
        ONV_TRY(parse_line(p, t));
        ONV_TRY(add_row(p, table, &link, t));
    }
    return p->arena->failed ? onv_fail_memory(p->err) : ONV_OK;
}

onv_status onv_op_shapes_parse(onv_op_shapes *table, onv_arena *arena, const char *path,
                               const char *text, size_t bytes, onv_error *err)
{
    *table = (onv_op_shapes){0};
    parser p = {.arena = arena, .err = err};
    p.path = onv_arena_strndup(arena, path, strlen(path));
    p.code = onv_heap_calloc(ONV_CUSTOM_OP_MAX_CODE, sizeof *p.code);
    onv_status status = p.path == NULL || p.code == NULL ? onv_fail_memory(err)
                                                         : parse_text(&p, table, text, bytes);
    onv_heap_free(p.code);
    return status;
}

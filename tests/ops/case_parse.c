#include "ops/case_parse.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- Scanning --------------------------------------------------------------------------------- */

static void fail(case_parser *p, const char *expected)
{
    if (p->error == NULL) p->error = expected;
}

static void skip_blanks(case_parser *p)
{
    while (*p->at == ' ') p->at++;
}

static bool accept(case_parser *p, const char *token)
{
    const char *at = p->at;
    while (*at == ' ') at++;
    size_t length = strlen(token);
    if (strncmp(at, token, length) != 0) return false;
    p->at = at + length;
    return true;
}

static void expect(case_parser *p, const char *token)
{
    if (!accept(p, token)) fail(p, token);
}

static bool is_name(char ch)
{
    return isalnum((unsigned char)ch) || ch == '_' || ch == '#' || ch == '.';
}

static const char *parse_name(case_parser *p)
{
    skip_blanks(p);
    const char *start = p->at;
    while (is_name(*p->at)) p->at++;
    if (p->at == start) fail(p, "a name");
    return onv_intern_n(&p->model->strings, start, (size_t)(p->at - start));
}

size_t case_word(const char *text)
{
    size_t i = 0;
    int depth = 0;
    bool quoted = false;
    for (; text[i] != '\0' && (text[i] != ' ' || depth > 0 || quoted); i++) {
        if (text[i] == '\'') quoted = !quoted;
        if (!quoted && strchr("([{", text[i]) != NULL) depth++;
        if (!quoted && strchr(")]}", text[i]) != NULL) depth--;
    }
    return i;
}

char *case_squeeze(onv_arena *arena, const char *text, size_t length)
{
    char *copy = onv_arena_strndup(arena, text, length);
    if (copy == NULL) return NULL;
    char *to = copy;
    for (const char *from = copy; *from != '\0'; from++)
        if (*from != ' ') *to++ = *from;
    *to = '\0';
    return copy;
}

/* --- Dims ------------------------------------------------------------------------------------- */

static onv_dim parse_sum(case_parser *p);

static onv_dim parse_call(case_parser *p, const char *name)
{
    onv_dims *pool = &p->model->dims;
    onv_dim a = parse_sum(p);
    if (strcmp(name, "floor") == 0) return a; /* a quotient inside is already one */
    expect(p, ",");
    onv_dim b = parse_sum(p);
    if (strcmp(name, "min") == 0) return onv_dim_min(pool, a, b);
    if (strcmp(name, "max") == 0) return onv_dim_max(pool, a, b);
    if (strcmp(name, "mod") == 0) return onv_dim_mod(pool, a, b);
    if (strcmp(name, "ceildiv") == 0) return onv_dim_ceildiv(pool, a, b);
    fail(p, "floor, ceildiv, mod, min or max");
    return a;
}

static onv_dim parse_atom(case_parser *p)
{
    skip_blanks(p);
    if (accept(p, "-")) return onv_dim_neg(&p->model->dims, parse_atom(p));
    if (accept(p, "?")) return ONV_DIM_UNKNOWN;
    if (accept(p, "(")) {
        onv_dim d = parse_sum(p);
        expect(p, ")");
        return d;
    }
    if (isdigit((unsigned char)*p->at)) {
        char *end;
        long long value = strtoll(p->at, &end, 10);
        p->at = end;
        return onv_dim_const(value);
    }
    const char *name = parse_name(p);
    if (accept(p, "(")) {
        onv_dim d = parse_call(p, name);
        expect(p, ")");
        return d;
    }
    return strcmp(name, "inf") == 0 ? ONV_DIM_INFINITY : onv_dim_symbol(&p->model->dims, name);
}

static onv_dim parse_product(case_parser *p)
{
    onv_dims *pool = &p->model->dims;
    onv_dim d = parse_atom(p);
    while (p->error == NULL) {
        if (accept(p, "*")) {
            d = onv_dim_mul(pool, d, parse_atom(p));
        } else if (accept(p, "/")) {
            d = onv_dim_floordiv(pool, d, parse_atom(p));
        } else {
            break;
        }
    }
    return d;
}

static onv_dim parse_sum(case_parser *p)
{
    onv_dims *pool = &p->model->dims;
    onv_dim d = parse_product(p);
    while (p->error == NULL) {
        if (accept(p, "+")) {
            d = onv_dim_add(pool, d, parse_product(p));
        } else if (accept(p, "-")) {
            d = onv_dim_sub(pool, d, parse_product(p));
        } else {
            break;
        }
    }
    return d;
}

/* --- Contents --------------------------------------------------------------------------------- */

static onv_scalar parse_scalar(case_parser *p, onv_dtype dtype)
{
    skip_blanks(p);
    if (accept(p, "?")) return onv_scalar_unknown();
    if (!onv_dtype_is_float(dtype)) return onv_scalar_int(parse_sum(p));
    char *end;
    double number = strtod(p->at, &end);
    if (end == p->at) return onv_scalar_int(parse_sum(p));
    p->at = end;
    onv_scalar scalar = onv_scalar_real(onv_dtype_round(dtype, number));
    if (accept(p, "*")) scalar.i = parse_atom(p);
    return scalar;
}

static const onv_known *parse_known(case_parser *p, const onv_type *type)
{
    onv_dim elems = onv_type_elems(&p->model->dims, type);
    if (!onv_dim_is_const(elems) || elems.raw > ONV_KNOWN_MAX_ELEMS) {
        fail(p, "a small static shape before contents");
        return NULL;
    }
    onv_known *known = ONV_ARENA_ARRAY(&p->model->arena, onv_known, 1);
    int64_t *dims = ONV_ARENA_ARRAY(&p->model->arena, int64_t, (size_t)type->rank);
    for (int i = 0; i < type->rank; i++) dims[i] = type->dims[i].raw;
    onv_scalar *values = ONV_ARENA_ARRAY(&p->model->arena, onv_scalar, (size_t)elems.raw);
    expect(p, "{");
    for (int64_t i = 0; i < elems.raw; i++) {
        if (i > 0) expect(p, ",");
        values[i] = parse_scalar(p, type->dtype);
    }
    expect(p, "}");
    *known = (onv_known){.dtype = type->dtype,
                         .rank = type->rank,
                         .count = (uint32_t)elems.raw,
                         .dims = dims,
                         .elems = values};
    return known;
}

/* --- Types ------------------------------------------------------------------------------------ */

static onv_dtype parse_dtype(case_parser *p)
{
    const char *name = parse_name(p);
    for (int i = 0; i < ONV_DTYPE_COUNT; i++)
        if (strcmp(case_dtype_text((onv_dtype)i), name) == 0) return (onv_dtype)i;
    fail(p, "a dtype");
    return ONV_UNDEFINED;
}

static void parse_dims(case_parser *p, onv_type *type)
{
    onv_dim dims[ONV_MAX_RANK];
    int rank = 0;
    expect(p, "[");
    type->rank = -1;
    if (accept(p, "...")) {
        expect(p, "]");
        return;
    }
    if (!accept(p, "]")) {
        do {
            dims[rank++] = parse_sum(p);
        } while (rank < ONV_MAX_RANK && accept(p, ","));
        expect(p, "]");
    }
    type->rank = (int16_t)rank;
    type->dims = onv_arena_copy(&p->model->arena, dims, (size_t)rank * sizeof *dims);
}

static onv_op_value parse_value(case_parser *p);

static const onv_type *parse_elem(case_parser *p)
{
    onv_type *elem = ONV_ARENA_ARRAY(&p->model->arena, onv_type, 1);
    *elem = parse_value(p).type;
    return elem;
}

/* What all items of a sequence have in common. */
static const onv_type *common_type(case_parser *p, const onv_type *items, uint32_t count)
{
    onv_type *common = ONV_ARENA_ARRAY(&p->model->arena, onv_type, 1);
    *common = (onv_type){.kind = ONV_TYPE_UNKNOWN, .rank = -1};
    if (count > 0) *common = items[0];
    for (uint32_t i = 1; i < count; i++) {
        bool same = items[i].rank == common->rank;
        for (int axis = 0; same && axis < common->rank; axis++)
            same = onv_dim_same(items[i].dims[axis], common->dims[axis]);
        if (!same) common->rank = -1;
    }
    return common;
}

static onv_type parse_items(case_parser *p)
{
    onv_type items[CASE_MAX_VALUES];
    uint32_t count = 0;
    if (!accept(p, "}")) {
        do {
            items[count++] = parse_value(p).type;
        } while (p->error == NULL && count < CASE_MAX_VALUES && accept(p, ","));
        expect(p, "}");
    }
    onv_items *kept =
        onv_arena_calloc(&p->model->arena, 1, sizeof *kept + sizeof items, _Alignof(onv_items));
    kept->used = kept->room = count;
    memcpy(kept->at, items, count * sizeof *items);
    return onv_type_of_elements(
        &p->model->arena, ONV_TYPE_SEQUENCE,
        (onv_elements){common_type(p, items, count), kept, onv_dim_const(count)});
}

static onv_type parse_nested(case_parser *p, onv_type_kind kind)
{
    onv_elements of = {.length = ONV_DIM_UNKNOWN};
    onv_dtype key = ONV_UNDEFINED;
    if (kind == ONV_TYPE_MAP) {
        key = parse_dtype(p);
        expect(p, ",");
    }
    of.type = parse_elem(p);
    expect(p, ")");
    if (kind == ONV_TYPE_SEQUENCE && accept(p, "*")) of.length = parse_atom(p);
    onv_type type = onv_type_of_elements(&p->model->arena, kind, of);
    type.dtype = (uint8_t)key;
    if (kind == ONV_TYPE_SPARSE_TENSOR) {
        type = *of.type;
        type.kind = ONV_TYPE_SPARSE_TENSOR;
    }
    return type;
}

static onv_op_value parse_value(case_parser *p)
{
    onv_op_value value = {.type = {.rank = -1}};
    if (accept(p, "?")) return value;
    if (accept(p, "seq{")) {
        value.type = parse_items(p);
    } else if (accept(p, "seq(")) {
        value.type = parse_nested(p, ONV_TYPE_SEQUENCE);
    } else if (accept(p, "opt(")) {
        value.type = parse_nested(p, ONV_TYPE_OPTIONAL);
    } else if (accept(p, "map(")) {
        value.type = parse_nested(p, ONV_TYPE_MAP);
    } else if (accept(p, "sparse(")) {
        value.type = parse_nested(p, ONV_TYPE_SPARSE_TENSOR);
    } else {
        value.type.kind = ONV_TYPE_TENSOR;
        value.type.dtype = (uint8_t)parse_dtype(p);
        parse_dims(p, &value.type);
        if (p->error == NULL && accept(p, "=")) value.known = parse_known(p, &value.type);
    }
    return value;
}

uint32_t case_parse_values(case_parser *p, const char *text, case_value *values)
{
    uint32_t count = 0;
    p->at = text;
    for (skip_blanks(p); *p->at != '\0' && p->error == NULL; skip_blanks(p)) {
        if (count == CASE_MAX_VALUES) {
            fail(p, "fewer values");
            break;
        }
        values[count] = (case_value){.present = !accept(p, "-")};
        if (values[count].present) values[count].value = parse_value(p);
        count++;
        if (p->error == NULL && *p->at != '\0' && *p->at != ' ') fail(p, "a blank after a value");
    }
    return count;
}

/* --- Attributes ------------------------------------------------------------------------------- */

static const char *parse_string(case_parser *p)
{
    const char *start = p->at;
    while (*p->at != '\'' && *p->at != '\0') p->at++;
    const char *text = onv_arena_strndup(&p->model->arena, start, (size_t)(p->at - start));
    expect(p, "'");
    return text;
}

static bool looks_like_number(const char *text)
{
    if (*text == '-' || *text == '+') text++;
    return isdigit((unsigned char)*text) || *text == '.' || strncmp(text, "inf", 3) == 0;
}

/* One number; *is_float where it is written as one. */
static double parse_number(case_parser *p, bool *is_float, int64_t *integer)
{
    skip_blanks(p);
    char *end;
    const char *start = p->at;
    double number = strtod(start, &end);
    *integer = strtoll(start, NULL, 10);
    if (end == start) fail(p, "a number");
    for (p->at = start; p->at < end; p->at++)
        if (strchr(".ein", *p->at) != NULL) *is_float = true;
    if (*p->at == 'f') {
        p->at++;
        *is_float = true;
    }
    return number;
}

static void parse_strings(case_parser *p, onv_attr *attr)
{
    const char *strings[CASE_MAX_VALUES];
    do {
        expect(p, "'");
        strings[attr->count++] = parse_string(p);
    } while (p->error == NULL && attr->count < CASE_MAX_VALUES && accept(p, ","));
    attr->kind = ONV_ATTR_STRINGS;
    attr->strings = onv_arena_copy(&p->model->arena, strings, attr->count * sizeof *strings);
}

static void parse_numbers(case_parser *p, onv_attr *attr)
{
    float floats[CASE_MAX_VALUES];
    int64_t ints[CASE_MAX_VALUES];
    bool is_float = false;
    skip_blanks(p);
    if (*p->at != ']') {
        do {
            floats[attr->count] = (float)parse_number(p, &is_float, &ints[attr->count]);
            attr->count++;
        } while (p->error == NULL && attr->count < CASE_MAX_VALUES && accept(p, ","));
    }
    if (strncmp(p->at, "]f", 2) == 0) is_float = true;
    attr->kind = is_float ? ONV_ATTR_FLOATS : ONV_ATTR_INTS;
    if (is_float) {
        attr->floats = onv_arena_copy(&p->model->arena, floats, attr->count * sizeof *floats);
    } else {
        attr->ints = onv_arena_copy(&p->model->arena, ints, attr->count * sizeof *ints);
    }
}

static void parse_tensor(case_parser *p, onv_attr *attr)
{
    onv_op_value value = parse_value(p);
    onv_tensor *tensor = ONV_ARENA_ARRAY(&p->model->arena, onv_tensor, 1);
    *tensor = (onv_tensor){.name = "", .type = value.type};
    onv_dim elems = onv_type_elems(&p->model->dims, &value.type);
    tensor->elems = onv_dim_is_const(elems) ? (uint64_t)elems.raw : 0;
    (void)onv_dtype_bytes((onv_dtype)tensor->type.dtype, tensor->elems, &tensor->bytes);
    attr->kind = ONV_ATTR_TENSOR;
    attr->tensor = tensor;
    if (p->n_tensors == sizeof p->tensors / sizeof p->tensors[0]) {
        fail(p, "fewer tensors");
        return;
    }
    p->tensors[p->n_tensors++] = (case_tensor){tensor, value.known};
}

static void parse_graph(case_parser *p, onv_attr *attr)
{
    case_value values[CASE_MAX_VALUES];
    uint32_t count = 0;
    char *end;
    long n_inputs = strtol(p->at, &end, 10);
    p->at = end;
    expect(p, ":");
    while (p->error == NULL && !accept(p, ")")) values[count++].value = parse_value(p);
    onv_graph graph = {.name = "", .owner = ONV_NO_NODE, .n_inputs = (uint32_t)n_inputs};
    graph.inputs = ONV_ARENA_ARRAY(&p->model->arena, onv_value_id, (size_t)n_inputs);
    graph.outputs = ONV_ARENA_ARRAY(&p->model->arena, onv_value_id, count);
    graph.n_outputs = count;
    case_graph *stored = &p->graphs[p->n_graphs];
    if (p->n_graphs == sizeof p->graphs / sizeof p->graphs[0]) {
        fail(p, "fewer graphs");
        return;
    }
    stored->n_outputs = count;
    stored->outputs = ONV_ARENA_ARRAY(&p->model->arena, onv_op_value, count);
    for (uint32_t i = 0; i < count; i++) stored->outputs[i] = values[i].value;
    attr->kind = ONV_ATTR_GRAPH;
    attr->graph = (onv_graph_id){p->n_graphs++};
    for (uint32_t i = 0; i < graph.n_inputs + count; i++) {
        onv_value value = {.name = "", .graph = attr->graph, .producer = ONV_NO_NODE};
        onv_value_id id = {(uint32_t)p->model->values.count};
        value.kind = i < graph.n_inputs ? ONV_VALUE_INPUT : ONV_VALUE_ACTIVATION;
        if (!onv_vec_push(&p->model->values, value)) fail(p, "memory");
        if (i < graph.n_inputs)
            graph.inputs[i] = id;
        else
            graph.outputs[i - graph.n_inputs] = id;
    }
    if (!onv_vec_push(&p->model->graphs, graph)) fail(p, "memory");
}

static void parse_attr_value(case_parser *p, onv_attr *attr)
{
    bool is_float = false;
    if (accept(p, "'")) {
        attr->kind = ONV_ATTR_STRING;
        attr->s = parse_string(p);
    } else if (accept(p, "[")) {
        skip_blanks(p);
        if (*p->at == '\'')
            parse_strings(p, attr);
        else
            parse_numbers(p, attr);
        expect(p, "]");
        if (*p->at == 'f') p->at++;
    } else if (accept(p, "graph(")) {
        parse_graph(p, attr);
    } else if (accept(p, "type(")) {
        attr->kind = ONV_ATTR_TYPE_PROTO;
        attr->type = parse_elem(p);
        expect(p, ")");
    } else if (looks_like_number(p->at)) {
        int64_t integer;
        double number = parse_number(p, &is_float, &integer);
        attr->kind = is_float ? ONV_ATTR_FLOAT : ONV_ATTR_INT;
        if (is_float)
            attr->f = (float)number;
        else
            attr->i = integer;
    } else if (memchr(p->at, '[', case_word(p->at)) != NULL) {
        parse_tensor(p, attr);
    } else {
        attr->kind = ONV_ATTR_INT;
        attr->i = parse_dtype(p);
    }
}

uint32_t case_parse_attrs(case_parser *p, const char *text, onv_attr **attrs)
{
    onv_attr list[CASE_MAX_VALUES];
    uint32_t count = 0;
    p->at = text;
    for (skip_blanks(p); *p->at != '\0' && p->error == NULL; skip_blanks(p)) {
        if (count == CASE_MAX_VALUES) {
            fail(p, "fewer attributes");
            break;
        }
        list[count] = (onv_attr){.name = parse_name(p)};
        expect(p, "=");
        parse_attr_value(p, &list[count++]);
        if (p->error == NULL && *p->at != '\0' && *p->at != ' ')
            fail(p, "a blank after an attribute");
    }
    *attrs = onv_arena_copy(&p->model->arena, list, count * sizeof *list);
    return count;
}

/* The arguments of a call, of all kinds that the schema has. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "program/reader.h"

static onv_status list_of(const onv_program_reader *r, const onv_doc *value, size_t *n)
{
    *n = 0;
    if (!onv_doc_is(value, ONV_DOC_LIST))
        return onv_program_unexpected(r, "an argument", "a list", value);
    *n = onv_doc_count(value);
    if (*n > r->limits->attr_elems)
        return onv_fail(r->err, ONV_ERR_LIMIT,
                        "an argument has %zu elements; the limit is %llu (--limit attr-elems=N)",
                        *n, (unsigned long long)r->limits->attr_elems);
    ONV_WORK(1 + *n);
    return ONV_OK;
}

/* --- Tensors ----------------------------------------------------------------------------------- */

static onv_status tensor_name(const onv_program_reader *r, const onv_doc *tensor,
                              const onv_doc **name)
{
    return onv_program_member(r, tensor, "name", ONV_DOC_STRING, name);
}

static onv_status read_tensor(onv_program_reader *r, const onv_doc *value, onv_argument *a)
{
    const onv_doc *name;
    ONV_TRY(tensor_name(r, value, &name));
    a->kind = ONV_ARGUMENT_TENSOR;
    return onv_program_find_value(r, name, &a->value);
}

/* {"as_tensor": {"name": ...}}, or {"as_none": true}. */
static onv_status read_optional(const onv_program_reader *r, const onv_doc *value, uint32_t *id)
{
    const char *kind;
    const onv_doc *inner, *name;
    ONV_TRY(onv_program_variant(r, "an optional tensor", value, &kind, &inner));
    *id = ONV_NO_PROGRAM_VALUE;
    if (strcmp(kind, "as_tensor") != 0) return ONV_OK;
    ONV_TRY(tensor_name(r, inner, &name));
    return onv_program_find_value(r, name, id);
}

static onv_status read_optional_tensor(onv_program_reader *r, const onv_doc *value, onv_argument *a)
{
    ONV_TRY(read_optional(r, value, &a->value));
    a->kind = a->value == ONV_NO_PROGRAM_VALUE ? ONV_ARGUMENT_NONE : ONV_ARGUMENT_TENSOR;
    return ONV_OK;
}

/* Lists of lists are one list. */
static onv_status push_tensors(onv_program_reader *r, const onv_doc *list, bool is_optional,
                               bool is_nested)
{
    size_t n;
    ONV_TRY(list_of(r, list, &n));
    for (size_t i = 0; i < n; i++) {
        const onv_doc *item = &list->items[i], *name;
        uint32_t id;
        if (is_nested) {
            ONV_TRY(push_tensors(r, item, false, false));
            continue;
        }
        if (is_optional) {
            ONV_TRY(read_optional(r, item, &id));
        } else {
            ONV_TRY(tensor_name(r, item, &name));
            ONV_TRY(onv_program_find_value(r, name, &id));
        }
        if (!onv_vec_push(&r->ids, id)) return onv_fail_memory(r->err);
    }
    return ONV_OK;
}

static onv_status take_tensors(onv_program_reader *r, const onv_doc *value, bool is_optional,
                               bool is_nested, onv_argument *a)
{
    size_t first = r->ids.count;
    ONV_TRY(push_tensors(r, value, is_optional, is_nested));
    a->kind = ONV_ARGUMENT_TENSORS;
    a->count = (uint32_t)(r->ids.count - first);
    a->values = ONV_PROGRAM_TAKE(r, &r->ids, first);
    return a->values != NULL ? ONV_OK : onv_fail_memory(r->err);
}

static onv_status read_tensors(onv_program_reader *r, const onv_doc *value, onv_argument *a)
{
    return take_tensors(r, value, false, false, a);
}

static onv_status read_optional_tensors(onv_program_reader *r, const onv_doc *value,
                                        onv_argument *a)
{
    return take_tensors(r, value, true, false, a);
}

static onv_status read_nested_tensors(onv_program_reader *r, const onv_doc *value, onv_argument *a)
{
    return take_tensors(r, value, false, true, a);
}

/* --- Numbers ----------------------------------------------------------------------------------- */

static onv_status read_none(onv_program_reader *r, const onv_doc *value, onv_argument *a)
{
    (void)r;
    (void)value;
    a->kind = ONV_ARGUMENT_NONE;
    return ONV_OK;
}

static onv_status read_int(onv_program_reader *r, const onv_doc *value, onv_argument *a)
{
    if (!onv_doc_is(value, ONV_DOC_INTEGER))
        return onv_program_unexpected(r, "as_int", "an integer", value);
    a->kind = ONV_ARGUMENT_INT;
    a->number = onv_dim_const(value->integer);
    return ONV_OK;
}

static onv_status read_sym_int(onv_program_reader *r, const onv_doc *value, onv_argument *a)
{
    a->kind = ONV_ARGUMENT_INT;
    return onv_program_size(r, "as_sym_int", value, &a->number);
}

static onv_status read_ints(onv_program_reader *r, const onv_doc *value, onv_argument *a)
{
    size_t n;
    ONV_TRY(list_of(r, value, &n));
    onv_dim *numbers = ONV_ARENA_ARRAY(&r->model->arena, onv_dim, n);
    if (numbers == NULL) return onv_fail_memory(r->err);
    for (size_t i = 0; i < n; i++)
        ONV_TRY(onv_program_size(r, "a list of integers", &value->items[i], &numbers[i]));
    a->kind = ONV_ARGUMENT_INTS;
    a->count = (uint32_t)n;
    a->numbers = numbers;
    return ONV_OK;
}

/* PyTorch writes what JSON lacks as a string: "-Infinity". NaN is any other. */
static onv_status number_of(const onv_program_reader *r, const onv_doc *value, double *real)
{
    *real = NAN;
    if (onv_doc_is(value, ONV_DOC_INTEGER)) *real = (double)value->integer;
    if (onv_doc_is(value, ONV_DOC_REAL)) *real = value->real;
    if (onv_doc_is(value, ONV_DOC_INTEGER) || onv_doc_is(value, ONV_DOC_REAL)) return ONV_OK;
    if (!onv_doc_is(value, ONV_DOC_STRING))
        return onv_program_unexpected(r, "as_float", "a number", value);
    const char *text = value->text;
    bool is_negative = text[0] == '-';
    if (strncmp(text + is_negative, "Inf", 3) == 0 || strncmp(text + is_negative, "inf", 3) == 0)
        *real = is_negative ? -INFINITY : INFINITY;
    return ONV_OK;
}

static onv_status read_float(onv_program_reader *r, const onv_doc *value, onv_argument *a)
{
    a->kind = ONV_ARGUMENT_FLOAT;
    return number_of(r, value, &a->real);
}

/* A float that a size decides is not followed. */
static onv_status sym_float(const onv_program_reader *r, const onv_doc *value, double *real)
{
    const char *kind;
    const onv_doc *inner;
    ONV_TRY(onv_program_variant(r, "as_sym_float", value, &kind, &inner));
    *real = NAN;
    return strcmp(kind, "as_float") == 0 ? number_of(r, inner, real) : ONV_OK;
}

static onv_status read_sym_float(onv_program_reader *r, const onv_doc *value, onv_argument *a)
{
    a->kind = ONV_ARGUMENT_FLOAT;
    return sym_float(r, value, &a->real);
}

static onv_status take_floats(onv_program_reader *r, const onv_doc *value, onv_argument *a,
                              onv_status (*read)(const onv_program_reader *r, const onv_doc *value,
                                                 double *real))
{
    size_t n;
    ONV_TRY(list_of(r, value, &n));
    double *reals = ONV_ARENA_ARRAY(&r->model->arena, double, n);
    if (reals == NULL) return onv_fail_memory(r->err);
    for (size_t i = 0; i < n; i++) ONV_TRY(read(r, &value->items[i], &reals[i]));
    a->kind = ONV_ARGUMENT_FLOATS;
    a->count = (uint32_t)n;
    a->reals = reals;
    return ONV_OK;
}

static onv_status read_floats(onv_program_reader *r, const onv_doc *value, onv_argument *a)
{
    return take_floats(r, value, a, number_of);
}

static onv_status read_sym_floats(onv_program_reader *r, const onv_doc *value, onv_argument *a)
{
    return take_floats(r, value, a, sym_float);
}

static onv_status read_bool(onv_program_reader *r, const onv_doc *value, onv_argument *a)
{
    if (!onv_doc_is(value, ONV_DOC_BOOL))
        return onv_program_unexpected(r, "as_bool", "a boolean", value);
    a->kind = ONV_ARGUMENT_BOOL;
    a->flag = value->flag;
    return ONV_OK;
}

static onv_status read_bools(onv_program_reader *r, const onv_doc *value, onv_argument *a)
{
    size_t n;
    ONV_TRY(list_of(r, value, &n));
    bool *flags = ONV_ARENA_ARRAY(&r->model->arena, bool, n);
    if (flags == NULL) return onv_fail_memory(r->err);
    for (size_t i = 0; i < n; i++) {
        const onv_doc *item = &value->items[i];
        if (!onv_doc_is(item, ONV_DOC_BOOL))
            return onv_program_unexpected(r, "as_bools", "a boolean", item);
        flags[i] = item->flag;
    }
    a->kind = ONV_ARGUMENT_BOOLS;
    a->count = (uint32_t)n;
    a->flags = flags;
    return ONV_OK;
}

/* --- Words ------------------------------------------------------------------------------------- */

static onv_status read_string(onv_program_reader *r, const onv_doc *value, onv_argument *a)
{
    a->kind = ONV_ARGUMENT_STRING;
    return onv_program_name(r, "as_string", value, &a->text);
}

static onv_status read_strings(onv_program_reader *r, const onv_doc *value, onv_argument *a)
{
    size_t n;
    ONV_TRY(list_of(r, value, &n));
    const char **texts = ONV_ARENA_ARRAY(&r->model->arena, const char *, n);
    if (texts == NULL) return onv_fail_memory(r->err);
    for (size_t i = 0; i < n; i++)
        ONV_TRY(onv_program_name(r, "as_strings", &value->items[i], &texts[i]));
    a->kind = ONV_ARGUMENT_STRINGS;
    a->count = (uint32_t)n;
    a->texts = texts;
    return ONV_OK;
}

static onv_status read_dtype(onv_program_reader *r, const onv_doc *value, onv_argument *a)
{
    if (!onv_doc_is(value, ONV_DOC_INTEGER))
        return onv_program_unexpected(r, "as_scalar_type", "a number", value);
    a->kind = ONV_ARGUMENT_DTYPE;
    a->dtype = (uint8_t)onv_program_dtype(value->integer);
    return ONV_OK;
}

static onv_status read_format(onv_program_reader *r, const onv_doc *value, onv_argument *a)
{
    static const char *const names[] = {"unknown", "contiguous", "channels_last",
                                        "channels_last_3d", "preserve"};
    enum { N = sizeof names / sizeof names[0] };
    if (!onv_doc_is(value, ONV_DOC_INTEGER))
        return onv_program_unexpected(r, "as_memory_format", "a number", value);
    int64_t at = value->integer;
    a->kind = ONV_ARGUMENT_FORMAT;
    a->text = names[at >= 0 && at < N ? at : 0];
    return ONV_OK;
}

static onv_status read_device(onv_program_reader *r, const onv_doc *value, onv_argument *a)
{
    const onv_doc *type;
    ONV_TRY(onv_program_member(r, value, "type", ONV_DOC_STRING, &type));
    a->kind = ONV_ARGUMENT_DEVICE;
    return onv_program_name(r, "as_device", type, &a->text);
}

static onv_status read_graph(onv_program_reader *r, const onv_doc *value, onv_argument *a)
{
    onv_program_pending graph = {.call = (uint32_t)r->program->calls.count,
                                 .depth = r->pending.at[r->graph].depth + 1};
    const onv_doc *name;
    ONV_TRY(onv_program_member(r, value, "name", ONV_DOC_STRING, &name));
    ONV_TRY(onv_program_member(r, value, "graph", ONV_DOC_OBJECT, &graph.graph));
    ONV_TRY(onv_program_name(r, "as_graph", name, &graph.name));
    if (graph.depth > r->limits->nesting)
        return onv_fail(r->err, ONV_ERR_LIMIT, "graphs are nested more than %u levels deep",
                        r->limits->nesting);
    a->kind = ONV_ARGUMENT_GRAPH;
    a->graph = (uint32_t)r->pending.count;
    if (!onv_vec_push(&r->pending, graph)) return onv_fail_memory(r->err);
    return ONV_OK;
}

static onv_status read_other(onv_program_reader *r, const onv_doc *value, onv_argument *a)
{
    (void)r;
    (void)value;
    a->kind = ONV_ARGUMENT_OTHER;
    return ONV_OK;
}

static const struct {
    const char *name;
    onv_status (*read)(onv_program_reader *r, const onv_doc *value, onv_argument *a);
} kinds[] = {
    {"as_tensor", read_tensor},
    {"as_int", read_int},
    {"as_ints", read_ints},
    {"as_none", read_none},
    {"as_float", read_float},
    {"as_bool", read_bool},
    {"as_sym_int", read_sym_int},
    {"as_sym_ints", read_ints},
    {"as_tensors", read_tensors},
    {"as_optional_tensor", read_optional_tensor},
    {"as_optional_tensors", read_optional_tensors},
    {"as_nested_tensors", read_nested_tensors},
    {"as_floats", read_floats},
    {"as_sym_float", read_sym_float},
    {"as_sym_floats", read_sym_floats},
    {"as_bools", read_bools},
    {"as_string", read_string},
    {"as_strings", read_strings},
    {"as_operator", read_string},
    {"as_scalar_type", read_dtype},
    {"as_memory_format", read_format},
    {"as_device", read_device},
    {"as_graph", read_graph},
    {"as_layout", read_other},
    {"as_sym_bool", read_other},
    {"as_sym_bools", read_other},
    {"as_complex", read_other},
    {"as_custom_obj", read_other},
    {"as_string_to_argument", read_other},
    {"as_int_lists", read_other},
    {"as_float_lists", read_other},
};

static onv_status read_argument(onv_program_reader *r, const onv_doc *input, onv_argument *a)
{
    const onv_doc *name, *arg, *value;
    const char *kind;
    *a = (onv_argument){0};
    ONV_TRY(onv_program_member(r, input, "name", ONV_DOC_STRING, &name));
    ONV_TRY(onv_program_member(r, input, "arg", ONV_DOC_OBJECT, &arg));
    ONV_TRY(onv_program_name(r, "an argument", name, &a->name));
    ONV_TRY(onv_program_variant(r, "an argument", arg, &kind, &value));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kind, kinds[i].name) == 0) return kinds[i].read(r, value, a);
    return onv_fail(r->err, ONV_ERR_FORMAT, "argument '%.100s' is of the unknown kind '%.100s'",
                    a->name, kind);
}

onv_status onv_program_arguments(onv_program_reader *r, const onv_doc *inputs, onv_program_call *to)
{
    size_t n;
    ONV_TRY(list_of(r, inputs, &n));
    onv_argument *arguments = ONV_ARENA_ARRAY(&r->model->arena, onv_argument, n);
    if (arguments == NULL) return onv_fail_memory(r->err);
    for (size_t i = 0; i < n; i++) ONV_TRY(read_argument(r, &inputs->items[i], &arguments[i]));
    to->arguments = arguments;
    to->n_arguments = (uint32_t)n;
    return ONV_OK;
}

/* The arguments of a call, of all kinds that the schema has. */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "load/limits.h"
#include "program/reader.h"

/* Each reads one value, or one element of a list, into the union of an argument. `at` is the kind's name. */
typedef void reads_value(onv_program_reader *r, const char *at, const onv_doc *value,
                         onv_argument *a);

/* --- Tensors ----------------------------------------------------------------------------------- */

static void read_tensor(onv_program_reader *r, const char *at, const onv_doc *value,
                        onv_argument *a)
{
    (void)at;
    a->value = onv_program_find_value(r, onv_program_member(r, value, "name", ONV_DOC_STRING));
}

/* {"as_tensor": {"name": ...}}, or {"as_none": true}. */
static void read_optional(onv_program_reader *r, const char *at, const onv_doc *value,
                          onv_argument *a)
{
    const char *kind;
    const onv_doc *inner = onv_program_variant(r, "an optional tensor", value, &kind);
    a->value = ONV_NO_PROGRAM_VALUE;
    if (strcmp(kind, "as_tensor") == 0) read_tensor(r, at, inner, a);
}

/* --- Numbers ----------------------------------------------------------------------------------- */

static void read_int(onv_program_reader *r, const char *at, const onv_doc *value, onv_argument *a)
{
    if (!onv_doc_is(value, ONV_DOC_INTEGER)) onv_program_unexpected(r, at, "an integer", value);
    a->number = onv_dim_const(value->integer);
}

static void read_size(onv_program_reader *r, const char *at, const onv_doc *value, onv_argument *a)
{
    a->number = onv_program_size(r, at, value);
}

/* PyTorch writes what JSON lacks as a string: "-Infinity". NaN is any other. */
static void read_float(onv_program_reader *r, const char *at, const onv_doc *value, onv_argument *a)
{
    a->real = NAN;
    if (onv_doc_is(value, ONV_DOC_INTEGER)) a->real = (double)value->integer;
    if (onv_doc_is(value, ONV_DOC_REAL)) a->real = value->real;
    if (onv_doc_is(value, ONV_DOC_INTEGER) || onv_doc_is(value, ONV_DOC_REAL)) return;
    if (!onv_doc_is(value, ONV_DOC_STRING)) onv_program_unexpected(r, at, "a number", value);
    const char *text = value->text;
    bool is_negative = text[0] == '-';
    if (strncmp(text + is_negative, "Inf", 3) == 0 || strncmp(text + is_negative, "inf", 3) == 0)
        a->real = is_negative ? -INFINITY : INFINITY;
}

/* A float that a size decides is not followed. */
static void read_sym_float(onv_program_reader *r, const char *at, const onv_doc *value,
                           onv_argument *a)
{
    const char *kind;
    const onv_doc *inner = onv_program_variant(r, at, value, &kind);
    a->real = NAN;
    if (strcmp(kind, "as_float") == 0) read_float(r, at, inner, a);
}

static void read_bool(onv_program_reader *r, const char *at, const onv_doc *value, onv_argument *a)
{
    if (!onv_doc_is(value, ONV_DOC_BOOL)) onv_program_unexpected(r, at, "a boolean", value);
    a->flag = value->flag;
}

/* --- Words ------------------------------------------------------------------------------------- */

static void read_string(onv_program_reader *r, const char *at, const onv_doc *value,
                        onv_argument *a)
{
    a->text = onv_program_name(r, at, value);
}

static void read_dtype(onv_program_reader *r, const char *at, const onv_doc *value, onv_argument *a)
{
    if (!onv_doc_is(value, ONV_DOC_INTEGER)) onv_program_unexpected(r, at, "a number", value);
    a->dtype = (uint8_t)onv_program_dtype(value->integer);
}

static void read_format(onv_program_reader *r, const char *at, const onv_doc *value,
                        onv_argument *a)
{
    static const char *const names[] = {"unknown", "contiguous", "channels_last",
                                        "channels_last_3d", "preserve"};
    enum { N = sizeof names / sizeof names[0] };
    if (!onv_doc_is(value, ONV_DOC_INTEGER)) onv_program_unexpected(r, at, "a number", value);
    a->text = names[value->integer >= 0 && value->integer < N ? value->integer : 0];
}

static void read_device(onv_program_reader *r, const char *at, const onv_doc *value,
                        onv_argument *a)
{
    a->text = onv_program_name(r, at, onv_program_member(r, value, "type", ONV_DOC_STRING));
}

static void read_graph(onv_program_reader *r, const char *at, const onv_doc *value, onv_argument *a)
{
    onv_program_pending graph = {.call = (uint32_t)r->program->calls.count,
                                 .depth = r->pending.at[r->graph].depth + 1};
    const onv_doc *name = onv_program_member(r, value, "name", ONV_DOC_STRING);
    graph.graph = onv_program_member(r, value, "graph", ONV_DOC_OBJECT);
    graph.name = onv_program_name(r, at, name);
    if (graph.depth > r->limits->nesting)
        onv_program_leave(r, onv_fail(r->err, ONV_ERR_LIMIT,
                                      "graphs are nested more than %u levels deep",
                                      r->limits->nesting));
    a->graph = (uint32_t)r->pending.count;
    onv_program_fit(r, onv_vec_push(&r->pending, graph));
}

/* --- Kinds ------------------------------------------------------------------------------------- */

typedef struct kind {
    const char *name;
    uint8_t kind;      /* onv_argument_kind */
    uint8_t element;   /* bytes of one, of a list; 0: it is none */
    reads_value *read; /* NULL: no rule looks at it */
} kind;

static const kind kinds[] = {
    {"as_tensor", ONV_ARGUMENT_TENSOR, 0, read_tensor},
    {"as_int", ONV_ARGUMENT_INT, 0, read_int},
    {"as_ints", ONV_ARGUMENT_INTS, sizeof(onv_dim), read_size},
    {"as_none", ONV_ARGUMENT_NONE, 0, NULL},
    {"as_float", ONV_ARGUMENT_FLOAT, 0, read_float},
    {"as_bool", ONV_ARGUMENT_BOOL, 0, read_bool},
    {"as_sym_int", ONV_ARGUMENT_INT, 0, read_size},
    {"as_sym_ints", ONV_ARGUMENT_INTS, sizeof(onv_dim), read_size},
    {"as_tensors", ONV_ARGUMENT_TENSORS, sizeof(uint32_t), read_tensor},
    {"as_optional_tensor", ONV_ARGUMENT_TENSOR, 0, read_optional},
    {"as_optional_tensors", ONV_ARGUMENT_TENSORS, sizeof(uint32_t), read_optional},
    {"as_nested_tensors", ONV_ARGUMENT_TENSORS, sizeof(uint32_t), read_tensor},
    {"as_floats", ONV_ARGUMENT_FLOATS, sizeof(double), read_float},
    {"as_sym_float", ONV_ARGUMENT_FLOAT, 0, read_sym_float},
    {"as_sym_floats", ONV_ARGUMENT_FLOATS, sizeof(double), read_sym_float},
    {"as_bools", ONV_ARGUMENT_BOOLS, sizeof(bool), read_bool},
    {"as_string", ONV_ARGUMENT_STRING, 0, read_string},
    {"as_strings", ONV_ARGUMENT_STRINGS, sizeof(char *), read_string},
    {"as_operator", ONV_ARGUMENT_STRING, 0, read_string},
    {"as_scalar_type", ONV_ARGUMENT_DTYPE, 0, read_dtype},
    {"as_memory_format", ONV_ARGUMENT_FORMAT, 0, read_format},
    {"as_device", ONV_ARGUMENT_DEVICE, 0, read_device},
    {"as_graph", ONV_ARGUMENT_GRAPH, 0, read_graph},
    {"as_layout", ONV_ARGUMENT_OTHER, 0, NULL},
    {"as_sym_bool", ONV_ARGUMENT_OTHER, 0, NULL},
    {"as_sym_bools", ONV_ARGUMENT_OTHER, 0, NULL},
    {"as_complex", ONV_ARGUMENT_OTHER, 0, NULL},
    {"as_custom_obj", ONV_ARGUMENT_OTHER, 0, NULL},
    {"as_string_to_argument", ONV_ARGUMENT_OTHER, 0, NULL},
    {"as_int_lists", ONV_ARGUMENT_OTHER, 0, NULL},
    {"as_float_lists", ONV_ARGUMENT_OTHER, 0, NULL},
};

static size_t list_of(onv_program_reader *r, const onv_doc *value)
{
    if (!onv_doc_is(value, ONV_DOC_LIST)) onv_program_unexpected(r, "an argument", "a list", value);
    size_t n = onv_doc_count(value);
    if (n > r->limits->attr_elems)
        onv_program_leave(
            r,
            onv_fail(r->err, ONV_ERR_LIMIT,
                     "an argument has %zu elements, the limit is %" PRIu64 ONV_RAISE("attr-elems"),
                     n, r->limits->attr_elems));
    onv_program_work(r, 1 + n);
    return n;
}

/* Lists of lists are one list. */
static void read_list(onv_program_reader *r, const kind *k, const onv_doc *value, onv_argument *a)
{
    const bool is_nested = strcmp(k->name, "as_nested_tensors") == 0;
    size_t n = list_of(r, value), count = is_nested ? 0 : n;
    for (size_t i = 0; is_nested && i < n; i++) count += list_of(r, &value->items[i]);
    char *to = onv_program_made(r, onv_arena_alloc(&r->model->arena, count * k->element));
    a->values = (const uint32_t *)(const void *)to; /* or what else the union has */
    a->count = (uint32_t)count;
    for (size_t i = 0; i < n; i++) {
        const onv_doc *items = is_nested ? value->items[i].items : &value->items[i];
        uint32_t n_items = is_nested ? value->items[i].count : 1;
        for (uint32_t j = 0; j < n_items; j++, to += k->element) {
            onv_argument element;
            k->read(r, k->name, &items[j], &element);
            memcpy(to, (const char *)&element + offsetof(onv_argument, value), k->element);
        }
    }
}

static void read_argument(onv_program_reader *r, const onv_doc *input, onv_argument *a)
{
    const char *word;
    const onv_doc *name = onv_program_member(r, input, "name", ONV_DOC_STRING);
    const onv_doc *arg = onv_program_member(r, input, "arg", ONV_DOC_OBJECT);
    *a = (onv_argument){.name = onv_program_name(r, "an argument", name)};
    const onv_doc *value = onv_program_variant(r, "an argument", arg, &word);
    const kind *k = kinds, *end = kinds + sizeof kinds / sizeof kinds[0];
    while (k < end && strcmp(word, k->name) != 0) k++;
    if (k == end)
        onv_program_leave(r, onv_fail(r->err, ONV_ERR_FORMAT,
                                      "argument '%.100s' is of the unknown kind '%.100s'", a->name,
                                      word));
    a->kind = k->kind;
    if (k->element > 0)
        read_list(r, k, value, a);
    else if (k->read != NULL)
        k->read(r, k->name, value, a);
    bool is_none = k->read == read_optional && k->element == 0 && a->value == ONV_NO_PROGRAM_VALUE;
    if (is_none) a->kind = ONV_ARGUMENT_NONE;
}

void onv_program_arguments(onv_program_reader *r, const onv_doc *inputs, onv_program_call *to)
{
    size_t n = list_of(r, inputs);
    onv_argument *arguments =
        onv_program_made(r, ONV_ARENA_ARRAY(&r->model->arena, onv_argument, n));
    for (size_t i = 0; i < n; i++) read_argument(r, &inputs->items[i], &arguments[i]);
    to->arguments = arguments;
    to->n_arguments = (uint32_t)n;
}

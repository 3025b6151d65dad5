#include "fuzz/schema.h"

#include "load/wire.h"

#define NUMBER(message, number)                                                                    \
    {                                                                                              \
        message, number, KIND_NUMBER, 0                                                            \
    }
#define FLOAT(message, number)                                                                     \
    {                                                                                              \
        message, number, KIND_FLOAT, 0                                                             \
    }
#define NAME(message, number)                                                                      \
    {                                                                                              \
        message, number, KIND_NAME, 0                                                              \
    }
#define BYTES(message, number)                                                                     \
    {                                                                                              \
        message, number, KIND_BYTES, 0                                                             \
    }
#define MESSAGE(message, number, of)                                                               \
    {                                                                                              \
        message, number, KIND_MESSAGE, of                                                          \
    }

const fuzz_field_row fuzz_schema[] = {
    NUMBER(MSG_MODEL, 1),
    MESSAGE(MSG_MODEL, 7, MSG_GRAPH),
    MESSAGE(MSG_MODEL, 8, MSG_OPSET),
    MESSAGE(MSG_MODEL, 14, MSG_ENTRY),
    MESSAGE(MSG_MODEL, 25, MSG_FUNCTION),
    NAME(MSG_OPSET, 1),
    NUMBER(MSG_OPSET, 2),
    NAME(MSG_ENTRY, 1),
    NAME(MSG_ENTRY, 2),
    MESSAGE(MSG_GRAPH, 1, MSG_NODE),
    NAME(MSG_GRAPH, 2),
    MESSAGE(MSG_GRAPH, 5, MSG_TENSOR),
    MESSAGE(MSG_GRAPH, 11, MSG_VALUE_INFO),
    MESSAGE(MSG_GRAPH, 12, MSG_VALUE_INFO),
    MESSAGE(MSG_GRAPH, 13, MSG_VALUE_INFO),
    MESSAGE(MSG_GRAPH, 15, MSG_SPARSE),
    NAME(MSG_NODE, 1),
    NAME(MSG_NODE, 2),
    NAME(MSG_NODE, 3),
    {MSG_NODE, 4, KIND_OP, 0},
    MESSAGE(MSG_NODE, 5, MSG_ATTRIBUTE),
    NAME(MSG_NODE, 7),
    {MSG_ATTRIBUTE, 1, KIND_ATTR, 0},
    FLOAT(MSG_ATTRIBUTE, 2),
    NUMBER(MSG_ATTRIBUTE, 3),
    NAME(MSG_ATTRIBUTE, 4),
    MESSAGE(MSG_ATTRIBUTE, 5, MSG_TENSOR),
    MESSAGE(MSG_ATTRIBUTE, 6, MSG_GRAPH),
    FLOAT(MSG_ATTRIBUTE, 7),
    NUMBER(MSG_ATTRIBUTE, 8),
    NAME(MSG_ATTRIBUTE, 9),
    MESSAGE(MSG_ATTRIBUTE, 10, MSG_TENSOR),
    MESSAGE(MSG_ATTRIBUTE, 11, MSG_GRAPH),
    MESSAGE(MSG_ATTRIBUTE, 14, MSG_TYPE),
    MESSAGE(MSG_ATTRIBUTE, 15, MSG_TYPE),
    NUMBER(MSG_ATTRIBUTE, 20),
    {MSG_ATTRIBUTE, 21, KIND_ATTR, 0},
    MESSAGE(MSG_ATTRIBUTE, 22, MSG_SPARSE),
    NAME(MSG_VALUE_INFO, 1),
    MESSAGE(MSG_VALUE_INFO, 2, MSG_TYPE),
    {MSG_FUNCTION, 1, KIND_OP, 0},
    NAME(MSG_FUNCTION, 4),
    NAME(MSG_FUNCTION, 5),
    {MSG_FUNCTION, 6, KIND_ATTR, 0},
    MESSAGE(MSG_FUNCTION, 7, MSG_NODE),
    MESSAGE(MSG_FUNCTION, 9, MSG_OPSET),
    NAME(MSG_FUNCTION, 10),
    MESSAGE(MSG_FUNCTION, 11, MSG_ATTRIBUTE),
    MESSAGE(MSG_FUNCTION, 12, MSG_VALUE_INFO),
    NUMBER(MSG_TENSOR, 1),
    NUMBER(MSG_TENSOR, 2),
    BYTES(MSG_TENSOR, 4),
    BYTES(MSG_TENSOR, 5),
    BYTES(MSG_TENSOR, 6),
    BYTES(MSG_TENSOR, 7),
    NAME(MSG_TENSOR, 8),
    BYTES(MSG_TENSOR, 9),
    BYTES(MSG_TENSOR, 10),
    BYTES(MSG_TENSOR, 11),
    MESSAGE(MSG_TENSOR, 13, MSG_ENTRY),
    NUMBER(MSG_TENSOR, 14),
    MESSAGE(MSG_SPARSE, 1, MSG_TENSOR),
    MESSAGE(MSG_SPARSE, 2, MSG_TENSOR),
    NUMBER(MSG_SPARSE, 3),
    MESSAGE(MSG_SHAPE, 1, MSG_DIM),
    NUMBER(MSG_DIM, 1),
    NAME(MSG_DIM, 2),
    MESSAGE(MSG_TYPE, 1, MSG_TYPE_TENSOR),
    MESSAGE(MSG_TYPE, 4, MSG_TYPE_ELEM),
    MESSAGE(MSG_TYPE, 5, MSG_TYPE_MAP),
    MESSAGE(MSG_TYPE, 8, MSG_TYPE_TENSOR),
    MESSAGE(MSG_TYPE, 9, MSG_TYPE_ELEM),
    NUMBER(MSG_TYPE_TENSOR, 1),
    MESSAGE(MSG_TYPE_TENSOR, 2, MSG_SHAPE),
    MESSAGE(MSG_TYPE_ELEM, 1, MSG_TYPE),
    NUMBER(MSG_TYPE_MAP, 1),
    MESSAGE(MSG_TYPE_MAP, 2, MSG_TYPE),
};

const size_t fuzz_n_schema = sizeof fuzz_schema / sizeof fuzz_schema[0];

size_t fuzz_put_varint(uint8_t *to, uint64_t value)
{
    size_t n = 0;
    for (; value >= 0x80; value >>= 7) to[n++] = (uint8_t)(value | 0x80);
    to[n++] = (uint8_t)value;
    return n;
}

enum { MOST_NUMBERS = 32 };

typedef struct walk {
    const uint8_t *data;
    const fuzz_field_row *rows[N_MESSAGES][MOST_NUMBERS];
    fuzz_visit visit;
    void *context;
    fuzz_path path;
} walk;

/* Reads one field of data[at..end) into *field; its row is NULL where the schema has none. */
static bool read_field(const walk *w, fuzz_message message, size_t at, size_t end,
                       fuzz_field *field)
{
    const unsigned char *p = w->data + at, *stop = w->data + end;
    uint64_t tag, length = 0;
    if (!onv_varint_read(&p, stop, &tag)) return false;
    *field = (fuzz_field){.row = tag >> 3 < MOST_NUMBERS ? w->rows[message][tag >> 3] : NULL,
                          .start = at};
    const unsigned char *value = p;
    switch (tag & 7) {
    case ONV_WIRE_VARINT:
        if (!onv_varint_read(&p, stop, &length)) return false;
        length = (uint64_t)(p - value);
        break;
    case ONV_WIRE_FIXED64: length = 8; break;
    case ONV_WIRE_FIXED32: length = 4; break;
    case ONV_WIRE_BYTES:
        if (!onv_varint_read(&p, stop, &length)) return false;
        value = p;
        break;
    default: return false;
    }
    if (length > (uint64_t)(stop - value)) return false;
    field->value = (size_t)(value - w->data);
    field->end = field->value + (size_t)length;
    /* What the schema says counts only where the file holds that kind of thing. */
    bool is_long = (tag & 7) == ONV_WIRE_BYTES;
    if (field->row != NULL && field->row->kind >= KIND_NAME && !is_long) field->row = NULL;
    return true;
}

static void walk_message(walk *w, fuzz_message message, size_t at, size_t end)
{
    fuzz_field field;
    for (; at < end && read_field(w, message, at, end, &field); at = field.end) {
        if (field.row == NULL) continue;
        w->visit(w->context, &field, &w->path);
        if (field.row->kind != KIND_MESSAGE || w->path.depth == FUZZ_MAX_DEPTH) continue;
        w->path.at[w->path.depth++] = field;
        walk_message(w, (fuzz_message)field.row->of, field.value, field.end);
        w->path.depth--;
    }
}

void fuzz_walk(const uint8_t *data, size_t size, fuzz_visit visit, void *context)
{
    walk w = {.data = data, .visit = visit, .context = context};
    for (size_t i = 0; i < fuzz_n_schema; i++)
        w.rows[fuzz_schema[i].message][fuzz_schema[i].number] = &fuzz_schema[i];
    walk_message(&w, MSG_MODEL, 0, size);
}

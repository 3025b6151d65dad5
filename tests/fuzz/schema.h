/* The messages of an ONNX file as the mutator sees them. */
#ifndef ONV_TESTS_FUZZ_SCHEMA_H
#define ONV_TESTS_FUZZ_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum fuzz_kind {
    KIND_NUMBER, /* varint */
    KIND_FLOAT,  /* 4 bytes */
    KIND_NAME,   /* text that refers to something */
    KIND_OP,     /* an operator */
    KIND_ATTR,   /* the name of an attribute */
    KIND_BYTES,  /* payloads and packed numbers */
    KIND_MESSAGE,
    N_KINDS
} fuzz_kind;

typedef enum fuzz_message {
    MSG_MODEL,
    MSG_OPSET,
    MSG_ENTRY, /* StringStringEntryProto */
    MSG_GRAPH,
    MSG_NODE,
    MSG_ATTRIBUTE,
    MSG_VALUE_INFO,
    MSG_FUNCTION,
    MSG_TENSOR,
    MSG_SPARSE,
    MSG_SHAPE,
    MSG_DIM,
    MSG_TYPE,
    MSG_TYPE_TENSOR,
    MSG_TYPE_ELEM, /* Sequence and Optional */
    MSG_TYPE_MAP,
    N_MESSAGES
} fuzz_message;

typedef struct fuzz_field_row {
    uint8_t message, number, kind, of; /* of: of a KIND_MESSAGE */
} fuzz_field_row;

extern const fuzz_field_row fuzz_schema[];
extern const size_t fuzz_n_schema;

/* A field where it stands in a file. */
typedef struct fuzz_field {
    const fuzz_field_row *row;
    size_t start, value, end; /* of the tag, of the value (behind a length), behind it */
} fuzz_field;

enum { FUZZ_MAX_DEPTH = 300 };

/* The fields around a field, outermost first. */
typedef struct fuzz_path {
    fuzz_field at[FUZZ_MAX_DEPTH + 1]; /* one more for who adds to it */
    size_t depth;
} fuzz_path;

/* Calls back for every field of the file that the schema knows; damaged messages end early. */
typedef void (*fuzz_visit)(void *context, const fuzz_field *field, const fuzz_path *around);
void fuzz_walk(const uint8_t *data, size_t size, fuzz_visit visit, void *context);

size_t fuzz_put_varint(uint8_t *to, uint64_t value); /* returns its bytes, at most 10 */

#endif

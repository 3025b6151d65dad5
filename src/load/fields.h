/* What the scan does with each field of each message that can hold something it keeps. */
#ifndef ONV_LOAD_FIELDS_H
#define ONV_LOAD_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum onv_message {
    ONV_MSG_MODEL,
    ONV_MSG_OPSET,
    ONV_MSG_PAIR, /* StringStringEntryProto */
    ONV_MSG_GRAPH,
    ONV_MSG_NODE,
    ONV_MSG_ATTRIBUTE,
    ONV_MSG_VALUE_INFO,
    ONV_MSG_FUNCTION,
    ONV_MSG_TENSOR,
    ONV_MSG_SPARSE_TENSOR,
    ONV_MSG_SHAPE,
    ONV_MSG_DIMENSION,
    ONV_MSG_TYPE,
    ONV_MSG_TYPE_TENSOR,   /* and TypeProto.SparseTensor, which has the same fields */
    ONV_MSG_TYPE_SEQUENCE, /* and TypeProto.Optional */
    ONV_MSG_TYPE_MAP,
    ONV_MSG_TYPE_OPAQUE,
    ONV_MSG_COUNT
} onv_message;

typedef enum onv_field_use {
    ONV_USE_DROP = 0,  /* unknown, or of no use here */
    ONV_USE_VARINT,    /* one number */
    ONV_USE_VARINTS,   /* repeated numbers, packed or one by one */
    ONV_USE_FLOAT,     /* one fixed32 */
    ONV_USE_FLOATS,    /* repeated fixed32, packed or one by one */
    ONV_USE_STRING,    /* a name: UTF-8 of limited length */
    ONV_USE_NAME,      /* the same, for a record of the scan */
    ONV_USE_BYTES,     /* any bytes; cut at the length of the longest name */
    ONV_USE_ONE,       /* a submessage, at most once */
    ONV_USE_MANY,      /* repeated submessages */
    ONV_USE_ONE_OF,    /* a submessage of a oneof: the last one counts */
    ONV_USE_NOTES,     /* repeated key and value: kept under a key that is read, or dropped */
    ONV_USE_RAW,       /* payload, as all that follow: one bytes field */
    ONV_USE_PAYLOAD32, /* payload: repeated fixed32 */
    ONV_USE_PAYLOAD64, /* payload: repeated fixed64 */
    ONV_USE_PAYLOAD,   /* payload: repeated varints */
} onv_field_use;

typedef struct onv_field {
    const char *name; /* NULL for a number that the message does not have */
    uint8_t use;      /* onv_field_use */
    uint8_t message;  /* onv_message, of submessages */
} onv_field;

const char *onv_message_name(onv_message message);

/* The keys of ONV_USE_NOTES, which PyTorch's exporter writes. */
typedef enum onv_note {
    ONV_NOTED_SCOPES,    /* of a node: the modules around it */
    ONV_NOTED_CLASSES,   /* their classes */
    ONV_NOTED_TRACE,     /* the lines of Python that called it */
    ONV_NOTED_CALL,      /* the call with its arguments */
    ONV_NOTED_RULES,     /* the rules that made it */
    ONV_NOTED_ROLE,      /* of a value: whether an initializer was a parameter or a buffer */
    ONV_NOTED_FOLDED,    /* of a value: of which others the exporter computed it */
    ONV_NOTED_SIGNATURE, /* of a graph: the names of all parameters */
    ONV_NOTED_COUNT
} onv_note;

const char *onv_note_key(onv_note note);
onv_message onv_note_owner(onv_note note); /* the message that it is read of */

/* In a call, before its arguments. Calls without arguments are dropped. */
#define ONV_NOTE_ARGS "](args = ("

/* In the rules that made a node: a Pad became a part of a convolution. Other rules are dropped. */
#define ONV_NOTE_PAD "FuseConvPad"

enum { ONV_FIELD_MOST = 25 };

extern const onv_field onv_fields[ONV_MSG_COUNT][ONV_FIELD_MOST + 1];

/* Never NULL: unknown numbers are dropped fields. */
static inline const onv_field *onv_message_field(onv_message message, uint32_t number)
{
    return &onv_fields[message][number <= ONV_FIELD_MOST ? number : 0];
}

#endif

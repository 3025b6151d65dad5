/* The protobuf wire format, as far as the loader reads it itself.
 *
 * A message is a row of fields; a field is a tag (number * 8 + wire type) and a value. Reading never
 * passes `end`, and a read that fails leaves the position where it was.
 */
#ifndef ONV_LOAD_WIRE_H
#define ONV_LOAD_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum onv_wire_type {
    ONV_WIRE_VARINT = 0,
    ONV_WIRE_FIXED64 = 1,
    ONV_WIRE_BYTES = 2,
    ONV_WIRE_GROUP_START = 3, /* withdrawn from protobuf; ONNX never had groups */
    ONV_WIRE_GROUP_END = 4,
    ONV_WIRE_FIXED32 = 5,
} onv_wire_type;

enum { ONV_VARINT_MOST_BYTES = 10, ONV_FIELD_NUMBER_MOST = (1 << 29) - 1 };
enum { ONV_PAIR_KEY = 1, ONV_PAIR_VALUE }; /* of StringStringEntryProto */

/* False at the end of the bytes and for a varint of more than 64 bits. */
static inline bool onv_varint_read(const unsigned char **at, const unsigned char *end,
                                   uint64_t *value)
{
    uint64_t result = 0;
    const unsigned char *p = *at;
    if (p < end && *p < 0x80) { /* most are */
        *value = *p;
        *at = p + 1;
        return true;
    }
    for (unsigned shift = 0; shift < 64 && p < end; shift += 7) {
        unsigned char byte = *p++;
        if (shift == 63 && byte > 1) return false;
        result |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *at = p;
            *value = result;
            return true;
        }
    }
    return false;
}

/* To `to`, which has room for ONV_VARINT_MOST_BYTES; how many it has. */
static inline size_t onv_varint_write(uint64_t value, unsigned char *to)
{
    size_t n = 0;
    do {
        to[n++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value != 0);
    return n;
}

/* A field of a message as it lies there: from its tag up to `end`; its value begins at `value`, behind the
 * length where it has one. */
typedef struct onv_wire_field {
    const unsigned char *start, *value, *end;
    uint32_t number;
    onv_wire_type type;
} onv_wire_field;

/* Reads what is before the value of a field; *bytes is how many that has, 0 of a varint, which is read too. *at then is
 * behind it. False for what is no field, and where it ends before. */
static inline bool onv_wire_head(const unsigned char **at, const unsigned char *end,
                                 uint32_t *number, onv_wire_type *type, uint64_t *bytes)
{
    uint64_t tag;
    if (!onv_varint_read(at, end, &tag) || tag >> 3 == 0 || tag >> 3 > ONV_FIELD_NUMBER_MOST)
        return false;
    *number = (uint32_t)(tag >> 3);
    *type = (onv_wire_type)(tag & 7);
    *bytes = *type == ONV_WIRE_FIXED64 ? 8 : 4;
    if (*type == ONV_WIRE_FIXED64 || *type == ONV_WIRE_FIXED32) return true;
    if ((*type != ONV_WIRE_VARINT && *type != ONV_WIRE_BYTES) || !onv_varint_read(at, end, bytes))
        return false;
    if (*type == ONV_WIRE_VARINT) *bytes = 0;
    return true;
}

/* The field at *at, which then stands behind it. False at the end, and for what is no field. */
static inline bool onv_wire_next(const unsigned char **at, const unsigned char *end,
                                 onv_wire_field *field)
{
    const unsigned char *p = *at;
    uint64_t bytes;
    if (!onv_wire_head(&p, end, &field->number, &field->type, &bytes) || bytes > (size_t)(end - p))
        return false;
    field->start = *at;
    field->end = p + bytes;
    field->value = p;
    *at = field->end;
    return true;
}

#endif

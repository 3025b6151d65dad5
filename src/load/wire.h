/* The protobuf wire format, as far as the loader reads it itself.
 *
 * A message is a row of fields; a field is a tag (number * 8 + wire type) and a value. Reading never
 * passes `end`, and a read that fails leaves the position where it was.
 */
#ifndef ONV_LOAD_WIRE_H
#define ONV_LOAD_WIRE_H

#include <stdbool.h>
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

/* False at the end of the bytes and for a varint of more than 64 bits. */
static inline bool onv_varint_read(const unsigned char **at, const unsigned char *end,
                                   uint64_t *value)
{
    uint64_t result = 0;
    const unsigned char *p = *at;
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

/* A field of a message as it lies there: from its tag up to `end`; its value begins at `value`, behind the
 * length where it has one. */
typedef struct onv_wire_field {
    const unsigned char *start, *value, *end;
    uint32_t number;
    onv_wire_type type;
} onv_wire_field;

/* The field at *at, which then stands behind it. False at the end, and for what is no field. */
static inline bool onv_wire_next(const unsigned char **at, const unsigned char *end,
                                 onv_wire_field *field)
{
    const unsigned char *p = *at;
    uint64_t tag, bytes;
    field->start = p;
    if (!onv_varint_read(&p, end, &tag) || tag >> 3 == 0 || tag >> 3 > ONV_FIELD_NUMBER_MOST)
        return false;
    field->number = (uint32_t)(tag >> 3);
    field->type = (onv_wire_type)(tag & 7);
    field->value = p;
    switch (field->type) {
    case ONV_WIRE_VARINT:
        if (!onv_varint_read(&p, end, &bytes)) return false;
        bytes = 0;
        break;
    case ONV_WIRE_FIXED64: bytes = 8; break;
    case ONV_WIRE_FIXED32: bytes = 4; break;
    case ONV_WIRE_BYTES:
        if (!onv_varint_read(&p, end, &bytes)) return false;
        field->value = p;
        break;
    default: return false;
    }
    if (bytes > (uint64_t)(end - p)) return false;
    *at = field->end = p + bytes;
    return true;
}

#endif

#include <math.h>
#include <string.h>

#include "ops/generator.h"

static bool read_fixed(const onv_payload *payload, uint32_t bytes, uint64_t *word)
{
    if (payload->bytes < bytes) return false;
    *word = 0;
    for (uint32_t i = 0; i < bytes; i++) *word |= (uint64_t)payload->data[i] << (8 * i);
    return true;
}

static bool read_varint(const onv_payload *payload, uint64_t *word)
{
    *word = 0;
    for (uint32_t i = 0; i < 10 && i < payload->bytes; i++) {
        *word |= (uint64_t)(payload->data[i] & 0x7f) << (7 * i);
        if (payload->data[i] < 0x80) return true;
    }
    return false;
}

/* The bits of the first element. Of the typed fields only float_data and double_data are not
 * varints; 16-bit floats stand in int32_data as their bits. */
static bool read_first(const onv_tensor *tensor, uint64_t *word)
{
    uint32_t bits = onv_dtype_bits((onv_dtype)tensor->type.dtype);
    bool varint = tensor->type.dtype != ONV_FLOAT && tensor->type.dtype != ONV_DOUBLE;
    if (bits == 0 || bits > 64) return false;
    switch ((onv_payload_kind)tensor->payload.kind) {
    case ONV_PAYLOAD_RAW:
        if (!read_fixed(&tensor->payload, (bits + 7) / 8, word)) return false;
        break;
    case ONV_PAYLOAD_PACKED:
        if (varint ? !read_varint(&tensor->payload, word)
                   : !read_fixed(&tensor->payload, bits / 8, word))
            return false;
        break;
    default: return false;
    }
    if (bits < 64) *word &= ((uint64_t)1 << bits) - 1;
    return true;
}

static double from_float32(uint64_t word)
{
    uint32_t half = (uint32_t)word;
    float value;
    memcpy(&value, &half, sizeof value);
    return (double)value;
}

static double from_float16(uint64_t word)
{
    int exponent = (int)(word >> 10 & 0x1f);
    double fraction = (double)(word & 0x3ff);
    double value = exponent == 0 ? ldexp(fraction, -24) : ldexp(fraction + 1024, exponent - 25);
    if (exponent == 0x1f) value = fraction == 0 ? INFINITY : NAN;
    return word & 0x8000 ? -value : value;
}

onv_scalar onv_tensor_first(const onv_tensor *tensor)
{
    uint64_t word;
    double number;
    onv_dtype dtype = (onv_dtype)tensor->type.dtype;
    if (!read_first(tensor, &word)) return onv_scalar_unknown();
    switch (dtype) {
    case ONV_FLOAT: return onv_scalar_real(from_float32(word));
    case ONV_BFLOAT16: return onv_scalar_real(from_float32(word << 16));
    case ONV_FLOAT16: return onv_scalar_real(from_float16(word));
    case ONV_DOUBLE: memcpy(&number, &word, sizeof number); return onv_scalar_real(number);
    case ONV_BOOL: return onv_scalar_int(onv_dim_const(word != 0));
    case ONV_INT8: return onv_scalar_int(onv_dim_const((int8_t)word));
    case ONV_INT16: return onv_scalar_int(onv_dim_const((int16_t)word));
    case ONV_INT32: return onv_scalar_int(onv_dim_const((int32_t)word));
    case ONV_INT64: return onv_scalar_int(onv_dim_const((int64_t)word));
    case ONV_UINT8:
    case ONV_UINT16:
    case ONV_UINT32: return onv_scalar_int(onv_dim_const((int64_t)word));
    default: return onv_scalar_unknown();
    }
}

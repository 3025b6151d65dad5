#include "load/decode.h"

#include <math.h>
#include <string.h>

#include "load/wire.h"

/* The floating-point types of 16 bits: sign, exponent, mantissa. */
static double half_value(uint32_t word, int mantissa_bits)
{
    const int exponent_bits = 15 - mantissa_bits, bias = (1 << (exponent_bits - 1)) - 1;
    const uint32_t most = (1u << exponent_bits) - 1, exponent = word >> mantissa_bits & most;
    const uint32_t mantissa = word & ((1u << mantissa_bits) - 1);
    double value;
    if (exponent == most)
        value = mantissa != 0 ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        value = ldexp(mantissa, 1 - bias - mantissa_bits);
    else
        value = ldexp((1u << mantissa_bits) + mantissa, (int)exponent - bias - mantissa_bits);
    return word >> 15 & 1 ? -value : value;
}

/* --- One element ------------------------------------------------------------------------------- */

static onv_scalar real(double value)
{
    return (onv_scalar){.i = onv_dim_const(1), .f = value};
}

static onv_scalar integer(int64_t value)
{
    return (onv_scalar){.i = onv_dim_const(value)};
}

/* From a word that holds the element's bits at the bottom. */
static onv_scalar from_bits(onv_dtype dtype, uint64_t word)
{
    uint32_t bits = onv_dtype_bits(dtype);
    if (bits < 64) word &= ((uint64_t)1 << bits) - 1;
    float single;
    double twice;
    uint32_t half = (uint32_t)word;
    switch (dtype) {
    case ONV_FLOAT: memcpy(&single, &half, sizeof single); return real((double)single);
    case ONV_DOUBLE: memcpy(&twice, &word, sizeof twice); return real(twice);
    case ONV_BOOL: return integer(word != 0);
    case ONV_UINT64:
        return integer(word > INT64_MAX ? INT64_MAX : (int64_t)word); /* an infinity to dims */
    case ONV_INT2:
    case ONV_INT4:
    case ONV_INT8:
    case ONV_INT16:
    case ONV_INT32: {
        uint64_t sign = (uint64_t)1 << (bits - 1);
        return integer((int64_t)(word ^ sign) - (int64_t)sign);
    }
    case ONV_FLOAT16: return real(half_value(half, 10));
    case ONV_BFLOAT16: return real(half_value(half, 7));
    default: return integer((int64_t)word);
    }
}

bool onv_decode_knows(onv_dtype dtype)
{
    return onv_dtype_is_integer(dtype) || dtype == ONV_BOOL || dtype == ONV_FLOAT ||
           dtype == ONV_DOUBLE || dtype == ONV_FLOAT16 || dtype == ONV_BFLOAT16;
}

/* --- Payloads ---------------------------------------------------------------------------------- */

bool onv_decode_raw(onv_dtype dtype, const unsigned char *data, uint64_t bytes, onv_scalar *elems,
                    uint32_t count)
{
    uint32_t bits = onv_dtype_bits(dtype);
    uint64_t needed;
    if (!onv_dtype_bytes(dtype, count, &needed) || bytes < needed) return false;
    for (uint32_t i = 0; i < count; i++) {
        /* Elements below a byte follow each other from the lowest bit up. */
        uint64_t first = (uint64_t)i * bits;
        size_t start = (size_t)(first / 8), end = (size_t)((first + bits + 7) / 8);
        uint64_t word = 0;
        for (size_t k = start; k < end; k++) word |= (uint64_t)data[k] << (8 * (k - start));
        elems[i] = from_bits(dtype, word >> first % 8);
    }
    return true;
}

bool onv_decode_packed(onv_dtype dtype, const unsigned char *data, uint64_t bytes,
                       onv_scalar *elems, uint32_t count)
{
    if (dtype == ONV_FLOAT || dtype == ONV_DOUBLE)
        return onv_decode_raw(dtype, data, bytes, elems, count);
    const unsigned char *at = data, *end = data + bytes;
    uint32_t bits = onv_dtype_bits(dtype);
    uint32_t per_entry = bits == 4 ? 2 : bits == 2 ? 4 : 1;
    uint64_t word = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (i % per_entry == 0 && !onv_varint_read(&at, end, &word)) return false;
        elems[i] = from_bits(dtype, word >> (i % per_entry * bits));
    }
    return true;
}

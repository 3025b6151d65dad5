#include "load/decode.h"

#include <math.h>
#include <string.h>

#include "load/wire.h"

/* The floating-point types below 32 bits: sign, exponent, mantissa. What the highest exponents mean
 * differs; see onnx's documents on float8, float4 and float6 (OCP formats, and the FNUZ ones). */
typedef enum mini_special {
    MINI_IEEE,   /* all-ones exponent: infinity, or NaN with a mantissa */
    MINI_FN,     /* only all ones is NaN */
    MINI_FNUZ,   /* only minus zero is NaN */
    MINI_FINITE, /* nothing but numbers */
    MINI_E8M0,   /* no sign, no mantissa; all ones is NaN */
} mini_special;

typedef struct mini_format {
    uint8_t exponent, mantissa, special;
    int16_t bias;
} mini_format;

static const mini_format *mini_of(onv_dtype dtype)
{
    static const mini_format formats[ONV_DTYPE_COUNT] = {
        [ONV_FLOAT16] = {5, 10, MINI_IEEE, 15},    [ONV_BFLOAT16] = {8, 7, MINI_IEEE, 127},
        [ONV_FLOAT8E4M3FN] = {4, 3, MINI_FN, 7},   [ONV_FLOAT8E4M3FNUZ] = {4, 3, MINI_FNUZ, 8},
        [ONV_FLOAT8E5M2] = {5, 2, MINI_IEEE, 15},  [ONV_FLOAT8E5M2FNUZ] = {5, 2, MINI_FNUZ, 16},
        [ONV_FLOAT4E2M1] = {2, 1, MINI_FINITE, 1}, [ONV_FLOAT8E8M0] = {8, 0, MINI_E8M0, 127},
        [ONV_FLOAT6E2M3] = {2, 3, MINI_FINITE, 1}, [ONV_FLOAT6E3M2] = {3, 2, MINI_FINITE, 3},
    };
    return formats[dtype].exponent != 0 ? &formats[dtype] : NULL;
}

static double mini_value(const mini_format *f, uint32_t word)
{
    uint32_t most = (1u << f->exponent) - 1;
    uint32_t mantissa = word & ((1u << f->mantissa) - 1);
    uint32_t exponent = word >> f->mantissa & most;
    bool negative = word >> (f->mantissa + f->exponent) & 1;
    switch ((mini_special)f->special) {
    case MINI_IEEE:
        if (exponent == most && mantissa != 0) return (double)NAN;
        if (exponent == most) return negative ? (double)-INFINITY : (double)INFINITY;
        break;
    case MINI_FN:
        if (exponent == most && mantissa == (1u << f->mantissa) - 1) return (double)NAN;
        break;
    case MINI_FNUZ:
        if (negative && exponent == 0 && mantissa == 0) return (double)NAN;
        break;
    case MINI_E8M0: return exponent == most ? (double)NAN : ldexp(1.0, (int)exponent - f->bias);
    case MINI_FINITE: break;
    }
    double value = exponent == 0 ? ldexp(mantissa, 1 - f->bias - f->mantissa)
                                 : ldexp((1u << f->mantissa) + mantissa,
                                         (int)exponent - f->bias - f->mantissa);
    return negative ? -value : value;
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
    default: break;
    }
    const mini_format *mini = mini_of(dtype);
    return mini != NULL ? real(mini_value(mini, half)) : integer((int64_t)word);
}

bool onv_decode_knows(onv_dtype dtype)
{
    return onv_dtype_is_integer(dtype) || onv_dtype_is_float(dtype) || dtype == ONV_BOOL;
}

/* --- Payloads ---------------------------------------------------------------------------------- */

bool onv_decode_raw(onv_dtype dtype, const unsigned char *data, uint64_t bytes, onv_scalar *elems,
                    uint32_t count)
{
    uint32_t bits = onv_dtype_bits(dtype);
    uint64_t needed;
    if (!onv_dtype_bytes(dtype, count, &needed) || bytes < needed) return false;
    for (uint32_t i = 0; i < count; i++) {
        /* Elements below a byte follow each other from the lowest bit up; a 6-bit one may lie in
         * two bytes. */
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

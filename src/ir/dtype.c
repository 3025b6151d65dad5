#include "ir/type.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

enum { IS_FLOAT = 1, IS_INTEGER = 2 };

/* Bits and names as in onnx.proto's comments on TensorProto.DataType. */
static const struct {
    const char *name;
    uint8_t bits;
    uint8_t class;
} dtypes[ONV_DTYPE_COUNT] = {
    [ONV_UNDEFINED] = {"undefined", 0, 0},
    [ONV_FLOAT] = {"float32", 32, IS_FLOAT},
    [ONV_UINT8] = {"uint8", 8, IS_INTEGER},
    [ONV_INT8] = {"int8", 8, IS_INTEGER},
    [ONV_UINT16] = {"uint16", 16, IS_INTEGER},
    [ONV_INT16] = {"int16", 16, IS_INTEGER},
    [ONV_INT32] = {"int32", 32, IS_INTEGER},
    [ONV_INT64] = {"int64", 64, IS_INTEGER},
    [ONV_STRING] = {"string", 0, 0},
    [ONV_BOOL] = {"bool", 8, 0},
    [ONV_FLOAT16] = {"float16", 16, IS_FLOAT},
    [ONV_DOUBLE] = {"float64", 64, IS_FLOAT},
    [ONV_UINT32] = {"uint32", 32, IS_INTEGER},
    [ONV_UINT64] = {"uint64", 64, IS_INTEGER},
    [ONV_COMPLEX64] = {"complex64", 64, 0},
    [ONV_COMPLEX128] = {"complex128", 128, 0},
    [ONV_BFLOAT16] = {"bfloat16", 16, IS_FLOAT},
    [ONV_FLOAT8E4M3FN] = {"float8e4m3fn", 8, IS_FLOAT},
    [ONV_FLOAT8E4M3FNUZ] = {"float8e4m3fnuz", 8, IS_FLOAT},
    [ONV_FLOAT8E5M2] = {"float8e5m2", 8, IS_FLOAT},
    [ONV_FLOAT8E5M2FNUZ] = {"float8e5m2fnuz", 8, IS_FLOAT},
    [ONV_UINT4] = {"uint4", 4, IS_INTEGER},
    [ONV_INT4] = {"int4", 4, IS_INTEGER},
    [ONV_FLOAT4E2M1] = {"float4e2m1", 4, IS_FLOAT},
    [ONV_FLOAT8E8M0] = {"float8e8m0", 8, IS_FLOAT},
    [ONV_UINT2] = {"uint2", 2, IS_INTEGER},
    [ONV_INT2] = {"int2", 2, IS_INTEGER},
    [ONV_FLOAT6E2M3] = {"float6e2m3", 6, IS_FLOAT},
    [ONV_FLOAT6E3M2] = {"float6e3m2", 6, IS_FLOAT},
};

onv_dtype onv_dtype_from(int64_t number)
{
    return number > 0 && number < ONV_DTYPE_COUNT ? (onv_dtype)number : ONV_UNDEFINED;
}

const char *onv_dtype_name(onv_dtype dtype)
{
    return dtypes[dtype < ONV_DTYPE_COUNT ? dtype : ONV_UNDEFINED].name;
}

uint32_t onv_dtype_bits(onv_dtype dtype)
{
    return dtypes[dtype < ONV_DTYPE_COUNT ? dtype : ONV_UNDEFINED].bits;
}

bool onv_dtype_is_float(onv_dtype dtype)
{
    return dtype < ONV_DTYPE_COUNT && (dtypes[dtype].class & IS_FLOAT) != 0;
}

bool onv_dtype_is_differentiable(onv_dtype dtype)
{
    return onv_dtype_is_float(dtype) || onv_dtype_is_complex(dtype);
}

bool onv_dtype_is_complex(onv_dtype dtype)
{
    return dtype == ONV_COMPLEX64 || dtype == ONV_COMPLEX128;
}

bool onv_dtype_is_integer(onv_dtype dtype)
{
    return dtype < ONV_DTYPE_COUNT && (dtypes[dtype].class & IS_INTEGER) != 0;
}

bool onv_dtype_bytes(onv_dtype dtype, uint64_t elems, uint64_t *bytes)
{
    uint32_t bits = onv_dtype_bits(dtype);
    if (bits >= 8) return onv_u64_mul(elems, bits / 8, bytes);
    *bytes = elems / 8 * bits + (elems % 8 * bits + 7) / 8; /* at most 6 bits: no overflow */
    return true;
}

static double round_bfloat16(double value)
{
    float single = (float)value;
    uint32_t word;
    memcpy(&word, &single, sizeof word);
    if (isnan(single)) return single;
    word += 0x7fff + ((word >> 16) & 1); /* round to nearest, ties to even */
    word &= 0xffff0000u;
    memcpy(&single, &word, sizeof word);
    return single;
}

static double round_float16(double value)
{
    if (value == 0 || !isfinite(value)) return value;
    int exponent;
    (void)frexp(value, &exponent);           /* value = m * 2^exponent, 0.5 <= m < 1 */
    if (exponent < -13) exponent = -13;      /* subnormal below 2^-14 */
    double unit = ldexp(1.0, exponent - 11); /* 11 bits of significand */
    double rounded = nearbyint(value / unit) * unit;
    return fabs(rounded) > 65504.0 ? copysign(INFINITY, value) : rounded;
}

double onv_dtype_round(onv_dtype dtype, double value)
{
    switch (dtype) {
    case ONV_FLOAT: return (float)value;
    case ONV_FLOAT16: return round_float16(value);
    case ONV_BFLOAT16: return round_bfloat16(value);
    default: return value;
    }
}

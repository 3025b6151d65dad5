/* Element types. The numbers are those of onnx.TensorProto.DataType. */
#ifndef ONV_IR_DTYPE_H
#define ONV_IR_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/dim.h"

typedef enum onv_dtype {
    ONV_UNDEFINED = 0,
    ONV_FLOAT = 1,
    ONV_UINT8 = 2,
    ONV_INT8 = 3,
    ONV_UINT16 = 4,
    ONV_INT16 = 5,
    ONV_INT32 = 6,
    ONV_INT64 = 7,
    ONV_STRING = 8,
    ONV_BOOL = 9,
    ONV_FLOAT16 = 10,
    ONV_DOUBLE = 11,
    ONV_UINT32 = 12,
    ONV_UINT64 = 13,
    ONV_COMPLEX64 = 14,
    ONV_COMPLEX128 = 15,
    ONV_BFLOAT16 = 16,
    ONV_FLOAT8E4M3FN = 17,
    ONV_FLOAT8E4M3FNUZ = 18,
    ONV_FLOAT8E5M2 = 19,
    ONV_FLOAT8E5M2FNUZ = 20,
    ONV_UINT4 = 21,
    ONV_INT4 = 22,
    ONV_FLOAT4E2M1 = 23,
    ONV_FLOAT8E8M0 = 24,
    ONV_UINT2 = 25,
    ONV_INT2 = 26,
    ONV_FLOAT6E2M3 = 27,
    ONV_FLOAT6E3M2 = 28,
    ONV_DTYPE_COUNT
} onv_dtype;

/* A raw number from a file or an attribute: ONV_UNDEFINED where it is not a known type. */
onv_dtype onv_dtype_from(int64_t number);

/* "float32", "int64", ... (numpy's names where there is one); never NULL. */
const char *onv_dtype_name(onv_dtype dtype);

/* Bits of one element; 0 for strings and undefined, which have no fixed size. */
uint32_t onv_dtype_bits(onv_dtype dtype);

bool onv_dtype_is_float(onv_dtype dtype); /* every floating-point type, 4 to 8 bits included */
bool onv_dtype_is_complex(onv_dtype dtype);
bool onv_dtype_is_differentiable(
    onv_dtype dtype);                       /* to PyTorch's autograd: floating-point, complex */
bool onv_dtype_is_integer(onv_dtype dtype); /* signed and unsigned, not bool */

/* Bytes of `elems` elements: bits summed, rounded up once. False if that passes 64 bits. */
bool onv_dtype_bytes(onv_dtype dtype, uint64_t elems, uint64_t *bytes);

/* Rounds to what the type can hold (float32, float16, bfloat16); other types: unchanged. */
double onv_dtype_round(onv_dtype dtype, double value);

#endif

/* What a value is, and what is known of its contents. */
#ifndef ONV_IR_TYPE_H
#define ONV_IR_TYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/dim.h"

/* Element types. The numbers are those of onnx.TensorProto.DataType. */

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

/* Ranks beyond this are an error (ONNX sets no limit; real models stay below 10). */
enum { ONV_MAX_RANK = 32 };

typedef enum onv_type_kind {
    ONV_TYPE_UNKNOWN = 0,
    ONV_TYPE_TENSOR,
    ONV_TYPE_SPARSE_TENSOR,
    ONV_TYPE_SEQUENCE,
    ONV_TYPE_OPTIONAL,
    ONV_TYPE_MAP,
} onv_type_kind;

/* A type. Tensor: dtype, and `rank` dims (rank -1: not even the rank is known). Map: `dtype` is the key's. Sequences,
 * optionals and maps have elements, NULL where nothing is known of them; ask onv_type_elements(). Arrays belong to
 * the model's arena. */
typedef struct onv_type {
    uint8_t kind;  /* onv_type_kind */
    uint8_t dtype; /* onv_dtype */
    int16_t rank;
    union {
        const onv_dim *dims;
        const struct onv_elements *elements;
    };
} onv_type;

/* `type` is what all elements of a sequence share as far as it is known, `length` their number; where elements differ and
 * each is known alone, `items` has `length` types at least. Of an optional: `type`, and `length` is 1 or 0 where it is
 * known whether it holds one. Of a map: the `type` of its values. */
typedef struct onv_elements {
    const onv_type *type;
    struct onv_items *items;
    onv_dim length;
} onv_elements;

/* The types of a sequence's items. Sequences that begin alike share them: one that goes on behind the last of `used`
 * items takes the next place. `grown` has the same items, and more room. */
typedef struct onv_items {
    struct onv_items *grown;
    uint32_t used, room;
    onv_type at[];
} onv_items;

static inline bool onv_type_has_rank(const onv_type *type)
{
    return type != NULL && type->rank >= 0 &&
           (type->kind == ONV_TYPE_TENSOR || type->kind == ONV_TYPE_SPARSE_TENSOR);
}

/* Those of a tensor are not known. */
onv_elements onv_type_elements(const onv_type *type);

/* A type that holds such elements; without memory nothing is known of them. */
onv_type onv_type_of_elements(onv_arena *arena, onv_type_kind kind, onv_elements elements);

/* True when every dim is a number. */
bool onv_type_is_static(const onv_type *type);

/* Whether it is text, maps, or sequences of them, however many: what no device holds. */
bool onv_type_is_on_host(const onv_type *type);

/* The number of elements: the product of the dims; unknown where a dim or the rank is. */
onv_dim onv_type_elems(onv_dims *pool, const onv_type *type);

/* Bytes of a value of any type, with the bounds of sizes that the data decides; what is on the host takes none. Unknown where a
 * size is, or where they do not fit a dim (which pool->overflows counts). */
onv_dim onv_type_bytes(onv_dims *pool, const onv_type *type);

/* Replaces one dim, in a copy of the dims; false when memory is short. */
bool onv_type_set_dim(onv_type *type, onv_arena *arena, int axis, onv_dim dim);

/* Text like "[batch, 3, 224, 224]" or "[...]" (rank unknown), in the arena; NULL without memory. */
const char *onv_type_shape_text(const onv_dims *pool, onv_arena *arena, const onv_type *type);

/* One element of a tensor whose contents are tracked. Integer and bool types use `i` alone.
 * Floating-point types hold f * i: a plain number has i = 1; `i` is an expression where a symbolic
 * size was cast to float (so that floor(batch * 2.0) stays exact). NaN in f, or unknown in i: the
 * element is not known. */
typedef struct onv_scalar {
    onv_dim i;
    double f;
} onv_scalar;

/* Known contents of a small integer, bool or float tensor; its shape is constant. Elements may be
 * unknown one by one. */
typedef struct onv_known {
    uint8_t dtype;
    int16_t rank;
    uint32_t count;
    const int64_t *dims; /* rank of them */
    onv_scalar *elems;   /* count of them, row-major; not to be changed once published */
} onv_known;

/* Contents of a static type, with elements still to be set; NULL when memory is short. */
onv_known *onv_known_new(onv_arena *arena, const onv_type *type);

/* Contents larger than this are not tracked, unless a limit is raised (onv_model). */
enum { ONV_KNOWN_MAX_ELEMS = 4096 };

#endif

/* What a value is, and what is known of its contents. */
#ifndef ONV_IR_TYPE_H
#define ONV_IR_TYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/dim.h"
#include "ir/dtype.h"

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

#include "ir/type.h"

#include <stdio.h>
#include <string.h>

onv_elements onv_type_elements(const onv_type *type)
{
    bool has_some = type->kind == ONV_TYPE_SEQUENCE || type->kind == ONV_TYPE_OPTIONAL ||
                    type->kind == ONV_TYPE_MAP;
    return has_some && type->elements != NULL ? *type->elements
                                              : (onv_elements){.length = ONV_DIM_UNKNOWN};
}

onv_type onv_type_of_elements(onv_arena *arena, onv_type_kind kind, onv_elements elements)
{
    return (onv_type){.kind = (uint8_t)kind,
                      .rank = -1,
                      .elements = onv_arena_copy(arena, &elements, sizeof elements)};
}

bool onv_type_is_static(const onv_type *type)
{
    if (!onv_type_has_rank(type)) return false;
    for (int i = 0; i < type->rank; i++)
        if (!onv_dim_is_const(type->dims[i])) return false;
    return true;
}

bool onv_type_is_on_host(const onv_type *type)
{
    while (type != NULL && (type->kind == ONV_TYPE_SEQUENCE || type->kind == ONV_TYPE_OPTIONAL))
        type = onv_type_elements(type).type;
    if (type == NULL || type->kind == ONV_TYPE_UNKNOWN) return false;
    return type->kind == ONV_TYPE_MAP || type->dtype == ONV_STRING;
}

onv_dim onv_type_elems(onv_dims *pool, const onv_type *type)
{
    if (!onv_type_has_rank(type)) return ONV_DIM_UNKNOWN;
    onv_dim product = onv_dim_const(1);
    int64_t number = 1;
    int known = 0; /* mostly all are numbers */
    while (known < type->rank && onv_dim_is_const(type->dims[known]) &&
           !__builtin_mul_overflow(number, type->dims[known].raw, &number))
        known++;
    if (known == type->rank && onv_dim_is_const((onv_dim){number})) return onv_dim_const(number);
    /* Numbers first: a 0 anywhere makes the product 0 whatever the other dims are, and the
     * expression is multiplied out once. */
    for (int i = 0; i < type->rank; i++)
        if (onv_dim_is(type->dims[i], 0)) return onv_dim_const(0);
    for (int i = 0; i < type->rank; i++)
        if (onv_dim_is_const(type->dims[i])) product = onv_dim_mul(pool, product, type->dims[i]);
    for (int i = 0; i < type->rank; i++)
        if (!onv_dim_is_const(type->dims[i])) product = onv_dim_mul(pool, product, type->dims[i]);
    return product;
}

static onv_dim tensor_bytes(onv_dims *pool, const onv_type *type)
{
    int64_t bits = onv_dtype_bits((onv_dtype)type->dtype);
    if (bits == 0) return ONV_DIM_UNKNOWN;
    onv_dim elems = onv_dim_substitute_bounds(pool, onv_type_elems(pool, type));
    if (bits % 8 == 0) return onv_dim_mul(pool, elems, onv_dim_const(bits / 8));
    return onv_dim_ceildiv(pool, onv_dim_mul(pool, elems, onv_dim_const(bits)), onv_dim_const(8));
}

onv_dim onv_type_bytes(onv_dims *pool, const onv_type *type)
{
    const onv_elements of = onv_type_elements(type);
    if (onv_type_is_on_host(type)) return onv_dim_const(0);
    switch ((onv_type_kind)type->kind) {
    case ONV_TYPE_TENSOR:
    case ONV_TYPE_SPARSE_TENSOR: return tensor_bytes(pool, type);
    case ONV_TYPE_OPTIONAL:
        return of.type == NULL ? ONV_DIM_UNKNOWN : onv_type_bytes(pool, of.type);
    case ONV_TYPE_SEQUENCE: {
        onv_dim length = onv_dim_substitute_bounds(pool, of.length), sum = onv_dim_const(0);
        if (onv_dim_is(length, 0)) return sum;
        if (of.items == NULL)
            return of.type == NULL ? ONV_DIM_UNKNOWN
                                   : onv_dim_mul(pool, length, onv_type_bytes(pool, of.type));
        if (!onv_dim_is_const(length)) return ONV_DIM_UNKNOWN;
        for (int64_t i = 0; i < length.raw; i++)
            sum = onv_dim_add(pool, sum, onv_type_bytes(pool, &of.items->at[i]));
        return sum;
    }
    case ONV_TYPE_MAP: return onv_dim_const(0);
    case ONV_TYPE_UNKNOWN: break;
    }
    return ONV_DIM_UNKNOWN;
}

bool onv_type_set_dim(onv_type *type, onv_arena *arena, int axis, onv_dim dim)
{
    onv_dim *dims = onv_arena_copy(arena, type->dims, (size_t)type->rank * sizeof *dims);
    if (dims == NULL) return false;
    dims[axis] = dim;
    type->dims = dims;
    return true;
}

onv_known *onv_known_new(onv_arena *arena, const onv_type *type)
{
    onv_known *known = ONV_ARENA_ARRAY(arena, onv_known, 1);
    int64_t *dims = ONV_ARENA_ARRAY(arena, int64_t, (size_t)type->rank);
    uint64_t count = 1;
    for (int i = 0; dims != NULL && i < type->rank; i++) {
        dims[i] = type->dims[i].raw;
        count *= (uint64_t)dims[i];
    }
    onv_scalar *elems = onv_arena_alloc(arena, (size_t)count * sizeof *elems);
    if (known == NULL || dims == NULL || elems == NULL) return NULL;
    *known = (onv_known){type->dtype, type->rank, (uint32_t)count, dims, elems};
    return known;
}

const char *onv_type_shape_text(const onv_dims *pool, onv_arena *arena, const onv_type *type)
{
    if (!onv_type_has_rank(type)) return "[...]";
    const char *parts[ONV_MAX_RANK];
    size_t length = 3;
    for (int i = 0; i < type->rank; i++) {
        parts[i] = onv_dim_text(pool, arena, type->dims[i]);
        if (parts[i] == NULL) return NULL;
        length += strlen(parts[i]) + 2;
    }
    char *text = onv_arena_alloc(arena, length);
    if (text == NULL) return NULL;
    char *to = text;
    *to++ = '[';
    for (int i = 0; i < type->rank; i++) {
        if (i > 0) to = stpcpy(to, ", ");
        to = stpcpy(to, parts[i]);
    }
    memcpy(to, "]", sizeof "]");
    return text;
}

#include "ir/type.h"

#include <stdio.h>
#include <string.h>

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
        type = type->elem;
    if (type == NULL || type->kind == ONV_TYPE_UNKNOWN) return false;
    return type->kind == ONV_TYPE_MAP || type->dtype == ONV_STRING;
}

onv_dim onv_type_elems(onv_dims *pool, const onv_type *type)
{
    if (!onv_type_has_rank(type)) return ONV_DIM_UNKNOWN;
    onv_dim product = onv_dim_const(1);
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

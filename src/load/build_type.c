#include <inttypes.h>
#include <stdio.h>

#include "base/fail.h"
#include "load/build.h"

static onv_status named_dim(onv_builder *b, const char *name, onv_dim *dim)
{
    const char *symbol;
    ONV_TRY(onv_build_intern(b, name, &symbol));
    *dim = onv_dim_symbol(&b->model->dims, symbol);
    return b->model->dims.failed ? onv_fail_memory(b->err) : ONV_OK;
}

/* "images.0": what a user can bind where the file has no name. */
static onv_status axis_dim(onv_builder *b, const char *name, size_t axis, onv_dim *dim)
{
    char suffix[24];
    snprintf(suffix, sizeof suffix, ".%zu", axis);
    const char *symbol;
    ONV_TRY(onv_build_join(b, name, suffix, &symbol));
    return named_dim(b, symbol, dim);
}

enum { DIM_VALUE = 1, DIM_PARAM };

static onv_status build_dim(onv_builder *b, onv_wire_span message, const char *name, size_t axis,
                            onv_free_dims free_dims, onv_dim *dim)
{
    onv_wire_field value = {0}; /* of a oneof: the last one */
    while (onv_wire_next(&message.at, message.end, &value)) {
    }
    *dim = ONV_DIM_UNKNOWN;
    if (value.number == DIM_VALUE) {
        const int64_t size = (int64_t)onv_wire_number(&value);
        if (size >= ONV_DIM_INFINITY_RAW)
            return onv_fail(b->err, ONV_ERR_OVERFLOW, "dim %zu of '%s' is %" PRId64, axis, name,
                            size);
        *dim = onv_dim_const(size);
        if (size >= 0) return ONV_OK;
        *dim = ONV_DIM_UNKNOWN;
        onv_model_diag(b->model, ONV_WARNING, "negative-dim", NULL,
                       "dim %zu of '%s' is %" PRId64 "; taken as not given", axis, name, size);
    }
    if (value.number == DIM_PARAM && free_dims != ONV_FREE_LOCAL) {
        const char *param;
        ONV_TRY(onv_build_text(b, onv_build_text_of(&value), &param));
        if (!onv_dim_name_is_anonymous(param)) return named_dim(b, param, dim);
    }
    if (free_dims == ONV_FREE_SYMBOL) return axis_dim(b, name, axis, dim);
    return ONV_OK;
}

static onv_status build_shape(onv_builder *b, onv_wire_span message, const char *name,
                              onv_free_dims free_dims, onv_type *type)
{
    onv_dim dims[ONV_MAX_RANK];
    onv_wire_field dim;
    size_t rank = 0;
    for (onv_wire_span left = message; onv_wire_next(&left.at, left.end, &dim);) rank++;
    if (rank > ONV_MAX_RANK)
        return onv_fail(b->err, ONV_ERR_LIMIT,
                        "'%s' has rank %zu; the limit is %d, which no option raises", name, rank,
                        ONV_MAX_RANK);
    for (size_t i = 0; onv_wire_next(&message.at, message.end, &dim); i++)
        ONV_TRY(build_dim(b, onv_wire_value(&dim), name, i, free_dims, &dims[i]));
    type->dims = onv_build_dims(b, dims, rank);
    type->rank = (int16_t)rank;
    return type->dims != NULL ? ONV_OK : onv_fail_memory(b->err);
}

/* Of TypeProto: the messages, each with the number of its data type (of keys, for a map), and what it is made of. */
enum { TENSOR = 1, SEQUENCE = 4, MAP, SPARSE_TENSOR = 8, OPTIONAL };
enum { OF_DTYPE = 1, OF_SHAPE = 2, OF_ELEMENT = 1, OF_MAP_VALUE = 2 };

static onv_status build_tensor_type(onv_builder *b, onv_wire_span message, const char *name,
                                    onv_free_dims free_dims, onv_type *type)
{
    onv_wire_field f;
    if (onv_wire_find(message, OF_DTYPE, &f))
        type->dtype = (uint8_t)onv_dtype_from((int32_t)onv_wire_number(&f));
    if (!onv_wire_find(message, OF_SHAPE, &f)) return ONV_OK;
    return build_shape(b, onv_wire_value(&f), name, free_dims, type);
}

/* What has elements: their type is in the field of that number. */
static onv_status build_elem(onv_builder *b, onv_wire_span message, uint32_t number,
                             const char *name, onv_free_dims free_dims, onv_type_kind kind,
                             onv_type *type)
{
    onv_wire_field f;
    (void)onv_wire_find(message, number, &f);
    onv_type *elem = ONV_ARENA_ARRAY(&b->model->arena, onv_type, 1);
    if (elem == NULL) return onv_fail_memory(b->err);
    *type = onv_type_of_elements(&b->model->arena, kind,
                                 (onv_elements){.type = elem, .length = ONV_DIM_UNKNOWN});
    return onv_build_type(b, onv_wire_value(&f), name, free_dims, elem);
}

onv_status onv_build_type(onv_builder *b, onv_wire_span message, const char *name,
                          onv_free_dims free_dims, onv_type *type)
{
    /* Elements of a sequence have a shape each: no symbol stands for all of them. */
    onv_free_dims inner = free_dims == ONV_FREE_SYMBOL ? ONV_FREE_UNKNOWN : free_dims;
    onv_wire_field value = {0}, key; /* of a oneof: the last one */
    while (onv_wire_next(&message.at, message.end, &value)) {
    }
    const onv_wire_span part = onv_wire_value(&value);
    *type = (onv_type){.kind = ONV_TYPE_UNKNOWN, .rank = -1};
    switch (value.number) {
    case TENSOR:
        type->kind = ONV_TYPE_TENSOR;
        return build_tensor_type(b, part, name, free_dims, type);
    case SPARSE_TENSOR:
        type->kind = ONV_TYPE_SPARSE_TENSOR;
        return build_tensor_type(b, part, name, free_dims, type);
    case SEQUENCE: return build_elem(b, part, OF_ELEMENT, name, inner, ONV_TYPE_SEQUENCE, type);
    case OPTIONAL: return build_elem(b, part, OF_ELEMENT, name, free_dims, ONV_TYPE_OPTIONAL, type);
    case MAP:
        ONV_TRY(build_elem(b, part, OF_MAP_VALUE, name, inner, ONV_TYPE_MAP, type));
        if (onv_wire_find(part, OF_DTYPE, &key))
            type->dtype = (uint8_t)onv_dtype_from((int32_t)onv_wire_number(&key));
        return ONV_OK;
    default: return ONV_OK; /* opaque: nothing can be said of its size */
    }
}

onv_status onv_build_value_type(onv_builder *b, const onv_scan_value *value, const char *name,
                                onv_free_dims free_dims, onv_type *type)
{
    onv_wire_span message;
    ONV_TRY(onv_build_message(b, value->type, &message));
    return onv_build_type(b, message, name, free_dims, type);
}

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

static onv_status build_dim(onv_builder *b, const Onnx__TensorShapeProto__Dimension *pb,
                            const char *name, size_t axis, onv_free_dims free_dims, onv_dim *dim)
{
    *dim = ONV_DIM_UNKNOWN;
    if (pb->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) {
        if (pb->dim_value >= ONV_DIM_INFINITY_RAW)
            return onv_fail(b->err, ONV_ERR_OVERFLOW, "dim %zu of '%s' is %" PRId64, axis, name,
                            pb->dim_value);
        *dim = onv_dim_const(pb->dim_value);
        if (pb->dim_value >= 0) return ONV_OK;
        *dim = ONV_DIM_UNKNOWN;
        onv_model_diag(b->model, ONV_WARNING, "negative-dim", NULL,
                       "dim %zu of '%s' is %" PRId64 "; taken as not given", axis, name,
                       pb->dim_value);
    }
    bool has_name = pb->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
                    pb->dim_param != NULL && !onv_dim_name_is_anonymous(pb->dim_param);
    if (has_name && free_dims != ONV_FREE_LOCAL) return named_dim(b, pb->dim_param, dim);
    if (free_dims == ONV_FREE_SYMBOL) return axis_dim(b, name, axis, dim);
    return ONV_OK;
}

static onv_status build_shape(onv_builder *b, const Onnx__TensorShapeProto *pb, const char *name,
                              onv_free_dims free_dims, onv_type *type)
{
    if (pb == NULL) return ONV_OK;
    if (pb->n_dim > ONV_MAX_RANK)
        return onv_fail(b->err, ONV_ERR_LIMIT,
                        "'%s' has rank %zu; the limit is %d, which no option raises", name,
                        pb->n_dim, ONV_MAX_RANK);
    onv_dim dims[ONV_MAX_RANK];
    for (size_t i = 0; i < pb->n_dim; i++)
        ONV_TRY(build_dim(b, pb->dim[i], name, i, free_dims, &dims[i]));
    type->dims = onv_arena_copy(&b->model->arena, dims, pb->n_dim * sizeof *dims);
    type->rank = (int16_t)pb->n_dim;
    return type->dims != NULL ? ONV_OK : onv_fail_memory(b->err);
}

static onv_status build_elem(onv_builder *b, const Onnx__TypeProto *pb, const char *name,
                             onv_free_dims free_dims, onv_type_kind kind, onv_type *type)
{
    onv_type *elem = ONV_ARENA_ARRAY(&b->model->arena, onv_type, 1);
    if (elem == NULL) return onv_fail_memory(b->err);
    *type = onv_type_of_elements(&b->model->arena, kind,
                                 (onv_elements){.type = elem, .length = ONV_DIM_UNKNOWN});
    return onv_build_type(b, pb, name, free_dims, elem);
}

onv_status onv_build_type(onv_builder *b, const Onnx__TypeProto *pb, const char *name,
                          onv_free_dims free_dims, onv_type *type)
{
    /* Elements of a sequence have a shape each: no symbol stands for all of them. */
    onv_free_dims inner = free_dims == ONV_FREE_SYMBOL ? ONV_FREE_UNKNOWN : free_dims;
    *type = (onv_type){.kind = ONV_TYPE_UNKNOWN, .rank = -1};
    if (pb == NULL) return ONV_OK;
    switch (pb->value_case) {
    case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE:
        type->kind = ONV_TYPE_TENSOR;
        type->dtype = (uint8_t)onv_dtype_from(pb->tensor_type->elem_type);
        return build_shape(b, pb->tensor_type->shape, name, free_dims, type);
    case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE:
        type->kind = ONV_TYPE_SPARSE_TENSOR;
        type->dtype = (uint8_t)onv_dtype_from(pb->sparse_tensor_type->elem_type);
        return build_shape(b, pb->sparse_tensor_type->shape, name, free_dims, type);
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
        return build_elem(b, pb->sequence_type->elem_type, name, inner, ONV_TYPE_SEQUENCE, type);
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
        return build_elem(b, pb->optional_type->elem_type, name, free_dims, ONV_TYPE_OPTIONAL,
                          type);
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE:
        ONV_TRY(build_elem(b, pb->map_type->value_type, name, inner, ONV_TYPE_MAP, type));
        type->dtype = (uint8_t)onv_dtype_from(pb->map_type->key_type);
        return ONV_OK;
    default: return ONV_OK; /* opaque: nothing can be said of its size */
    }
}

onv_status onv_build_value_type(onv_builder *b, const onv_scan_value *value, const char *name,
                                onv_free_dims free_dims, onv_type *type)
{
    const ProtobufCMessage *pb;
    ONV_TRY(onv_build_unpack(b, value->type, &onnx__type_proto__descriptor, &pb));
    return onv_build_type(b, (const Onnx__TypeProto *)pb, name, free_dims, type);
}

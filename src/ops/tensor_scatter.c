/* Operators that overwrite elements of a copy: Scatter, ScatterElements, ScatterND,
 * TensorScatter. */

#include <string.h>

#include "ops/rules.h"

/* --- Folding ----------------------------------------------------------------------------------- */

/* How an element that is there and its update make one, as the operator names it. */
static const char *read_reduction(onv_op_ctx *c)
{
    return c->version >= 16 ? onv_op_attr_string(c, "reduction", "none") : "none";
}

static onv_scalar combine(onv_op_ctx *c, const char *how, onv_dtype dtype, onv_scalar a,
                          onv_scalar b)
{
    a = onv_scalar_canonical(dtype, a);
    b = onv_scalar_canonical(dtype, b);
    if (strcmp(how, "add") == 0) return onv_scalar_add(c->dims, dtype, a, b);
    if (strcmp(how, "mul") == 0) return onv_scalar_mul(c->dims, dtype, a, b);
    if (strcmp(how, "max") == 0) return onv_scalar_max(c->dims, dtype, a, b);
    if (strcmp(how, "min") == 0) return onv_scalar_min(c->dims, dtype, a, b);
    return onv_scalar_unknown();
}

/* A copy of the data to be overwritten; NULL where it is not tracked. An index that is not known
 * may hit any element, so then nothing is known of the result. */
static onv_known *start_scatter(onv_op_ctx *c)
{
    const onv_known *data = onv_fold_source(c, 0);
    const onv_known *indices = data != NULL ? onv_op_in_known(c, 1) : NULL;
    if (data == NULL || indices == NULL) return NULL;
    for (uint32_t i = 0; i < indices->count; i++)
        if (!onv_dim_is_const(indices->elems[i].i)) return NULL;
    onv_known *out = onv_op_new_known(c, 0);
    if (out == NULL || out->count != data->count) return NULL;
    memcpy(out->elems, data->elems, out->count * sizeof *out->elems);
    return out;
}

/* Writes `n` updates from `update` on to what stands from `at` on. */
static void write_elements(onv_op_ctx *c, onv_known *out, const char *how, int64_t at,
                           int64_t update, int64_t n)
{
    const onv_known *updates = onv_op_in_known(c, 2);
    const onv_dtype dtype = (onv_dtype)out->dtype;
    const bool is_combined = strcmp(how, "none") != 0;
    if (at < 0 || n > (int64_t)out->count - at) return;
    for (int64_t k = 0; k < n; k++) {
        onv_scalar value = updates != NULL && update + k < (int64_t)updates->count
                               ? updates->elems[update + k]
                               : onv_scalar_unknown();
        if (is_combined) value = combine(c, how, dtype, out->elems[at + k], value);
        out->elems[at + k] = onv_scalar_fit(c->dims, dtype, value);
    }
}

/* --- ScatterElements --------------------------------------------------------------------------- */

static onv_status infer_scatter_elements(onv_op_ctx *c)
{
    int rank = onv_op_in_rank(c, 0), axis;
    ONV_TRY(onv_tensor_need_rank(c, 0, 1, ONV_MAX_RANK));
    if (rank >= 0) {
        ONV_TRY(onv_op_axis(c, onv_op_attr_int(c, "axis", 0), rank, &axis));
        ONV_TRY(onv_tensor_need_rank(c, 1, rank, rank));
        ONV_TRY(onv_tensor_need_rank(c, 2, rank, rank));
    }
    for (int i = 0; i < onv_op_in_rank(c, 1); i++) {
        onv_dim same = onv_op_in_dim(c, 1, i);
        ONV_TRY(onv_tensor_unify(c, "dims of indices and updates", &same, onv_op_in_dim(c, 2, i)));
    }
    return onv_infer_same(c);
}

static onv_status fold_scatter_elements(onv_op_ctx *c)
{
    int axis;
    int64_t strides[ONV_MAX_RANK], steps[ONV_MAX_RANK];
    onv_known *out = start_scatter(c);
    if (out == NULL) return ONV_OK;
    const onv_known *indices = onv_op_in_known(c, 1);
    const char *how = read_reduction(c);
    ONV_TRY(onv_op_axis(c, onv_op_attr_int(c, "axis", 0), out->rank, &axis));
    onv_tensor_strides(out->dims, out->rank, strides);
    onv_tensor_strides(indices->dims, indices->rank, steps);
    for (uint32_t i = 0; i < indices->count; i++) {
        int64_t at = 0, along;
        ONV_TRY(onv_tensor_index(c, indices->elems[i].i, out->dims[axis], &along));
        for (int k = 0; k < out->rank; k++) {
            int64_t position = (int64_t)i / steps[k] % indices->dims[k];
            if (k != axis && position >= out->dims[k])
                return onv_op_fail(c, "indices %s reach beyond data %s", onv_op_in_text(c, 1),
                                   onv_op_in_text(c, 0));
            at += (k == axis ? along : position) * strides[k];
        }
        write_elements(c, out, how, at, i, 1);
    }
    return ONV_OK;
}

/* --- ScatterND --------------------------------------------------------------------------------- */

static onv_status infer_scatter_nd(onv_op_ctx *c)
{
    int rank = onv_op_in_rank(c, 0), indices = onv_op_in_rank(c, 1), updates;
    onv_dim tuple = onv_op_in_dim(c, 1, -1);
    ONV_TRY(onv_tensor_need_rank(c, 0, 1, ONV_MAX_RANK));
    ONV_TRY(onv_tensor_need_rank(c, 1, 1, ONV_MAX_RANK));
    if (rank >= 0 && onv_dim_is_const(tuple)) {
        if (tuple.raw < 0 || tuple.raw > rank)
            return onv_op_fail(c, "index tuples of %lld for data of shape %s", (long long)tuple.raw,
                               onv_op_in_text(c, 0));
        int k = (int)tuple.raw;
        updates = indices - 1 + rank - k;
        ONV_TRY(onv_tensor_check_rank(c, updates));
        ONV_TRY(onv_tensor_need_rank(c, 2, updates, updates));
        for (int i = 0; i < updates; i++) {
            onv_dim expected = i < indices - 1 ? onv_op_in_dim(c, 1, i)
                                               : onv_op_in_dim(c, 0, i - (indices - 1) + k);
            onv_dim given = onv_op_in_dim(c, 2, i);
            ONV_TRY(onv_tensor_unify(c, "the dims of updates", &given, expected));
        }
    }
    return onv_infer_same(c);
}

static onv_status fold_scatter_nd(onv_op_ctx *c)
{
    int64_t strides[ONV_MAX_RANK], slice = 1;
    onv_known *out = start_scatter(c);
    if (out == NULL) return ONV_OK;
    const onv_known *indices = onv_op_in_known(c, 1);
    const char *how = read_reduction(c);
    if (out->count == 0 || indices->rank < 1) return ONV_OK;
    int tuple = (int)indices->dims[indices->rank - 1];
    onv_tensor_strides(out->dims, out->rank, strides);
    for (int k = tuple; k < out->rank; k++) slice *= out->dims[k];
    uint32_t tuples = tuple > 0 ? indices->count / (uint32_t)tuple : 0;
    for (uint32_t i = 0; i < tuples; i++) {
        int64_t at = 0;
        for (int k = 0; k < tuple; k++) {
            int64_t along;
            onv_dim index = indices->elems[i * (uint32_t)tuple + (uint32_t)k].i;
            ONV_TRY(onv_tensor_index(c, index, out->dims[k], &along));
            at += along * strides[k];
        }
        write_elements(c, out, how, at, i * slice, slice);
    }
    return ONV_OK;
}

/* --- TensorScatter ----------------------------------------------------------------------------- */

static onv_status infer_tensor_scatter(onv_op_ctx *c)
{
    onv_dim dim, dims[ONV_MAX_RANK];
    int rank = onv_op_in_dims(c, 0, dims), axis;
    ONV_TRY(onv_tensor_need_rank(c, 0, 2, ONV_MAX_RANK));
    ONV_TRY(onv_tensor_need_rank(c, 2, 1, 1));
    if (rank < 0) return onv_infer_same(c);
    ONV_TRY(onv_tensor_need_rank(c, 1, rank, rank));
    ONV_TRY(onv_op_axis(c, onv_op_attr_int(c, "axis", -2), rank, &axis));
    if (axis == 0) return onv_op_fail(c, "the axis is the batch dim");
    for (int i = 0; i < rank; i++)
        if (i != axis)
            ONV_TRY(
                onv_tensor_unify(c, "dims of cache and update", &dims[i], onv_op_in_dim(c, 1, i)));
    dim = onv_op_in_dim(c, 1, axis);
    if (onv_dim_is_const(dim) && onv_dim_is_const(dims[axis]) && dim.raw > dims[axis].raw)
        return onv_op_fail(c, "an update of %lld for a cache of %lld", (long long)dim.raw,
                           (long long)dims[axis].raw);
    ONV_TRY(onv_tensor_unify(c, "the batch of cache and write_indices", &dims[0],
                             onv_op_in_dim(c, 2, 0)));
    return onv_op_set_like(c, dims, rank);
}

/* --- Rows -------------------------------------------------------------------------------------- */

static const onv_op rows[] = {
    ONV_OP("Scatter", 9, 3, 3, 1, 1, infer_scatter_elements,
           .traits = {.inplace = ONV_BIT(0), .save_in = ONV_BIT(1)}, .fold = fold_scatter_elements),
    ONV_OP("ScatterElements", 11, 3, 3, 1, 1, infer_scatter_elements,
           .traits = {.inplace = ONV_BIT(0), .save_in = ONV_BIT(1)}, .fold = fold_scatter_elements),
    ONV_OP("ScatterND", 11, 3, 3, 1, 1, infer_scatter_nd,
           .traits = {.inplace = ONV_BIT(0), .save_in = ONV_BIT(1)}, .fold = fold_scatter_nd),
    ONV_OP("TensorScatter", 24, 2, 3, 1, 1, infer_tensor_scatter,
           .traits = {.inplace = ONV_BIT(0), .save_in = ONV_BIT(2)}),
};

const onv_op_family onv_ops_tensor_scatter = {"", rows, sizeof rows / sizeof rows[0]};

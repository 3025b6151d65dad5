/* Operators that pick elements by index: Gather, GatherElements, GatherND, OneHot. */
#include "ops/rules.h"

/* --- Gather ------------------------------------------------------------------------------------ */

onv_status onv_tensor_look_up(onv_op_ctx *c, int64_t axis, int64_t packed, onv_dtype dtype)
{
    int rank = onv_op_in_rank(c, 0), indices = onv_op_in_rank(c, 1), at, n = 0;
    onv_dim dims[2 * ONV_MAX_RANK];
    ONV_TRY(onv_tensor_need_rank(c, 0, 1, ONV_MAX_RANK));
    if (rank < 0 || indices < 0) return onv_op_set_out(c, 0, dtype, NULL, -1);
    ONV_TRY(onv_op_axis(c, axis, rank, &at));
    ONV_TRY(onv_tensor_check_rank(c, rank + indices - 1));
    for (int i = 0; i < rank; i++) {
        onv_dim dim = onv_op_in_dim(c, 0, i);
        if (i == rank - 1) dim = onv_dim_mul(c->dims, dim, onv_dim_const(packed));
        if (i != at) dims[n++] = dim;
        for (int k = 0; i == at && k < indices; k++) dims[n++] = onv_op_in_dim(c, 1, k);
    }
    return onv_op_set_out(c, 0, dtype, dims, n);
}

/* Known indices of one axis, -1 where one is not known. */
static onv_status read_indices(onv_op_ctx *c, const onv_known *indices, int64_t size,
                               const int64_t **list)
{
    int64_t *at = ONV_ARENA_ARRAY(c->arena, int64_t, indices->count);
    *list = at;
    for (uint32_t i = 0; at != NULL && i < indices->count; i++)
        ONV_TRY(onv_tensor_index(c, indices->elems[i].i, size, &at[i]));
    return ONV_OK;
}

/* The indices stand in the place of the axis, in their order. */
static onv_status infer_gather(onv_op_ctx *c)
{
    int64_t given = onv_op_attr_int(c, "axis", 0);
    ONV_TRY(onv_tensor_look_up(c, given, 1, onv_op_in_dtype(c, 0)));
    const onv_known *from = onv_fold_source(c, 0);
    const onv_known *indices = from != NULL ? onv_op_in_known(c, 1) : NULL;
    int axis;
    if (from == NULL || indices == NULL) return ONV_OK;
    ONV_TRY(onv_op_axis(c, given, from->rank, &axis));
    onv_picks picks = onv_pick_all(from);
    picks.dims[axis] = indices->count;
    ONV_TRY(read_indices(c, indices, from->dims[axis], &picks.list[axis]));
    if (picks.list[axis] == NULL) return ONV_OK;
    return onv_fold_picks(c, 0, from, &picks, onv_scalar_unknown());
}

/* --- GatherElements ---------------------------------------------------------------------------- */

typedef struct gather {
    const int64_t *indices;
    int axis, rank;
    int64_t strides[ONV_MAX_RANK];
} gather;

static int64_t place_gather_element(const void *how, uint32_t i, const int64_t *at)
{
    const gather *g = how;
    int64_t index = 0;
    if (g->indices[i] < 0) return -1;
    for (int k = 0; k < g->rank; k++)
        index += (k == g->axis ? g->indices[i] : at[k]) * g->strides[k];
    return index;
}

static onv_status fold_gather_elements(onv_op_ctx *c, gather *how)
{
    const onv_known *from = onv_fold_source(c, 0);
    const onv_known *indices = from != NULL ? onv_op_in_known(c, 1) : NULL;
    if (from == NULL || indices == NULL) return ONV_OK;
    /* Beside the axis the indices may cover less than the data, not more. */
    for (int k = 0; k < how->rank; k++)
        if (k != how->axis && indices->dims[k] > from->dims[k]) return ONV_OK;
    ONV_TRY(read_indices(c, indices, from->dims[how->axis], &how->indices));
    if (how->indices == NULL) return ONV_OK;
    onv_tensor_strides(from->dims, from->rank, how->strides);
    return onv_fold_move(c, from, place_gather_element, how, onv_scalar_unknown());
}

static onv_status infer_gather_elements(onv_op_ctx *c)
{
    gather how = {.rank = onv_op_in_rank(c, 0)};
    int rank = how.rank, indices = onv_op_in_rank(c, 1);
    ONV_TRY(onv_tensor_need_rank(c, 0, 1, ONV_MAX_RANK));
    if (rank >= 0 && indices >= 0 && rank != indices)
        return onv_op_fail(c, "data %s and indices %s differ in rank", onv_op_in_text(c, 0),
                           onv_op_in_text(c, 1));
    if (rank >= 0) ONV_TRY(onv_op_axis(c, onv_op_attr_int(c, "axis", 0), rank, &how.axis));
    onv_op_set_out_like(c, 0, 1, onv_op_in_dtype(c, 0));
    if (indices < 0) onv_op_set_out_rank(c, onv_op_in_dtype(c, 0), rank);
    return fold_gather_elements(c, &how);
}

/* --- GatherND ---------------------------------------------------------------------------------- */

/* Checks batch_dims and the length of the index tuples (unknown: -1). */
static onv_status read_tuples(onv_op_ctx *c, int rank, int indices, int *batch, int *tuple)
{
    int64_t given = c->version >= 12 ? onv_op_attr_int(c, "batch_dims", 0) : 0;
    onv_dim last = onv_op_in_dim(c, 1, -1);
    *tuple = -1;
    if (given < 0 || given >= rank || given >= indices)
        return onv_op_fail(c, "batch_dims %lld is out of range", (long long)given);
    *batch = (int)given;
    if (!onv_dim_is_const(last)) return ONV_OK;
    if (last.raw < 1 || last.raw > rank - *batch)
        return onv_op_fail(c, "index tuples of %lld for data of shape %s", (long long)last.raw,
                           onv_op_in_text(c, 0));
    *tuple = (int)last.raw;
    return ONV_OK;
}

static onv_status infer_gather_nd(onv_op_ctx *c)
{
    int rank = onv_op_in_rank(c, 0), indices = onv_op_in_rank(c, 1), batch, tuple = -1, n = 0;
    onv_dim dims[2 * ONV_MAX_RANK] = {0};
    ONV_TRY(onv_tensor_need_rank(c, 0, 1, ONV_MAX_RANK));
    ONV_TRY(onv_tensor_need_rank(c, 1, 1, ONV_MAX_RANK));
    if (rank >= 0 && indices >= 0) ONV_TRY(read_tuples(c, rank, indices, &batch, &tuple));
    if (tuple < 0) return onv_op_set_like(c, NULL, -1);
    ONV_TRY(onv_tensor_check_rank(c, indices - 1 + rank - batch - tuple));
    for (int i = 0; i < indices - 1; i++) dims[n++] = onv_op_in_dim(c, 1, i);
    for (int i = 0; i < batch; i++) {
        dims[i] = onv_op_in_dim(c, 0, i);
        ONV_TRY(onv_tensor_unify(c, "batch dims of data and indices", &dims[i],
                                 onv_op_in_dim(c, 1, i)));
    }
    for (int i = batch + tuple; i < rank; i++) dims[n++] = onv_op_in_dim(c, 0, i);
    return onv_op_set_like(c, dims, n);
}

typedef struct gather_nd {
    const onv_known *from, *indices;
    int batch, tuple;
    int64_t strides[ONV_MAX_RANK];
    int64_t slice; /* elements that one tuple picks */
} gather_nd;

static int64_t place_gather_nd(const void *how, uint32_t i, const int64_t *at)
{
    const gather_nd *g = how;
    uint32_t which = i / (uint32_t)g->slice * (uint32_t)g->tuple;
    int64_t index = i % g->slice;
    for (int k = 0; k < g->batch; k++) index += at[k] * g->strides[k];
    for (int k = 0; k < g->tuple; k++) {
        onv_dim along = g->indices->elems[which + (uint32_t)k].i;
        int64_t size = g->from->dims[g->batch + k];
        if (!onv_dim_is_const(along)) return -1;
        index += (along.raw < 0 ? along.raw + size : along.raw) * g->strides[g->batch + k];
    }
    return index;
}

static onv_status fold_gather_nd(onv_op_ctx *c)
{
    const onv_known *from = onv_fold_source(c, 0);
    gather_nd how = {
        .from = from, .indices = from != NULL ? onv_op_in_known(c, 1) : NULL, .slice = 1};
    if (how.indices == NULL) return ONV_OK;
    ONV_TRY(read_tuples(c, from->rank, how.indices->rank, &how.batch, &how.tuple));
    if (how.tuple < 0 || from->count == 0) return ONV_OK;
    onv_tensor_strides(from->dims, from->rank, how.strides);
    for (int k = how.batch + how.tuple; k < from->rank; k++) how.slice *= from->dims[k];
    for (uint32_t i = 0; i < how.indices->count; i++) {
        int64_t checked;
        int64_t size = from->dims[how.batch + (int)(i % (uint32_t)how.tuple)];
        ONV_TRY(onv_tensor_index(c, how.indices->elems[i].i, size, &checked));
    }
    return onv_fold_move(c, from, place_gather_nd, &how, onv_scalar_unknown());
}

/* --- OneHot ------------------------------------------------------------------------------------ */

static onv_status infer_one_hot(onv_op_ctx *c)
{
    int rank = onv_op_in_rank(c, 0), axis;
    onv_dim depth = onv_tensor_scalar_int(c, 1);
    onv_dim dims[ONV_MAX_RANK + 1];
    if (onv_dim_is_const(depth) && depth.raw < 0)
        return onv_op_fail(c, "a depth of %lld", (long long)depth.raw);
    if (rank < 0) return onv_op_set_out(c, 0, onv_op_in_dtype(c, 2), NULL, -1);
    ONV_TRY(onv_tensor_check_rank(c, rank + 1));
    ONV_TRY(onv_op_axis(c, onv_op_attr_int(c, "axis", -1), rank + 1, &axis));
    for (int i = 0, from = 0; i <= rank; i++)
        dims[i] = i == axis ? depth : onv_op_in_dim(c, 0, from++);
    onv_op_set_out(c, 0, onv_op_in_dtype(c, 2), dims, rank + 1);
    const onv_known *indices = onv_fold_source(c, 0), *values = onv_fold_source(c, 2);
    if (indices == NULL || values == NULL || values->count != 2) return ONV_OK;
    onv_known *out = onv_op_new_known(c, 0);
    if (out == NULL) return ONV_OK;
    int64_t n = out->dims[axis], inner = 1;
    for (int i = axis + 1; i < out->rank; i++) inner *= out->dims[i];
    for (uint32_t i = 0; i < out->count; i++) {
        int64_t outside = i / inner / n, along = i / inner % n;
        onv_dim hot = onv_scalar_cast(c->dims, (onv_dtype)indices->dtype, ONV_INT64,
                                      indices->elems[outside * inner + i % inner])
                          .i;
        if (!onv_dim_is_const(hot)) continue;
        bool on = (hot.raw < 0 ? hot.raw + n : hot.raw) == along;
        out->elems[i] = values->elems[on ? 1 : 0];
    }
    return ONV_OK;
}

/* --- Rows -------------------------------------------------------------------------------------- */

static const onv_op rows[] = {
    ONV_OP("Gather", 1, 2, 2, 1, 1, infer_gather, .traits = {.save_in = ONV_BIT(1)}),
    ONV_OP("GatherElements", 11, 2, 2, 1, 1, infer_gather_elements,
           .traits = {.save_in = ONV_BIT(0) | ONV_BIT(1)}),
    ONV_OP("GatherND", 11, 2, 2, 1, 1, infer_gather_nd, .fold = fold_gather_nd,
           .traits = {.save_in = ONV_BIT(1)}),
    ONV_OP("OneHot", 9, 3, 3, 1, 1, infer_one_hot),
};

const onv_op_family onv_ops_tensor_gather = {"", rows, sizeof rows / sizeof rows[0]};

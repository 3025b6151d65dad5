/* Operators that rearrange or repeat elements: Transpose, Expand, Tile, SpaceToDepth, DepthToSpace. */

#include <string.h>

#include "ops/rules.h"

/* --- Transpose --------------------------------------------------------------------------------- */

/* The permutation, reversed by default; `rank` is that of the input or, where that is unknown, of
 * perm. */
static onv_status read_perm(onv_op_ctx *c, int *perm, int *rank)
{
    uint32_t count;
    int n_axes;
    const int64_t *given = onv_op_attr_ints(c, "perm", &count);
    *rank = onv_op_in_rank(c, 0);
    if (given == NULL) {
        for (int i = 0; i < *rank; i++) perm[i] = *rank - 1 - i;
        return ONV_OK;
    }
    ONV_TRY(onv_tensor_check_rank(c, count));
    if (*rank < 0) *rank = (int)count;
    if (count != (uint32_t)*rank)
        return onv_op_fail(c, "perm has %u axes for an input of shape %s", count,
                           onv_op_in_text(c, 0));
    return onv_tensor_axis_list(c, "perm", *rank, perm, &n_axes);
}

static onv_status infer_transpose(onv_op_ctx *c)
{
    int perm[ONV_MAX_RANK] = {0}, rank;
    onv_dim dims[ONV_MAX_RANK];
    ONV_TRY(read_perm(c, perm, &rank));
    for (int i = 0; i < rank; i++) dims[i] = onv_op_in_dim(c, 0, perm[i]);
    onv_op_set_like(c, dims, rank);
    const onv_known *from = onv_fold_source(c, 0);
    if (from == NULL) return ONV_OK;
    onv_picks picks = onv_pick_all(from);
    memcpy(picks.order, perm, sizeof perm);
    return onv_fold_picks(c, 0, from, &picks, onv_scalar_unknown());
}

/* --- Expand ------------------------------------------------------------------------------------ */

static onv_status infer_expand(onv_op_ctx *c)
{
    const onv_dim *shape;
    uint32_t count;
    int rank = onv_op_in_rank(c, 0), longest;
    onv_dim dims[ONV_MAX_RANK], length = onv_op_in_dim(c, 1, 0);
    bool known = onv_op_ints(c, "", 1, &shape, &count);
    if (known) length = onv_dim_const(count);
    if (rank < 0 || !onv_dim_is_const(length)) return onv_op_set_like(c, NULL, -1);
    ONV_TRY(onv_tensor_check_rank(c, length.raw));
    longest = rank > (int)length.raw ? rank : (int)length.raw;
    for (int axis = 0; axis < longest; axis++) {
        int from = axis - (longest - rank), want = axis - (longest - (int)length.raw);
        onv_dim own = from >= 0 ? onv_op_in_dim(c, 0, from) : onv_dim_const(1);
        onv_dim other = want < 0 ? onv_dim_const(1) : known ? shape[want] : ONV_DIM_UNKNOWN;
        if (onv_dim_is_const(other) && other.raw < 0)
            return onv_op_fail(c, "the new shape holds %lld", (long long)other.raw);
        ONV_TRY(onv_rule_broadcast_dim(c, own, other, &dims[axis]));
    }
    return onv_op_set_like(c, dims, longest);
}

/* --- Tile -------------------------------------------------------------------------------------- */

/* Tile-1: one axis, named by an input. */
static onv_status infer_tile_1(onv_op_ctx *c)
{
    onv_dim dims[ONV_MAX_RANK];
    int rank = onv_op_in_dims(c, 0, dims), axis;
    onv_dim at = onv_tensor_scalar_int(c, 2), times = onv_tensor_scalar_int(c, 1);
    if (rank < 0 || !onv_dim_is_const(at))
        return onv_op_set_out_rank(c, onv_op_in_dtype(c, 0), rank);
    ONV_TRY(onv_op_axis(c, at.raw, rank, &axis));
    dims[axis] = onv_dim_mul(c->dims, dims[axis], times);
    return onv_op_set_like(c, dims, rank);
}

static onv_status infer_tile(onv_op_ctx *c)
{
    const onv_dim *repeats;
    uint32_t count;
    int rank = onv_op_in_rank(c, 0);
    onv_dim dims[ONV_MAX_RANK], length = onv_op_in_dim(c, 1, 0);
    bool known = onv_op_ints(c, "", 1, &repeats, &count);
    if (known) length = onv_dim_const(count);
    if (rank < 0 && onv_dim_is_const(length)) {
        ONV_TRY(onv_tensor_check_rank(c, length.raw));
        rank = (int)length.raw;
    }
    if (onv_dim_is_const(length) && length.raw != rank)
        return onv_op_fail(c, "%lld repeats for an input of shape %s", (long long)length.raw,
                           onv_op_in_text(c, 0));
    for (int axis = 0; axis < rank; axis++) {
        onv_dim times = known ? repeats[axis] : ONV_DIM_UNKNOWN;
        if (onv_dim_is_const(times) && times.raw < 0)
            return onv_op_fail(c, "repeats holds %lld", (long long)times.raw);
        dims[axis] = onv_dim_mul(c->dims, onv_op_in_dim(c, 0, axis), times);
    }
    return onv_op_set_like(c, dims, rank);
}

/* Of Tile and Expand: an axis begins anew behind its end, one of a single element at each. */
static onv_status fold_tile(onv_op_ctx *c)
{
    const onv_known *from = onv_fold_source(c, 0);
    if (from == NULL) return ONV_OK;
    onv_picks picks = onv_pick_all(from);
    for (int axis = 0; axis < from->rank; axis++) {
        int64_t n = c->out[0].type.dims[c->out[0].type.rank - from->rank + axis].raw;
        int64_t *list = onv_pick_along(c, &picks, axis, n);
        if (list == NULL) return ONV_OK;
        for (int64_t i = 0; i < n; i++) list[i] = i % from->dims[axis];
    }
    return onv_fold_picks(c, 0, from, &picks, onv_scalar_unknown());
}

/* --- Rows -------------------------------------------------------------------------------------- */

static const onv_op rows[] = {
    ONV_OP("Transpose", 1, 1, 1, 1, 1, infer_transpose),
    ONV_OP("Expand", 8, 2, 2, 1, 1, infer_expand, .fold = fold_tile),
    ONV_OP("Tile", 1, 3, 3, 1, 1, infer_tile_1, .fold = fold_tile),
    ONV_OP("Tile", 6, 2, 2, 1, 1, infer_tile, .fold = fold_tile),
    ONV_SAYS("SpaceToDepth", 1, 1, 1, 1, 1,
             "(x[n, c, h, w]): [n, c * attr.blocksize * attr.blocksize, exact(h / attr.blocksize), "
             "exact(w / attr.blocksize)]"),
    ONV_SAYS("DepthToSpace", 1, 1, 1, 1, 1,
             "(x[n, c, h, w]): [n, exact(c / (attr.blocksize * attr.blocksize)), h * "
             "attr.blocksize, w * attr.blocksize]"),
};

const onv_op_family onv_ops_tensor_layout = {"", rows, sizeof rows / sizeof rows[0]};

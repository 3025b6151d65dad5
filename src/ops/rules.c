#include "ops/rules.h"

onv_status onv_rule_broadcast_dim(onv_op_ctx *c, onv_dim a, onv_dim b, onv_dim *out)
{
    *out = ONV_DIM_UNKNOWN;
    /* NOLINTBEGIN(bugprone-branch-clone): the same answer for another reason */
    if (onv_dim_same(a, b) || onv_dim_is(b, 1)) {
        *out = a;
    } else if (onv_dim_is(a, 1)) {
        *out = b;
    } else if (onv_dim_is_const(a) && onv_dim_is_const(b)) {
        return onv_op_fail(c, "shapes do not broadcast: %lld against %lld", (long long)a.raw,
                           (long long)b.raw);
    } else if (onv_dim_is_const(a)) {
        *out = a; /* b must be 1 or a */
    } else if (onv_dim_is_const(b)) {
        *out = b;
    } else {
        *out = onv_dim_max(c->dims, a, b);
    }
    /* NOLINTEND(bugprone-branch-clone) */
    return ONV_OK;
}

/* The broadcast shape of all inputs into dims[ONV_MAX_RANK]; *rank -1 where one is unknown. */
static onv_status broadcast(onv_op_ctx *c, onv_dim *dims, int *rank)
{
    *rank = 0;
    for (uint32_t k = 0; k < c->n_in; k++) {
        int r = onv_op_in_rank(c, k);
        if (!onv_op_has_in(c, k)) continue;
        if (r < 0) {
            *rank = -1;
            return ONV_OK;
        }
        if (r > *rank) *rank = r;
    }
    for (int axis = 0; axis < *rank; axis++) dims[axis] = onv_dim_const(1);
    for (uint32_t k = 0; k < c->n_in; k++) {
        if (!onv_op_has_in(c, k)) continue;
        int r = onv_op_in_rank(c, k);
        for (int axis = 0; axis < r; axis++) {
            onv_dim *to = &dims[*rank - r + axis];
            ONV_TRY(onv_rule_broadcast_dim(c, *to, onv_op_in_dim(c, k, axis), to));
        }
    }
    return ONV_OK;
}

onv_status onv_rule_check_fits(onv_op_ctx *c, const char *what, uint32_t k, const onv_dim *dims,
                               int rank)
{
    bool fits = true;
    for (int back = 1; back <= onv_op_in_rank(c, k); back++) {
        onv_dim own = onv_op_in_dim(c, k, -back);
        onv_dim to = back <= rank ? dims[rank - back] : onv_dim_const(1);
        fits &= onv_dim_is(own, 1) || !onv_dim_always_ne(c->dims, own, to);
    }
    if (fits) return ONV_OK;
    onv_type type = {.kind = ONV_TYPE_TENSOR, .rank = (int16_t)rank, .dims = dims};
    return onv_op_fail(c, "%s %s does not broadcast to %s", what, onv_op_in_text(c, k),
                       onv_op_shape_text(c, &type));
}

onv_dtype onv_rule_dtype(const onv_op_ctx *c, uint32_t first, uint32_t count)
{
    for (uint32_t k = first; k < first + count; k++)
        if (onv_op_in_dtype(c, k) != ONV_UNDEFINED) return onv_op_in_dtype(c, k);
    return ONV_UNDEFINED;
}

onv_status onv_rule_broadcast_as(onv_op_ctx *c, onv_dtype dtype)
{
    onv_dim dims[ONV_MAX_RANK];
    int rank;
    ONV_TRY(broadcast(c, dims, &rank));
    return onv_op_set_out(c, 0, dtype, dims, rank);
}

onv_status onv_infer_same(onv_op_ctx *c)
{
    return onv_op_set_out_like(c, 0, 0, onv_op_in_dtype(c, 0));
}

onv_status onv_infer_identity(onv_op_ctx *c)
{
    return onv_op_set_out_type(c, 0, onv_op_in(c, 0));
}

onv_status onv_fold_identity(onv_op_ctx *c)
{
    if (onv_op_has_out(c, 0)) c->out[0].known = onv_op_in_known(c, 0);
    return ONV_OK;
}

onv_status onv_infer_broadcast(onv_op_ctx *c)
{
    return onv_rule_broadcast_as(c, onv_rule_dtype(c, 0, c->n_in));
}

onv_status onv_infer_compare(onv_op_ctx *c)
{
    return onv_rule_broadcast_as(c, ONV_BOOL);
}

onv_dim onv_count_out_elems(onv_op_ctx *c)
{
    return onv_type_elems(c->dims, &c->out[0].type);
}

uint32_t onv_broadcast_index(const onv_known *known, const int64_t *dims, int rank, uint32_t index)
{
    uint32_t result = 0;
    uint32_t stride = 1;
    for (int axis = rank - 1, k = known->rank - 1; axis >= 0 && k >= 0; axis--, k--) {
        uint32_t position = dims[axis] > 0 ? index % (uint32_t)dims[axis] : 0;
        index = dims[axis] > 0 ? index / (uint32_t)dims[axis] : 0;
        if (known->dims[k] != 1) result += position * stride;
        stride *= (uint32_t)known->dims[k];
    }
    return result;
}

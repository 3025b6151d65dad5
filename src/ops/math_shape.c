#include "ops/math.h"

#include "ops/rules.h"

static onv_status fail_shapes(onv_op_ctx *c, uint32_t k)
{
    return onv_op_fail(c, "shapes %s and %s must be the same", onv_op_in_text(c, 0),
                       onv_op_in_text(c, k));
}

onv_status onv_math_same_as(onv_op_ctx *c, onv_dtype dtype)
{
    onv_dim dims[ONV_MAX_RANK];
    int rank = -1;
    for (uint32_t k = 0; k < c->n_in; k++) {
        int r = onv_op_in_rank(c, k);
        if (r < 0) continue;
        if (rank >= 0 && r != rank) return fail_shapes(c, k);
        for (int axis = 0; axis < r; axis++) {
            onv_dim d = onv_op_in_dim(c, k, axis);
            if (rank < 0) dims[axis] = d;
            ONV_TRY(onv_tensor_unify(c, "dims", &dims[axis], d));
        }
        rank = r;
    }
    return onv_op_set_out(c, 0, dtype, dims, rank);
}

onv_status onv_math_legacy_as(onv_op_ctx *c, onv_dtype dtype)
{
    if (onv_op_attr_int(c, "broadcast", 0) == 0) return onv_math_same_as(c, dtype);
    onv_dim dims[ONV_MAX_RANK];
    int rank = onv_op_in_rank(c, 0), part = onv_op_in_rank(c, 1);
    for (int axis = 0; axis < rank; axis++) dims[axis] = onv_op_in_dim(c, 0, axis);
    if (rank < 0 || part < 0 || onv_dim_is(onv_op_in_elems(c, 1), 1))
        return onv_op_set_out(c, 0, dtype, dims, rank);
    int64_t start = onv_op_attr_int(c, "axis", rank - part);
    if (start < 0) start += rank;
    if (start < 0 || part > rank || start > rank - part)
        return onv_op_fail(c, "shape %s does not fit into %s at axis %lld", onv_op_in_text(c, 1),
                           onv_op_in_text(c, 0), (long long)start);
    for (int axis = 0; axis < part; axis++) {
        onv_dim b = onv_op_in_dim(c, 1, axis);
        /* The text rules out dims of 1 here, the runtimes of the time did not. */
        if (onv_dim_is(b, 1)) continue;
        ONV_TRY(onv_tensor_unify(c, "dims", &dims[start + axis], b));
    }
    return onv_op_set_out(c, 0, dtype, dims, rank);
}

onv_status onv_infer_legacy(onv_op_ctx *c)
{
    return onv_math_legacy_as(c, onv_rule_dtype(c, 0, 2));
}

onv_status onv_infer_legacy_compare(onv_op_ctx *c)
{
    return onv_math_legacy_as(c, ONV_BOOL);
}

/* Whether input j broadcasts into input k's shape as it stands. */
static bool fits_into(const onv_op_ctx *c, uint32_t j, uint32_t k)
{
    int small = onv_op_in_rank(c, j), large = onv_op_in_rank(c, k);
    if (small < 0 || small > large) return false;
    for (int axis = 1; axis <= small; axis++) {
        onv_dim d = onv_op_in_dim(c, j, -axis);
        if (!onv_dim_is(d, 1) && !onv_dim_same(d, onv_op_in_dim(c, k, -axis))) return false;
    }
    return true;
}

onv_op_traits onv_math_broadcast_traits(onv_op_ctx *c)
{
    onv_op_traits traits = c->op->traits;
    uint32_t shaped = 0;
    /* Bit 31 stands for all the rest and promises nothing. */
    for (uint32_t k = 0; k < c->n_in && k < 31; k++) {
        bool holds_all = onv_op_has_in(c, k);
        for (uint32_t j = 0; j < c->n_in && holds_all; j++)
            holds_all = !onv_op_has_in(c, j) || fits_into(c, j, k);
        if (holds_all) shaped |= ONV_BIT(k);
    }
    if (c->version < 7 && onv_op_attr_int(c, "broadcast", 0) != 0) shaped |= ONV_BIT(0);
    traits.inplace &= shaped;
    return traits;
}

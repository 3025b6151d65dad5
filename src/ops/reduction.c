/* Reductions over axes. Axes were an attribute and became input 1 (ReduceSum in 13, the others in
 * 18); none means all, unless noop_with_empty_axes says so. */
#include <string.h>

#include "ops/rules.h"

/* --- Reduce* ---------------------------------------------------------------------------------- */

/* The axes to reduce as a mask; *known false where they are not, *count -1 or their number then. */
static onv_status reduced_axes(onv_op_ctx *c, int rank, uint32_t *mask, int *count, bool *known)
{
    ONV_TRY(onv_tensor_axes(c, c->op->in.max > 1 ? 1 : -1, rank, mask, count, known));
    if (*count != 0) return ONV_OK;
    *known = true;
    if (onv_op_attr_int(c, "noop_with_empty_axes", 0) == 0)
        *mask = rank == 32 ? UINT32_MAX : ONV_BIT(rank) - 1;
    return ONV_OK;
}

/* The shape of input 0 with the axes of `mask` made 1 or dropped. */
static onv_status set_reduced(onv_op_ctx *c, onv_dtype dtype, uint32_t mask, bool keep)
{
    onv_dim dims[ONV_MAX_RANK];
    int rank = onv_op_in_rank(c, 0), kept = 0;
    for (int axis = 0; axis < rank; axis++) {
        bool reduced = (mask & ONV_BIT(axis)) != 0;
        if (!reduced)
            dims[kept++] = onv_op_in_dim(c, 0, axis);
        else if (keep)
            dims[kept++] = onv_dim_const(1);
    }
    return onv_op_set_out(c, 0, dtype, dims, kept);
}

/* The shape where only the number of reduced axes is known, or 0 of those that are kept as 1: each
 * dim is at most the largest of the input's dims that may have come to stand there. */
static onv_status set_some_reduced(onv_op_ctx *c, onv_dtype dtype, int dropped)
{
    onv_dim dims[ONV_MAX_RANK];
    int rank = onv_op_in_rank(c, 0) - dropped;
    for (int i = 0; i < rank; i++) {
        onv_dim most = dropped > 0 ? onv_op_in_dim(c, 0, i) : onv_dim_const(1);
        for (int k = 0; k <= dropped; k++)
            most = onv_dim_max(c->dims, most, onv_op_in_dim(c, 0, i + k));
        dims[i] = onv_dim_is(most, 1) || !onv_dim_is_known(most)
                      ? most
                      : onv_dim_fresh(c->dims, "reduced", most);
    }
    return onv_op_set_out(c, 0, dtype, dims, rank);
}

/* What becomes of the elements of a group. `with` of a row. */
typedef struct reducing {
    onv_fold_step step;
    onv_fold_finish finish; /* NULL: nothing more */
    int empty;              /* of no elements, unknown where it is negative */
} reducing;

static onv_scalar divide_by_count(onv_dims *pool, onv_dtype dtype, onv_scalar sum, uint32_t count)
{
    return onv_scalar_div(pool, dtype, sum, onv_scalar_number(dtype, (int)count));
}

static onv_status infer_reduce(onv_op_ctx *c)
{
    int rank = onv_op_in_rank(c, 0), count;
    bool keep = onv_op_attr_int(c, "keepdims", 1) != 0, known;
    uint32_t mask;
    onv_dtype dtype = onv_op_in_dtype(c, 0);
    if (rank < 0) return onv_op_set_out(c, 0, dtype, NULL, -1);
    ONV_TRY(reduced_axes(c, rank, &mask, &count, &known));
    if (known) {
        set_reduced(c, dtype, mask, keep);
        const reducing *how = c->op->with;
        if (how == NULL) return ONV_OK;
        bool is_open = how->empty < 0;
        return onv_fold_reduce(c, mask, how->step, how->finish,
                               is_open ? onv_scalar_unknown()
                                       : onv_scalar_number(dtype, how->empty));
    }
    if (keep) return set_some_reduced(c, dtype, 0);
    if (count > rank) return onv_op_fail(c, "%d axes for a tensor of rank %d", count, rank);
    return count > 0 ? set_some_reduced(c, dtype, count) : onv_op_set_out(c, 0, dtype, NULL, -1);
}

/* --- ArgMax, ArgMin --------------------------------------------------------------------------- */

/* The index of the extreme among `length` elements that lie `stride` apart; unknown if two of them
 * cannot be compared. */
static onv_scalar find_extreme(onv_op_ctx *c, const onv_known *in, uint32_t first, uint32_t length,
                               uint32_t stride, bool largest)
{
    bool last = onv_op_attr_int(c, "select_last_index", 0) != 0;
    uint32_t best = 0;
    for (uint32_t i = 1; i < length; i++) {
        onv_scalar a = onv_scalar_canonical(in->dtype, in->elems[first + best * stride]);
        onv_scalar b = onv_scalar_canonical(in->dtype, in->elems[first + i * stride]);
        onv_scalar low = largest ? a : b, high = largest ? b : a;
        /* Whether b beats a; at equality the later one wins where the last index is wanted. */
        onv_truth beats = last ? onv_scalar_less_equal(c->dims, in->dtype, low, high)
                               : onv_scalar_less(c->dims, in->dtype, low, high);
        if (beats == ONV_MAYBE) return onv_scalar_unknown();
        if (beats == ONV_ALWAYS) best = i;
    }
    return onv_scalar_int(onv_dim_const(best));
}

static onv_status infer_arg(onv_op_ctx *c)
{
    bool largest = strcmp(c->op->name, "ArgMax") == 0;
    int rank = onv_op_in_rank(c, 0), axis;
    onv_op_set_out(c, 0, ONV_INT64, NULL, -1);
    if (rank < 0) return ONV_OK;
    int64_t given = onv_op_attr_int(c, "axis", 0);
    if (rank == 0 && (given == 0 || given == -1)) {
        set_reduced(c, ONV_INT64, 0, true); /* a scalar passes for a vector of one */
        return ONV_OK;
    }
    ONV_TRY(onv_op_axis(c, given, rank, &axis));
    set_reduced(c, ONV_INT64, ONV_BIT(axis), onv_op_attr_int(c, "keepdims", 1) != 0);
    const onv_known *in = onv_fold_source(c, 0);
    onv_known *out = in != NULL && in->dims[axis] > 0 ? onv_op_new_known(c, 0) : NULL;
    if (out == NULL) return ONV_OK;
    uint32_t length = (uint32_t)in->dims[axis], stride = 1;
    for (int k = axis + 1; k < in->rank; k++) stride *= (uint32_t)in->dims[k];
    for (uint32_t i = 0; i < out->count; i++) {
        uint32_t first = i / stride * length * stride + i % stride;
        out->elems[i] = find_extreme(c, in, first, length, stride, largest);
    }
    return ONV_OK;
}

/* --- Rows ------------------------------------------------------------------------------------- */

#define REDUCE(op, version, inputs, ...)                                                           \
    ONV_OP(op, version, 1, inputs, 1, 1, infer_reduce, __VA_ARGS__)
/* Axes as an attribute, then as an input since `version`. */
#define REDUCE_BOTH(op, version, ...)                                                              \
    REDUCE(op, 1, 1, __VA_ARGS__), REDUCE(op, version, 2, __VA_ARGS__)
#define FOLDS(...)                                                                                 \
    .with = &(const reducing)                                                                      \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static const onv_op rows[] = {
    REDUCE_BOTH("ReduceSum", 13, FOLDS(onv_scalar_add, NULL, 0)),
    REDUCE_BOTH("ReduceMean", 18, FOLDS(onv_scalar_add, divide_by_count, -1)),
    REDUCE_BOTH("ReduceProd", 18, FOLDS(onv_scalar_mul, NULL, 1)),
    REDUCE_BOTH("ReduceMax", 18, FOLDS(onv_scalar_max, NULL, -1)),
    REDUCE_BOTH("ReduceMin", 18, FOLDS(onv_scalar_min, NULL, -1)),
    REDUCE_BOTH("ReduceL1", 18),
    REDUCE_BOTH("ReduceL2", 18),
    REDUCE_BOTH("ReduceSumSquare", 18),
    /* log(sum(x)) keeps the sum, which has the output's size. */
    REDUCE_BOTH("ReduceLogSum", 18),
    REDUCE_BOTH("ReduceLogSumExp", 18),
    ONV_OP("ArgMax", 1, 1, 1, 1, 1, infer_arg),
    ONV_OP("ArgMin", 1, 1, 1, 1, 1, infer_arg),
};

const onv_op_family onv_ops_reduction = {"", rows, sizeof rows / sizeof rows[0]};

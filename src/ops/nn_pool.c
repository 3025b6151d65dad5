/* Poolings: over a sliding window, over everything, over regions, and back. */
#include "ops/op.h"
#include "ops/rules.h"

/* The rank that the input or kernel_shape tells, -1 where neither does. */
static onv_status pool_rank(onv_op_ctx *c, int *rank)
{
    uint32_t kernel;
    onv_op_attr_ints(c, "kernel_shape", &kernel);
    if (kernel == 0) return onv_op_fail(c, "attribute kernel_shape is missing");
    if (kernel > ONV_MAX_RANK - 2)
        return onv_op_fail(c, "kernel_shape has %u values; at most %d axes can be handled", kernel,
                           ONV_MAX_RANK - 2);
    *rank = onv_op_in_rank(c, 0);
    if (*rank >= 0 && *rank < 3)
        return onv_op_fail(c,
                           "input %s; a pooling needs a batch, channels and at least one "
                           "spatial axis",
                           onv_op_in_text(c, 0));
    if (*rank < 0) *rank = (int)kernel + 2;
    return ONV_OK;
}

static onv_status infer_pool(onv_op_ctx *c)
{
    int rank;
    onv_window window;
    onv_dim dims[ONV_MAX_RANK];
    ONV_TRY(pool_rank(c, &rank));
    ONV_TRY(onv_window_read(c, rank - 2, &window));
    dims[0] = onv_op_in_dim(c, 0, 0);
    dims[1] = onv_op_in_dim(c, 0, 1);
    for (int i = 0; i < window.axes; i++)
        ONV_TRY(onv_window_places(c, &window, i, onv_op_in_dim(c, 0, i + 2), &dims[i + 2]));
    onv_op_set_like(c, dims, rank);
    onv_op_set_out(c, 1, ONV_INT64, dims, rank); /* Indices of MaxPool */
    return ONV_OK;
}

static onv_status infer_global_pool(onv_op_ctx *c)
{
    int rank = onv_op_in_rank(c, 0);
    onv_dim dims[ONV_MAX_RANK];
    if (rank >= 0) ONV_TRY(onv_tensor_need_rank(c, 0, 2, ONV_MAX_RANK));
    for (int i = 0; i < rank; i++) dims[i] = i < 2 ? onv_op_in_dim(c, 0, i) : onv_dim_const(1);
    return onv_op_set_like(c, dims, rank);
}

/* MaxUnpool: input 2 gives the whole output shape; otherwise the pooling is inverted. */
static onv_status infer_max_unpool(onv_op_ctx *c)
{
    int rank;
    uint32_t given;
    onv_window window;
    onv_dim dims[ONV_MAX_RANK];
    ONV_TRY(pool_rank(c, &rank));
    ONV_TRY(onv_window_read(c, rank - 2, &window));
    ONV_TRY(onv_tensor_need_rank(c, 1, rank, rank));
    bool known = onv_op_in_ints(c, 2, &given);
    if (known && given != (uint32_t)rank)
        return onv_op_fail(c, "output_shape has %u values for rank %d", given, rank);
    dims[0] = onv_op_in_dim(c, 0, 0);
    dims[1] = onv_op_in_dim(c, 0, 1);
    for (int i = 0; i < window.axes; i++)
        ONV_TRY(onv_window_inverse(c, &window, i, onv_op_in_dim(c, 0, i + 2), 0, &dims[i + 2]));
    for (int i = 0; i < rank && onv_op_has_in(c, 2); i++)
        ONV_TRY(onv_tensor_size_at(c, 2, (uint32_t)i, &dims[i]));
    return onv_op_set_like(c, dims, rank);
}

#define SAVES_X .traits = {.save_in = ONV_BIT(0)}

static const onv_op rows[] = {
    ONV_OP("AveragePool", 1, 1, 1, 1, 1, infer_pool, SAVES_X),
    ONV_OP("MaxPool", 1, 1, 1, 1, 1, infer_pool),
    /* With Indices. */
    ONV_OP("MaxPool", 8, 1, 1, 1, 2, infer_pool),
    ONV_OP("LpPool", 1, 1, 1, 1, 1, infer_pool, SAVES_X),
    ONV_OP("GlobalAveragePool", 1, 1, 1, 1, 1, infer_global_pool),
    ONV_OP("GlobalMaxPool", 1, 1, 1, 1, 1, infer_global_pool, SAVES_X),
    ONV_OP("GlobalLpPool", 1, 1, 1, 1, 1, infer_global_pool,
           .traits = {.save_in = ONV_BIT(0), .save_out = ONV_BIT(0)}),
    ONV_OP("MaxUnpool", 9, 2, 3, 1, 1, infer_max_unpool, .traits = {.save_in = ONV_BIT(1)}),
    ONV_SAYS("MaxRoiPool", 1, 2, 2, 1, 1,
             "(x[_, c, _, _], rois[n, 5]): [n, c, attr.pooled_shape.0, attr.pooled_shape.1]",
             .traits = {.save_in = ONV_BIT(1)}),
};

const onv_op_family onv_ops_nn_pool = {"", rows, sizeof rows / sizeof rows[0]};

/* Normalisations. The output is always like the input; what differs is which statistics come along. */
#include "ops/op.h"
#include "ops/rules.h"

/* LayerNormalization and RMSNormalization: over the axes from `axis` on. */
static onv_status infer_layer_norm(onv_op_ctx *c)
{
    onv_dim dims[ONV_MAX_RANK];
    int rank = onv_op_in_dims(c, 0, dims), axis;
    onv_dtype stash = onv_op_attr_dtype(c, "stash_type", ONV_FLOAT);
    onv_infer_same(c);
    if (rank >= 0) ONV_TRY(onv_op_axis(c, onv_op_attr_int(c, "axis", -1), rank, &axis));
    if (rank >= 0) ONV_TRY(onv_rule_check_fits(c, "scale", 1, dims, rank));
    if (rank >= 0) ONV_TRY(onv_rule_check_fits(c, "bias", 2, dims, rank));
    for (int i = 0; i < rank; i++)
        if (i >= axis) dims[i] = onv_dim_const(1);
    onv_op_set_out(c, 1, stash, dims, rank); /* Mean */
    onv_op_set_out(c, 2, stash, dims, rank); /* InvStdDev */
    return ONV_OK;
}

/* LpNormalization: along one axis. */
static onv_status infer_lp_norm(onv_op_ctx *c)
{
    int axis;
    onv_infer_same(c);
    if (onv_op_in_rank(c, 0) < 0) return ONV_OK;
    return onv_op_axis(c, onv_op_attr_int(c, "axis", -1), onv_op_in_rank(c, 0), &axis);
}

/* MeanVarianceNormalization: along axes, by default all but the channels of an image. */
static onv_status infer_mean_variance_norm(onv_op_ctx *c)
{
    uint32_t mask;
    int count;
    bool known;
    onv_infer_same(c);
    if (onv_op_in_rank(c, 0) < 0) return ONV_OK;
    if (onv_op_attr(c, "axes") == NULL) return onv_tensor_need_rank(c, 0, 4, ONV_MAX_RANK);
    return onv_tensor_axes(c, -1, onv_op_in_rank(c, 0), &mask, &count, &known);
}

#define BATCH_NORM(opset, most, inputs)                                                            \
    ONV_SAYS("BatchNormalization", opset, 5, 5, 1, most,                                           \
             inputs ": like x, like mean, like var, like mean, like var")
/* A vector counts as one channel. */
#define VECTORS                                                                                    \
    "(x[_] or [_, c, ...], scale[c], b[c], mean[c], var[c]) where c = if(x.rank - 1, c, 1)"
#define SAVES_X .traits = {.save_in = ONV_BIT(0)}

static const onv_op rows[] = {
    /* Until opset 8, spatial=0 gave each position its own statistics. */
    BATCH_NORM(1, 5,
               "(x[_] or [_, c, ...], scale, b, mean, var) where c = if(attr.spatial or 1, "
               "scale.0, c), c = if(attr.spatial or 1, b.0, c)"),
    BATCH_NORM(9, 5, VECTORS),
    BATCH_NORM(14, 3, VECTORS),
    ONV_SAYS("InstanceNormalization", 1, 3, 3, 1, 1, "(x[_, c, _, ...], scale[c], bias[c]): like x",
             .alike = ONV_BITS(3)),
    ONV_OP("LayerNormalization", 17, 2, 3, 1, 3, infer_layer_norm, .alike = ONV_BITS(3)),
    /* One scale per group in opset 18, which was withdrawn for it; exporters wrote one per channel there, too. */
    ONV_SAYS("GroupNormalization", 18, 3, 3, 1, 1,
             "(x[_, c, ...]) where channels_per_group = exact(c / attr.num_groups): like x"),
    ONV_SAYS("GroupNormalization", 21, 3, 3, 1, 1,
             "(x[_, c, ...], scale[c], bias[c]) where channels_per_group = exact(c / "
             "attr.num_groups): like x"),
    ONV_OP("RMSNormalization", 23, 2, 2, 1, 1, infer_layer_norm),
    ONV_SAYS("LRN", 1, 1, 1, 1, 1, "(x[_, _, ...]) where neighbours = attr.size - 1: like x",
             SAVES_X),
    ONV_OP("LpNormalization", 1, 1, 1, 1, 1, infer_lp_norm, SAVES_X),
    ONV_OP("MeanVarianceNormalization", 9, 1, 1, 1, 1, infer_mean_variance_norm, SAVES_X),
};

const onv_op_family onv_ops_nn_norm = {"", rows, sizeof rows / sizeof rows[0]};

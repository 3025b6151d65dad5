/* Images, and what is found in them: GridSample, AffineGrid, CenterCropPad, ImageDecoder, NonMaxSuppression, RoiAlign. */
#include <string.h>

#include "ops/op.h"
#include "ops/rules.h"

/* GridSample: X [n, c, ...], grid [n, sizes ..., coordinates]. */
static onv_status infer_grid_sample(onv_op_ctx *c)
{
    int x_rank = onv_op_in_rank(c, 0), rank = onv_op_in_rank(c, 1);
    onv_dim dims[ONV_MAX_RANK];
    ONV_TRY(onv_tensor_need_rank(c, 0, 3, ONV_MAX_RANK));
    ONV_TRY(onv_tensor_need_rank(c, 1, 3, ONV_MAX_RANK));
    if (x_rank >= 0 && rank >= 0 && x_rank != rank)
        return onv_op_fail(c, "input %s and grid %s differ in rank", onv_op_in_text(c, 0),
                           onv_op_in_text(c, 1));
    if (rank < 0) rank = x_rank;
    if (rank < 0) return onv_op_set_like(c, NULL, -1);
    if (onv_dim_always_ne(c->dims, onv_op_in_dim(c, 1, -1), onv_dim_const(rank - 2)))
        return onv_op_fail(c, "grid %s does not hold %d coordinates per point",
                           onv_op_in_text(c, 1), rank - 2);
    dims[0] = onv_op_in_dim(c, 0, 0);
    ONV_TRY(onv_tensor_unify(c, "the batch of input and grid", &dims[0], onv_op_in_dim(c, 1, 0)));
    dims[1] = onv_op_in_dim(c, 0, 1);
    for (int i = 2; i < rank; i++) dims[i] = onv_op_in_dim(c, 1, i - 1);
    return onv_op_set_like(c, dims, rank);
}

/* AffineGrid: theta [n, 2, 3] or [n, 3, 4], size (n, c, sizes ...) -> [n, sizes ..., coordinates]. */
static onv_status infer_affine_grid(onv_op_ctx *c)
{
    onv_dim count = onv_op_in_dim(c, 1, 0), axes = onv_op_in_dim(c, 0, 1), size, dims[5];
    ONV_TRY(onv_tensor_need_rank(c, 0, 3, 3));
    ONV_TRY(onv_tensor_need_rank(c, 1, 1, 1));
    count = onv_dim_sub(c->dims, count, onv_dim_const(2));
    ONV_TRY(onv_tensor_unify(c, "the axes of theta and size", &axes, count));
    if (!onv_dim_is_const(axes)) return onv_op_set_like(c, NULL, -1);
    if (axes.raw != 2 && axes.raw != 3)
        return onv_op_fail(c, "a grid of %lld axes; 2 or 3 are possible", (long long)axes.raw);
    int n = (int)axes.raw;
    ONV_TRY(onv_tensor_size_at(c, 1, 0, &size));
    dims[0] = onv_op_in_dim(c, 0, 0);
    ONV_TRY(onv_tensor_unify(c, "the batch of theta and size", &dims[0], size));
    for (int i = 0; i < n; i++) ONV_TRY(onv_tensor_size_at(c, 1, (uint32_t)i + 2, &dims[i + 1]));
    dims[n + 1] = axes;
    return onv_op_set_like(c, dims, n + 2);
}

/* CenterCropPad: the axes get the sizes of input 1. */
static onv_status infer_center_crop_pad(onv_op_ctx *c)
{
    onv_dim dims[ONV_MAX_RANK];
    int rank = onv_op_in_dims(c, 0, dims), axes[ONV_MAX_RANK], n_axes;
    if (rank < 0) return onv_op_set_like(c, NULL, -1);
    ONV_TRY(onv_tensor_axis_list(c, "axes", rank, axes, &n_axes));
    if (onv_dim_always_ne(c->dims, onv_op_in_elems(c, 1), onv_dim_const(n_axes)))
        return onv_op_fail(c, "shape %s does not have one size for each of %d axes",
                           onv_op_in_text(c, 1), n_axes);
    for (int i = 0; i < n_axes; i++) ONV_TRY(onv_tensor_size_at(c, 1, (uint32_t)i, &dims[axes[i]]));
    return onv_op_set_like(c, dims, rank);
}

/* ImageDecoder: only the encoded stream knows the size. */
static onv_status infer_image_decoder(onv_op_ctx *c)
{
    const char *format = onv_op_attr_string(c, "pixel_format", "RGB");
    bool gray = strcmp(format, "Grayscale") == 0;
    ONV_TRY(onv_tensor_need_rank(c, 0, 1, 1));
    if (!gray && strcmp(format, "RGB") != 0 && strcmp(format, "BGR") != 0)
        return onv_op_fail(c, "pixel_format is '%s', not RGB, BGR or Grayscale", format);
    onv_dim dims[3] = {onv_dim_fresh(c->dims, "image_height", ONV_DIM_UNKNOWN),
                       onv_dim_fresh(c->dims, "image_width", ONV_DIM_UNKNOWN),
                       onv_dim_const(gray ? 1 : 3)};
    return onv_op_set_out(c, 0, ONV_UINT8, dims, 3);
}

static const onv_op rows[] = {
    ONV_OP("GridSample", 16, 2, 2, 1, 1, infer_grid_sample,
           .traits = {.save_in = ONV_BIT(0) | ONV_BIT(1)}),
    ONV_OP("AffineGrid", 20, 2, 2, 1, 1, infer_affine_grid),
    ONV_OP("CenterCropPad", 18, 2, 2, 1, 1, infer_center_crop_pad),
    ONV_OP("ImageDecoder", 20, 1, 1, 1, 1, infer_image_decoder, .flags = ONV_OP_DATA_DEPENDENT),
    /* How many boxes overlap too much is in the data; no class keeps more than there are or may be, by default none. */
    ONV_SAYS("NonMaxSuppression", 10, 2, 5, 1, 1,
             "(boxes[batch, n, 4], scores[batch, classes, n], most) where kept = if(given(most), "
             "if(known(most[0]), min(max(most[0], 0), n), n), 0): "
             "[upto(batch * classes * kept, selected), 3] i64",
             .flags = ONV_OP_DATA_DEPENDENT),
    /* The gradient needs the regions, not the features. */
    ONV_SAYS("RoiAlign", 10, 3, 3, 1, 1,
             "(x[_, c, _, _], rois[n, 4], indices[n]): [n, c, attr.output_height or 1, "
             "attr.output_width or 1]",
             .traits = {.save_in = ONV_BIT(1) | ONV_BIT(2)}),
};

const onv_op_family onv_ops_image = {"", rows, sizeof rows / sizeof rows[0]};

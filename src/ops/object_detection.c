/* Object detection: NonMaxSuppression and RoiAlign. */
#include "ops/op.h"
#include "ops/tensor.h"

/* NonMaxSuppression: boxes [batch, n, 4], scores [batch, classes, n], max_output_boxes_per_class. How
 * many boxes overlap too much is in the data; no class keeps more than there are or may be. */
static onv_status infer_non_max_suppression(onv_op_ctx *c)
{
    onv_dim batch = onv_op_in_dim(c, 0, 0), boxes = onv_op_in_dim(c, 0, 1),
            kept = onv_op_in_scalar(c, 2);
    ONV_TRY(onv_tensor_need_rank(c, 0, 3, 3));
    ONV_TRY(onv_tensor_need_rank(c, 1, 3, 3));
    ONV_TRY(onv_tensor_unify(c, "the batch of boxes and scores", &batch, onv_op_in_dim(c, 1, 0)));
    ONV_TRY(onv_tensor_unify(c, "the number of boxes and scores", &boxes, onv_op_in_dim(c, 1, 2)));
    if (onv_dim_always_ne(c->dims, onv_op_in_dim(c, 0, 2), onv_dim_const(4)))
        return onv_op_fail(c, "boxes are %s, not [batch, boxes, 4]", onv_op_in_text(c, 0));
    if (!onv_op_has_in(c, 2)) kept = onv_dim_const(0); /* the default keeps nothing */
    if (onv_dim_is_known(kept)) {
        kept = onv_dim_max(c->dims, kept, onv_dim_const(0));
        boxes = onv_dim_min(c->dims, kept, boxes);
    }
    onv_dim most = ONV_PRODUCT(c, batch, onv_op_in_dim(c, 1, 1), boxes);
    bool none = onv_dim_is(kept, 0) || onv_dim_is(most, 0);
    onv_dim dims[2] = {none ? onv_dim_const(0) : onv_dim_fresh(c->dims, "selected", most),
                       onv_dim_const(3)};
    return onv_op_set_out(c, 0, ONV_INT64, dims, 2);
}

static const onv_op rows[] = {
    ONV_OP("NonMaxSuppression", 10, 2, 5, 1, 1, infer_non_max_suppression,
           .flags = ONV_OP_DATA_DEPENDENT),
    /* The gradient needs the regions, not the features. */
    ONV_SAYS("RoiAlign", 10, 3, 3, 1, 1,
             "(x[_, c, _, _], rois[n, 4], indices[n]): [n, c, attr.output_height or 1, "
             "attr.output_width or 1]",
             .traits = {.save_in = ONV_BIT(1) | ONV_BIT(2)}),
};

const onv_op_family onv_ops_object_detection = {"", rows, sizeof rows / sizeof rows[0]};

/* Object detection: NonMaxSuppression and RoiAlign. */
#include "ops/op.h"

static const onv_op rows[] = {
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

const onv_op_family onv_ops_object_detection = {"", rows, sizeof rows / sizeof rows[0]};

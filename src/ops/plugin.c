/* Plug-in nodes of TensorRT, as exporters write them: in ONNX's own domain, or in "TRT" or "trt".
 *
 * A plug-in keeps as many results as an attribute says and fills up the rest, so that sizes are
 * known where ONNX's own operators leave them to the data.
 */
#include "ops/contrib.h"
#include "ops/rules.h"

/* CustomEmbLayerNormPluginDynamic: ids [length, batch]; the tables are attributes, and beta is as
 * wide as the embedding. Like all layers of BERT there it works on [length, batch, width, 1, 1]. */
static onv_status infer_embedding(onv_op_ctx *c)
{
    const onv_attr *beta = onv_op_attr(c, "bert_embeddings_layernorm_beta");
    onv_dim one = onv_dim_const(1), batch = onv_op_in_dim(c, 0, 1);
    onv_dim dims[5] = {onv_op_in_dim(c, 0, 0), batch, ONV_DIM_UNKNOWN, one, one};
    bool half = onv_op_attr_int(c, "output_fp16", 0) != 0;
    if (beta != NULL && beta->kind == ONV_ATTR_TENSOR && beta->tensor != NULL &&
        beta->tensor->elems <= INT32_MAX)
        dims[2] = onv_dim_const((int64_t)beta->tensor->elems);
    if (beta != NULL && beta->kind == ONV_ATTR_FLOATS) dims[2] = onv_dim_const(beta->count);
    ONV_TRY(onv_tensor_need_rank(c, 0, 2, 2));
    onv_op_set_out(c, 0, half ? ONV_FLOAT16 : ONV_FLOAT, dims, 5);
    return onv_op_set_out(c, 1, ONV_INT32, &batch, 1);
}

#define PLUGIN(op, least, most, outs, line) ONV_SAYS(op, 1, least, most, 1, outs, line)
#define SAME(op, least, most)                                                                      \
    ONV_OP(op, 1, least, most, 1, 1, onv_infer_same, .traits = {.inplace = ONV_BIT(0)})

/* Count, boxes, scores and classes of the best per image. */
#define KEPT(most, classes)                                                                        \
    "[boxes.0, 1] i32, [boxes.0, " most ", 4], [boxes.0, " most "] like scores, [boxes.0, " most   \
    "]" classes
/* Boxes [batch, n, 4] or [batch, n, classes, 4], scores [batch, n, classes], perhaps anchors. */
#define EFFICIENT "(boxes[_, _, _, ...], scores[_, _, _]): " KEPT("attr.max_output_boxes", " i32")
#define BATCHED   "(boxes[_, _, _, 4], scores[_, _, _, ...]): " KEPT("attr.keepTopK", "")
/* Locations, confidences and priors of SSD; image, label, confidence and box per row. */
#define NMS "(x): [x.0, 1, attr.keepTopK, 7], [x.0, 1, 1, 1] i32"
/* Regions [batch, n, 4 ...], then maps [batch, channels, height, width] of several scales. */
#define PYRAMID                                                                                    \
    "(rois[b, n, _], maps[_, c, _, _]): [b, n, c, attr.pooled_size, attr.pooled_size] like maps"

static const onv_op rows[] = {
    PLUGIN("EfficientNMS_TRT", 2, 3, 4, EFFICIENT),
    PLUGIN("EfficientNMS_Explicit_TF_TRT", 2, 3, 4, EFFICIENT),
    /* It says where they were, too. */
    PLUGIN("EfficientIdxNMS_TRT", 2, 3, 5, EFFICIENT ", [boxes.0, attr.max_output_boxes] i32"),
    /* Classes come as floats. */
    PLUGIN("BatchedNMS_TRT", 2, 2, 4, BATCHED),
    PLUGIN("BatchedNMSDynamic_TRT", 2, 2, 4, BATCHED),
    PLUGIN("NMS_TRT", 3, 3, 2, NMS),
    PLUGIN("NMSDynamic_TRT", 3, 3, 2, NMS),
    /* Box, class and score of each kept region. */
    PLUGIN("DetectionLayer_TRT", 3, 4, 1, "(x): [x.0, attr.keep_topk, 6]"),
    PLUGIN("GenerateDetection_TRT", 4, 4, 1, "(x): [x.0, attr.keep_topk, 6]"),
    PLUGIN("ProposalLayer_TRT", 2, 4, 1, "(x): [x.0, attr.keep_topk, 4]"),
    PLUGIN("SpecialSlice_TRT", 1, 1, 1, "(x): [x.:-1, 4]"),
    ONV_OP("ROIAlign_TRT", 1, 3, 3, 1, 1, onv_alias_infer,
           .with = &(const onv_alias){.as = "RoiAlign", .version = 16}),
    PLUGIN("MultilevelCropAndResize_TRT", 2, 8, 1, PYRAMID),
    PLUGIN("PyramidROIAlign_TRT", 2, 8, 1, PYRAMID),
    PLUGIN("CropAndResizeDynamic", 2, 2, 1,
           "(maps[_, c, _, _], rois[b, n, ...]): [b, n, c, attr.crop_height, attr.crop_width]"),
    /* Two channels of coordinates before the others. */
    PLUGIN("CoordConvAC", 1, 1, 1, "(x[n, c, h, w]): [n, c + 2, h, w]"),
    /* Offsets are as large as the output. */
    PLUGIN(
        "ModulatedDeformConv2d", 4, 5, 1,
        "(x[n, _, _, _], at[_, _, h, w], mask[_, _, _, _], filters[c, k, kh, kw]): [n, c, h, w]; "
        "n * c * h * w * k * kh * kw"),
    SAME("InstanceNormalization_TRT", 1, 3),
    SAME("GroupNormalizationPlugin", 1, 3),
    SAME("Normalize_TRT", 1, 2),
    SAME("LReLU_TRT", 1, 1),
    SAME("Clip_TRT", 1, 1),
    SAME("DisentangledAttention_TRT", 3, 3),
    SAME("CustomGeluPluginDynamic", 1, 1),
    SAME("CustomSkipLayerNormPluginDynamic", 2, 2),
    PLUGIN("CustomQKVToContextPluginDynamic", 1, 4, 1, "(x): [x.0, x.1, attr.hidden_size, 1, 1]"),
    ONV_OP("CustomEmbLayerNormPluginDynamic", 1, 2, 3, 1, 2, infer_embedding),
    PLUGIN("CustomFCPluginDynamic", 1, 1, 1,
           "(x): [x.0, x.1, attr.out_dims, 1, 1]; x.0 * x.1 * attr.out_dims * x.2"),
    PLUGIN("TRT_FP8QuantizeLinear", 2, 3, 1, "(x): like x float8e4m3fn"),
    PLUGIN("TRT_FP8DequantizeLinear", 2, 3, 1, "(x, scale): like x like scale"),
    PLUGIN("TRT_INT4QuantizeLinear", 2, 3, 1, "(x): like x i4"),
    PLUGIN("TRT_INT4DequantizeLinear", 2, 3, 1, "(x, scale): like x like scale"),
};

enum { N_ROWS = sizeof rows / sizeof rows[0] };

const onv_op_family onv_ops_plugin_onnx = {"", rows, N_ROWS};
const onv_op_family onv_ops_plugin_upper = {"TRT", rows, N_ROWS};
const onv_op_family onv_ops_plugin_lower = {"trt", rows, N_ROWS};

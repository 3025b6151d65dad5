/* Plug-in nodes of TensorRT, as exporters write them: in ONNX's own domain, or in "TRT" or "trt".
 *
 * A plug-in keeps as many results as an attribute says and fills up the rest, so that sizes are
 * known where ONNX's own operators leave them to the data.
 */
#include "ops/contrib.h"
#include "ops/rules.h"
#include "ops/tensor.h"

/* --- Detections -------------------------------------------------------------------------------- */

/* Count, boxes, scores and classes (and indices) of the `kept` best per image. */
static void set_detections(onv_op_ctx *c, int64_t kept, onv_dtype classes)
{
    onv_dim dims[3] = {onv_op_in_dim(c, 0, 0), onv_dim_const(1), onv_dim_const(4)};
    onv_op_set_out(c, 0, ONV_INT32, dims, 2);
    dims[1] = onv_dim_const(kept);
    onv_op_set_out(c, 1, onv_op_in_dtype(c, 0), dims, 3);
    onv_op_set_out(c, 2, onv_op_in_dtype(c, 1), dims, 2);
    onv_op_set_out(c, 3, classes, dims, 2);
    onv_op_set_out(c, 4, ONV_INT32, dims, 2);
}

/* EfficientNMS_TRT: boxes [batch, n, 4] or [batch, n, classes, 4], scores [batch, n, classes],
 * perhaps anchors. EfficientIdxNMS_TRT says where they were, too. */
static onv_status infer_efficient_nms(onv_op_ctx *c)
{
    int64_t kept;
    ONV_TRY(onv_tensor_need_rank(c, 0, 3, 4));
    ONV_TRY(onv_tensor_need_rank(c, 1, 3, 3));
    ONV_TRY(onv_contrib_attr(c, "max_output_boxes", &kept));
    set_detections(c, kept, ONV_INT32);
    return ONV_OK;
}

/* BatchedNMS_TRT: boxes [batch, n, classes or 1, 4], scores [batch, n, classes]; classes come as
 * floats. */
static onv_status infer_batched_nms(onv_op_ctx *c)
{
    int64_t kept;
    ONV_TRY(onv_tensor_need_rank(c, 0, 4, 4));
    ONV_TRY(onv_tensor_need_rank(c, 1, 3, 4));
    ONV_TRY(onv_contrib_attr(c, "keepTopK", &kept));
    set_detections(c, kept, onv_op_in_dtype(c, 0));
    return ONV_OK;
}

/* NMS_TRT: locations, confidences and priors of SSD; image, label, confidence and box per row. */
static onv_status infer_nms(onv_op_ctx *c)
{
    int64_t kept;
    onv_dim one = onv_dim_const(1), batch = onv_op_in_dim(c, 0, 0);
    ONV_TRY(onv_contrib_attr(c, "keepTopK", &kept));
    onv_dim rows[4] = {batch, one, onv_dim_const(kept), onv_dim_const(7)};
    onv_dim counts[4] = {batch, one, one, one};
    onv_op_set_out(c, 0, onv_op_in_dtype(c, 0), rows, 4);
    onv_op_set_out(c, 1, ONV_INT32, counts, 4);
    return ONV_OK;
}

/* Rows of `width` numbers per kept region of an image. */
static onv_status keep_rows(onv_op_ctx *c, int64_t width)
{
    int64_t kept;
    ONV_TRY(onv_contrib_attr(c, "keep_topk", &kept));
    onv_dim dims[3] = {onv_op_in_dim(c, 0, 0), onv_dim_const(kept), onv_dim_const(width)};
    onv_op_set_out(c, 0, onv_op_in_dtype(c, 0), dims, 3);
    return ONV_OK;
}

/* DetectionLayer_TRT, GenerateDetection_TRT: box, class and score. */
static onv_status infer_detection(onv_op_ctx *c)
{
    return keep_rows(c, 6);
}

static onv_status infer_proposal(onv_op_ctx *c)
{
    return keep_rows(c, 4);
}

/* SpecialSlice_TRT: the boxes of detections. */
static onv_status infer_boxes(onv_op_ctx *c)
{
    onv_contrib_last(c, 0, onv_op_in_dtype(c, 0), onv_dim_const(4));
    return ONV_OK;
}

/* --- Regions ----------------------------------------------------------------------------------- */

/* Regions [batch, n, 4 ...] cut out of maps [batch, channels, height, width]: [batch, n, channels,
 * height, width] of the cuts. */
static void set_crops(onv_op_ctx *c, uint32_t rois, uint32_t maps, int64_t height, int64_t width)
{
    onv_dim dims[5] = {onv_op_in_dim(c, rois, 0), onv_op_in_dim(c, rois, 1),
                       onv_op_in_dim(c, maps, 1), onv_dim_const(height), onv_dim_const(width)};
    onv_op_set_out(c, 0, onv_op_in_dtype(c, maps), dims, 5);
}

/* MultilevelCropAndResize_TRT, PyramidROIAlign_TRT: regions, then maps of several scales. */
static onv_status infer_pyramid(onv_op_ctx *c)
{
    int64_t size;
    ONV_TRY(onv_tensor_need_rank(c, 0, 3, 3));
    ONV_TRY(onv_tensor_need_rank(c, 1, 4, 4));
    ONV_TRY(onv_contrib_attr(c, "pooled_size", &size));
    set_crops(c, 0, 1, size, size);
    return ONV_OK;
}

static onv_status infer_crop_and_resize(onv_op_ctx *c)
{
    int64_t height, width;
    ONV_TRY(onv_tensor_need_rank(c, 0, 4, 4));
    ONV_TRY(onv_tensor_need_rank(c, 1, 3, 4));
    ONV_TRY(onv_contrib_attr(c, "crop_height", &height));
    ONV_TRY(onv_contrib_attr(c, "crop_width", &width));
    set_crops(c, 1, 0, height, width);
    return ONV_OK;
}

/* --- Layers ------------------------------------------------------------------------------------ */

/* ModulatedDeformConv2d: x, offsets [batch, ., height, width] of the output, mask, weights, bias. */
static onv_status infer_deform_conv(onv_op_ctx *c)
{
    for (uint32_t k = 0; k < 4; k++) ONV_TRY(onv_tensor_need_rank(c, k, 4, 4));
    onv_dim dims[4] = {onv_op_in_dim(c, 0, 0), onv_op_in_dim(c, 3, 0), onv_op_in_dim(c, 1, 2),
                       onv_op_in_dim(c, 1, 3)};
    onv_op_set_out(c, 0, onv_op_in_dtype(c, 0), dims, 4);
    return ONV_OK;
}

static onv_dim macs_deform_conv(onv_op_ctx *c)
{
    return onv_dim_mul(c->dims, onv_count_out_elems(c), onv_contrib_product(c, 3, 1, 0));
}

/* CoordConvAC: two channels of coordinates before the others. */
static onv_status infer_coord_conv(onv_op_ctx *c)
{
    ONV_TRY(onv_tensor_need_rank(c, 0, 4, 4));
    onv_dim channels = onv_dim_add(c->dims, onv_op_in_dim(c, 0, 1), onv_dim_const(2));
    onv_dim dims[4] = {onv_op_in_dim(c, 0, 0), channels, onv_op_in_dim(c, 0, 2),
                       onv_op_in_dim(c, 0, 3)};
    onv_op_set_out(c, 0, onv_op_in_dtype(c, 0), dims, 4);
    return ONV_OK;
}

/* The layers of BERT work on [length, batch, width, 1, 1]. */
static onv_status set_width(onv_op_ctx *c, onv_dim width)
{
    onv_dim one = onv_dim_const(1);
    onv_dim dims[5] = {onv_op_in_dim(c, 0, 0), onv_op_in_dim(c, 0, 1), width, one, one};
    onv_op_set_out(c, 0, onv_op_in_dtype(c, 0), dims, 5);
    return ONV_OK;
}

static onv_status infer_qkv_to_context(onv_op_ctx *c)
{
    int64_t width;
    ONV_TRY(onv_contrib_attr(c, "hidden_size", &width));
    return set_width(c, onv_dim_const(width));
}

static onv_status infer_fully_connected(onv_op_ctx *c)
{
    int64_t width;
    ONV_TRY(onv_contrib_attr(c, "out_dims", &width));
    return set_width(c, onv_dim_const(width));
}

static onv_dim macs_fully_connected(onv_op_ctx *c)
{
    return onv_dim_mul(c->dims, onv_count_out_elems(c), onv_op_in_dim(c, 0, 2));
}

/* CustomEmbLayerNormPluginDynamic: ids [length, batch]; the tables are attributes, and beta is as
 * wide as the embedding. */
static onv_status infer_embedding(onv_op_ctx *c)
{
    const onv_attr *beta = onv_op_attr(c, "bert_embeddings_layernorm_beta");
    onv_dim width = ONV_DIM_UNKNOWN, batch = onv_op_in_dim(c, 0, 1);
    if (beta != NULL && beta->kind == ONV_ATTR_TENSOR && beta->tensor != NULL &&
        beta->tensor->elems <= INT32_MAX)
        width = onv_dim_const((int64_t)beta->tensor->elems);
    if (beta != NULL && beta->kind == ONV_ATTR_FLOATS) width = onv_dim_const(beta->count);
    ONV_TRY(onv_tensor_need_rank(c, 0, 2, 2));
    ONV_TRY(set_width(c, width));
    bool half = onv_op_attr_int(c, "output_fp16", 0) != 0;
    if (onv_op_has_out(c, 0)) c->out[0].type.dtype = half ? ONV_FLOAT16 : ONV_FLOAT;
    onv_op_set_out(c, 1, ONV_INT32, &batch, 1);
    return ONV_OK;
}

/* --- Quantisation ------------------------------------------------------------------------------ */

static onv_status infer_as_scale(onv_op_ctx *c)
{
    onv_op_set_out_like(c, 0, 0, onv_op_in_dtype(c, 1));
    return ONV_OK;
}

/* --- Rows -------------------------------------------------------------------------------------- */

#define PLUGIN(op, least, most, outs, ...) ONV_OP(op, 1, least, most, 1, outs, __VA_ARGS__)
#define SAME(op, least, most)                                                                      \
    ONV_OP(op, 1, least, most, 1, 1, onv_infer_same, .traits = {.inplace = ONV_BIT(0)})

static const onv_op rows[] = {
    PLUGIN("EfficientNMS_TRT", 2, 3, 4, infer_efficient_nms),
    PLUGIN("EfficientNMS_Explicit_TF_TRT", 2, 3, 4, infer_efficient_nms),
    PLUGIN("EfficientIdxNMS_TRT", 2, 3, 5, infer_efficient_nms),
    PLUGIN("BatchedNMS_TRT", 2, 2, 4, infer_batched_nms),
    PLUGIN("BatchedNMSDynamic_TRT", 2, 2, 4, infer_batched_nms),
    PLUGIN("NMS_TRT", 3, 3, 2, infer_nms),
    PLUGIN("NMSDynamic_TRT", 3, 3, 2, infer_nms),
    PLUGIN("DetectionLayer_TRT", 3, 4, 1, infer_detection),
    PLUGIN("GenerateDetection_TRT", 4, 4, 1, infer_detection),
    PLUGIN("ProposalLayer_TRT", 2, 4, 1, infer_proposal),
    PLUGIN("SpecialSlice_TRT", 1, 1, 1, infer_boxes),
    PLUGIN("ROIAlign_TRT", 3, 3, 1, onv_alias_infer,
           .with = &(const onv_alias){.family = &onv_ops_object_detection,
                                      .as = "RoiAlign",
                                      .version = 16}),
    PLUGIN("MultilevelCropAndResize_TRT", 2, 8, 1, infer_pyramid),
    PLUGIN("PyramidROIAlign_TRT", 2, 8, 1, infer_pyramid),
    PLUGIN("CropAndResizeDynamic", 2, 2, 1, infer_crop_and_resize),
    PLUGIN("CoordConvAC", 1, 1, 1, infer_coord_conv),
    ONV_OP("ModulatedDeformConv2d", 1, 4, 5, 1, 1, infer_deform_conv, .macs = macs_deform_conv),
    SAME("InstanceNormalization_TRT", 1, 3),
    SAME("GroupNormalizationPlugin", 1, 3),
    SAME("Normalize_TRT", 1, 2),
    SAME("LReLU_TRT", 1, 1),
    SAME("Clip_TRT", 1, 1),
    SAME("DisentangledAttention_TRT", 3, 3),
    SAME("CustomGeluPluginDynamic", 1, 1),
    SAME("CustomSkipLayerNormPluginDynamic", 2, 2),
    PLUGIN("CustomQKVToContextPluginDynamic", 1, 4, 1, infer_qkv_to_context),
    PLUGIN("CustomEmbLayerNormPluginDynamic", 2, 3, 2, infer_embedding),
    ONV_OP("CustomFCPluginDynamic", 1, 1, 1, 1, 1, infer_fully_connected,
           .macs = macs_fully_connected),
    PLUGIN("TRT_FP8QuantizeLinear", 2, 3, 1, onv_infer_like, .like = "0",
           .dtype = ONV_FLOAT8E4M3FN),
    PLUGIN("TRT_FP8DequantizeLinear", 2, 3, 1, infer_as_scale),
    PLUGIN("TRT_INT4QuantizeLinear", 2, 3, 1, onv_infer_like, .like = "0", .dtype = ONV_INT4),
    PLUGIN("TRT_INT4DequantizeLinear", 2, 3, 1, infer_as_scale),
};

enum { N_ROWS = sizeof rows / sizeof rows[0] };

const onv_op_family onv_ops_plugin_onnx = {"", rows, N_ROWS};
const onv_op_family onv_ops_plugin_upper = {"TRT", rows, N_ROWS};
const onv_op_family onv_ops_plugin_lower = {"trt", rows, N_ROWS};

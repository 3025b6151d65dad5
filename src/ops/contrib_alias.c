/* Operators of com.microsoft that are an ONNX operator in other clothes, and those that ONNX Runtime
 * wrote into ONNX's own domain before ONNX had them. */
#include "ops/contrib.h"
#include "ops/rules.h"

#define AS(row, opset, ...)                                                                        \
    .with = &(const onv_alias)                                                                     \
    {                                                                                              \
        .as = row, .version = opset, __VA_ARGS__                                                   \
    }
#define IN(...) .in = {__VA_ARGS__}
#define SAME_IN .in = {0}

/* Range with a step of 1 where none is given. */
static onv_status infer_range(onv_op_ctx *c)
{
    if (onv_op_has_in(c, 2)) return onv_alias_infer(c);
    onv_dim start = onv_op_in_scalar(c, 0), limit = onv_op_in_scalar(c, 1);
    onv_dim count = onv_dim_sub(c->dims, limit, start);
    count = onv_dim_max(c->dims, count, onv_dim_const(0));
    return onv_op_set_like(c, &count, 1);
}

/* QLinearConcat: scale and zero point of the result, then triples of a tensor and its own two. */
static onv_status infer_qlinear_concat(onv_op_ctx *c)
{
    const onv_op *row = onv_op_of_onnx("Concat", 13);
    if ((c->n_in - 2) % 3 != 0) return onv_op_fail(c, "%u inputs are not two and triples", c->n_in);
    uint32_t parts = (c->n_in - 2) / 3;
    onv_borrow b;
    ONV_TRY(onv_borrow_init(c, row, 13, NULL, 0, &b));
    for (uint32_t i = 0; i < parts; i++) b.c.in[i] = c->in[2 + 3 * i];
    b.c.n_in = parts;
    b.c.load_known = NULL;
    ONV_TRY(row->infer(&b.c));
    if (onv_op_has_out(c, 0)) c->out[0].type.dtype = (uint8_t)onv_op_in_dtype(c, 1);
    return ONV_OK;
}

/* GemmFloat8 and DequantizeBFP say the dtype of their result. */
static onv_status infer_typed(onv_op_ctx *c)
{
    ONV_TRY(onv_alias_infer(c));
    if (onv_op_has_out(c, 0))
        c->out[0].type.dtype = (uint8_t)onv_op_attr_dtype(c, "dtype", ONV_FLOAT);
    return ONV_OK;
}

/* A part of the model that was compiled for a device. */
static onv_status infer_engine(onv_op_ctx *c)
{
    onv_op_warn(c, "compiled-node", "%s is compiled: what it takes is not in the file",
                c->op->name);
    return ONV_OK;
}

/* --- Rows -------------------------------------------------------------------------------------- */

#define SHAPE(op, least, most, ...)   ONV_OP(op, 1, least, most, 1, 1, onv_alias_infer, __VA_ARGS__)
#define PRODUCT(op, least, most, ...) SHAPE(op, least, most, .macs = onv_alias_macs, __VA_ARGS__)
/* A float product that training differentiates keeps both factors. */
#define FLOAT_PRODUCT(op, least, most, ...)                                                        \
    PRODUCT(op, least, most, .traits = {.save_in = ONV_BIT(0) | ONV_BIT(1)}, __VA_ARGS__)
#define RECURRENT(op, least, most, ...)                                                            \
    ONV_OP(op, 1, least, most, 0, 3, onv_alias_infer, .macs = onv_alias_macs, __VA_ARGS__)
#define LAYER_NORM                                                                                 \
    ONV_OP("LayerNormalization", 1, 2, 3, 1, 3, onv_alias_infer, .alike = ONV_BITS(3),             \
           .traits = {.save_in = ONV_BIT(0) | ONV_BIT(1) | ONV_BIT(2),                             \
                      .save_out = ONV_BIT(1) | ONV_BIT(2)},                                        \
           AS("LayerNormalization", 17, SAME_IN))
/* Without a mean, so that the second output is what is the third of LayerNormalization; the two have the same shape. */
#define SIMPLE_NORM                                                                                \
    ONV_OP("SimplifiedLayerNormalization", 1, 2, 2, 1, 2, onv_alias_infer,                         \
           .traits = {.save_in = ONV_BIT(0) | ONV_BIT(1), .save_out = ONV_BIT(1)},                 \
           AS("LayerNormalization", 17, IN(1, 2)))

/* Between the host's memory and the device's. */
#define COPY(op) ONV_OP(op, 1, 1, 1, 1, 1, onv_infer_identity, .fold = onv_fold_identity)

static const onv_op rows[] = {
    FLOAT_PRODUCT("FusedConv", 2, 4, AS("Conv", 22, IN(1, 2, 3))),
    FLOAT_PRODUCT("NhwcConv", 2, 3,
                  AS("Conv", 22, IN(1, 2, 3), .channels = ONV_CHANNELS_LAST_IN_ALL)),
    FLOAT_PRODUCT("NhwcFusedConv", 2, 4,
                  AS("Conv", 22, IN(1, 2, 3), .channels = ONV_CHANNELS_LAST)),
    PRODUCT("QLinearConv", 8, 9, AS("QLinearConv", 10, .channels = ONV_CHANNELS_BY_ATTRIBUTE)),
    SHAPE("NhwcMaxPool", 1, 1, AS("MaxPool", 22, IN(1), .channels = ONV_CHANNELS_LAST)),
    SHAPE("MaxpoolWithMask", 2, 2, AS("MaxPool", 22, IN(1))),
    SHAPE("QLinearAveragePool", 4, 5,
          AS("AveragePool", 22, IN(1), .channels = ONV_CHANNELS_BY_ATTRIBUTE)),
    SHAPE("QLinearGlobalAveragePool", 5, 5,
          AS("GlobalAveragePool", 22, IN(1), .channels = ONV_CHANNELS_BY_ATTRIBUTE)),
    FLOAT_PRODUCT("FusedGemm", 2, 3, AS("Gemm", 13, IN(1, 2, 3))),
    PRODUCT("QGemm", 6, 9, AS("Gemm", 13, IN(1, 4, 7), .dtype_of = 9, .dtype = ONV_FLOAT)),
    FLOAT_PRODUCT("GemmFastGelu", 2, 3, AS("MatMul", 13, IN(1, 2))),
    PRODUCT("DynamicQuantizeMatMul", 3, 5, AS("MatMul", 13, IN(1, 2), .dtype_of = 1)),
    PRODUCT("MatMulIntegerToFloat", 4, 7, AS("MatMul", 13, IN(1, 2), .dtype_of = 3)),
    PRODUCT("MatMulInteger16", 2, 2, AS("MatMulInteger", 10, IN(1, 2))),
    PRODUCT("QOrderedMatMul", 5, 8, AS("MatMul", 13, IN(1, 3), .dtype_of = 1)),
    SHAPE("MulInteger", 3, 4, AS("Mul", 14, IN(1, 3), .dtype = ONV_INT32)),
    SHAPE("QLinearAdd", 7, 8, AS("Add", 14, IN(1, 4))),
    SHAPE("QLinearMul", 7, 8, AS("Mul", 14, IN(1, 4))),
    SHAPE("QLinearWhere", 9, 9, AS("Where", 16, IN(1, 2, 5))),
    SHAPE("QLinearReduceMean", 4, 5, AS("ReduceMean", 13, IN(1))),
    SHAPE("ReduceSumInteger", 1, 1, AS("ReduceSum", 11, IN(1), .dtype = ONV_INT32)),
    SHAPE("QuantizeLinear", 2, 3, AS("QuantizeLinear", 21, SAME_IN)),
    SHAPE("DequantizeLinear", 2, 3, AS("DequantizeLinear", 21, SAME_IN)),
    SHAPE("Trilu", 1, 2, AS("Trilu", 14, SAME_IN)),
    SHAPE("GatherND", 2, 2, AS("GatherND", 12, SAME_IN)),
    SHAPE("GridSample", 2, 2, AS("GridSample", 16, SAME_IN)),
    SHAPE("Pad", 2, 3, AS("Pad", 13, SAME_IN)),
    /* Weights lie [directions, input, 4 * hidden] there; the attributes tell as much. */
    RECURRENT("DynamicQuantizeLSTM", 12, 12, AS("LSTM", 14, IN(1, 0, 0, 0, 5, 6, 7))),
    /* The attention widens the input that the weights take. */
    RECURRENT("AttnLSTM", 3, 14, AS("LSTM", 14, IN(1, 0, 3, 0, 5, 6, 7))),
    LAYER_NORM,
    SIMPLE_NORM,
    ONV_OP("Range", 1, 2, 3, 1, 1, infer_range, AS("Range", 11, SAME_IN)),
    ONV_OP("QLinearConcat", 1, 3, ONV_OP_MAX_ARITY, 1, 1, infer_qlinear_concat),
    ONV_OP("GemmFloat8", 1, 2, 6, 1, 1, infer_typed, .macs = onv_alias_macs,
           AS("Gemm", 13, IN(1, 2, 3))),
    ONV_OP("DequantizeBFP", 1, 3, 3, 1, 1, infer_typed, AS("ConstantOfShape", 9, IN(2))),
    ONV_OP("EPContext", 1, 0, ONV_OP_MAX_ARITY, 1, ONV_OP_MAX_ARITY, infer_engine),
    ONV_OP("Snpe", 1, 0, ONV_OP_MAX_ARITY, 1, ONV_OP_MAX_ARITY, infer_engine),
};

/* What ONNX Runtime makes of operators with prefer_nhwc: the data has its channels last, filters do not. */
#define NHWC(op, version, least, most, ...)                                                        \
    ONV_OP(op, 1, least, most, 1, 3, onv_alias_infer, .macs = onv_alias_macs,                      \
           AS(op, version, SAME_IN, __VA_ARGS__))
#define LAST .channels = ONV_CHANNELS_LAST

static const onv_op nhwc_rows[] = {
    NHWC("Conv", 22, 2, 3, LAST),
    NHWC("ConvTranspose", 22, 2, 3, LAST),
    NHWC("QLinearConv", 10, 8, 9, LAST),
    ONV_OP("QLinearConvTranspose", 1, 8, 9, 1, 1, onv_alias_infer, .macs = onv_alias_macs,
           AS("ConvTranspose", 22, IN(1, 4), .dtype_of = 8, LAST)),
    NHWC("AveragePool", 22, 1, 1, LAST),
    NHWC("MaxPool", 22, 1, 1, LAST),
    NHWC("LpPool", 22, 1, 1, LAST),
    NHWC("GlobalAveragePool", 22, 1, 1, LAST),
    NHWC("GlobalMaxPool", 22, 1, 1, LAST),
    NHWC("GlobalLpPool", 22, 1, 1, LAST),
    NHWC("MaxUnpool", 22, 2, 3, LAST),
    SHAPE("QLinearAveragePool", 4, 5, AS("AveragePool", 22, IN(1), LAST)),
    NHWC("BatchNormalization", 15, 5, 5, LAST),
    NHWC("InstanceNormalization", 6, 3, 3, LAST),
    NHWC("LRN", 13, 1, 1, LAST),
    NHWC("DepthToSpace", 13, 1, 1, LAST),
    NHWC("SpaceToDepth", 13, 1, 1, LAST),
    NHWC("GridSample", 16, 2, 2, LAST),
    /* Sizes and scales have the order of the data. */
    NHWC("Resize", 13, 1, 4, .channels = ONV_CHANNELS_FIRST),
};

/* ONNX Runtime has had these in ONNX's domain since version 1; its transformer optimizer writes them
 * into models of any opset. */
static const onv_op onnx_rows[] = {
    LAYER_NORM,
    SIMPLE_NORM,
    COPY("MemcpyFromHost"),
    COPY("MemcpyToHost"),
};

const onv_op_family onv_ops_contrib_alias = {"com.microsoft", rows, sizeof rows / sizeof rows[0]};
const onv_op_family onv_ops_contrib_nhwc = {"com.ms.internal.nhwc", nhwc_rows,
                                            sizeof nhwc_rows / sizeof nhwc_rows[0]};
const onv_op_family onv_ops_contrib_onnx = {"", onnx_rows, sizeof onnx_rows / sizeof onnx_rows[0]};

/* Operators of com.microsoft that are an ONNX operator in other clothes, and those that ONNX Runtime
 * wrote into ONNX's own domain before ONNX had them. */
#include "ops/contrib.h"

#define CONV   &onv_ops_nn_conv
#define POOL   &onv_ops_nn_pool
#define MATMUL &onv_ops_math_matmul
#define POINT  &onv_ops_math_pointwise
#define REDUCE &onv_ops_reduction
#define QUANT  &onv_ops_quantization
#define NORM   &onv_ops_nn_norm
#define TENSOR &onv_ops_tensor
#define GATHER &onv_ops_tensor_gather

#define ALIAS(op, of, row, opset, ...)                                                             \
    {                                                                                              \
        .name = op, .family = of, .as = row, .version = opset, __VA_ARGS__                         \
    }
#define IN(...) .in = {__VA_ARGS__}
#define SAME_IN .in = {0}

static const onv_alias aliases[] = {
    ALIAS("FusedConv", CONV, "Conv", 22, IN(1, 2, 3)),
    ALIAS("NhwcConv", CONV, "Conv", 22, IN(1, 2, 3), .channels = ONV_CHANNELS_LAST_IN_ALL),
    ALIAS("NhwcFusedConv", CONV, "Conv", 22, IN(1, 2, 3), .channels = ONV_CHANNELS_LAST),
    ALIAS("QLinearConv", CONV, "QLinearConv", 10, .channels = ONV_CHANNELS_BY_ATTRIBUTE),
    ALIAS("NhwcMaxPool", POOL, "MaxPool", 22, IN(1), .channels = ONV_CHANNELS_LAST),
    ALIAS("MaxpoolWithMask", POOL, "MaxPool", 22, IN(1)),
    ALIAS("QLinearAveragePool", POOL, "AveragePool", 22, IN(1),
          .channels = ONV_CHANNELS_BY_ATTRIBUTE),
    ALIAS("QLinearGlobalAveragePool", POOL, "GlobalAveragePool", 22, IN(1),
          .channels = ONV_CHANNELS_BY_ATTRIBUTE),
    ALIAS("FusedGemm", MATMUL, "Gemm", 13, IN(1, 2, 3)),
    ALIAS("QGemm", MATMUL, "Gemm", 13, IN(1, 4, 7), .dtype_of = 9, .dtype = ONV_FLOAT),
    ALIAS("GemmFloat8", MATMUL, "Gemm", 13, IN(1, 2, 3)),
    ALIAS("GemmFastGelu", MATMUL, "MatMul", 13, IN(1, 2)),
    ALIAS("DynamicQuantizeMatMul", MATMUL, "MatMul", 13, IN(1, 2), .dtype_of = 1),
    ALIAS("MatMulIntegerToFloat", MATMUL, "MatMul", 13, IN(1, 2), .dtype_of = 3),
    ALIAS("MatMulInteger16", MATMUL, "MatMulInteger", 10, IN(1, 2)),
    ALIAS("QOrderedMatMul", MATMUL, "MatMul", 13, IN(1, 3), .dtype_of = 1),
    ALIAS("MulInteger", POINT, "Mul", 14, IN(1, 3), .dtype = ONV_INT32),
    ALIAS("QLinearAdd", POINT, "Add", 14, IN(1, 4)),
    ALIAS("QLinearMul", POINT, "Mul", 14, IN(1, 4)),
    ALIAS("QLinearWhere", TENSOR, "Where", 16, IN(1, 2, 5)),
    ALIAS("QLinearReduceMean", REDUCE, "ReduceMean", 13, IN(1)),
    ALIAS("ReduceSumInteger", REDUCE, "ReduceSum", 11, IN(1), .dtype = ONV_INT32),
    ALIAS("QuantizeLinear", QUANT, "QuantizeLinear", 21, SAME_IN),
    ALIAS("DequantizeLinear", QUANT, "DequantizeLinear", 21, SAME_IN),
    ALIAS("LayerNormalization", NORM, "LayerNormalization", 17, SAME_IN),
    /* Without a mean, so that the second output is what is the third of LayerNormalization; the two
     * have the same shape. */
    ALIAS("SimplifiedLayerNormalization", NORM, "LayerNormalization", 17, IN(1, 2)),
    ALIAS("Trilu", TENSOR, "Trilu", 14, SAME_IN),
    ALIAS("GatherND", GATHER, "GatherND", 12, SAME_IN),
    ALIAS("GridSample", &onv_ops_image, "GridSample", 16, SAME_IN),
    ALIAS("Pad", &onv_ops_tensor_slice, "Pad", 13, SAME_IN),
    ALIAS("Range", &onv_ops_generator, "Range", 11, SAME_IN),
    /* Weights lie [directions, input, 4 * hidden] there; the attributes tell as much. */
    ALIAS("DynamicQuantizeLSTM", &onv_ops_rnn, "LSTM", 14, IN(1, 0, 0, 0, 5, 6, 7)),
    /* The attention widens the input that the weights take. */
    ALIAS("AttnLSTM", &onv_ops_rnn, "LSTM", 14, IN(1, 0, 3, 0, 5, 6, 7)),
};

static onv_status infer_alias(onv_op_ctx *c)
{
    return onv_alias_infer(c, aliases, sizeof aliases / sizeof aliases[0]);
}

static onv_dim macs_alias(onv_op_ctx *c)
{
    return onv_alias_macs(c, aliases, sizeof aliases / sizeof aliases[0]);
}

/* Range with a step of 1 where none is given. */
static onv_status infer_range(onv_op_ctx *c)
{
    if (onv_op_has_in(c, 2)) return infer_alias(c);
    onv_dim start = onv_op_in_scalar(c, 0), limit = onv_op_in_scalar(c, 1);
    onv_dim count = onv_dim_sub(c->dims, limit, start);
    count = onv_dim_max(c->dims, count, onv_dim_const(0));
    onv_op_set_out(c, 0, onv_op_in_dtype(c, 0), &count, 1);
    return ONV_OK;
}

/* QLinearConcat: scale and zero point of the result, then triples of a tensor and its own two. */
static onv_status infer_qlinear_concat(onv_op_ctx *c)
{
    const onv_op *row = onv_family_row(&onv_ops_tensor_concat, "Concat", 13);
    if (row == NULL || (c->n_in - 2) % 3 != 0)
        return onv_op_fail(c, "%u inputs are not two and triples", c->n_in);
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

/* GemmFloat8 says the dtype of its result. */
static onv_status infer_gemm_float8(onv_op_ctx *c)
{
    ONV_TRY(infer_alias(c));
    if (onv_op_has_out(c, 0))
        c->out[0].type.dtype = (uint8_t)onv_op_attr_dtype(c, "dtype", ONV_FLOAT);
    return ONV_OK;
}

/* --- Rows -------------------------------------------------------------------------------------- */

#define SHAPE(op, least, most)                                                                     \
    {                                                                                              \
        .name = op, .since = 1, .in = {least, most}, .out = {1, 1}, .infer = infer_alias           \
    }
#define PRODUCT(op, least, most)                                                                   \
    {                                                                                              \
        .name = op, .since = 1, .in = {least, most}, .out = {1, 1}, .infer = infer_alias,          \
        .macs = macs_alias                                                                         \
    }
/* A float product that training differentiates keeps both factors. */
#define FLOAT_PRODUCT(op, least, most)                                                             \
    {                                                                                              \
        .name = op, .since = 1, .in = {least, most}, .out = {1, 1}, .infer = infer_alias,          \
        .macs = macs_alias, .traits = {                                                            \
            .save_in = ONV_BIT(0) | ONV_BIT(1)                                                     \
        }                                                                                          \
    }
#define RECURRENT(op, least, most)                                                                 \
    {                                                                                              \
        .name = op, .since = 1, .in = {least, most}, .out = {0, 3}, .infer = infer_alias,          \
        .macs = macs_alias                                                                         \
    }
#define LAYER_NORM                                                                                 \
    {                                                                                              \
        .name = "LayerNormalization", .since = 1, .in = {2, 3}, .out = {1, 3},                     \
        .infer = infer_alias, .traits = {                                                          \
            .save_in = ONV_BIT(0) | ONV_BIT(1) | ONV_BIT(2),                                       \
            .save_out = ONV_BIT(1) | ONV_BIT(2)                                                    \
        }                                                                                          \
    }
#define SIMPLE_NORM                                                                                \
    {                                                                                              \
        .name = "SimplifiedLayerNormalization", .since = 1, .in = {2, 2}, .out = {1, 2},           \
        .infer = infer_alias, .traits = {                                                          \
            .save_in = ONV_BIT(0) | ONV_BIT(1),                                                    \
            .save_out = ONV_BIT(1)                                                                 \
        }                                                                                          \
    }

/* Between the host's memory and the device's. */
static onv_status infer_copy(onv_op_ctx *c)
{
    onv_op_set_out_type(c, 0, onv_op_in(c, 0));
    return ONV_OK;
}

static onv_status fold_copy(onv_op_ctx *c)
{
    if (onv_op_has_out(c, 0)) c->out[0].known = onv_op_in_known(c, 0);
    return ONV_OK;
}

#define COPY(op)                                                                                   \
    {                                                                                              \
        .name = (op), .since = 1, .in = {1, 1}, .out = {1, 1}, .infer = infer_copy,                \
        .fold = fold_copy                                                                          \
    }

static const onv_op rows[] = {
    FLOAT_PRODUCT("FusedConv", 2, 4),
    FLOAT_PRODUCT("NhwcConv", 2, 3),
    FLOAT_PRODUCT("NhwcFusedConv", 2, 4),
    PRODUCT("QLinearConv", 8, 9),
    SHAPE("NhwcMaxPool", 1, 1),
    SHAPE("MaxpoolWithMask", 2, 2),
    SHAPE("QLinearAveragePool", 4, 5),
    SHAPE("QLinearGlobalAveragePool", 5, 5),
    FLOAT_PRODUCT("FusedGemm", 2, 3),
    PRODUCT("QGemm", 6, 9),
    FLOAT_PRODUCT("GemmFastGelu", 2, 3),
    PRODUCT("DynamicQuantizeMatMul", 3, 5),
    PRODUCT("MatMulIntegerToFloat", 4, 7),
    PRODUCT("MatMulInteger16", 2, 2),
    PRODUCT("QOrderedMatMul", 5, 8),
    SHAPE("MulInteger", 3, 4),
    SHAPE("QLinearAdd", 7, 8),
    SHAPE("QLinearMul", 7, 8),
    SHAPE("QLinearWhere", 9, 9),
    SHAPE("QLinearReduceMean", 4, 5),
    SHAPE("ReduceSumInteger", 1, 1),
    SHAPE("QuantizeLinear", 2, 3),
    SHAPE("DequantizeLinear", 2, 3),
    SHAPE("Trilu", 1, 2),
    SHAPE("GatherND", 2, 2),
    SHAPE("GridSample", 2, 2),
    SHAPE("Pad", 2, 3),
    RECURRENT("DynamicQuantizeLSTM", 12, 12),
    RECURRENT("AttnLSTM", 3, 14),
    LAYER_NORM,
    SIMPLE_NORM,
    ONV_OP("Range", 1, 2, 3, 1, 1, infer_range),
    ONV_OP("QLinearConcat", 1, 3, ONV_OP_MAX_ARITY, 1, 1, infer_qlinear_concat),
    ONV_OP("GemmFloat8", 1, 2, 6, 1, 1, infer_gemm_float8, .macs = macs_alias),
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
const onv_op_family onv_ops_contrib_onnx = {"", onnx_rows, sizeof onnx_rows / sizeof onnx_rows[0]};

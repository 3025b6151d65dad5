#include "rewrite/kernels.h"

#include <stdlib.h>
#include <string.h>

/* --- Types ------------------------------------------------------------------------------------- */

#define T(name) (UINT32_C(1) << ONV_##name)

enum {
    HALF = T(FLOAT16),
    BRAIN = T(BFLOAT16),
    F2 = T(FLOAT) | T(DOUBLE),
    F3 = F2 | HALF,
    F4 = F3 | BRAIN,
    I2 = T(INT32) | T(INT64),
    U2 = T(UINT32) | T(UINT64),
    I8 = T(INT8) | T(UINT8),
    I16 = T(INT16) | T(UINT16),
    INTS = I2 | U2 | I8 | I16,
    NUMBERS = F4 | INTS,
    FIXED = NUMBERS | T(BOOL),
    F8 = T(FLOAT8E4M3FN) | T(FLOAT8E5M2),
    FN8 = F8 | T(FLOAT8E4M3FNUZ) | T(FLOAT8E5M2FNUZ),
    I4 = T(INT4) | T(UINT4),
    EVERY = FIXED | FN8,
    ANY = -1, /* sequences and text, too */
};

/* Bits of operands. */
enum { IN0 = 1, IN1 = 2, IN2 = 4, IN3 = 8, IN4 = 16, IN6 = 64, IN8 = 256, OUT0 = 1 };

/* --- The tables: sorted by name, of one name by version ---------------------------------------- */

static const onv_kernel onnx_kernels[] = {
    {"Abs", 6, F3 | INTS, 0, 0},
    {"Abs", 13, NUMBERS, 0, 0},
    {"Add", 7, F3 | I2 | U2, 0, 0},
    {"Add", 13, F4 | I2 | U2, 0, 0},
    {"Add", 14, NUMBERS, 0, 0},
    {"And", 7, T(BOOL), 0, 0},
    {"ArgMax", 1, F3, 0, 0},
    {"ArgMin", 1, F3, 0, 0},
    {"Attention", 23, F4, 0, 0},
    {"AveragePool", 7, F3, 0, 0},
    {"BatchNormalization", 7, F3, 0, 0},
    {"Cast", 6, F3 | INTS | T(BOOL), 0, 0},
    {"Cast", 13, FIXED, 0, 0},
    {"Cast", 19, FIXED | F8, 0, 0},
    {"Cast", 23, FIXED | F8 | T(FLOAT4E2M1), 0, 0},
    {"Ceil", 6, F3, 0, 0},
    {"Clip", 6, T(FLOAT), 0, 0},
    {"Clip", 11, T(FLOAT), 0, 0},
    {"Clip", 12, F3 | T(INT64) | T(UINT64) | I8, 0, 0},
    {"Compress", 9, FIXED, 0, 0},
    {"Concat", 4, FIXED, 0, 0},
    {"ConcatFromSequence", 11, ANY, 0, 0},
    {"ConstantOfShape", 9, T(INT64), IN0, 0},
    {"Conv", 1, F3, 0, 0},
    {"Conv", 22, F4, 0, 0},
    {"ConvTranspose", 1, F3, 0, 0},
    {"Cos", 7, F3, 0, 0},
    {"Crop", 1, F3, 0, 0},
    {"CumSum", 11, F2 | I2 | U2, IN1, 0},
    {"CumSum", 14, F3 | I2 | U2, IN1, 0},
    {"DepthToSpace", 1, F3, 0, 0},
    {"DequantizeLinear", 10, I8, 0, 0},
    {"DequantizeLinear", 19, I8 | F8, 0, 0},
    {"DequantizeLinear", 21, I8 | F8 | I4, 0, 0},
    {"Div", 7, F3 | I2 | U2, 0, 0},
    {"Div", 13, F4 | I2 | U2, 0, 0},
    {"Div", 14, NUMBERS, 0, 0},
    {"Dropout", 7, F3, 0, 0},
    {"Dropout", 12, F3, IN1 | IN2, 0},
    {"Dropout", 13, F4, IN1 | IN2, 0},
    {"DynamicSlice", 1, FIXED, IN1 | IN2 | IN3, 0},
    {"Einsum", 12, F3, 0, 0},
    {"Elu", 6, F3, 0, 0},
    {"Equal", 7, T(BOOL) | I2, 0, 0},
    {"Equal", 11, T(BOOL) | F3 | I2 | U2, 0, 0},
    {"Erf", 9, F3, 0, 0},
    {"Erf", 13, F4, 0, 0},
    {"Exp", 6, F3, 0, 0},
    {"Exp", 13, F4, 0, 0},
    {"Expand", 8, FIXED, IN1, 0},
    {"EyeLike", 9, F2 | I2 | T(UINT64), 0, 0},
    {"Flatten", 1, FIXED, 0, 0},
    {"Floor", 6, F3, 0, 0},
    {"GRU", 7, F3, IN4, 0},
    {"Gather", 1, FIXED, 0, 0},
    {"GatherElements", 11, FIXED, 0, 0},
    {"GatherND", 11, T(BOOL) | F3 | T(INT64), 0, 0},
    {"GatherND", 13, T(BOOL) | F4 | T(INT64), 0, 0},
    {"Gelu", 20, F4, 0, 0},
    {"Gemm", 7, F3, 0, 0},
    {"Gemm", 13, F4, 0, 0},
    {"GlobalAveragePool", 1, F3, 0, 0},
    {"GlobalMaxPool", 1, F3, 0, 0},
    {"Greater", 7, F3, 0, 0},
    {"Greater", 9, F3 | I2 | U2, 0, 0},
    {"GreaterOrEqual", 12, F3 | I2 | U2, 0, 0},
    {"GridSample", 16, T(FLOAT), 0, 0},
    {"HardSigmoid", 6, F3, 0, 0},
    {"HardSigmoid", 22, F4, 0, 0},
    {"HardSwish", 14, F3, 0, 0},
    {"HardSwish", 22, F4, 0, 0},
    {"Identity", 1, ANY, 0, 0},
    {"If", 1, ANY, IN0, 0},
    {"ImageScaler", 1, F3, 0, 0},
    {"InstanceNormalization", 6, F3, 0, 0},
    {"IsInf", 10, F2, 0, 0},
    {"IsInf", 20, F4 | FN8, 0, 0},
    {"IsNaN", 9, F3, 0, 0},
    {"IsNaN", 13, F4, 0, 0},
    {"IsNaN", 20, F4 | FN8, 0, 0},
    {"LRN", 1, F3, 0, 0},
    {"LSTM", 7, F3, IN4, 0},
    {"LayerNormalization", 1, F4, 0, 0},
    {"LeakyRelu", 6, F3, 0, 0},
    {"Less", 7, F3, 0, 0},
    {"Less", 9, F3 | I2 | U2, 0, 0},
    {"LessOrEqual", 12, F3 | I2 | U2, 0, 0},
    {"Log", 6, F3, 0, 0},
    {"LogSoftmax", 1, F3, 0, 0},
    {"Loop", 1, ANY, IN0 | IN1, 0},
    {"MatMul", 1, F3, 0, 0},
    {"MatMul", 13, F4, 0, 0},
    {"MatMulInteger", 10, T(INT8), 0, 0},
    {"Max", 6, F4, 0, 0},
    {"Max", 12, F4 | I2 | U2, 0, 0},
    {"MaxPool", 1, F3, 0, 0},
    {"MaxPool", 12, F3 | I8, 0, 0},
    {"MemcpyFromHost", 1, ANY, IN0, 0},
    {"MemcpyToHost", 1, ANY, 0, OUT0},
    {"Min", 6, F4, 0, 0},
    {"Min", 12, F4 | I2 | U2, 0, 0},
    {"Mod", 10, F3 | I2 | U2, 0, 0},
    {"Mod", 13, F4 | I2 | U2, 0, 0},
    {"Mul", 7, F3 | I2 | U2, 0, 0},
    {"Mul", 13, F4 | I2 | U2, 0, 0},
    {"Mul", 14, NUMBERS, 0, 0},
    {"Neg", 6, F3 | I2 | T(INT16) | T(INT8), 0, 0},
    {"Neg", 13, F4 | I2 | T(INT16) | T(INT8), 0, 0},
    {"NonMaxSuppression", 10, T(FLOAT), IN2 | IN3 | IN4, 0},
    {"NonZero", 9, T(BOOL) | T(FLOAT) | HALF | I2 | T(UINT8), 0, 0},
    {"Not", 1, T(BOOL), 0, 0},
    {"OneHot", 11, I2, IN1, 0},
    {"Or", 7, T(BOOL), 0, 0},
    {"PRelu", 7, F3, 0, 0},
    {"Pad", 2, F3, 0, 0},
    {"Pad", 11, F3, IN1 | IN2, 0},
    {"Pad", 13, F3 | T(BOOL), IN1 | IN2 | IN3, 0},
    {"ParametricSoftplus", 1, F3, 0, 0},
    {"Pow", 7, F3, 0, 0},
    {"Pow", 12, F3 | I2, 0, 0},
    {"Pow", 13, F4 | I2, 0, 0},
    {"QuantizeLinear", 10, T(FLOAT), 0, 0},
    {"QuantizeLinear", 19, T(FLOAT) | HALF, 0, 0},
    {"RMSNormalization", 23, F4, 0, 0},
    {"RNN", 7, F3, IN4, 0},
    {"RandomNormal", 1, ANY, 0, 0},
    {"RandomNormalLike", 1, ANY, 0, 0},
    {"RandomUniform", 1, ANY, 0, 0},
    {"RandomUniformLike", 1, ANY, 0, 0},
    {"Range", 11, F2 | I2 | T(INT16), IN0 | IN1 | IN2, 0},
    {"Reciprocal", 6, F3, 0, 0},
    {"ReduceL1", 1, F3 | T(INT32), IN1, 0},
    {"ReduceL2", 1, F3 | T(INT32), IN1, 0},
    {"ReduceLogSum", 1, F3, IN1, 0},
    {"ReduceLogSumExp", 1, F3, IN1, 0},
    {"ReduceMax", 1, F3 | I2, IN1, 0},
    {"ReduceMean", 1, F3 | T(INT32), IN1, 0},
    {"ReduceMin", 1, F3 | I2 | I8, IN1, 0},
    {"ReduceProd", 1, F3 | T(INT32), IN1, 0},
    {"ReduceSum", 1, F3 | I2, IN1, 0},
    {"ReduceSum", 13, F4 | I2, IN1, 0},
    {"ReduceSumSquare", 1, F3, IN1, 0},
    {"Relu", 6, F3, 0, 0},
    {"Relu", 13, F4, 0, 0},
    {"Reshape", 1, FIXED, IN1, 0},
    {"Reshape", 19, EVERY, IN1, 0},
    {"Resize", 10, F3 | T(INT32) | T(UINT8), IN1, 0},
    {"Resize", 11, F3 | T(INT32) | T(UINT8), IN1 | IN2 | IN3, 0},
    {"ReverseSequence", 10, FIXED, 0, 0},
    {"RoiAlign", 10, F2, 0, 0},
    {"RotaryEmbedding", 23, T(FLOAT) | HALF | BRAIN, 0, 0},
    {"Round", 11, F3, 0, 0},
    {"ScaledTanh", 1, F3, 0, 0},
    {"Scan", 8, ANY, 0, 0},
    {"Scatter", 9, FIXED, 0, 0},
    {"ScatterElements", 11, FIXED, 0, 0},
    {"ScatterND", 11, FIXED, 0, 0},
    {"Selu", 6, F3, 0, 0},
    {"SequenceAt", 11, ANY, IN1, 0},
    {"SequenceConstruct", 11, ANY, 0, 0},
    {"SequenceEmpty", 11, ANY, 0, 0},
    {"SequenceErase", 11, ANY, IN1, 0},
    {"SequenceInsert", 11, ANY, IN2, 0},
    {"SequenceLength", 11, ANY, 0, OUT0},
    {"Shape", 1, FIXED, 0, OUT0},
    {"Shape", 19, EVERY, 0, OUT0},
    {"Shrink", 9, F3 | INTS, 0, 0},
    {"Sigmoid", 6, F3, 0, 0},
    {"Sigmoid", 13, F4, 0, 0},
    {"Sign", 13, NUMBERS, 0, 0},
    {"SimplifiedLayerNormalization", 1, F4, 0, 0},
    {"Sin", 7, F3, 0, 0},
    {"Size", 1, FIXED | T(STRING), 0, OUT0},
    {"Slice", 1, FIXED, IN1 | IN2 | IN3 | IN4, 0},
    {"Softmax", 1, F3, 0, 0},
    {"Softmax", 13, F4, 0, 0},
    {"Softplus", 1, F3, 0, 0},
    {"Softsign", 1, F3, 0, 0},
    {"SpaceToDepth", 1, F3, 0, 0},
    {"Split", 2, FIXED, IN1, 0},
    {"Sqrt", 6, F3, 0, 0},
    {"Sqrt", 13, F4, 0, 0},
    {"Squeeze", 1, FIXED, IN1, 0},
    {"Sub", 7, F3 | I2 | U2, 0, 0},
    {"Sub", 13, F4 | I2 | U2, 0, 0},
    {"Sub", 14, NUMBERS, 0, 0},
    {"Sum", 6, F4, 0, 0},
    {"Tanh", 6, F3, 0, 0},
    {"Tanh", 13, F4, 0, 0},
    {"TensorScatter", 24, FIXED, 0, 0},
    {"ThresholdedRelu", 1, F3, 0, 0},
    {"Tile", 6, F3 | I2, IN1, 0},
    {"Tile", 13, F4 | I2, IN1, 0},
    {"TopK", 1, F3 | I2, IN1, 0},
    {"Transpose", 1, FIXED, 0, 0},
    {"Trilu", 14, FIXED, IN1, 0},
    {"Unsqueeze", 1, FIXED, IN1, 0},
    {"Upsample", 7, F3 | T(INT32) | T(UINT8), IN1, 0},
    {"Where", 9, T(BOOL), 0, 0},
    {"Xor", 7, T(BOOL), 0, 0},
};

static const onv_kernel contrib_kernels[] = {
    {"Attention", 1, ANY, IN6, 0},
    {"BiasAdd", 1, ANY, 0, 0},
    {"BiasDropout", 1, ANY, IN3 | IN4, 0},
    {"BiasGelu", 1, ANY, 0, 0},
    {"BiasSoftmax", 1, ANY, 0, 0},
    {"BiasSplitGelu", 1, ANY, 0, 0},
    {"CausalConvWithState", 1, ANY, 0, 0},
    {"ComplexMul", 1, ANY, 0, 0},
    {"ComplexMulConj", 1, ANY, 0, 0},
    {"DecoderMaskedMultiHeadAttention", 1, ANY, 0, 0},
    {"DecoderMaskedSelfAttention", 1, ANY, 0, 0},
    {"DequantizeLinear", 1, ANY, 0, 0},
    {"DynamicTimeWarping", 1, ANY, 0, 0},
    {"EmbedLayerNormalization", 1, ANY, 0, 0},
    {"FastGelu", 1, ANY, 0, 0},
    {"FusedConv", 1, ANY, 0, 0},
    {"FusedMatMul", 1, ANY, 0, 0},
    {"GatedRelativePositionBias", 1, ANY, 0, 0},
    {"GatherBlockQuantized", 1, ANY, 0, 0},
    {"Gelu", 1, ANY, 0, 0},
    {"GemmFloat8", 1, ANY, 0, 0},
    {"GemmaRotaryEmbedding", 1, ANY, 0, 0},
    {"GreedySearch", 1, ANY, 0, 0},
    {"GridSample", 1, ANY, 0, 0},
    {"GroupNorm", 1, ANY, 0, 0},
    {"GroupQueryAttention", 1, ANY, IN6, 0},
    {"Inverse", 1, ANY, 0, 0},
    {"Irfft", 1, ANY, 0, 0},
    {"LongformerAttention", 1, ANY, 0, 0},
    {"MatMulBnb4", 1, ANY, 0, 0},
    {"MatMulNBits", 1, ANY, 0, 0},
    {"MoE", 1, ANY, 0, 0},
    {"MultiHeadAttention", 1, ANY, IN8, 0},
    {"NGramRepeatBlock", 1, ANY, 0, 0},
    {"NhwcConv", 1, ANY, 0, 0},
    {"PackedAttention", 1, ANY, 0, 0},
    {"PackedMultiHeadAttention", 1, ANY, 0, 0},
    {"QAttention", 1, T(INT8), 0, 0},
    {"QMoE", 1, ANY, 0, 0},
    {"QuantizeLinear", 1, ANY, 0, 0},
    {"QuickGelu", 1, ANY, 0, 0},
    {"RelativePositionBias", 1, ANY, IN1 | IN2, 0},
    {"RemovePadding", 1, ANY, 0, 0},
    {"RestorePadding", 1, ANY, 0, 0},
    {"Rfft", 1, ANY, 0, 0},
    {"RotaryEmbedding", 1, ANY, 0, 0},
    {"SkipGroupNorm", 1, ANY, 0, 0},
    {"SkipLayerNormalization", 1, ANY, 0, 0},
    {"SkipSimplifiedLayerNormalization", 1, ANY, 0, 0},
    {"SparseAttention", 1, ANY, 0, 0},
    {"TransposeMatMul", 1, ANY, 0, 0},
    {"Trilu", 1, ANY, IN1, 0},
    {"UnfoldTensor", 1, ANY, 0, 0},
};

/* --- Finding ----------------------------------------------------------------------------------- */

/* The last row of that name whose version is not above the node's; NULL: none. */
static const onv_kernel *find_row(const onv_kernel *rows, size_t count, const onv_node *node)
{
    size_t low = 0,
           high = count; /* rows before `low` come before the node, those from `high` on after */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(rows[middle].op, node->op_type);
        if (order < 0 || (order == 0 && rows[middle].since <= node->version))
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low > 0 && strcmp(rows[low - 1].op, node->op_type) == 0;
    return found ? &rows[low - 1] : NULL;
}

/* What the type of the first operand does not tell. */
static bool takes_types(const onv_edit *e, onv_node_id id, const onv_node *node)
{
    static const uint32_t where = F3 | I2 | T(UINT8), ints = I2;
    uint32_t types = UINT32_MAX;
    uint32_t k = 1;
    if (strcmp(node->op_type, "Where") == 0) types = node->version >= 16 ? where | BRAIN : where;
    if (strcmp(node->op_type, "OneHot") == 0) {
        types = T(FLOAT) | HALF | T(INT64);
        k = 2;
    }
    if (strcmp(node->op_type, "Gather") == 0) types = ints;
    if (strcmp(node->op_type, "Cast") == 0) return onv_edit_int(e, id, "to", 0) != ONV_STRING;
    if (types == UINT32_MAX || k >= node->n_inputs || !onv_is_value(node->inputs[k])) return true;
    return (types >> onv_edit_value_at(e, node->inputs[k])->type.dtype & 1) != 0;
}

const onv_kernel *onv_kernel_find(const onv_edit *e, onv_node_id id)
{
    const onv_node *node = onv_edit_node_at(e, id);
    const onv_kernel *row = NULL;
    if (node->domain[0] == '\0')
        row = find_row(onnx_kernels, sizeof onnx_kernels / sizeof onnx_kernels[0], node);
    else if (strcmp(node->domain, "com.microsoft") == 0)
        row = find_row(contrib_kernels, sizeof contrib_kernels / sizeof contrib_kernels[0], node);
    if (row == NULL || row->types == (uint32_t)ANY) return row;
    onv_value_id in = node->n_inputs > 0 ? node->inputs[0] : ONV_NO_VALUE;
    uint8_t dtype = onv_is_value(in) ? onv_edit_value_at(e, in)->type.dtype : ONV_UNDEFINED;
    if (dtype == ONV_UNDEFINED) return row; /* in a branch that never runs */
    if (dtype >= 32 || (row->types >> dtype & 1) == 0) return NULL;
    return takes_types(e, id, node) ? row : NULL;
}

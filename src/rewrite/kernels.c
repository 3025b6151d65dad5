#include "rewrite/kernels.h"

#include <string.h>

#include "rewrite/rules.h"

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
enum {
    IN0 = 1,
    IN1 = 2,
    IN2 = 4,
    IN3 = 8,
    IN4 = 16,
    IN6 = 64,
    IN8 = 256,
    IN9 = 512,
    IN10 = 1024,
    IN11 = 2048,
    IN12 = 4096,
    OUT0 = 1
};

/* --- The tables: sorted by name, as op_names.def has them, of one name by version ---------------------------------------- */

static const onv_kernel onnx_kernels[] = {
    {ONV_OP_Abs, 6, F3 | INTS, 0, 0},
    {ONV_OP_Abs, 13, NUMBERS, 0, 0},
    {ONV_OP_Add, 7, F3 | I2 | U2, 0, 0},
    {ONV_OP_Add, 13, F4 | I2 | U2, 0, 0},
    {ONV_OP_Add, 14, NUMBERS, 0, 0},
    {ONV_OP_And, 7, T(BOOL), 0, 0},
    {ONV_OP_ArgMax, 1, F3, 0, 0},
    {ONV_OP_ArgMin, 1, F3, 0, 0},
    {ONV_OP_Attention, 23, F4, 0, 0},
    {ONV_OP_AveragePool, 7, F3, 0, 0},
    {ONV_OP_BatchNormalization, 7, F3, 0, 0},
    {ONV_OP_Cast, 6, F3 | INTS | T(BOOL), 0, 0},
    {ONV_OP_Cast, 13, FIXED, 0, 0},
    {ONV_OP_Cast, 19, FIXED | F8, 0, 0},
    {ONV_OP_Cast, 23, FIXED | F8 | T(FLOAT4E2M1), 0, 0},
    {ONV_OP_Ceil, 6, F3, 0, 0},
    {ONV_OP_Clip, 6, T(FLOAT), 0, 0},
    {ONV_OP_Clip, 11, T(FLOAT), 0, 0},
    {ONV_OP_Clip, 12, F3 | T(INT64) | T(UINT64) | I8, 0, 0},
    {ONV_OP_Compress, 9, FIXED, 0, 0},
    {ONV_OP_Concat, 4, FIXED, 0, 0},
    {ONV_OP_ConcatFromSequence, 11, ANY, 0, 0},
    {ONV_OP_ConstantOfShape, 9, T(INT64), IN0, 0},
    {ONV_OP_Conv, 1, F3, 0, 0},
    {ONV_OP_Conv, 22, F4, 0, 0},
    {ONV_OP_ConvTranspose, 1, F3, 0, 0},
    {ONV_OP_Cos, 7, F3, 0, 0},
    {ONV_OP_Crop, 1, F3, 0, 0},
    {ONV_OP_CumSum, 11, F2 | I2 | U2, IN1, 0},
    {ONV_OP_CumSum, 14, F3 | I2 | U2, IN1, 0},
    {ONV_OP_DepthToSpace, 1, F3, 0, 0},
    {ONV_OP_DequantizeLinear, 10, I8, 0, 0},
    {ONV_OP_DequantizeLinear, 19, I8 | F8, 0, 0},
    {ONV_OP_DequantizeLinear, 21, I8 | F8 | I4, 0, 0},
    {ONV_OP_Div, 7, F3 | I2 | U2, 0, 0},
    {ONV_OP_Div, 13, F4 | I2 | U2, 0, 0},
    {ONV_OP_Div, 14, NUMBERS, 0, 0},
    {ONV_OP_Dropout, 7, F3, 0, 0},
    {ONV_OP_Dropout, 12, F3, IN1 | IN2, 0},
    {ONV_OP_Dropout, 13, F4, IN1 | IN2, 0},
    {ONV_OP_DynamicSlice, 1, FIXED, IN1 | IN2 | IN3, 0},
    {ONV_OP_Einsum, 12, F3, 0, 0},
    {ONV_OP_Elu, 6, F3, 0, 0},
    {ONV_OP_Equal, 7, T(BOOL) | I2, 0, 0},
    {ONV_OP_Equal, 11, T(BOOL) | F3 | I2 | U2, 0, 0},
    {ONV_OP_Erf, 9, F3, 0, 0},
    {ONV_OP_Erf, 13, F4, 0, 0},
    {ONV_OP_Exp, 6, F3, 0, 0},
    {ONV_OP_Exp, 13, F4, 0, 0},
    {ONV_OP_Expand, 8, FIXED, IN1, 0},
    {ONV_OP_EyeLike, 9, F2 | I2 | T(UINT64), 0, 0},
    {ONV_OP_Flatten, 1, FIXED, 0, 0},
    {ONV_OP_Floor, 6, F3, 0, 0},
    {ONV_OP_GRU, 7, F3, IN4, 0},
    {ONV_OP_Gather, 1, FIXED, 0, 0},
    {ONV_OP_GatherElements, 11, FIXED, 0, 0},
    {ONV_OP_GatherND, 11, T(BOOL) | F3 | T(INT64), 0, 0},
    {ONV_OP_GatherND, 13, T(BOOL) | F4 | T(INT64), 0, 0},
    {ONV_OP_Gelu, 20, F4, 0, 0},
    {ONV_OP_Gemm, 7, F3, 0, 0},
    {ONV_OP_Gemm, 13, F4, 0, 0},
    {ONV_OP_GlobalAveragePool, 1, F3, 0, 0},
    {ONV_OP_GlobalMaxPool, 1, F3, 0, 0},
    {ONV_OP_Greater, 7, F3, 0, 0},
    {ONV_OP_Greater, 9, F3 | I2 | U2, 0, 0},
    {ONV_OP_GreaterOrEqual, 12, F3 | I2 | U2, 0, 0},
    {ONV_OP_GridSample, 16, T(FLOAT), 0, 0},
    {ONV_OP_HardSigmoid, 6, F3, 0, 0},
    {ONV_OP_HardSigmoid, 22, F4, 0, 0},
    {ONV_OP_HardSwish, 14, F3, 0, 0},
    {ONV_OP_HardSwish, 22, F4, 0, 0},
    {ONV_OP_Identity, 1, ANY, 0, 0},
    {ONV_OP_If, 1, ANY, IN0, 0},
    {ONV_OP_ImageScaler, 1, F3, 0, 0},
    {ONV_OP_InstanceNormalization, 6, F3, 0, 0},
    {ONV_OP_IsInf, 10, F2, 0, 0},
    {ONV_OP_IsInf, 20, F4 | FN8, 0, 0},
    {ONV_OP_IsNaN, 9, F3, 0, 0},
    {ONV_OP_IsNaN, 13, F4, 0, 0},
    {ONV_OP_IsNaN, 20, F4 | FN8, 0, 0},
    {ONV_OP_LRN, 1, F3, 0, 0},
    {ONV_OP_LSTM, 7, F3, IN4, 0},
    {ONV_OP_LayerNormalization, 1, F4, 0, 0},
    {ONV_OP_LeakyRelu, 6, F3, 0, 0},
    {ONV_OP_Less, 7, F3, 0, 0},
    {ONV_OP_Less, 9, F3 | I2 | U2, 0, 0},
    {ONV_OP_LessOrEqual, 12, F3 | I2 | U2, 0, 0},
    {ONV_OP_Log, 6, F3, 0, 0},
    {ONV_OP_LogSoftmax, 1, F3, 0, 0},
    {ONV_OP_Loop, 1, ANY, IN0 | IN1, 0},
    {ONV_OP_MatMul, 1, F3, 0, 0},
    {ONV_OP_MatMul, 13, F4, 0, 0},
    {ONV_OP_MatMulInteger, 10, T(INT8), 0, 0},
    {ONV_OP_Max, 6, F4, 0, 0},
    {ONV_OP_Max, 12, F4 | I2 | U2, 0, 0},
    {ONV_OP_MaxPool, 1, F3, 0, 0},
    {ONV_OP_MaxPool, 12, F3 | I8, 0, 0},
    {ONV_OP_MemcpyFromHost, 1, ANY, IN0, 0},
    {ONV_OP_MemcpyToHost, 1, ANY, 0, OUT0},
    {ONV_OP_Min, 6, F4, 0, 0},
    {ONV_OP_Min, 12, F4 | I2 | U2, 0, 0},
    {ONV_OP_Mod, 10, F3 | I2 | U2, 0, 0},
    {ONV_OP_Mod, 13, F4 | I2 | U2, 0, 0},
    {ONV_OP_Mul, 7, F3 | I2 | U2, 0, 0},
    {ONV_OP_Mul, 13, F4 | I2 | U2, 0, 0},
    {ONV_OP_Mul, 14, NUMBERS, 0, 0},
    {ONV_OP_Neg, 6, F3 | I2 | T(INT16) | T(INT8), 0, 0},
    {ONV_OP_Neg, 13, F4 | I2 | T(INT16) | T(INT8), 0, 0},
    {ONV_OP_NonMaxSuppression, 10, T(FLOAT), IN2 | IN3 | IN4, 0},
    {ONV_OP_NonZero, 9, T(BOOL) | T(FLOAT) | HALF | I2 | T(UINT8), 0, 0},
    {ONV_OP_Not, 1, T(BOOL), 0, 0},
    {ONV_OP_OneHot, 11, I2, IN1, 0},
    {ONV_OP_Or, 7, T(BOOL), 0, 0},
    {ONV_OP_PRelu, 7, F3, 0, 0},
    {ONV_OP_Pad, 2, F3, 0, 0},
    {ONV_OP_Pad, 11, F3, IN1 | IN2, 0},
    {ONV_OP_Pad, 13, F3 | T(BOOL), IN1 | IN2 | IN3, 0},
    {ONV_OP_ParametricSoftplus, 1, F3, 0, 0},
    {ONV_OP_Pow, 7, F3, 0, 0},
    {ONV_OP_Pow, 12, F3 | I2, 0, 0},
    {ONV_OP_Pow, 13, F4 | I2, 0, 0},
    {ONV_OP_QuantizeLinear, 10, T(FLOAT), 0, 0},
    {ONV_OP_QuantizeLinear, 19, T(FLOAT) | HALF, 0, 0},
    {ONV_OP_RMSNormalization, 23, F4, 0, 0},
    {ONV_OP_RNN, 7, F3, IN4, 0},
    {ONV_OP_RandomNormal, 1, ANY, 0, 0},
    {ONV_OP_RandomNormalLike, 1, ANY, 0, 0},
    {ONV_OP_RandomUniform, 1, ANY, 0, 0},
    {ONV_OP_RandomUniformLike, 1, ANY, 0, 0},
    {ONV_OP_Range, 11, F2 | I2 | T(INT16), IN0 | IN1 | IN2, 0},
    {ONV_OP_Reciprocal, 6, F3, 0, 0},
    {ONV_OP_ReduceL1, 1, F3 | T(INT32), IN1, 0},
    {ONV_OP_ReduceL2, 1, F3 | T(INT32), IN1, 0},
    {ONV_OP_ReduceLogSum, 1, F3, IN1, 0},
    {ONV_OP_ReduceLogSumExp, 1, F3, IN1, 0},
    {ONV_OP_ReduceMax, 1, F3 | I2, IN1, 0},
    {ONV_OP_ReduceMean, 1, F3 | T(INT32), IN1, 0},
    {ONV_OP_ReduceMin, 1, F3 | I2 | I8, IN1, 0},
    {ONV_OP_ReduceProd, 1, F3 | T(INT32), IN1, 0},
    {ONV_OP_ReduceSum, 1, F3 | I2, IN1, 0},
    {ONV_OP_ReduceSum, 13, F4 | I2, IN1, 0},
    {ONV_OP_ReduceSumSquare, 1, F3, IN1, 0},
    {ONV_OP_Relu, 6, F3, 0, 0},
    {ONV_OP_Relu, 13, F4, 0, 0},
    {ONV_OP_Reshape, 1, FIXED, IN1, 0},
    {ONV_OP_Reshape, 19, EVERY, IN1, 0},
    {ONV_OP_Resize, 10, F3 | T(INT32) | T(UINT8), IN1, 0},
    {ONV_OP_Resize, 11, F3 | T(INT32) | T(UINT8), IN1 | IN2 | IN3, 0},
    {ONV_OP_ReverseSequence, 10, FIXED, 0, 0},
    {ONV_OP_RoiAlign, 10, F2, 0, 0},
    {ONV_OP_RotaryEmbedding, 23, T(FLOAT) | HALF | BRAIN, 0, 0},
    {ONV_OP_Round, 11, F3, 0, 0},
    {ONV_OP_ScaledTanh, 1, F3, 0, 0},
    {ONV_OP_Scan, 8, ANY, 0, 0},
    {ONV_OP_Scatter, 9, FIXED, 0, 0},
    {ONV_OP_ScatterElements, 11, FIXED, 0, 0},
    {ONV_OP_ScatterND, 11, FIXED, 0, 0},
    {ONV_OP_Selu, 6, F3, 0, 0},
    {ONV_OP_SequenceAt, 11, ANY, IN1, 0},
    {ONV_OP_SequenceConstruct, 11, ANY, 0, 0},
    {ONV_OP_SequenceEmpty, 11, ANY, 0, 0},
    {ONV_OP_SequenceErase, 11, ANY, IN1, 0},
    {ONV_OP_SequenceInsert, 11, ANY, IN2, 0},
    {ONV_OP_SequenceLength, 11, ANY, 0, OUT0},
    {ONV_OP_Shape, 1, FIXED, 0, OUT0},
    {ONV_OP_Shape, 19, EVERY, 0, OUT0},
    {ONV_OP_Shrink, 9, F3 | INTS, 0, 0},
    {ONV_OP_Sigmoid, 6, F3, 0, 0},
    {ONV_OP_Sigmoid, 13, F4, 0, 0},
    {ONV_OP_Sign, 13, NUMBERS, 0, 0},
    {ONV_OP_SimplifiedLayerNormalization, 1, F4, 0, 0},
    {ONV_OP_Sin, 7, F3, 0, 0},
    {ONV_OP_Size, 1, FIXED | T(STRING), 0, OUT0},
    {ONV_OP_Slice, 1, FIXED, IN1 | IN2 | IN3 | IN4, 0},
    {ONV_OP_Softmax, 1, F3, 0, 0},
    {ONV_OP_Softmax, 13, F4, 0, 0},
    {ONV_OP_Softplus, 1, F3, 0, 0},
    {ONV_OP_Softsign, 1, F3, 0, 0},
    {ONV_OP_SpaceToDepth, 1, F3, 0, 0},
    {ONV_OP_Split, 2, FIXED, IN1, 0},
    {ONV_OP_Sqrt, 6, F3, 0, 0},
    {ONV_OP_Sqrt, 13, F4, 0, 0},
    {ONV_OP_Squeeze, 1, FIXED, IN1, 0},
    {ONV_OP_Sub, 7, F3 | I2 | U2, 0, 0},
    {ONV_OP_Sub, 13, F4 | I2 | U2, 0, 0},
    {ONV_OP_Sub, 14, NUMBERS, 0, 0},
    {ONV_OP_Sum, 6, F4, 0, 0},
    {ONV_OP_Tanh, 6, F3, 0, 0},
    {ONV_OP_Tanh, 13, F4, 0, 0},
    {ONV_OP_TensorScatter, 24, FIXED, 0, 0},
    {ONV_OP_ThresholdedRelu, 1, F3, 0, 0},
    {ONV_OP_Tile, 6, F3 | I2, IN1, 0},
    {ONV_OP_Tile, 13, F4 | I2, IN1, 0},
    {ONV_OP_TopK, 1, F3 | I2, IN1, 0},
    {ONV_OP_Transpose, 1, FIXED, 0, 0},
    {ONV_OP_Trilu, 14, FIXED, IN1, 0},
    {ONV_OP_Unsqueeze, 1, FIXED, IN1, 0},
    {ONV_OP_Upsample, 7, F3 | T(INT32) | T(UINT8), IN1, 0},
    {ONV_OP_Where, 9, T(BOOL), 0, 0},
    {ONV_OP_Xor, 7, T(BOOL), 0, 0},
};

static const onv_kernel contrib_kernels[] = {
    {ONV_OP_Attention, 1, ANY, IN6, 0},
    {ONV_OP_BiasDropout, 1, ANY, IN3 | IN4, 0},
    {ONV_OP_BitmaskBiasDropout, 1, ANY, IN3 | IN4, 0},
    {ONV_OP_BitmaskDropout, 1, ANY, IN1 | IN2, 0},
    {ONV_OP_DecoderAttention, 1, ANY, IN8 | IN9 | IN10 | IN11, 0},
    {ONV_OP_GatedDeltaNet, 1, ANY, IN10, 0},
    {ONV_OP_GroupQueryAttention, 1, ANY, IN6, 0},
    {ONV_OP_MultiHeadAttention, 1, ANY, IN8, 0},
    {ONV_OP_QAttention, 1, T(INT8), 0, 0},
    {ONV_OP_RelativePositionBias, 1, ANY, IN1 | IN2, 0},
    {ONV_OP_SparseAttentionIndexer, 1, ANY, IN12, 0},
    {ONV_OP_Trilu, 1, ANY, IN1, 0},
};

/* Those of com.microsoft that take what they are given, all of it in the memory of the GPU. */
static const char plain_kernels[] =
    "BiasAdd BiasGelu BiasSoftmax BiasSplitGelu BranchwiseRMSNorm CausalConvWithState "
    "ComplexMul ComplexMulConj ConvTransposeWithDynamicPads DecoderMaskedMultiHeadAttention "
    "DecoderMaskedSelfAttention DequantizeLinear DynamicSparseAttention DynamicTimeWarping "
    "EmbedLayerNormalization EngramGate FastGelu FusedConv FusedMatMul GatedAdd GatedRMSNorm "
    "GatedRelativePositionBias GatherBlockQuantized Gelu GemmFloat8 GemmaRotaryEmbedding "
    "GreedySearch GridSample GroupNorm HyperConnectionPostMix HyperConnectionPreMix Inverse "
    "Irfft LinearAttention LinearAttentionGate LongformerAttention "
    "MatMulBlockQuantizedFp4Weight MatMulBnb4 MatMulNBits MoE NGramHashMapping "
    "NGramRepeatBlock NhwcConv PackedAttention PackedMultiHeadAttention "
    "PackedSparseAttentionIndexer PagedAttention QMoE QOrderedGelu QOrderedLayerNormalization "
    "QOrderedMatMul QuantizeLinear QuantizeWithOrder QuickGelu RemovePadding RestorePadding "
    "Rfft RotaryEmbedding ScaledSiLU SkipGroupNorm SkipLayerNormalization "
    "SkipSimplifiedLayerNormalization SparseAttention SparsePagedAttention TransposeMatMul "
    "UnfoldTensor VarlenCausalConvWithState VarlenNGramHashMapping";

/* --- Finding ----------------------------------------------------------------------------------- */

/* The last row of that name whose version is not above the node's; NULL: none. */
static const onv_kernel *find_row(const onv_kernel *rows, size_t count, const onv_node *node)
{
    size_t low = 0,
           high = count; /* rows before `low` come before the node, those from `high` on after */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const onv_kernel *row = &rows[middle];
        if (row->op < node->code || (row->op == node->code && row->since <= node->version))
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low > 0 && rows[low - 1].op == node->code;
    return found ? &rows[low - 1] : NULL;
}

static const onv_kernel *find_contrib(const onv_node *node)
{
    static const onv_kernel plain = {.since = 1, .types = (uint32_t)ANY};
    if (onv_rewrite_names(plain_kernels, node->op_type)) return &plain;
    return find_row(contrib_kernels, sizeof contrib_kernels / sizeof contrib_kernels[0], node);
}

/* What the type of the first operand does not tell. */
static bool takes_types(const onv_edit *e, onv_node_id id, const onv_node *node)
{
    static const uint32_t where = F3 | I2 | T(UINT8), ints = I2;
    uint32_t types = UINT32_MAX;
    uint32_t k = 1;
    if (node->code == ONV_OP_Where) types = node->version >= 16 ? where | BRAIN : where;
    if (node->code == ONV_OP_OneHot) {
        types = T(FLOAT) | HALF | T(INT64);
        k = 2;
    }
    if (node->code == ONV_OP_Gather) types = ints;
    if (node->code == ONV_OP_Cast) return onv_edit_int(e, id, "to", 0) != ONV_STRING;
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
        row = find_contrib(node);
    if (row == NULL || row->types == (uint32_t)ANY) return row;
    onv_value_id in = node->n_inputs > 0 ? node->inputs[0] : ONV_NO_VALUE;
    uint8_t dtype = onv_is_value(in) ? onv_edit_value_at(e, in)->type.dtype : ONV_UNDEFINED;
    if (dtype == ONV_UNDEFINED) return row; /* in a branch that never runs */
    if (dtype >= 32 || (row->types >> dtype & 1) == 0) return NULL;
    return takes_types(e, id, node) ? row : NULL;
}

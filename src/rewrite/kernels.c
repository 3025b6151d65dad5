#include "rewrite/kernels.h"

#include <assert.h>
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

/* A bit of an operand. */
#define IN(k) (UINT32_C(1) << (k))
enum { OUT0 = 1 };

/* --- The tables: operators with the same kernels, and since which version ----------------------- */

enum { MOST_VERSIONS = 4 };

typedef struct history {
    const char *ops;                    /* with a space between */
    onv_kernel versions[MOST_VERSIONS]; /* the oldest one first */
} history;

#define GIVES(since_, types_, in, out)                                                             \
    {                                                                                              \
        .since = (since_), .types = (uint32_t)(types_), .host_in = (in), .host_out = (out)         \
    }
#define HOST(since, types, in) GIVES(since, types, in, 0)
#define TAKES(since, types)    GIVES(since, types, 0, 0)
#define GONE(since)            TAKES(since, 0) /* ONNX Runtime 1.31.1 has none of that version */

static const history onnx_kernels[] = {
    {"Abs", {TAKES(6, F3 | INTS), TAKES(13, NUMBERS)}},
    {"Add Div Mul Sub", {TAKES(7, F3 | I2 | U2), TAKES(13, F4 | I2 | U2), TAKES(14, NUMBERS)}},
    {"And Or Xor", {TAKES(7, T(BOOL))}},
    {"ArgMax ArgMin ConvTranspose Crop DepthToSpace GlobalAveragePool GlobalMaxPool ImageScaler "
     "LRN LogSoftmax ParametricSoftplus ScaledTanh Softplus Softsign SpaceToDepth",
     {TAKES(1, F3)}},
    {"Attention RMSNormalization", {TAKES(23, F4)}},
    {"AveragePool BatchNormalization Cos PRelu Sin", {TAKES(7, F3)}},
    {"Cast",
     {TAKES(6, F3 | INTS | T(BOOL)), TAKES(13, FIXED), TAKES(19, FIXED | F8),
      TAKES(23, FIXED | F8 | T(FLOAT4E2M1))}},
    {"Ceil Floor LeakyRelu Log Reciprocal", {TAKES(6, F3)}},
    {"Clip", {TAKES(6, T(FLOAT)), TAKES(11, T(FLOAT)), TAKES(12, F3 | T(INT64) | T(UINT64) | I8)}},
    {"Compress Scatter", {TAKES(9, FIXED)}},
    {"Concat", {TAKES(4, FIXED)}},
    {"ConcatFromSequence SequenceConstruct SequenceEmpty", {TAKES(11, ANY)}},
    {"ConstantOfShape", {HOST(9, T(INT64), IN(0))}},
    {"Conv", {TAKES(1, F3), TAKES(22, F4)}},
    {"CumSum", {HOST(11, F2 | I2 | U2, IN(1)), HOST(14, F3 | I2 | U2, IN(1))}},
    {"DequantizeLinear", {TAKES(10, I8), TAKES(19, I8 | F8), TAKES(21, I8 | F8 | I4)}},
    {"Dropout", {TAKES(7, F3), HOST(12, F3, IN(1) | IN(2)), HOST(13, F4, IN(1) | IN(2)), GONE(22)}},
    {"DynamicSlice", {HOST(1, FIXED, IN(1) | IN(2) | IN(3))}},
    {"Einsum", {TAKES(12, F3)}},
    {"Equal", {TAKES(7, T(BOOL) | I2), TAKES(11, T(BOOL) | F3 | I2 | U2)}},
    {"Erf", {TAKES(9, F3), TAKES(13, F4)}},
    {"Exp Relu Sigmoid Sqrt Tanh", {TAKES(6, F3), TAKES(13, F4)}},
    {"Expand", {HOST(8, FIXED, IN(1))}},
    {"Elu InstanceNormalization Selu", {TAKES(6, F3), GONE(22)}},
    {"EyeLike", {TAKES(9, F2 | I2 | T(UINT64)), GONE(22)}},
    {"Flatten Gather Transpose", {TAKES(1, FIXED)}},
    {"GRU LSTM RNN", {HOST(7, F3, IN(4))}},
    {"GatherElements ScatterElements ScatterND", {TAKES(11, FIXED)}},
    {"GatherND", {TAKES(11, T(BOOL) | F3 | T(INT64)), TAKES(13, T(BOOL) | F4 | T(INT64))}},
    {"Gelu", {TAKES(20, F4)}},
    {"Gemm", {TAKES(7, F3), TAKES(13, F4)}},
    {"Greater Less", {TAKES(7, F3), TAKES(9, F3 | I2 | U2)}},
    {"GreaterOrEqual LessOrEqual", {TAKES(12, F3 | I2 | U2)}},
    {"GridSample", {TAKES(16, T(FLOAT))}},
    {"HardSigmoid", {TAKES(6, F3), TAKES(22, F4)}},
    {"HardSwish", {TAKES(14, F3), TAKES(22, F4)}},
    {"Identity RandomNormal RandomNormalLike RandomUniform RandomUniformLike", {TAKES(1, ANY)}},
    {"If MemcpyFromHost", {HOST(1, ANY, IN(0))}},
    {"IsInf", {TAKES(10, F2), TAKES(20, F4 | FN8)}},
    {"IsNaN", {TAKES(9, F3), TAKES(13, F4), TAKES(20, F4 | FN8)}},
    {"LayerNormalization SimplifiedLayerNormalization", {TAKES(1, F4)}},
    {"Loop", {HOST(1, ANY, IN(0) | IN(1))}},
    {"LpNormalization", {TAKES(1, T(FLOAT) | HALF | BRAIN)}},
    {"MatMul Softmax", {TAKES(1, F3), TAKES(13, F4)}},
    {"MatMulInteger", {TAKES(10, T(INT8))}},
    {"Max Min", {TAKES(6, F4), TAKES(12, F4 | I2 | U2)}},
    {"MaxPool", {TAKES(1, F3), TAKES(12, F3 | I8), GONE(22)}},
    {"MemcpyToHost", {GIVES(1, ANY, 0, OUT0)}},
    {"Mod", {TAKES(10, F3 | I2 | U2), TAKES(13, F4 | I2 | U2)}},
    {"Neg", {TAKES(6, F3 | I2 | T(INT16) | T(INT8)), TAKES(13, F4 | I2 | T(INT16) | T(INT8))}},
    {"NonMaxSuppression", {HOST(10, T(FLOAT), IN(2) | IN(3) | IN(4))}},
    {"NonZero", {TAKES(9, T(BOOL) | T(FLOAT) | HALF | I2 | T(UINT8))}},
    {"Not", {TAKES(1, T(BOOL))}},
    {"OneHot", {HOST(11, I2, IN(1) | IN(2))}},
    {"Pad",
     {TAKES(2, F3), HOST(11, F3, IN(1) | IN(2)), HOST(13, F3 | T(BOOL), IN(1) | IN(2) | IN(3))}},
    {"Pow", {TAKES(7, F3), TAKES(12, F3 | I2), TAKES(13, F4 | I2)}},
    {"QuantizeLinear", {TAKES(10, T(FLOAT)), TAKES(19, T(FLOAT) | HALF)}},
    {"Range", {HOST(11, F2 | I2 | T(INT16), IN(0) | IN(1) | IN(2))}},
    {"ReduceL1 ReduceL2 ReduceMean ReduceProd", {HOST(1, F3 | T(INT32), IN(1))}},
    {"ReduceLogSum ReduceLogSumExp ReduceSumSquare", {HOST(1, F3, IN(1))}},
    {"ReduceMax TopK", {HOST(1, F3 | I2, IN(1))}},
    {"ReduceMin", {HOST(1, F3 | I2 | I8, IN(1))}},
    {"ReduceSum", {HOST(1, F3 | I2, IN(1)), HOST(13, F4 | I2, IN(1))}},
    {"Reshape", {HOST(1, FIXED, IN(1)), HOST(19, EVERY, IN(1))}},
    {"Resize",
     {HOST(10, F3 | T(INT32) | T(UINT8), IN(1)),
      HOST(11, F3 | T(INT32) | T(UINT8), IN(1) | IN(2) | IN(3))}},
    {"ReverseSequence", {TAKES(10, FIXED)}},
    {"RoiAlign", {TAKES(10, F2)}},
    {"RotaryEmbedding", {TAKES(23, T(FLOAT) | HALF | BRAIN)}},
    {"Round", {TAKES(11, F3)}},
    {"Scan", {TAKES(8, ANY)}},
    {"SequenceAt SequenceErase", {HOST(11, ANY, IN(1))}},
    {"SequenceInsert", {HOST(11, ANY, IN(2))}},
    {"SequenceLength", {GIVES(11, ANY, 0, OUT0)}},
    {"Shape", {GIVES(1, FIXED, 0, OUT0), GIVES(19, EVERY, 0, OUT0)}},
    {"Shrink", {TAKES(9, F3 | INTS)}},
    {"Sign", {TAKES(13, NUMBERS)}},
    {"Size", {GIVES(1, FIXED | T(STRING), 0, OUT0)}},
    {"Slice", {HOST(1, FIXED, IN(1) | IN(2) | IN(3) | IN(4))}},
    {"Split", {HOST(2, FIXED, IN(1))}},
    {"Squeeze Unsqueeze", {HOST(1, FIXED, IN(1))}},
    {"Sum", {TAKES(6, F4)}},
    {"TensorScatter", {TAKES(24, FIXED)}},
    {"ThresholdedRelu", {TAKES(1, F3), GONE(22)}},
    {"Tile", {HOST(6, F3 | I2, IN(1)), HOST(13, F4 | I2, IN(1))}},
    {"Trilu", {HOST(14, FIXED, IN(1))}},
    {"Upsample", {HOST(7, F3 | T(INT32) | T(UINT8), IN(1))}},
    {"Where", {TAKES(9, T(BOOL))}},
};

static const history contrib_kernels[] = {
    {"Attention GroupQueryAttention", {HOST(1, ANY, IN(6))}},
    {"BiasDropout BitmaskBiasDropout", {HOST(1, ANY, IN(3) | IN(4))}},
    {"BitmaskDropout RelativePositionBias", {HOST(1, ANY, IN(1) | IN(2))}},
    {"DecoderAttention", {HOST(1, ANY, IN(8) | IN(9) | IN(10) | IN(11))}},
    {"DequantizeLinear", {TAKES(1, I8)}},
    {"GatedDeltaNet", {HOST(1, ANY, IN(10))}},
    {"MultiHeadAttention", {HOST(1, ANY, IN(8))}},
    {"QAttention", {TAKES(1, T(INT8))}},
    {"QuantizeLinear", {TAKES(1, HALF)}},
    {"SparseAttentionIndexer", {HOST(1, ANY, IN(12))}},
    {"Trilu", {HOST(1, ANY, IN(1))}},
    /* Those that take what they are given, all of it in the memory of the GPU. */
    {"BiasAdd BiasGelu BiasSoftmax BiasSplitGelu BranchwiseRMSNorm CausalConvWithState "
     "ComplexMul ComplexMulConj ConvTransposeWithDynamicPads DecoderMaskedMultiHeadAttention "
     "DecoderMaskedSelfAttention DynamicSparseAttention DynamicTimeWarping "
     "EmbedLayerNormalization EngramGate FastGelu FusedConv FusedMatMul GatedAdd GatedRMSNorm "
     "GatedRelativePositionBias GatherBlockQuantized Gelu GemmFloat8 GemmaRotaryEmbedding "
     "GreedySearch GridSample GroupNorm HyperConnectionPostMix HyperConnectionPreMix Inverse "
     "Irfft LinearAttention LinearAttentionGate LongformerAttention "
     "MatMulBlockQuantizedFp4Weight MatMulBnb4 MatMulNBits MoE NGramHashMapping "
     "NGramRepeatBlock NhwcConv PackedAttention PackedMultiHeadAttention "
     "PackedSparseAttentionIndexer PagedAttention QMoE QOrderedGelu QOrderedLayerNormalization "
     "QOrderedMatMul QuantizeWithOrder QuickGelu RemovePadding RestorePadding "
     "Rfft RotaryEmbedding ScaledSiLU SkipGroupNorm SkipLayerNormalization "
     "SkipSimplifiedLayerNormalization SparseAttention SparsePagedAttention TransposeMatMul "
     "UnfoldTensor VarlenCausalConvWithState VarlenNGramHashMapping",
     {TAKES(1, ANY)}},
};

/* --- Finding ----------------------------------------------------------------------------------- */

enum { N_ONNX = sizeof onnx_kernels / sizeof onnx_kernels[0] };
_Static_assert(N_ONNX < UINT8_MAX, "a row is a byte");

onv_op_name onv_kernels_next(const char **words)
{
    char word[64] = "";
    const char *at = *words + (**words == ' ');
    size_t length = strcspn(at, " ");
    *words = length > 0 ? at + length : NULL;
    memcpy(word, at, length < sizeof word ? length : sizeof word - 1);
    onv_op_name op = onv_op_name_of(word);
    /* A row of a name without a number would be that of all operators without one. */
    assert(length == 0 || op != ONV_OP_OTHER);
    return op;
}

void onv_kernels_list(onv_edit *e)
{
    e->kernels = ONV_ARENA_ARRAY(&e->model->arena, uint8_t, ONV_N_OP_NAMES);
    if (e->kernels == NULL) onv_edit_fail(e, ONV_ERR_MEMORY);
    for (uint8_t i = 0; i < N_ONNX && e->kernels != NULL; i++) {
        const char *at = onnx_kernels[i].ops;
        for (onv_op_name op = onv_kernels_next(&at); at != NULL; op = onv_kernels_next(&at))
            e->kernels[op] = i + 1;
    }
}

/* The newest one that is not above the node's version; NULL: none. */
static const onv_kernel *find_version(const history *h, const onv_node *node)
{
    for (uint32_t i = MOST_VERSIONS; i-- > 0;)
        if (h->versions[i].since != 0 && h->versions[i].since <= node->version)
            return &h->versions[i];
    return NULL;
}

static const onv_kernel *find_contrib(const onv_node *node)
{
    for (size_t i = 0; i < sizeof contrib_kernels / sizeof contrib_kernels[0]; i++)
        if (onv_rewrite_names(contrib_kernels[i].ops, node->op_type))
            return find_version(&contrib_kernels[i], node);
    return NULL;
}

/* What cuDNN's recurrent layers do not compute (RNNNeedFallbackToCPU in cuda_execution_provider.cc). */
static bool takes_cell(const onv_edit *e, onv_node_id id, const onv_node *node)
{
    static const char *const lstm[] = {"Sigmoid", "Tanh", "Tanh"},
                             *const gru[] = {"Sigmoid", "Tanh"}, *const rnn[] = {"Tanh"};
    enum { PEEPHOLES = 7 };
    bool is_lstm = node->code == ONV_OP_LSTM, is_gru = node->code == ONV_OP_GRU;
    const char *const *names = is_lstm ? lstm : is_gru ? gru : rnn;
    const onv_attr *own = onv_node_attr(node, "activations");
    uint32_t n = is_lstm ? 3 : is_gru ? 2 : 1;
    for (uint32_t i = 0; own != NULL && own->kind == ONV_ATTR_STRINGS && i < own->count; i++)
        if (strcmp(own->strings[i], names[i % n]) != 0) return false;
    return onv_node_attr(node, "clip") == NULL && onv_node_attr(node, "activation_alpha") == NULL &&
           onv_node_attr(node, "activation_beta") == NULL &&
           onv_edit_int(e, id, "input_forget", 0) == 0 &&
           (!is_gru || onv_edit_int(e, id, "linear_before_reset", 0) == 1) &&
           !(is_lstm && onv_is_value(onv_edit_in(e, id, PEEPHOLES)));
}

/* What the type of the first operand does not tell. */
static bool takes_types(const onv_edit *e, onv_node_id id, const onv_node *node)
{
    static const uint32_t where = F3 | I2 | T(UINT8), ints = I2;
    const bool is_contrib = node->domain[0] != '\0';
    uint32_t types = UINT32_MAX;
    uint32_t k = 1;
    if (node->code == ONV_OP_QuantizeLinear) {
        types = is_contrib ? I8 : I8 | F8 | I4;
        return (types >> onv_edit_dtype(e, onv_edit_out(e, id, 0)) & 1) != 0;
    }
    if (node->code == ONV_OP_DequantizeLinear && is_contrib) types = HALF;
    if (node->code == ONV_OP_Where) types = node->version >= 16 ? where | BRAIN : where;
    if (node->code == ONV_OP_OneHot) {
        types = T(FLOAT) | HALF | T(INT64);
        k = 2;
    }
    if (node->code == ONV_OP_Gather) types = ints;
    if (ONV_IS_ANY(node, ONV_OP_LSTM, ONV_OP_GRU, ONV_OP_RNN)) return takes_cell(e, id, node);
    if (node->code == ONV_OP_Cast) return onv_edit_int(e, id, "to", 0) != ONV_STRING;
    if (types == UINT32_MAX || k >= node->n_inputs || !onv_is_value(node->inputs[k])) return true;
    return (types >> onv_edit_dtype(e, node->inputs[k]) & 1) != 0;
}

const onv_kernel *onv_kernel_find(const onv_edit *e, onv_node_id id)
{
    const onv_node *node = onv_edit_node_at(e, id);
    const onv_kernel *row = NULL;
    if (node->domain[0] == '\0' && e->kernels[node->code] != 0)
        row = find_version(&onnx_kernels[e->kernels[node->code] - 1], node);
    else if (strcmp(node->domain, "com.microsoft") == 0)
        row = find_contrib(node);
    if (row == NULL || row->types == (uint32_t)ANY) return row;
    onv_value_id in = node->n_inputs > 0 ? node->inputs[0] : ONV_NO_VALUE;
    onv_dtype dtype = onv_edit_dtype(e, in);
    if (dtype == ONV_UNDEFINED) return row; /* in a branch that never runs */
    if (dtype >= 32 || (row->types >> dtype & 1) == 0) return NULL;
    return takes_types(e, id, node) ? row : NULL;
}

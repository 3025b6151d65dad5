#include "rewrite/rules.h"

#include "rewrite/fuse.h"
#include "rewrite/transpose.h"

/* Level, name, the operators that it starts at, and what is tried there. */
#define ROW(level_, name_, kind_, not_, ops_, apply_, run_)                                        \
    {                                                                                              \
        .name = (name_), .level = (level_), .kind = (kind_), .is_not_modelled = (not_),            \
        .ops = (ops_), .apply = (apply_), .run = (run_)                                            \
    }
#define RULE(level, name, ops, apply) ROW(level, name, ONV_RULE, false, ops, apply, NULL)
#define TRANSFORMER(level, name, ops, apply)                                                       \
    ROW(level, name, ONV_TRANSFORMER, false, ops, apply, NULL)
#define NOT_MODELLED(level, name, ops, apply)                                                      \
    ROW(level, name, ONV_TRANSFORMER, true, ops, apply, NULL)
#define PASS(level, name, kind, run) ROW(level, name, kind, false, NULL, NULL, run)

/* Read in source (onnxruntime/core/optimizer/graph_transformer_utils.cc), in the order of version 1.31's log. */
const onv_rewrite_rule onv_rewrite_rules[] = {
    TRANSFORMER(ONV_RULE_BEFORE, "EnsureUniqueDQForNodeUnit", "DequantizeLinear",
                onv_rule_unique_dequantize),

    RULE(1, "EliminateIdentity", "Identity", onv_rule_eliminate_identity),
    RULE(1, "EliminateSlice", "Slice", onv_rule_eliminate_slice),
    RULE(1, "UnsqueezeElimination", "Unsqueeze", onv_rule_eliminate_unsqueeze),
    RULE(1, "EliminateDropout", "Dropout", onv_rule_eliminate_dropout),
    RULE(1, "ExpandElimination", "Expand", onv_rule_eliminate_expand),
    RULE(1, "CastElimination", "Cast", onv_rule_eliminate_cast),
    RULE(1, "PreShapeNodeElimination", "Cast", onv_rule_eliminate_before_shape),
    RULE(1, "NoopElimination", "Add Sub Mul Div", onv_rule_eliminate_noop),
    RULE(1, "DivMulFusion", "Div", onv_rule_div_mul),
    RULE(1, "FuseReluClip", "Relu", onv_rule_relu_clip),
    RULE(1, "GemmSumFusion", "Gemm", onv_rule_gemm_sum),
    RULE(1, "GemmTransposeFusion", "Gemm", onv_rule_gemm_transpose),
    RULE(1, "NotWhereFusion", "Where", onv_rule_not_where),
    RULE(1, "ConvAddFusion", "Conv", onv_rule_conv_add),
    RULE(1, "ConvMulFusion", "Conv", onv_rule_conv_mul),
    RULE(1, "ConvBNFusion", "Conv", onv_rule_conv_bn),
    RULE(1, "Pad_Fusion", "Pad", onv_rule_pad),
    RULE(1, "MatMul_BatchNormalization_Fusion", "MatMul", onv_rule_matmul_bn),

    PASS(1, "ConstantSharing", ONV_TRANSFORMER_ONCE, onv_rule_constant_sharing),
    PASS(1, "CommonSubexpressionElimination", ONV_TRANSFORMER, onv_rule_common_subexpressions),
    TRANSFORMER(1, "ConstantFolding", NULL, onv_rule_constant_folding),
    TRANSFORMER(1, "MatMulAddFusion", "MatMul", onv_rule_matmul_add_keeping_attention),
    TRANSFORMER(1, "ReshapeFusion", "Reshape", onv_rule_reshape),
    TRANSFORMER(1, "GeluFusionL1", "Div", onv_fuse_gelu_level1),
    TRANSFORMER(1, "LayerNormFusionL1", "ReduceMean", onv_fuse_layer_norm_level1),
    TRANSFORMER(1, "EnsureUniqueDQForNodeUnit", "DequantizeLinear", onv_rule_unique_dequantize),
    PASS(1, "TransposeOptimizer", ONV_TRANSFORMER_ONCE, onv_move_transposes),

    NOT_MODELLED(1, "SliceConcatToSpaceToDepthFusion", "Concat", onv_would_fuse_space_to_depth),
    NOT_MODELLED(1, "DoubleQDQPairsRemover", "QuantizeLinear", onv_would_remove_double_qdq),
    NOT_MODELLED(1, "QDQPropagationTransformer",
                 "MaxPool Reshape Transpose Squeeze Unsqueeze Slice", onv_would_propagate_qdq),
    NOT_MODELLED(1, "WeightBiasQuantization", "Conv ConvTranspose Gemm", onv_would_quantize_weight),

    NOT_MODELLED(2, "QDQSelectorActionTransformer", "MatMul", onv_would_select_qdq),
    PASS(2, "TransposeOptimizer_CPUExecutionProvider", ONV_TRANSFORMER_ONCE,
         onv_move_transposes_on_cpu),
    TRANSFORMER(2, "GeluFusionL2", "Div", onv_fuse_gelu_level2),
    TRANSFORMER(2, "LayerNormFusionL2", "ReduceMean", onv_fuse_layer_norm_level2),
    TRANSFORMER(2, "SimplifiedLayerNormFusion", "Pow", onv_fuse_simplified_layer_norm),
    PASS(2, "GatherSliceToSplitFusion", ONV_TRANSFORMER, onv_fuse_gather_slice_to_split),
    TRANSFORMER(2, "GatherToSliceFusion", "Range", onv_fuse_gather_to_slice),
    TRANSFORMER(2, "MatmulTransposeFusion", "MatMul FusedMatMul", onv_fuse_matmul_transpose),
    TRANSFORMER(2, "BiasGeluFusion", "Add", onv_fuse_bias_gelu),
    TRANSFORMER(2, "MatMulAddFusion", "MatMul", onv_rule_matmul_add),
    NOT_MODELLED(2, "GroupQueryAttentionFusion", "GroupQueryAttention", onv_would_fuse_group_query),
    NOT_MODELLED(2, "BiasDropoutFusion", "Dropout", onv_would_fuse_bias_dropout),
    TRANSFORMER(2, "SkipLayerNormFusion", "LayerNormalization", onv_fuse_skip_layer_norm),
    TRANSFORMER(2, "BiasSkipLayerNormFusion", "SkipLayerNormalization",
                onv_fuse_bias_skip_layer_norm),
    TRANSFORMER(2, "FastGeluFusion", "Mul Pow", onv_fuse_fast_gelu),
    TRANSFORMER(2, "QuickGeluFusion", "Mul Sigmoid", onv_fuse_quick_gelu),
    TRANSFORMER(2, "BiasSoftmaxFusion", "Add", onv_fuse_bias_softmax),
    TRANSFORMER(2, "MatMulScaleFusion", "MatMul FusedMatMul", onv_fuse_matmul_scale),

    NOT_MODELLED(ONV_RULE_AFTER, "CastFloat16Transformer", NULL, onv_would_cast_float16),
    TRANSFORMER(ONV_RULE_AFTER, "RemoveDuplicateCastTransformer", "Cast", onv_rule_duplicate_casts),
};

const size_t onv_n_rewrite_rules = sizeof onv_rewrite_rules / sizeof onv_rewrite_rules[0];

#include "rewrite/rules.h"

/* Read in source (onnxruntime/core/optimizer/graph_transformer_utils.cc), in the order of version 1.31's log. */
const onv_rewrite_rule onv_rewrite_rules[] = {
    {"EnsureUniqueDQForNodeUnit", ONV_RULE_BEFORE, ONV_TRANSFORMER, false, "DequantizeLinear",
     onv_rule_unique_dequantize, NULL},

    {"EliminateIdentity", 1, ONV_RULE, false, "Identity", onv_rule_eliminate_identity, NULL},
    {"EliminateSlice", 1, ONV_RULE, false, "Slice", onv_rule_eliminate_slice, NULL},
    {"UnsqueezeElimination", 1, ONV_RULE, false, "Unsqueeze", onv_rule_eliminate_unsqueeze, NULL},
    {"EliminateDropout", 1, ONV_RULE, false, "Dropout", onv_rule_eliminate_dropout, NULL},
    {"ExpandElimination", 1, ONV_RULE, false, "Expand", onv_rule_eliminate_expand, NULL},
    {"CastElimination", 1, ONV_RULE, false, "Cast", onv_rule_eliminate_cast, NULL},
    {"PreShapeNodeElimination", 1, ONV_RULE, false, "Cast", onv_rule_eliminate_before_shape, NULL},
    {"NoopElimination", 1, ONV_RULE, false, "Add Sub Mul Div", onv_rule_eliminate_noop, NULL},
    {"DivMulFusion", 1, ONV_RULE, false, "Div", onv_rule_div_mul, NULL},
    {"FuseReluClip", 1, ONV_RULE, false, "Relu", onv_rule_relu_clip, NULL},
    {"GemmSumFusion", 1, ONV_RULE, false, "Gemm", onv_rule_gemm_sum, NULL},
    {"GemmTransposeFusion", 1, ONV_RULE, false, "Gemm", onv_rule_gemm_transpose, NULL},
    {"NotWhereFusion", 1, ONV_RULE, false, "Where", onv_rule_not_where, NULL},
    {"ConvAddFusion", 1, ONV_RULE, false, "Conv", onv_rule_conv_add, NULL},
    {"ConvMulFusion", 1, ONV_RULE, false, "Conv", onv_rule_conv_mul, NULL},
    {"ConvBNFusion", 1, ONV_RULE, false, "Conv", onv_rule_conv_bn, NULL},
    {"Pad_Fusion", 1, ONV_RULE, false, "Pad", onv_rule_pad, NULL},
    {"MatMul_BatchNormalization_Fusion", 1, ONV_RULE, false, "MatMul", onv_rule_matmul_bn, NULL},

    {"ConstantSharing", 1, ONV_TRANSFORMER_ONCE, false, NULL, NULL, onv_rule_constant_sharing},
    {"CommonSubexpressionElimination", 1, ONV_TRANSFORMER, false, NULL, NULL,
     onv_rule_common_subexpressions},
    {"ConstantFolding", 1, ONV_TRANSFORMER, false, NULL, onv_rule_constant_folding, NULL},
    {"MatMulAddFusion", 1, ONV_TRANSFORMER, false, "MatMul", onv_rule_matmul_add_keeping_attention,
     NULL},
    {"ReshapeFusion", 1, ONV_TRANSFORMER, false, "Reshape", onv_rule_reshape, NULL},
    {"EnsureUniqueDQForNodeUnit", 1, ONV_TRANSFORMER, false, "DequantizeLinear",
     onv_rule_unique_dequantize, NULL},

    {"RemoveDuplicateCastTransformer", ONV_RULE_AFTER, ONV_TRANSFORMER, false, "Cast",
     onv_rule_duplicate_casts, NULL},
};

const size_t onv_n_rewrite_rules = sizeof onv_rewrite_rules / sizeof onv_rewrite_rules[0];

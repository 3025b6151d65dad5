#include "rewrite/rules.h"

/* Read in source (onnxruntime/core/optimizer/graph_transformer_utils.cc). */
const onv_rewrite_rule onv_rewrite_rules[] = {
    {"EliminateIdentity", 1, ONV_RULE, false, "Identity", onv_rule_eliminate_identity, NULL},
    {"EliminateDropout", 1, ONV_RULE, false, "Dropout", onv_rule_eliminate_dropout, NULL},

    {"ConstantFolding", 1, ONV_TRANSFORMER, false, NULL, onv_rule_constant_folding, NULL},
};

const size_t onv_n_rewrite_rules = sizeof onv_rewrite_rules / sizeof onv_rewrite_rules[0];

/* The function of each rule of the table; rows without one are emitted as they are described. */
#include "tape/state.h"

onv_tape_fn onv_tape_rule(onv_aten_rule rule)
{
    static const onv_tape_fn rules[ONV_N_RULES] = {
        [ONV_RULE_LINEAR] = onv_tape_linear,
        [ONV_RULE_MATMUL] = onv_tape_matmul,
        [ONV_RULE_MM] = onv_tape_mm,
        [ONV_RULE_ADDMM] = onv_tape_addmm,
        [ONV_RULE_VECTORS] = onv_tape_vectors,
        [ONV_RULE_CONV] = onv_tape_conv,
        [ONV_RULE_BATCH_NORM] = onv_tape_batch_norm,
        [ONV_RULE_INSTANCE_NORM] = onv_tape_instance_norm,
        [ONV_RULE_LAYER_NORM] = onv_tape_layer_norm,
        [ONV_RULE_GROUP_NORM] = onv_tape_group_norm,
        [ONV_RULE_RMS_NORM] = onv_tape_rms_norm,
        [ONV_RULE_WEIGHT_NORM] = onv_tape_weight_norm,
        [ONV_RULE_DROPOUT] = onv_tape_dropout,
        [ONV_RULE_FEATURE_DROPOUT] = onv_tape_feature_dropout,
        [ONV_RULE_SOFTMAX] = onv_tape_softmax,
        [ONV_RULE_LOG_SOFTMAX] = onv_tape_softmax,
        [ONV_RULE_RESHAPE] = onv_tape_reshape,
        [ONV_RULE_CONTIGUOUS] = onv_tape_contiguous,
        [ONV_RULE_TO] = onv_tape_to,
        [ONV_RULE_EXPAND] = onv_tape_expand,
        [ONV_RULE_DETACH] = onv_tape_detach,
        [ONV_RULE_TAKES_PARTS] = onv_tape_parts,
    };
    return rules[rule];
}

#include "graph/weights.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "ops/op.h"

/* The mean and variance of a BatchNormalization are buffers, which no optimizer trains. */
static onv_status mark_statistics(onv_model *model, const onv_live *live, bool **result,
                                  onv_error *err)
{
    bool *is_statistic = ONV_ARENA_ARRAY(&model->arena, bool, model->values.count);
    if (is_statistic == NULL) return onv_fail_memory(err);
    for (uint32_t s = 0; s < live->timeline.steps.count; s++) {
        const onv_node *node = onv_model_node(model, live->timeline.steps.at[s].node);
        if (node->code != ONV_OP_BatchNormalization) continue;
        for (uint32_t k = 3; k < 5 && k < node->n_inputs; k++)
            if (onv_is_value(node->inputs[k])) is_statistic[node->inputs[k].index] = true;
    }
    *result = is_statistic;
    return ONV_OK;
}

static onv_status fail_at(const onv_node *node, const char *what, onv_error *err)
{
    onv_status status = onv_fail(err, ONV_ERR_OVERFLOW,
                                 "the %s of all nodes up to this one do not fit 64 bits", what);
    onv_error_at(err, node->name, node->op_type);
    return status;
}

static onv_status sum_weights(onv_model *model, onv_live *live, onv_error *err)
{
    bool *is_statistic;
    ONV_TRY(mark_statistics(model, live, &is_statistic, err));
    for (size_t i = 0; i < model->values.count; i++) {
        const onv_value *value = &model->values.at[i];
        if (!onv_value_is_held(value)) continue;
        const onv_tensor *tensor = value->tensor;
        if (!onv_u64_add(live->weight_bytes, tensor->bytes, &live->weight_bytes) ||
            !onv_u64_add(live->weight_elems, tensor->elems, &live->weight_elems))
            return onv_fail(err, ONV_ERR_OVERFLOW,
                            "the bytes of all weights up to '%s' do not fit 64 bits", value->name);
        if (onv_dtype_is_float((onv_dtype)tensor->type.dtype) && !is_statistic[i])
            live->trainable_elems += tensor->elems; /* a part of what was just checked */
    }
    for (uint32_t s = 0; s < live->timeline.steps.count; s++) { /* trees and support vectors */
        const onv_node *node = onv_model_node(model, live->timeline.steps.at[s].node);
        uint64_t bytes, elems;
        if (!onv_op_attr_weights(node, &bytes, &elems) ||
            !onv_u64_add(live->weight_bytes, bytes, &live->weight_bytes) ||
            !onv_u64_add(live->weight_elems, elems, &live->weight_elems))
            return fail_at(node, "weights", err);
    }
    return ONV_OK;
}

/* What a branch hands out is counted as the output that it becomes. */
static onv_status sum_values(const onv_model *model, onv_live *live, onv_error *err)
{
    for (uint32_t i = 0; i < live->timeline.buffers.count; i++) {
        const onv_buffer *row = &live->timeline.buffers.at[i];
        const onv_value *value = onv_model_value(model, row->value);
        bool top = value->graph.index == 0, is_input = value->kind == ONV_VALUE_INPUT;
        bool fits = true;
        if (is_input && top)
            fits = onv_u64_add(live->input_bytes, row->bytes, &live->input_bytes);
        else if (!is_input && row->becomes == ONV_NO_BUFFER)
            fits = onv_u64_add(live->activation_bytes, row->bytes, &live->activation_bytes);
        if (top && value->is_output)
            fits &= onv_u64_add(live->output_bytes, row->bytes, &live->output_bytes);
        if (!fits)
            return onv_fail(err, ONV_ERR_OVERFLOW,
                            "the bytes of all values up to '%s' do not fit 64 bits", value->name);
    }
    return ONV_OK;
}

static bool add_operations(onv_model *model, onv_dim operations, uint64_t *sum, bool *known)
{
    onv_dim all = onv_dim_substitute_bounds(&model->dims, operations);
    if (onv_dim_is_const(all) && all.raw >= 0) return onv_u64_add(*sum, (uint64_t)all.raw, sum);
    if (known != NULL) *known = false;
    return true;
}

onv_status onv_graph_sum(onv_model *model, onv_live *live, onv_error *err)
{
    ONV_TRY(sum_weights(model, live, err));
    ONV_TRY(sum_values(model, live, err));
    live->macs_known = true;
    for (uint32_t s = 0; s < live->timeline.steps.count; s++) {
        const onv_node *node = onv_model_node(model, live->timeline.steps.at[s].node);
        onv_dim element_ops = onv_graph_all_runs(model, node, node->element_ops);
        if (!add_operations(model, onv_live_macs(model, live, s), &live->macs, &live->macs_known) ||
            !add_operations(model, element_ops, &live->element_ops, NULL))
            return fail_at(node, "operations", err);
    }
    return ONV_OK;
}

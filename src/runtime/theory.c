/* The two runtimes of theory: `ideal`, the sum of what is live, and `arena`, the same values at
 * planned offsets in one block. Neither shares nor rounds anything. */
#include "base/fail.h"
#include "ops/op.h"
#include "runtime/runtime.h"

onv_status onv_runtime_values(onv_model *model, const onv_live *live,
                              const onv_runtime_options *options, onv_execution *made,
                              onv_error *err)
{
    (void)options;
    onv_timeline *t = &made->timeline;
    const onv_region *regions = live->timeline.regions.at;
    ONV_TRY(onv_execution_begin(made, live, 1, err));
    if (!onv_vec_reserve(&t->regions, live->timeline.regions.count)) return onv_fail_memory(err);
    for (size_t i = 0; i < live->timeline.regions.count; i++)
        t->regions.at[t->regions.count++] = regions[i];
    for (size_t i = 0; i < model->values.count; i++) {
        const onv_value *value = &model->values.at[i];
        if (onv_value_is_held(value)) ONV_TRY(onv_execution_add_weight(made, value, err));
    }
    for (uint32_t s = 0; s < live->timeline.steps.count; s++) { /* trees and support vectors */
        const onv_node *node = onv_model_node(model, live->timeline.steps.at[s].node);
        uint64_t bytes, elems;
        if (!onv_op_attr_weights(node, &bytes, &elems) || bytes == 0) continue; /* sums fit */
        ONV_TRY(onv_execution_add_weight_bytes(made, bytes, node->name, err));
    }
    return onv_execution_add(made, live->timeline.buffers.at, live->timeline.buffers.count, err);
}

const onv_runtime onv_runtime_ideal = {
    .name = "ideal",
    .summary = "the sum of what is live: no runtime can do with less without sharing memory",
    .holder = "live tensors alone",
    .consumer = ONV_CONSUMER_SWEEP,
    .mode = "raw",
    .allocator = "raw",
    .produce = onv_runtime_values,
};

const onv_runtime onv_runtime_arena = {
    .name = "arena",
    .summary = "every value at a planned offset in one block",
    .holder = "planned offsets",
    .consumer = ONV_CONSUMER_PLANNER,
    .mode = "arena",
    .produce = onv_runtime_values,
};

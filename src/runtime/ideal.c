/* The two runtimes of theory: `ideal`, the sum of what is live, and `arena`, the same values at
 * planned offsets in one block. Neither shares nor rounds anything. */
#include "base/checked.h"
#include "base/heap.h"
#include "plan/plan.h"
#include "runtime/runtime.h"

static onv_status add_weights(const onv_live *live, onv_runtime_result *result, onv_error *err)
{
    result->weight_bytes = live->weight_bytes;
    if (!onv_u64_add(result->weight_bytes, result->activation_bytes, &result->held_bytes))
        return onv_fail(err, ONV_ERR_OVERFLOW, "the total does not fit 64 bits");
    return ONV_OK;
}

/* The weights and every value. */
static onv_status script_theory(const char *mode, onv_model *model, const onv_live *live,
                                const onv_runtime_options *options, onv_script *script,
                                onv_error *err)
{
    size_t n_values = model->values.count;
    onv_buffer *rows = onv_heap_calloc(n_values + live->n_intervals, sizeof *rows);
    if (rows == NULL) return onv_fail_memory(err);
    uint32_t n = 0;
    for (size_t i = 0; i < n_values; i++) {
        const onv_value *value = &model->values.at[i];
        if (onv_value_is_held(value)) rows[n++] = onv_weight_row(value, live->n_steps);
    }
    for (uint32_t i = 0; i < live->n_intervals; i++) rows[n++] = live->intervals[i];
    onv_status status =
        onv_script_of_rows(script, onv_replay_mode_find(mode), rows, n, live->n_steps,
                           &options->alloc, options->plan_effort, err);
    onv_heap_free(rows);
    return status;
}

static onv_status compute_ideal(onv_model *model, const onv_live *live,
                                const onv_runtime_options *options, onv_runtime_result *result,
                                onv_error *err)
{
    (void)model;
    (void)options;
    result->activation_bytes = live->peak_bytes;
    return add_weights(live, result, err);
}

const onv_runtime onv_runtime_ideal = {
    .name = "ideal",
    .summary = "the sum of what is live: no runtime can do with less without sharing memory",
    .compute = compute_ideal,
    .mode = "raw",
    .script = script_theory,
};

static onv_status compute_arena(onv_model *model, const onv_live *live,
                                const onv_runtime_options *options, onv_runtime_result *result,
                                onv_error *err)
{
    (void)model;
    onv_plan plan;
    onv_plan_options how = {.effort = options->plan_effort,
                            .cancelled = options->cancelled,
                            .cancel_context = options->cancel_context};
    ONV_TRY(onv_plan_intervals(live->intervals, live->n_intervals, &how, &plan, err));
    if (plan.stopped) {
        onv_plan_cleanup(&plan);
        return onv_fail(err, ONV_ERR_CANCELLED, "the search for a plan was cancelled");
    }
    result->activation_bytes = plan.height;
    result->lower_bound_bytes = plan.lower_bound;
    result->optimal = plan.optimal;
    onv_plan_cleanup(&plan);
    return add_weights(live, result, err);
}

const onv_runtime onv_runtime_arena = {
    .name = "arena",
    .summary = "every value at a planned offset in one block",
    .compute = compute_arena,
    .mode = "arena",
    .script = script_theory,
};

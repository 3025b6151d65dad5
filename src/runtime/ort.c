/* A session of ONNX Runtime with its CUDA provider, sequential execution.
 *
 * When the session is created, each initializer is taken from the arena, in an order that no file
 * tells (ort/orders.h), or from the device beside the arena where
 * session.use_device_allocator_for_initializers is set. In the first run of a shape every buffer of
 * the plan (ort.h) is an arena allocation. From the second run on, the temporaries are one
 * allocation, packed as the first run traced them; graph outputs and inputs are apart. Kernels take
 * what they need for themselves from the same arena while they run. Arenas never shrink, so the
 * second run may add to what the first one took.
 */
#include "ort/ort.h"

#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "kernels/cublas.h"
#include "kernels/cudnn.h"
#include "ort/orders.h"
#include "ort/scratch.h"
#include "runtime/runtime.h"

static onv_ort_session session_of(const onv_runtime_options *options, onv_ort_provider provider)
{
    onv_ort_session session = {
        .provider = provider, .settings = options->ort, .cuda = options->lower.cuda};
    if (session.settings == NULL) session.settings = &onv_ort_settings_default;
    session.cuda.pytorch = 0;
    session.cuda.tf32 = session.settings->use_tf32 != 0;
    if (options->rewritten != NULL) session.seen = options->rewritten->seen;
    return session;
}

onv_ort_session onv_ort_session_of(const onv_runtime_options *options)
{
    return session_of(options, ONV_ORT_CUDA);
}

typedef struct weights {
    const onv_model *model;
    onv_execution *made;
    bool beside_arena;
} weights;

static onv_status add_weight(void *to, const onv_value *value, onv_error *err)
{
    const weights *w = to;
    ONV_TRY(onv_execution_add_weight(w->made, value, err));
    onv_buffer *b = &w->made->timeline.buffers.at[w->made->timeline.buffers.count - 1];
    b->value.index = (uint32_t)(value - w->model->values.at);
    b->bypasses_pool = w->beside_arena;
    return ONV_OK;
}

/* Kernels are made when the initializers are there. */
static onv_status add_kept(const onv_model *model, const onv_live *live,
                           const onv_ort_session *session, onv_execution *made, onv_error *err)
{
    for (uint32_t s = 0; s < live->timeline.steps.count; s++) {
        uint64_t rows[ONV_ORT_MOST_KEPT];
        const onv_node *node = onv_model_node(model, live->timeline.steps.at[s].node);
        uint32_t n = onv_ort_find_kept(model, node, session, rows);
        for (uint32_t i = 0; i < n; i++)
            ONV_TRY(onv_execution_add_weight_bytes(made, rows[i], node->op_type, err));
    }
    return ONV_OK;
}

/* A session by this plan, its initializers in the order of the file: the first *n_weights buffers. */
static onv_status make_session(onv_model *model, const onv_ort_plan *plan,
                               const onv_runtime_options *options, const onv_ort_session *session,
                               uint32_t *n_weights, onv_execution *made, onv_error *err)
{
    made->reused_values = plan->reused;
    bool beside_arena = plan->settings->use_device_allocator_for_initializers != 0;
    weights w = {model, made, beside_arena};
    ONV_TRY(onv_each_device_weight(model, add_weight, &w, err));
    *n_weights = beside_arena ? 0 : (uint32_t)made->timeline.buffers.count;
    ONV_TRY(add_kept(model, plan->live, session, made, err));
    ONV_TRY(onv_ort_add_runs(plan, ONV_ORT_RUNS, &options->alloc, &made->timeline, err));
    return onv_execution_share_outputs(model, made, err);
}

/* With the workspaces that cuDNN chooses most likely and the largest branches, and where others are possible with the
 * least and the most; what needs most is what was made, in the order of initializers that needs most. */
static onv_status make_sessions(onv_model *model, const onv_live *live,
                                const onv_runtime_options *options, const onv_ort_session *session,
                                onv_ort_orders *orders, onv_execution *made, bool *is_short,
                                onv_error *err)
{
    onv_ort_plan plan;
    onv_ort_spread all = {.low = UINT64_MAX};
    ONV_TRY(onv_ort_plan_compute(model, live, session, &plan, err));
    for (int i = ONV_ORT_LIKELY; i < ONV_ORT_CHOICES; i++) {
        onv_execution other = {0};
        onv_ort_spread spread = {0};
        uint32_t n_weights = 0;
        if (!onv_ort_plan_choose(&plan, (onv_ort_choice)i) && i != ONV_ORT_LIKELY) continue;
        onv_status status = make_session(model, &plan, options, session, &n_weights, &other, err);
        if (status == ONV_OK && i == ONV_ORT_LIKELY)
            status = onv_ort_orders_init(orders, model, &other.timeline, n_weights, &options->alloc,
                                         err);
        if (status == ONV_OK) status = onv_ort_orders_try(orders, &other.timeline, &spread, err);
        if (spread.low < all.low) all.low = spread.low;
        bool is_most = i == ONV_ORT_LIKELY || spread.high > all.high;
        onv_execution_cleanup(is_most ? made : &other);
        if (is_most) *made = other;
        if (is_most) all.high = spread.high;
        if (is_most) all.highest = spread.highest;
        if (status != ONV_OK) return status;
    }
    made->least_bytes = all.low < UINT64_MAX ? all.low : 0;
    *is_short = all.high == UINT64_MAX;
    return onv_ort_orders_apply(orders, all.highest, &made->timeline, err);
}

/* Where the arena finds no room for a pattern, the buffers in it are asked for one by one, as in the first run
 * (onnxruntime/core/framework/execution_frame.cc). */
static onv_status produce_session(onv_model *model, const onv_live *live,
                                  const onv_runtime_options *options, onv_execution *made,
                                  onv_error *err)
{
    onv_ort_session session = onv_ort_session_of(options);
    onv_ort_settings settings = *session.settings;
    onv_conv_answers convolutions = {.count = 0};
    session.cuda.answers = &convolutions;
    for (bool is_short = true; is_short; settings.enable_mem_pattern = 0) {
        onv_ort_orders orders = {0};
        session.settings = &settings;
        onv_status status =
            make_sessions(model, live, options, &session, &orders, made, &is_short, err);
        onv_ort_orders_cleanup(&orders);
        ONV_TRY(status);
        is_short &= settings.enable_mem_pattern != 0;
        if (is_short) onv_execution_cleanup(made);
        if (is_short) *made = (onv_execution){0};
    }
    onv_ort_handles handles;
    ONV_TRY(onv_ort_count_handles(model, live, &session, &handles, err));
    uint64_t cudnn = onv_cudnn_handle_bytes(&session.cuda);
    uint64_t each = onv_cublas_handle_bytes(&session.cuda) + cudnn, more = handles.has_conv * cudnn;
    made->driver_bytes = handles.most * each + more;
    made->driver_least_bytes = handles.least * each + more;
    return ONV_OK;
}

const onv_runtime onv_runtime_ort = {
    .name = "ort",
    .summary = "ONNX Runtime's CUDA provider: buffer reuse, memory pattern, BFC arena",
    .holder = "ONNX Runtime's arena",
    .order = "ort",
    .provider = ONV_PROVIDER_CUDA,
    .has_context = true,
    .is_usual = true,
    .consumer = ONV_CONSUMER_ALLOCATOR,
    .mode = "ort",
    .allocator = "bfc",
    .produce = produce_session,
};

/* --- The CPU provider -------------------------------------------------------------------------- */

/* Weights are in memory of their own, and what kernels make of them when the session is created takes their place. Some
 * keep theirs in the arena, which else serves runs alone. */
static onv_status add_weights_on_cpu(const onv_model *model, const onv_live *live,
                                     onv_execution *made, onv_error *err)
{
    bool *is_kept = onv_heap_calloc(model->values.count + 1, sizeof *is_kept);
    onv_status status = is_kept != NULL ? ONV_OK : onv_fail_memory(err);
    for (uint32_t s = 0; status == ONV_OK && s < live->timeline.steps.count; s++) {
        const onv_node *node = onv_model_node(model, live->timeline.steps.at[s].node);
        uint32_t k;
        uint64_t bytes = onv_ort_cpu_kept(model, node, &k);
        if (bytes == 0) continue;
        is_kept[node->inputs[k].index] = true;
        status = onv_execution_add_weight_bytes(made, bytes,
                                                onv_model_value(model, node->inputs[k])->name, err);
    }
    for (size_t i = 0; status == ONV_OK && i < model->values.count; i++) {
        if (is_kept[i] || !onv_value_is_held(&model->values.at[i])) continue;
        status = onv_execution_add_weight(made, &model->values.at[i], err);
        if (status == ONV_OK)
            made->timeline.buffers.at[made->timeline.buffers.count - 1].bypasses_pool = true;
    }
    onv_heap_free(is_kept);
    return status;
}

static onv_status produce_on_cpu(onv_model *model, const onv_live *live,
                                 const onv_runtime_options *options, onv_execution *made,
                                 onv_error *err)
{
    onv_ort_session session = session_of(options, ONV_ORT_CPU);
    onv_ort_plan plan;
    ONV_TRY(onv_ort_plan_compute(model, live, &session, &plan, err));
    made->reused_values = plan.reused;
    ONV_TRY(add_weights_on_cpu(model, live, made, err));
    ONV_TRY(onv_ort_add_runs(&plan, ONV_ORT_RUNS, &options->alloc, &made->timeline, err));
    return onv_execution_share_outputs(model, made, err);
}

const onv_runtime onv_runtime_cpu = {
    .name = "cpu",
    .summary = "ONNX Runtime's CPU provider, in the host's memory; only if named",
    .holder = "ONNX Runtime's arena",
    .order = "ort",
    .provider = ONV_PROVIDER_CPU,
    .is_by_name = true,
    .consumer = ONV_CONSUMER_ALLOCATOR,
    .mode = "cpu",
    .allocator = "bfc",
    .produce = produce_on_cpu,
};

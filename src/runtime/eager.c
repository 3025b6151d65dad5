/* Eager PyTorch: one forward pass of the tape that training runs, too (eager/inference.h). `torch` serves
 * the requests as PyTorch's caching allocator does, `async` as the device's stream-ordered pool
 * (PyTorch's backend:cudaMallocAsync). */
#include "eager/inference.h"
#include "graph/storage.h"
#include "runtime/runtime.h"

/* The run that takes most, where branches leave the choice. */
static onv_status build(onv_model *model, const onv_live *live, const onv_runtime_options *options,
                        onv_timeline *path, onv_error *err)
{
    bool *is_host;
    onv_eager eager;
    onv_timeline timeline;
    onv_lower_options lower = options->lower;
    lower.inference = true;
    lower.reports = false; /* it is training that the export hides things from */
    lower.n_freeze = lower.n_train_only = 0;
    *path = (onv_timeline){0};
    ONV_TRY(onv_mark_host_values(model, live, &is_host, err));
    ONV_TRY(onv_eager_lower(model, live, is_host, &lower, &eager, err));
    onv_status status = onv_eager_check(&eager, err);
    if (status == ONV_OK) status = onv_inference_build(model, &eager, &timeline, err);
    onv_eager_cleanup(&eager);
    ONV_TRY(status);
    status = onv_timeline_path(&timeline, path, NULL, err);
    onv_timeline_cleanup(&timeline);
    if (status != ONV_OK) onv_timeline_cleanup(path);
    return status;
}

static onv_status script_eager(const char *mode, onv_model *model, const onv_live *live,
                               const onv_runtime_options *options, onv_script *script,
                               onv_error *err)
{
    onv_timeline t;
    ONV_TRY(build(model, live, options, &t, err));
    onv_status status = onv_script_of_rows(script, onv_replay_mode_find(mode), t.buffers.at,
                                           (uint32_t)t.buffers.count, (uint32_t)t.steps.count,
                                           &options->alloc, options->plan_effort, err);
    onv_timeline_cleanup(&t);
    return status;
}

static bool trace_buffers(const onv_timeline *t, onv_trace *trace)
{
    return onv_trace_add_intervals(trace, t->buffers.at, (uint32_t)t->buffers.count,
                                   (uint32_t)t->steps.count, 0);
}

static onv_status run_eager(const char *allocator, onv_model *model, const onv_live *live,
                            const onv_runtime_options *options, onv_runtime_result *result,
                            onv_error *err)
{
    onv_timeline t;
    onv_trace trace = {0};
    onv_alloc_result run = {0};
    onv_peak peak;
    ONV_TRY(build(model, live, options, &t, err));
    onv_status status = onv_timeline_peak(&t, &peak, NULL, err); /* all sums fit */
    for (size_t i = 0; i < t.buffers.count && status == ONV_OK; i++) {
        const onv_buffer *b = &t.buffers.at[i];
        if (b->kind == ONV_BUFFER_WEIGHT || b->kind == ONV_BUFFER_STATISTIC)
            result->weight_bytes += b->bytes;
    }
    if (status == ONV_OK && !trace_buffers(&t, &trace)) status = onv_fail_memory(err);
    if (status == ONV_OK)
        status =
            onv_alloc_simulate(&trace, onv_alloc_model_find(allocator), &options->alloc, &run, err);
    onv_trace_cleanup(&trace);
    onv_timeline_cleanup(&t);
    ONV_TRY(status);
    result->allocated_peak_bytes = run.allocated_peak;
    result->reserved_peak_bytes = run.reserved_peak;
    result->held_bytes = run.reserved_peak;
    result->activation_bytes = run.reserved_peak - result->weight_bytes;
    return ONV_OK;
}

static onv_status compute_torch(onv_model *model, const onv_live *live,
                                const onv_runtime_options *options, onv_runtime_result *result,
                                onv_error *err)
{
    return run_eager("torch", model, live, options, result, err);
}

const onv_runtime onv_runtime_torch = {
    .name = "torch",
    .summary = "eager PyTorch with its caching allocator",
    .has_context = true,
    .compute = compute_torch,
    .mode = "torch",
    .script = script_eager,
};

static onv_status compute_async(onv_model *model, const onv_live *live,
                                const onv_runtime_options *options, onv_runtime_result *result,
                                onv_error *err)
{
    return run_eager("async", model, live, options, result, err);
}

const onv_runtime onv_runtime_async = {
    .name = "async",
    .summary = "eager execution on the device's stream-ordered pool (cudaMallocAsync)",
    .has_context = true,
    .compute = compute_async,
    .mode = "async",
    .script = script_eager,
};

/* Eager execution: every value is allocated when it is made and freed after its last use, views
 * share their source's memory, the caller holds the inputs. `torch` serves the requests as PyTorch's
 * caching allocator does, `async` as the device's stream-ordered pool (PyTorch's
 * backend:cudaMallocAsync). */
#include "runtime/runtime.h"

typedef struct tracing {
    onv_trace trace;
    uint32_t next_id;
    uint64_t weight_bytes;
} tracing;

static onv_status add_weight(void *context, const onv_value *value, onv_error *err)
{
    tracing *t = context;
    t->weight_bytes += value->tensor->bytes; /* live_compute has checked their sum */
    if (!onv_trace_alloc(&t->trace, t->next_id++, value->tensor->bytes, 0, value->name))
        return onv_fail_memory(err);
    return ONV_OK;
}

static const onv_storage_rules eager_rules = {
    .views = true, .strided_views = true, .skip_host = true, .hold_inputs = true};

static onv_status trace_eager(onv_model *model, const onv_live *live, tracing *t, onv_error *err)
{
    onv_storages storages;
    ONV_TRY(onv_storages_compute(model, live, &eager_rules, &storages, err));
    ONV_TRY(onv_each_device_weight(model, add_weight, t, err));
    if (!onv_trace_add_intervals(&t->trace, storages.at, storages.count, live->n_steps, t->next_id))
        return onv_fail_memory(err);
    return ONV_OK;
}

/* --- Scripts ----------------------------------------------------------------------------------- */

typedef struct rows {
    ONV_VEC(onv_buffer) list;
    uint32_t n_steps;
} rows;

static onv_status add_weight_row(void *context, const onv_value *value, onv_error *err)
{
    rows *r = context;
    return onv_vec_push(&r->list, onv_weight_row(value, r->n_steps)) ? ONV_OK
                                                                     : onv_fail_memory(err);
}

static onv_status script_eager(const char *mode, onv_model *model, const onv_live *live,
                               const onv_runtime_options *options, onv_script *script,
                               onv_error *err)
{
    rows r = {.n_steps = live->n_steps};
    onv_storages storages;
    ONV_TRY(onv_storages_compute(model, live, &eager_rules, &storages, err));
    onv_status status = onv_each_device_weight(model, add_weight_row, &r, err);
    if (status == ONV_OK && !onv_vec_reserve(&r.list, storages.count))
        status = onv_fail_memory(err);
    for (uint32_t i = 0; i < storages.count && status == ONV_OK; i++)
        r.list.at[r.list.count++] = storages.at[i];
    if (status == ONV_OK)
        status = onv_script_of_rows(script, onv_replay_mode_find(mode), r.list.at,
                                    (uint32_t)r.list.count, live->n_steps, &options->alloc,
                                    options->plan_effort, err);
    onv_vec_cleanup(&r.list);
    return status;
}

/* --- Runtimes ---------------------------------------------------------------------------------- */

static onv_status run_eager(const char *allocator, onv_model *model, const onv_live *live,
                            const onv_runtime_options *options, onv_runtime_result *result,
                            onv_error *err)
{
    tracing t = {0};
    onv_alloc_result run = {0};
    onv_status status = trace_eager(model, live, &t, err);
    if (status == ONV_OK)
        status = onv_alloc_simulate(&t.trace, onv_alloc_model_find(allocator), &options->alloc,
                                    &run, err);
    onv_trace_cleanup(&t.trace);
    ONV_TRY(status);
    result->weight_bytes = t.weight_bytes;
    result->allocated_peak_bytes = run.allocated_peak;
    result->reserved_peak_bytes = run.reserved_peak;
    result->held_bytes = run.reserved_peak;
    result->activation_bytes = run.reserved_peak - t.weight_bytes;
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

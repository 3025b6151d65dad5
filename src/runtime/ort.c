/* ONNX Runtime with its CUDA provider, sequential execution, default arena and pattern. The graph is
 * taken as it stands: what the optimizer folds and fuses before a session runs is not followed.
 *
 * Initializers lie in one buffer (each rounded up to 256 bytes) that is reserved beside the arena.
 * In the first run of a shape every buffer of the plan (ort.h) is an arena allocation. From the
 * second run on, the temporaries are one allocation, packed as the first run traced them; graph
 * outputs and inputs are apart. Arenas never shrink, so the second run may add to what the first one
 * took. The workspaces of kernels are no part of this: they come out of the same arena for the time
 * of a node and are estimated apart.
 */
#include "ort/ort.h"

#include "base/checked.h"
#include "runtime/ort_script.h"

#define ALIGN UINT64_C(256)

static bool is_temporary(const onv_ort_plan *plan, uint32_t i)
{
    return plan->buffers[i].kind == ONV_BUFFER_ACTIVATION && !plan->is_fetched[i];
}

onv_status onv_ort_pattern_bytes(onv_model *model, const onv_live *live, const onv_ort_plan *plan,
                                 const onv_alloc_options *options, uint64_t *bytes, onv_error *err)
{
    onv_trace trace = {0};
    onv_alloc_result result = {0};
    onv_buffer *rows = ONV_ARENA_ARRAY(&model->arena, onv_buffer, plan->count);
    if (rows == NULL) return onv_fail_memory(err);
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->count; i++)
        if (is_temporary(plan, i)) rows[n++] = plan->buffers[i];
    onv_status status =
        onv_trace_add_intervals(&trace, rows, n, live->n_steps, 0) ? ONV_OK : onv_fail_memory(err);
    if (status == ONV_OK)
        status = onv_alloc_simulate(&trace, onv_alloc_model_find("pattern"), options, &result, err);
    onv_trace_cleanup(&trace);
    *bytes = result.reserved_peak;
    return status;
}

/* Fetched outputs of inner graphs die with what they are handed to, those of the main graph and the
 * copies of the inputs with the run. */
static onv_buffer row_of(const onv_ort_plan *plan, uint32_t i, uint32_t end)
{
    onv_buffer row = plan->buffers[i];
    if (row.kind != ONV_BUFFER_ACTIVATION) row.last = end;
    return row;
}

onv_status onv_ort_run_trace(onv_model *model, const onv_live *live, const onv_ort_plan *plan,
                             uint64_t pattern, onv_trace *trace, onv_error *err)
{
    *trace = (onv_trace){0};
    onv_buffer *rows = ONV_ARENA_ARRAY(&model->arena, onv_buffer, (size_t)plan->count + 1);
    if (rows == NULL) return onv_fail_memory(err);
    uint32_t n = 0, end = live->n_steps - 1;
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->buffers[i].kind == ONV_BUFFER_INPUT) rows[n++] = row_of(plan, i, end);
    if (pattern > 0) rows[n++] = onv_buffer_new(ONV_BUFFER_POOL, pattern, 0, end, "pattern");
    for (uint32_t i = 0; i < plan->count; i++) {
        bool in_pattern = pattern > 0 && is_temporary(plan, i);
        if (plan->buffers[i].kind != ONV_BUFFER_INPUT && !in_pattern)
            rows[n++] = row_of(plan, i, end);
    }
    return onv_trace_add_intervals(trace, rows, n, live->n_steps, 1) ? ONV_OK
                                                                     : onv_fail_memory(err);
}

/* --- A session --------------------------------------------------------------------------------- */

static onv_status add_initializer(void *context, const onv_value *value, onv_error *err)
{
    uint64_t *bytes = context, rounded;
    if (!onv_u64_round_up(value->tensor->bytes, ALIGN, &rounded) ||
        !onv_u64_add(*bytes, rounded, bytes))
        return onv_fail(err, ONV_ERR_OVERFLOW, "the bytes of all weights do not fit 64 bits");
    return ONV_OK;
}

typedef struct session {
    onv_model *model;
    const onv_live *live;
    onv_ort_plan plan;
    onv_allocator arena;
} session;

static onv_status run_once(session *s, uint64_t pattern, onv_error *err)
{
    onv_trace trace;
    onv_status status = onv_ort_run_trace(s->model, s->live, &s->plan, pattern, &trace, err);
    for (size_t i = 0; i < trace.count && status == ONV_OK; i++)
        status = onv_allocator_feed(&s->arena, &trace.events[i], err);
    onv_trace_cleanup(&trace);
    return status;
}

static onv_status run_session(session *s, const onv_runtime_options *options,
                              onv_runtime_result *result, onv_error *err)
{
    uint64_t pattern;
    onv_alloc_result at;
    ONV_TRY(onv_allocator_reserve(&s->arena, 0, result->weight_bytes, err));
    ONV_TRY(run_once(s, 0, err));
    onv_allocator_result(&s->arena, &at);
    result->first_run_bytes = at.reserved_end;
    ONV_TRY(onv_ort_pattern_bytes(s->model, s->live, &s->plan, &options->alloc, &pattern, err));
    for (int run = 0; run < 2; run++) ONV_TRY(run_once(s, pattern, err));
    onv_allocator_result(&s->arena, &at);
    result->steady_bytes = at.reserved_end;
    result->allocated_peak_bytes = at.allocated_peak;
    result->reserved_peak_bytes = at.reserved_peak;
    result->held_bytes = at.reserved_peak;
    result->activation_bytes = at.reserved_peak - result->weight_bytes;
    result->reused_values = s->plan.reused;
    return ONV_OK;
}

static onv_status compute_ort(onv_model *model, const onv_live *live,
                              const onv_runtime_options *options, onv_runtime_result *result,
                              onv_error *err)
{
    session s = {.model = model, .live = live};
    ONV_TRY(onv_ort_plan_compute(model, live, ONV_ORT_CUDA, &s.plan, err));
    ONV_TRY(onv_each_device_weight(model, add_initializer, &result->weight_bytes, err));
    ONV_TRY(onv_allocator_init(&s.arena, onv_alloc_model_find("bfc"), &options->alloc, err));
    onv_status status = run_session(&s, options, result, err);
    onv_allocator_cleanup(&s.arena);
    return status;
}

const onv_runtime onv_runtime_ort = {
    .name = "ort",
    .summary = "ONNX Runtime's CUDA provider: buffer reuse, memory pattern, BFC arena",
    .order = "ort",
    .has_context = true,
    .compute = compute_ort,
    .mode = "ort",
    .script = onv_ort_script,
};

#include "runtime/runtime.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/heap.h"

extern const onv_runtime onv_runtime_ideal, onv_runtime_arena, onv_runtime_torch, onv_runtime_ort,
    onv_runtime_async, onv_runtime_cpu, onv_runtime_tensorrt;

const onv_runtime *const onv_runtimes[] = {
    &onv_runtime_ideal, &onv_runtime_arena, &onv_runtime_torch,   &onv_runtime_ort,
    &onv_runtime_async, &onv_runtime_cpu,   &onv_runtime_tensorrt};
const size_t onv_n_runtimes = sizeof onv_runtimes / sizeof onv_runtimes[0];

const onv_runtime *onv_runtime_find(const char *name)
{
    for (size_t i = 0; i < onv_n_runtimes; i++)
        if (strcmp(onv_runtimes[i]->name, name) == 0) return onv_runtimes[i];
    return NULL;
}

/* --- What no graph tells ----------------------------------------------------------------------- */

/* Reported figures for one process with lazy loading (256 MiB on an RTX 3090 with CUDA 12.8, some
 * 300 MiB generally); the upper end is an assumption for data-center devices. */
#define CONTEXT_LOW  (UINT64_C(256) << 20)
#define CONTEXT_HIGH (UINT64_C(600) << 20)

uint64_t onv_runtime_room(uint64_t usable_bytes)
{
    return usable_bytes > CONTEXT_HIGH ? usable_bytes - CONTEXT_HIGH : 0;
}

/* --- Weights ----------------------------------------------------------------------------------- */

/* Shapes, axes and indices: kernels want them on the host. That a few integers are never anything
 * else is an assumption; its price is at most 512 bytes for each that is. */
static bool is_host_constant(const onv_value *value)
{
    bool integer = onv_dtype_is_integer((onv_dtype)value->tensor->type.dtype) ||
                   value->tensor->type.dtype == ONV_BOOL;
    return (integer && value->tensor->elems <= 64) || value->tensor->elems == 0 ||
           onv_dtype_bits((onv_dtype)value->tensor->type.dtype) == 0;
}

onv_status onv_each_device_weight(const onv_model *model, onv_weight_fn add, void *context,
                                  onv_error *err)
{
    for (size_t i = 0; i < model->values.count; i++) {
        const onv_value *value = &model->values.at[i];
        if (!onv_value_is_held(value)) continue;
        if (model->has_providers ? value->is_on_host : is_host_constant(value)) continue;
        ONV_TRY(add(context, value, err));
    }
    return ONV_OK;
}

/* --- Executions -------------------------------------------------------------------------------- */

void onv_execution_cleanup(onv_execution *e)
{
    onv_timeline_cleanup(&e->timeline);
    onv_placement_cleanup(&e->placement);
    onv_plan_cleanup(&e->plan);
}

onv_status onv_execution_begin(onv_execution *made, const onv_live *live, uint32_t runs,
                               onv_error *err)
{
    onv_timeline *t = &made->timeline;
    if (live->timeline.steps.count > UINT32_MAX / 2 / runs)
        return onv_fail(err, ONV_ERR_LIMIT, "the runtime would take too many steps");
    if (!onv_vec_reserve(&t->steps, (size_t)runs * live->timeline.steps.count))
        return onv_fail_memory(err);
    for (uint32_t run = 0; run < runs; run++) {
        for (uint32_t s = 0; s < live->timeline.steps.count; s++) {
            onv_step step = live->timeline.steps.at[s];
            step.iteration = run;
            t->steps.at[t->steps.count++] = step;
        }
    }
    return ONV_OK;
}

onv_status onv_execution_add_weight_bytes(onv_execution *made, uint64_t bytes, const char *name,
                                          onv_error *err)
{
    onv_timeline *t = &made->timeline;
    onv_buffer b = onv_buffer_new(ONV_BUFFER_WEIGHT, bytes, 0, (uint32_t)t->steps.count - 1, name);
    return onv_vec_push(&t->buffers, b) ? ONV_OK : onv_fail_memory(err);
}

onv_status onv_execution_add_weight(void *made, const onv_value *value, onv_error *err)
{
    return onv_execution_add_weight_bytes(made, value->tensor->bytes, value->name, err);
}

onv_status onv_execution_add(onv_execution *made, const onv_buffer *buffers, size_t count,
                             onv_error *err)
{
    onv_timeline *t = &made->timeline;
    uint32_t before = (uint32_t)t->buffers.count;
    if (!onv_vec_reserve(&t->buffers, count)) return onv_fail_memory(err);
    for (size_t i = 0; i < count; i++) {
        onv_buffer b = buffers[i];
        if (b.becomes != ONV_NO_BUFFER) b.becomes += before;
        if (b.within != ONV_NO_BUFFER) b.within += before;
        t->buffers.at[t->buffers.count++] = b;
    }
    return ONV_OK;
}

onv_status onv_execution_share_outputs(const onv_model *model, onv_execution *made, onv_error *err)
{
    onv_timeline *t = &made->timeline;
    const onv_graph *graph = onv_model_graph(model, (onv_graph_id){0});
    size_t n = model->values.count;
    bool copies = model->n_shared > 0 && model->shared[0].is_copy; /* all are, or none */
    if (model->n_shared == 0) return ONV_OK;
    uint32_t *input_of = onv_heap_calloc(2 * n, sizeof *input_of);
    if (input_of == NULL) return onv_fail_memory(err);
    uint32_t *at_input = input_of + n;
    for (size_t i = 0; i < n; i++) input_of[i] = at_input[i] = UINT32_MAX;
    for (uint32_t i = 0; i < model->n_shared; i++) {
        const onv_shared_output *s = &model->shared[i];
        input_of[graph->outputs[s->output].index] = graph->inputs[s->input].index;
    }
    for (uint32_t b = 0; b < t->buffers.count; b++) {
        onv_buffer *at = &t->buffers.at[b];
        if (!onv_is_value(at->value) || at->value.index >= n || at->within != ONV_NO_BUFFER)
            continue;
        at_input[at->value.index] = b;
        uint32_t in = input_of[at->value.index];
        uint32_t whole = in != UINT32_MAX ? at_input[in] : UINT32_MAX;
        if (whole == UINT32_MAX || whole == b || at->becomes != ONV_NO_BUFFER) continue;
        onv_buffer *to = &t->buffers.at[whole];
        if (at->last > to->last) to->last = at->last;
        if (copies) continue;
        if (at->bytes > to->bytes && !at->bound) to->bytes = at->bytes;
        if (at->bytes > to->bytes) at->bytes = to->bytes;
        at->within = whole;
        at->offset = 0;
    }
    onv_heap_free(input_of);
    return ONV_OK;
}

/* --- Serving ----------------------------------------------------------------------------------- */

static onv_status take_one_path(onv_timeline *t, onv_error *err)
{
    bool branches = false;
    for (size_t i = 0; i < t->regions.count && !branches; i++)
        branches = t->regions.at[i].kind == ONV_REGION_ALTERNATIVES;
    if (!branches) return ONV_OK;
    onv_timeline path = {0};
    onv_status status = onv_timeline_path(t, &path, NULL, err);
    onv_timeline_cleanup(status == ONV_OK ? t : &path);
    if (status == ONV_OK) *t = path;
    return status;
}

static onv_status plan_all(const onv_runtime_options *options, onv_execution *made, onv_error *err)
{
    onv_plan_options how = {.effort = options->plan_effort,
                            .alignment = options->plan_alignment,
                            .cancelled = options->cancelled,
                            .cancel_context = options->cancel_context};
    ONV_TRY(onv_plan_timeline(&made->timeline, &how, &made->plan, &made->placement, err));
    if (!made->plan.stopped) return ONV_OK;
    return onv_fail(err, ONV_ERR_CANCELLED, "the search for a plan was cancelled");
}

static bool is_torch(const onv_runtime *runtime)
{
    return runtime->allocator != NULL && strcmp(runtime->allocator, "torch") == 0;
}

onv_alloc_options onv_runtime_allocator(const onv_runtime *runtime,
                                        const onv_runtime_options *options)
{
    enum { MOST_PASSES = 8 };
    onv_alloc_options alloc = options->alloc;
    alloc.later_iterations = is_torch(runtime) ? MOST_PASSES - 1 : 0;
    return alloc;
}

static onv_status place(const onv_runtime *runtime, const onv_runtime_options *options,
                        onv_alloc_options how, onv_execution *made, onv_error *err)
{
    if (runtime->allocator == NULL) return plan_all(options, made, err);
    ONV_TRY(take_one_path(&made->timeline, err));
    /* A sweep rounds nothing: granules depend on the device. */
    if (runtime->consumer == ONV_CONSUMER_SWEEP) how.raw_granularity_bytes = 1;
    return onv_alloc_run(&made->timeline, onv_alloc_model_find(runtime->allocator), &how,
                         &made->placement, err);
}

onv_status onv_runtime_place(const onv_runtime *runtime, const onv_runtime_options *options,
                             onv_execution *made, onv_error *err)
{
    return place(runtime, options, options->alloc, made, err);
}

/* --- Figures ----------------------------------------------------------------------------------- */

/* Weights as they are stored: each by itself, or in one block. */
static uint64_t sum_weights(const onv_timeline *t)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < t->buffers.count; i++) {
        const onv_buffer *b = &t->buffers.at[i];
        bool is_weight = b->kind == ONV_BUFFER_WEIGHT || b->kind == ONV_BUFFER_STATISTIC;
        if (b->bypasses_pool || (is_weight && b->within == ONV_NO_BUFFER)) bytes += b->bytes;
    }
    return bytes; /* less than the peak of all, which fits */
}

/* What the first run took, and what all of them did: nobody gives memory back between runs. */
static void take_runs(const onv_execution *made, onv_runtime_result *result)
{
    const onv_timeline *t = &made->timeline;
    if (t->steps.at[t->steps.count - 1].iteration == 0) return;
    for (size_t s = 0; s < t->steps.count && t->steps.at[s].iteration == 0; s++)
        result->first_run_bytes = made->placement.reserved_at[s];
    result->steady_bytes = made->placement.reserved_at[t->steps.count - 1];
}

static void take_peak(const onv_timeline *t, uint32_t step, onv_runtime_result *result)
{
    const onv_step *at = &t->steps.at[step];
    result->peak_node = at->node;
    result->peak_label = at->label;
    result->peak_phase = (onv_phase)at->phase;
}

/* `t` is what was made, or, where that is no more than a sum, the lifetimes. */
static onv_status take_figures(const onv_live *live, const onv_timeline *t,
                               const onv_execution *made, const onv_runtime_options *options,
                               onv_runtime_result *result, onv_error *err)
{
    const onv_held_figures *figures = &made->placement.figures;
    onv_peak peak = {0};
    result->reused_values = made->reused_values;
    result->driver_bytes = made->driver_bytes;
    result->time = made->time;
    result->driver_least_bytes =
        made->driver_least_bytes > 0 ? made->driver_least_bytes : made->driver_bytes;
    result->weight_bytes = sum_weights(t);
    result->held_bytes = figures->reserved_peak;
    switch ((onv_runtime_consumer)result->runtime->consumer) {
    case ONV_CONSUMER_SWEEP:
        peak.step = live->peak_step;
        result->weight_bytes = live->weight_bytes;
        if (!onv_u64_add(live->weight_bytes, live->peak_bytes, &result->held_bytes))
            return onv_fail(err, ONV_ERR_OVERFLOW,
                            "the bytes of weights and values do not fit 64 bits");
        break;
    case ONV_CONSUMER_PLANNER:
        result->lower_bound_bytes = made->plan.lower_bound;
        result->optimal = made->plan.optimal;
        ONV_TRY(onv_timeline_peak(t, &peak, NULL, err));
        break;
    case ONV_CONSUMER_ALLOCATOR:
        result->allocated_peak_bytes = figures->allocated_peak;
        result->reserved_peak_bytes = figures->reserved_peak;
        result->out_of_memory = figures->out_of_memory;
        result->oom_bytes = figures->oom_bytes;
        ONV_TRY(onv_timeline_peak_without(t, ONV_BUFFERS_BESIDE_TENSORS, &peak, NULL, err));
        result->tensor_peak_bytes = peak.bytes;
        take_runs(made, result);
        break;
    }
    take_peak(t, peak.step, result);
    const onv_alloc_options alloc = onv_runtime_allocator(result->runtime, options);
    if (options->room_bytes > made->driver_bytes && is_torch(result->runtime))
        ONV_TRY(onv_release_find(t, NULL, 0, &alloc, options->room_bytes - made->driver_bytes,
                                 figures, &result->release, err));
    result->low_bytes = made->least_bytes > 0 ? made->least_bytes : result->held_bytes;
    result->low_bytes -= made->spare_bytes;
    result->high_bytes = result->held_bytes;
    result->activation_bytes = result->held_bytes - result->weight_bytes;
    return ONV_OK;
}

const uint64_t *onv_runtime_offsets(const onv_execution *made, const onv_live *live,
                                    onv_arena *arena)
{
    uint64_t *offsets = ONV_ARENA_ARRAY(arena, uint64_t, live->timeline.buffers.count);
    uint64_t weights = made->plan.below;
    size_t first =
        made->timeline.buffers.count - live->timeline.buffers.count; /* weights stand before */
    for (uint32_t i = 0; offsets != NULL && i < live->timeline.buffers.count; i++) {
        const onv_place *place = &made->placement.places.at[first + i];
        offsets[i] = live->timeline.buffers.at[i].bytes > 0 ? place->offset - weights : 0;
    }
    return offsets;
}

uint64_t onv_runtime_figure(const onv_runtime_result *result, const onv_placement *placement)
{
    return placement->is_pooled ? result->allocated_peak_bytes : result->held_bytes;
}

/* --- All together ------------------------------------------------------------------------------ */

void onv_runtime_begin_ends(onv_runtime_result *r)
{
    r->allocated_ends = (onv_range){r->allocated_peak_bytes, r->allocated_peak_bytes};
    r->tensor_ends = (onv_range){r->tensor_peak_bytes, r->tensor_peak_bytes};
}

static void widen(onv_range *range, uint64_t bytes)
{
    if (bytes < range->low) range->low = bytes;
    if (bytes > range->high) range->high = bytes;
}

void onv_runtime_add_end(const onv_runtime_result *end, onv_runtime_result *r)
{
    onv_range reserved = {r->low_bytes, r->high_bytes};
    widen(&r->allocated_ends, end->allocated_peak_bytes);
    widen(&r->tensor_ends, end->tensor_peak_bytes);
    if (end->held_bytes >= reserved.high) r->release = end->release; /* verdicts are of that end */
    widen(&reserved, end->held_bytes);
    r->low_bytes = reserved.low;
    r->high_bytes = reserved.high;
}

onv_status onv_runtime_add_up(onv_runtime_result *r, onv_error *err)
{
    if (r->runtime->has_context) r->context_bytes = (onv_range){CONTEXT_LOW, CONTEXT_HIGH};
    uint64_t low = r->low_bytes, high = r->high_bytes;
    bool fits = onv_u64_add(low, r->driver_least_bytes, &low) &&
                onv_u64_add(high, r->driver_bytes, &high) &&
                onv_u64_add(low, r->context_bytes.low, &low) &&
                onv_u64_add(high, r->context_bytes.high, &high);
    if (!fits) return onv_fail(err, ONV_ERR_OVERFLOW, "the total does not fit 64 bits");
    r->total_bytes = (onv_range){low, high};
    return ONV_OK;
}

static onv_status execute(onv_model *model, const onv_live *live,
                          const onv_runtime_options *options, bool is_placed,
                          onv_runtime_result *result, onv_execution *made, onv_error *err)
{
    const onv_runtime *runtime = result->runtime;
    const onv_timeline *t = &live->timeline;
    if (is_placed || runtime->consumer != ONV_CONSUMER_SWEEP) {
        if (made->timeline.steps.count == 0) {
            ONV_TRY(runtime->produce(model, live, options, made, err));
            ONV_TRY(onv_timeline_check(&made->timeline, err));
        }
        ONV_TRY(place(runtime, options, onv_runtime_allocator(runtime, options), made, err));
        t = &made->timeline;
    }
    ONV_TRY(take_figures(live, t, made, options, result, err));
    return onv_runtime_add_up(result, err);
}

static onv_status run(const onv_runtime *runtime, onv_model *model, const onv_live *live,
                      const onv_runtime_options *options, bool is_placed,
                      onv_runtime_result *result, onv_execution *made, onv_error *err)
{
    onv_runtime_options how = options != NULL ? *options : (onv_runtime_options){0};
    *result = (onv_runtime_result){.runtime = runtime, .model = model, .rewritten = how.rewritten};
    result->alignment = how.plan_alignment;
    if (how.ort != NULL && runtime->provider == ONV_PROVIDER_CUDA)
        onv_ort_settings_arena(how.ort, &how.alloc.bfc);
    result->ort = how.ort != NULL ? *how.ort : onv_ort_settings_default;
    onv_status status = execute(model, live, &how, is_placed, result, made, err);
    if (status != ONV_OK || !is_placed) onv_execution_cleanup(made);
    return status;
}

onv_status onv_runtime_compute(const onv_runtime *runtime, onv_model *model, const onv_live *live,
                               const onv_runtime_options *options, onv_runtime_result *result,
                               onv_error *err)
{
    onv_execution made = {0};
    return run(runtime, model, live, options, false, result, &made, err);
}

onv_status onv_runtime_execute(const onv_runtime *runtime, onv_model *model, const onv_live *live,
                               const onv_runtime_options *options, onv_runtime_result *result,
                               onv_execution *made, onv_error *err)
{
    return run(runtime, model, live, options, true, result, made, err);
}

/* ONNX Runtime with its CUDA provider, sequential execution, default session options.
 *
 * Planning (read in source: onnxruntime/core/framework/allocation_planner.cc). For each node output,
 * in execution order, the first that applies:
 *   1. a graph output has a buffer of its own;
 *   2. an Alias kernel shares its input's buffer;
 *   3. a MayInplace kernel takes over an input that nobody else will read, of the same shape;
 *   4. the buffer freed last that has the same shape and element size is used again;
 *   5. a new buffer.
 * A buffer is freed after the node that reads it last.
 *
 * Which kernels (read in source: core/providers/cuda): MayInplace are the activations of
 * activations.cc; Alias are Identity and old Dropouts (identity_op.cc). That the Reshape family
 * aliases is an assumption carried over from the CPU provider, where it was measured.
 *
 * Running: initializers lie in one buffer (each rounded up to 256 bytes) that is reserved beside the
 * arena. In the first run of a shape every buffer is an arena allocation. From the second run on,
 * the pattern of the first is one allocation; graph outputs and inputs are apart. Arenas never
 * shrink, so the second run may add to what the first one took.
 */
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"
#include "runtime/runtime.h"

#define ALIGN UINT64_C(256)

typedef struct buffer {
    onv_interval interval;
    uint32_t users_left; /* reads of the values in it that are still to come */
    onv_value_id shape_of;
} buffer;

typedef struct planner {
    onv_model *model;
    const onv_live *live;
    bool *is_host;       /* by value */
    uint32_t *uses;      /* by value: reads left */
    uint32_t *buffer_of; /* by value; UINT32_MAX: none */
    buffer *buffers;
    uint32_t n_buffers;
    uint32_t *freed; /* buffers that may be used again; the last one first */
    uint32_t n_freed;
    uint64_t reused;
} planner;

/* --- Planning ---------------------------------------------------------------------------------- */

static bool in_list(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

static bool may_inplace(const onv_node *node)
{
    static const char *const names[] = {"Relu",        "LeakyRelu",      "Elu",      "Selu",
                                        "Sigmoid",     "Tanh",           "Softplus", "Softsign",
                                        "HardSigmoid", "ThresholdedRelu"};
    return node->domain[0] == '\0' && in_list(node->op_type, names, sizeof names / sizeof *names);
}

static bool aliases(const onv_node *node)
{
    static const char *const names[] = {"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze"};
    if (node->domain[0] != '\0') return false;
    if (strcmp(node->op_type, "Dropout") == 0) return node->version >= 7 && node->version < 12;
    return in_list(node->op_type, names, sizeof names / sizeof *names);
}

/* Equal element size and equal shape dim by dim: an equal number of bytes is not enough. */
static bool same_size(const planner *p, onv_value_id a, onv_value_id b)
{
    const onv_type *x = &onv_model_value(p->model, a)->type;
    const onv_type *y = &onv_model_value(p->model, b)->type;
    if (x->kind != ONV_TYPE_TENSOR || y->kind != ONV_TYPE_TENSOR || x->rank != y->rank)
        return false;
    if (onv_dtype_bits((onv_dtype)x->dtype) != onv_dtype_bits((onv_dtype)y->dtype)) return false;
    if (onv_dtype_bits((onv_dtype)x->dtype) == 0) return false;
    for (int i = 0; i < x->rank; i++)
        if (!onv_dim_same(x->dims[i], y->dims[i])) return false;
    return true;
}

static void count_uses(planner *p)
{
    for (uint32_t s = 0; s < p->live->n_steps; s++) {
        const onv_node *node = onv_model_node(p->model, p->live->steps[s]);
        for (uint32_t k = 0; k < node->n_inputs; k++)
            if (onv_is_value(node->inputs[k])) p->uses[node->inputs[k].index]++;
    }
    for (size_t g = 0; g < p->model->graphs.count; g++) {
        const onv_graph *graph = &p->model->graphs.at[g];
        for (uint32_t i = 0; i < graph->n_outputs; i++) p->uses[graph->outputs[i].index]++;
    }
}

static void take(planner *p, uint32_t row_index, uint32_t b)
{
    const onv_interval *row = &p->live->intervals[row_index];
    buffer *to = &p->buffers[b];
    if (row->last > to->interval.last) to->interval.last = row->last;
    to->users_left += p->uses[row->value.index];
    to->shape_of = row->value;
    p->buffer_of[row->value.index] = b;
    if (row->kind == ONV_BUFFER_OUTPUT) to->interval.kind = ONV_BUFFER_OUTPUT;
}

static void new_buffer(planner *p, uint32_t row_index)
{
    const onv_interval *row = &p->live->intervals[row_index];
    p->buffers[p->n_buffers] = (buffer){.interval = *row};
    take(p, row_index, p->n_buffers++);
}

/* An input buffer that output `row` shares by rule 2 or 3; UINT32_MAX: none. */
static uint32_t shared_input(const planner *p, const onv_node *node, const onv_interval *row)
{
    if (node->n_inputs == 0 || !onv_is_value(node->inputs[0])) return UINT32_MAX;
    onv_value_id in = node->inputs[0];
    uint32_t b = p->buffer_of[in.index];
    if (b == UINT32_MAX) return UINT32_MAX;
    if (aliases(node)) return b;
    bool mine = p->buffers[b].interval.kind == ONV_BUFFER_ACTIVATION;
    bool last = p->buffers[b].users_left == 1;
    return may_inplace(node) && mine && last && same_size(p, in, row->value) ? b : UINT32_MAX;
}

/* Rule 4; scalars never take part. */
static uint32_t reuse_freed(planner *p, const onv_interval *row)
{
    if (onv_model_value(p->model, row->value)->type.rank == 0) return UINT32_MAX;
    for (uint32_t i = p->n_freed; i-- > 0;) {
        uint32_t b = p->freed[i];
        if (!same_size(p, p->buffers[b].shape_of, row->value)) continue;
        memmove(p->freed + i, p->freed + i + 1, (p->n_freed - i - 1) * sizeof *p->freed);
        p->n_freed--;
        return b;
    }
    return UINT32_MAX;
}

static void place_output(planner *p, const onv_node *node, uint32_t row_index)
{
    const onv_interval *row = &p->live->intervals[row_index];
    const onv_value *value = onv_model_value(p->model, row->value);
    if (p->is_host[row->value.index]) return;
    if (row->kind == ONV_BUFFER_OUTPUT) {
        new_buffer(p, row_index);
        return;
    }
    uint32_t b = value->output_index == 0 ? shared_input(p, node, row) : UINT32_MAX;
    if (b == UINT32_MAX) b = reuse_freed(p, row);
    if (b == UINT32_MAX) {
        new_buffer(p, row_index);
        return;
    }
    p->reused++;
    take(p, row_index, b);
}

static void release_inputs(planner *p, const onv_node *node)
{
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        if (!onv_is_value(node->inputs[k])) continue;
        uint32_t b = p->buffer_of[node->inputs[k].index];
        p->uses[node->inputs[k].index]--;
        if (b == UINT32_MAX || --p->buffers[b].users_left > 0) continue;
        if (p->buffers[b].interval.kind == ONV_BUFFER_ACTIVATION) p->freed[p->n_freed++] = b;
    }
}

static onv_status plan_buffers(planner *p, onv_error *err)
{
    onv_arena *arena = &p->model->arena;
    size_t n_values = p->model->values.count, n_rows = p->live->n_intervals;
    p->uses = ONV_ARENA_ARRAY(arena, uint32_t, n_values);
    p->buffer_of = ONV_ARENA_ARRAY(arena, uint32_t, n_values);
    p->buffers = ONV_ARENA_ARRAY(arena, buffer, n_rows);
    p->freed = ONV_ARENA_ARRAY(arena, uint32_t, n_rows);
    if (p->uses == NULL || p->buffer_of == NULL || p->buffers == NULL || p->freed == NULL)
        return onv_fail_memory(err);
    memset(p->buffer_of, 0xff, n_values * sizeof *p->buffer_of);
    ONV_TRY(onv_mark_host_values(p->model, p->live, &p->is_host, err));
    count_uses(p);
    uint32_t row = 0;
    for (uint32_t s = 0; s < p->live->n_steps; s++) {
        const onv_node *node = onv_model_node(p->model, p->live->steps[s]);
        for (; row < p->live->n_intervals && p->live->intervals[row].first == s; row++) {
            const onv_value *value = onv_model_value(p->model, p->live->intervals[row].value);
            if (onv_is_node(value->producer))
                place_output(p, node, row);
            else
                new_buffer(p, row);
        }
        release_inputs(p, node);
    }
    return ONV_OK;
}

/* --- Running ----------------------------------------------------------------------------------- */

static onv_status add_initializer(void *context, const onv_value *value, onv_error *err)
{
    uint64_t *bytes = context, rounded;
    if (!onv_u64_round_up(value->tensor->bytes, ALIGN, &rounded) ||
        !onv_u64_add(*bytes, rounded, bytes))
        return onv_fail(err, ONV_ERR_OVERFLOW, "the bytes of all weights do not fit 64 bits");
    return ONV_OK;
}

static bool is_pattern(const buffer *b)
{
    return b->interval.kind == ONV_BUFFER_ACTIVATION;
}

/* The temporaries of a run, packed as the first run traced them. */
static onv_status pattern_bytes(const planner *p, const onv_runtime_options *options,
                                uint64_t *bytes, onv_error *err)
{
    onv_trace trace = {0};
    onv_alloc_result result = {0};
    onv_interval *rows = ONV_ARENA_ARRAY(&p->model->arena, onv_interval, p->n_buffers);
    if (rows == NULL) return onv_fail_memory(err);
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_buffers; i++)
        if (is_pattern(&p->buffers[i])) rows[n++] = p->buffers[i].interval;
    onv_status status = onv_trace_add_intervals(&trace, rows, n, p->live->n_steps, 0)
                            ? ONV_OK
                            : onv_fail_memory(err);
    if (status == ONV_OK)
        status = onv_alloc_simulate(&trace, onv_alloc_model_find("pattern"), &options->alloc,
                                    &result, err);
    onv_trace_cleanup(&trace);
    *bytes = result.reserved_peak;
    return status;
}

/* One run: what is not in the pattern (all of it in the first run) step by step. Inputs are copied
 * in at the start; inputs and outputs are given back when the caller is done with the run. */
static onv_status run_once(const planner *p, onv_allocator *arena, uint64_t pattern, onv_error *err)
{
    onv_trace trace = {0};
    onv_interval *rows = ONV_ARENA_ARRAY(&p->model->arena, onv_interval, p->n_buffers + 1);
    if (rows == NULL) return onv_fail_memory(err);
    uint32_t n = 0, end = p->live->n_steps - 1;
    if (pattern > 0) rows[n++] = (onv_interval){.bytes = pattern, .last = end};
    for (uint32_t i = 0; i < p->n_buffers; i++) {
        if (pattern > 0 && is_pattern(&p->buffers[i])) continue;
        rows[n] = p->buffers[i].interval;
        if (!is_pattern(&p->buffers[i])) rows[n].last = end;
        n++;
    }
    onv_status status = onv_trace_add_intervals(&trace, rows, n, p->live->n_steps, 1)
                            ? ONV_OK
                            : onv_fail_memory(err);
    for (size_t i = 0; i < trace.count && status == ONV_OK; i++)
        status = onv_allocator_feed(arena, &trace.events[i], err);
    onv_trace_cleanup(&trace);
    return status;
}

static onv_status run_session(const planner *p, onv_allocator *arena,
                              const onv_runtime_options *options, onv_runtime_result *result,
                              onv_error *err)
{
    uint64_t pattern;
    onv_alloc_result at;
    ONV_TRY(onv_allocator_reserve(arena, 0, result->weight_bytes, err));
    ONV_TRY(run_once(p, arena, 0, err));
    onv_allocator_result(arena, &at);
    result->first_run_bytes = at.reserved_end;
    ONV_TRY(pattern_bytes(p, options, &pattern, err));
    for (int run = 0; run < 2; run++) ONV_TRY(run_once(p, arena, pattern, err));
    onv_allocator_result(arena, &at);
    result->steady_bytes = at.reserved_end;
    result->allocated_peak_bytes = at.allocated_peak;
    result->reserved_peak_bytes = at.reserved_peak;
    result->held_bytes = at.reserved_peak;
    result->activation_bytes = at.reserved_peak - result->weight_bytes;
    result->reused_values = p->reused;
    return ONV_OK;
}

static onv_status compute_ort(onv_model *model, const onv_live *live,
                              const onv_runtime_options *options, onv_runtime_result *result,
                              onv_error *err)
{
    planner p = {.model = model, .live = live};
    onv_allocator arena;
    ONV_TRY(plan_buffers(&p, err));
    ONV_TRY(onv_each_device_weight(model, live, add_initializer, &result->weight_bytes, err));
    ONV_TRY(onv_allocator_init(&arena, onv_alloc_model_find("bfc"), &options->alloc, err));
    onv_status status = run_session(&p, &arena, options, result, err);
    onv_allocator_cleanup(&arena);
    return status;
}

const onv_runtime onv_runtime_ort = {
    .name = "ort",
    .summary = "ONNX Runtime's CUDA provider: buffer reuse, memory pattern, BFC arena",
    .order = "ort",
    .has_context = true,
    .compute = compute_ort,
};

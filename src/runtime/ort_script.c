/* The script of an ONNX Runtime session: initializers reserved, a first run in which every buffer of
 * the plan is an allocation, and two runs in which the temporaries lie in one block, packed as the
 * first run traced them. A step of run k is step k * n_steps + s of the script. */
#include "runtime/ort_script.h"
#include "base/checked.h"
#include "base/heap.h"
#include "device/recorder.h"
#include "ort/ort.h"

#define ALIGN UINT64_C(256)
enum { N_RUNS = 3 };

typedef struct session {
    onv_model *model;
    const onv_live *live;
    onv_script *script;
    onv_ort_plan plan;
    onv_recorder arena;
    uint64_t pattern_bytes;
    ONV_VEC(onv_buffer) weights;
    uint64_t packed; /* bytes of the weights */
    uint32_t n_steps;
} session;

/* --- Initializers ------------------------------------------------------------------------------ */

static onv_status add_weight(void *context, const onv_value *value, onv_error *err)
{
    session *s = context;
    uint64_t rounded;
    if (!onv_u64_round_up(value->tensor->bytes, ALIGN, &rounded) ||
        !onv_u64_add(s->packed, rounded, &s->packed))
        return onv_fail(err, ONV_ERR_OVERFLOW, "the bytes of all weights do not fit 64 bits");
    return onv_vec_push(&s->weights, onv_weight_row(value, N_RUNS * s->n_steps))
               ? ONV_OK
               : onv_fail_memory(err);
}

/* Buffers 0 and on of the script are the weights, one after the other. */
static onv_status bear_weights(session *s, onv_error *err)
{
    onv_recorder_place place;
    uint64_t offset = 0;
    uint32_t index;
    ONV_TRY(onv_recorder_container(&s->arena, 0, s->packed, 0, true, &place, err));
    for (size_t i = 0; i < s->weights.count; i++) {
        const onv_buffer *row = &s->weights.at[i];
        onv_script_buffer buffer = {.offset = place.offset + offset,
                                    .bytes = row->bytes,
                                    .segment = place.segment,
                                    .kind = ONV_BUFFER_WEIGHT,
                                    .label = row->label};
        ONV_TRY(onv_script_birth(s->script, 0, buffer, &index, err));
        offset += (row->bytes + ALIGN - 1) / ALIGN * ALIGN;
    }
    return onv_script_expect(s->script, s->weights.at, s->weights.count, 0, err);
}

/* --- Runs -------------------------------------------------------------------------------------- */

/* What a run asks for, as rows: `in_block` tells those that lie in the pattern's block. */
typedef struct run {
    onv_buffer *rows;  /* by id - 1, as the trace numbers them; the block comes last */
    uint64_t *offsets; /* of those in the block */
    uint32_t *buffers; /* of those in the block: of the script */
    bool *in_block;
    uint32_t count; /* without the block */
    uint32_t first_step;
    onv_recorder_place block;
} run;

static bool is_temporary(const onv_ort_plan *plan, uint32_t i)
{
    return plan->buffers[i].kind == ONV_BUFFER_ACTIVATION && !plan->is_fetched[i];
}

/* Where the packer puts the temporaries: the addresses that its model hands out. */
static onv_status pack(session *s, run *r, const onv_alloc_options *options, onv_error *err)
{
    onv_trace trace = {0};
    onv_allocator packer;
    onv_status status = ONV_OK;
    if (!onv_trace_add_intervals(&trace, r->rows, r->count, s->n_steps, 0))
        status = onv_fail_memory(err);
    if (status == ONV_OK)
        status = onv_allocator_init(&packer, onv_alloc_model_find("pattern"), options, err);
    if (status != ONV_OK) {
        onv_trace_cleanup(&trace);
        return status;
    }
    for (size_t i = 0; i < trace.count && status == ONV_OK; i++) {
        const onv_event *e = &trace.events[i];
        if (!r->in_block[e->id]) continue;
        status = onv_allocator_feed(&packer, e, err);
        const onv_block *block = onv_allocator_block(&packer, e->id);
        if (status == ONV_OK && block != NULL) r->offsets[e->id] = block->address;
    }
    onv_allocator_cleanup(&packer);
    onv_trace_cleanup(&trace);
    return status;
}

static onv_status bear_in_block(session *s, run *r, uint32_t i, uint32_t step, onv_error *err)
{
    const onv_buffer *row = &r->rows[i];
    onv_script_buffer buffer = {.offset = r->block.offset + r->offsets[i],
                                .bytes = row->bytes,
                                .segment = r->block.segment,
                                .kind = row->kind,
                                .label = row->label};
    return onv_script_birth(s->script, step, buffer, &r->buffers[i], err);
}

static onv_status feed(session *s, run *r, const onv_event *e, onv_error *err)
{
    uint32_t step = r->first_step + e->step, i = e->id, id = i + 1;
    if (i == r->count) /* the block */
        return e->is_free
                   ? onv_recorder_free(&s->arena, id, step, err)
                   : onv_recorder_container(&s->arena, id, e->bytes, step, false, &r->block, err);
    if (!r->in_block[i])
        return e->is_free ? onv_recorder_free(&s->arena, id, step, err)
                          : onv_recorder_alloc(&s->arena, id, &r->rows[i], step, err);
    if (r->rows[i].bytes == 0) return ONV_OK;
    return e->is_free ? onv_script_end(s->script, step, r->buffers[i], err)
                      : bear_in_block(s, r, i, step, err);
}

/* The events of a run in the order of onv_ort_run_trace: within a step the inputs, the block, then
 * the rest. The block is freed first in its last step by the trace; what lies in it must end before,
 * so the frees of others come first here. */
static onv_status feed_all(session *s, run *r, onv_error *err)
{
    onv_trace trace = {0};
    bool has_block = s->pattern_bytes > 0 && r->first_step > 0;
    uint32_t n_inputs = 0;
    onv_status status = ONV_OK;
    while (n_inputs < r->count && r->rows[n_inputs].kind == ONV_BUFFER_INPUT) n_inputs++;
    if (!onv_trace_add_intervals(&trace, r->rows, r->count, s->n_steps, 0))
        status = onv_fail_memory(err);
    onv_event block = {.id = r->count, .bytes = s->pattern_bytes};
    uint32_t seen = 0;
    for (size_t i = 0; i < trace.count && status == ONV_OK; i++) {
        if (has_block && seen++ == n_inputs) status = feed(s, r, &block, err);
        if (status == ONV_OK) status = feed(s, r, &trace.events[i], err);
    }
    onv_trace_cleanup(&trace);
    block.is_free = true;
    block.step = s->n_steps - 1;
    if (status == ONV_OK && has_block) status = feed(s, r, &block, err);
    return status;
}

static onv_status record_run(session *s, run *r, const onv_alloc_options *options, onv_error *err)
{
    for (int is_input = 1; is_input >= 0; is_input--) {
        for (uint32_t i = 0; i < s->plan.count; i++) {
            onv_buffer row = s->plan.buffers[i];
            if ((row.kind == ONV_BUFFER_INPUT) != (is_input == 1)) continue;
            if (row.kind != ONV_BUFFER_ACTIVATION) row.last = s->n_steps - 1;
            r->in_block[r->count] = r->first_step > 0 && is_temporary(&s->plan, i);
            r->rows[r->count++] = row;
        }
    }
    if (r->first_step > 0) ONV_TRY(pack(s, r, options, err));
    ONV_TRY(onv_script_expect(s->script, r->rows, r->count, r->first_step, err));
    return feed_all(s, r, err);
}

static onv_status add_run(session *s, uint32_t number, const onv_alloc_options *options,
                          onv_error *err)
{
    size_t most = (size_t)s->plan.count + 1;
    run r = {.rows = onv_heap_calloc(most, sizeof *r.rows),
             .offsets = onv_heap_calloc(most, sizeof *r.offsets),
             .buffers = onv_heap_calloc(most, sizeof *r.buffers),
             .in_block = onv_heap_calloc(most, sizeof *r.in_block),
             .first_step = number * s->n_steps};
    onv_status status = ONV_OK;
    if (r.rows == NULL || r.offsets == NULL || r.buffers == NULL || r.in_block == NULL)
        status = onv_fail_memory(err);
    if (status == ONV_OK) status = record_run(s, &r, options, err);
    onv_heap_free(r.rows);
    onv_heap_free(r.offsets);
    onv_heap_free(r.buffers);
    onv_heap_free(r.in_block);
    return status;
}

/* --- All together ------------------------------------------------------------------------------ */

static onv_status record(session *s, const onv_alloc_options *options, onv_error *err)
{
    ONV_TRY(onv_each_device_weight(s->model, add_weight, s, err));
    ONV_TRY(bear_weights(s, err));
    ONV_TRY(onv_ort_pattern_bytes(s->model, s->live, &s->plan, options, &s->pattern_bytes, err));
    for (uint32_t i = 0; i < N_RUNS; i++) ONV_TRY(add_run(s, i, options, err));
    uint32_t end = N_RUNS * s->n_steps - 1;
    for (uint32_t i = 0; i < s->weights.count; i++) ONV_TRY(onv_script_end(s->script, end, i, err));
    ONV_TRY(onv_recorder_close(&s->arena, end, err));
    return onv_script_check(s->script, err);
}

onv_status onv_ort_script(const char *mode, onv_model *model, const onv_live *live,
                          const onv_runtime_options *options, onv_script *script, onv_error *err)
{
    session s = {.model = model, .live = live, .script = script, .n_steps = live->n_steps};
    if (live->n_steps > UINT32_MAX / N_RUNS)
        return onv_fail(err, ONV_ERR_LIMIT, "too many steps to be replayed");
    ONV_TRY(onv_ort_plan_compute(model, live, ONV_ORT_CUDA, &s.plan, err));
    ONV_TRY(onv_script_init(script, mode, N_RUNS * live->n_steps, err));
    onv_status status = onv_recorder_init(&s.arena, script, "bfc", &options->alloc, err);
    if (status == ONV_OK) {
        status = record(&s, &options->alloc, err);
        onv_recorder_cleanup(&s.arena);
    }
    onv_vec_cleanup(&s.weights);
    if (status != ONV_OK) onv_script_cleanup(script);
    return status;
}

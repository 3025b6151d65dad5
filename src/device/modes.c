/* The modes: how rows of a prediction are laid out on a device. */
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"
#include "device/recorder.h"
#include "plan/plan.h"

/* ONNX Runtime packs initializers at multiples of this. */
#define PACK_BYTES UINT64_C(256)
/* The unit in which the model of the pool counts (alloc/async.c). */
#define POOL_BYTES UINT64_C(512)

typedef struct builder {
    onv_script *script;
    const onv_buffer *rows;
    uint32_t count;
    const onv_alloc_options *options;
    uint64_t plan_effort;
    uint32_t *buffers;  /* by row: its buffer; UINT32_MAX: none */
    uint64_t *offsets;  /* arena, and weights of ort: by row, in the first segment */
    uint64_t packed;    /* bytes of the weights */
    uint32_t end;       /* the last step */
    onv_recorder model; /* torch, ort */
} builder;

static bool is_weight(const builder *b, uint32_t row)
{
    return b->rows[row].kind == ONV_BUFFER_WEIGHT || b->rows[row].kind == ONV_BUFFER_STATISTIC;
}

static onv_status pack_weights(builder *b, uint64_t unit, onv_error *err)
{
    for (uint32_t i = 0; i < b->count; i++) {
        uint64_t rounded;
        if (!is_weight(b, i)) continue;
        b->offsets[i] = b->packed;
        if (!onv_u64_round_up(b->rows[i].bytes, unit, &rounded) ||
            !onv_u64_add(b->packed, rounded, &b->packed))
            return onv_fail(err, ONV_ERR_OVERFLOW, "the bytes of all weights do not fit 64 bits");
    }
    return ONV_OK;
}

static onv_status bear(builder *b, uint32_t row, uint32_t segment, uint64_t offset, onv_error *err)
{
    const onv_buffer *r = &b->rows[row];
    onv_script_buffer buffer = {.offset = offset,
                                .bytes = r->bytes,
                                .segment = segment,
                                .kind = r->kind,
                                .label = r->label};
    return onv_script_birth(b->script, r->first, buffer, &b->buffers[row], err);
}

/* --- What a mode does at the birth and at the death of a row of more than 0 bytes -------------- */

typedef struct layout {
    onv_status (*birth)(builder *b, uint32_t row, onv_error *err);
    onv_status (*death)(builder *b, uint32_t row, onv_error *err);
} layout;

/* Rows in the order of a trace: within a step births, then deaths. */
static onv_status walk(builder *b, const layout *how, onv_error *err)
{
    onv_trace trace = {0};
    onv_status status = ONV_OK;
    if (!onv_trace_add_intervals(&trace, b->rows, b->count, b->script->n_steps, 0))
        status = onv_fail_memory(err);
    for (size_t i = 0; i < trace.count && status == ONV_OK; i++) {
        const onv_event *e = &trace.events[i];
        if (b->rows[e->id].bytes == 0) continue;
        status = e->is_free ? how->death(b, e->id, err) : how->birth(b, e->id, err);
    }
    onv_trace_cleanup(&trace);
    return status;
}

/* --- arena ------------------------------------------------------------------------------------- */

static onv_status arena_birth(builder *b, uint32_t row, onv_error *err)
{
    return bear(b, row, 0, b->offsets[row], err);
}

static onv_status arena_death(builder *b, uint32_t row, onv_error *err)
{
    return onv_script_end(b->script, b->rows[row].last, b->buffers[row], err);
}

/* Offsets for all but the weights, which lie below. */
static onv_status plan_rows(builder *b, uint64_t *height, onv_error *err)
{
    onv_plan plan;
    onv_plan_options how = {.effort = b->plan_effort};
    onv_buffer *rows = onv_heap_calloc(b->count, sizeof *rows);
    if (rows == NULL) return onv_fail_memory(err);
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->count; i++)
        if (!is_weight(b, i)) rows[n++] = b->rows[i];
    onv_status status = onv_plan_intervals(rows, n, &how, &plan, err);
    onv_heap_free(rows);
    ONV_TRY(status);
    n = 0;
    for (uint32_t i = 0; i < b->count; i++)
        if (!is_weight(b, i)) b->offsets[i] = b->packed + plan.offsets[n++];
    *height = plan.height;
    onv_plan_cleanup(&plan);
    return ONV_OK;
}

static onv_status build_arena(builder *b, onv_error *err)
{
    static const layout how = {arena_birth, arena_death};
    uint64_t height, bytes;
    uint32_t index;
    ONV_TRY(pack_weights(b, 1, err));
    ONV_TRY(plan_rows(b, &height, err));
    if (!onv_u64_add(b->packed, height, &bytes))
        return onv_fail(err, ONV_ERR_OVERFLOW, "the arena does not fit 64 bits");
    if (bytes == 0) return ONV_OK;
    onv_script_segment segment = {.bytes = bytes, .counted = bytes};
    ONV_TRY(onv_script_segment_alloc(b->script, 0, segment, &index, err));
    ONV_TRY(walk(b, &how, err));
    return onv_script_segment_free(b->script, b->end, index, err);
}

/* --- torch, ort -------------------------------------------------------------------------------- */

static onv_status model_birth(builder *b, uint32_t row, onv_error *err)
{
    return onv_recorder_alloc(&b->model, row, &b->rows[row], b->rows[row].first, err);
}

static onv_status model_death(builder *b, uint32_t row, onv_error *err)
{
    return onv_recorder_free(&b->model, row, b->rows[row].last, err);
}

static onv_status build_torch(builder *b, onv_error *err)
{
    static const layout how = {model_birth, model_death};
    ONV_TRY(onv_recorder_init(&b->model, b->script, "torch", b->options, err));
    onv_status status = walk(b, &how, err);
    if (status == ONV_OK) status = onv_recorder_close(&b->model, b->end, err);
    onv_recorder_cleanup(&b->model);
    return status;
}

/* Weights lie in one reserved block (segment 0 of the script), which is freed with the rest. */
static onv_status ort_birth(builder *b, uint32_t row, onv_error *err)
{
    return is_weight(b, row) ? arena_birth(b, row, err) : model_birth(b, row, err);
}

static onv_status ort_death(builder *b, uint32_t row, onv_error *err)
{
    return is_weight(b, row) ? arena_death(b, row, err) : model_death(b, row, err);
}

static onv_status build_ort(builder *b, onv_error *err)
{
    static const layout how = {ort_birth, ort_death};
    onv_recorder_place place;
    ONV_TRY(pack_weights(b, PACK_BYTES, err));
    ONV_TRY(onv_recorder_init(&b->model, b->script, "bfc", b->options, err));
    onv_status status =
        onv_recorder_container(&b->model, b->count, b->packed, 0, true, &place, err);
    if (status == ONV_OK) status = walk(b, &how, err);
    if (status == ONV_OK) status = onv_recorder_close(&b->model, b->end, err);
    onv_recorder_cleanup(&b->model);
    return status;
}

/* --- async, raw: an allocation for each buffer ------------------------------------------------- */

static onv_status each_birth(builder *b, uint32_t row, bool pooled, onv_error *err)
{
    const onv_buffer *r = &b->rows[row];
    onv_script_segment segment = {
        .bytes = r->bytes, .counted = r->bytes, .pooled = pooled, .is_whole = true};
    uint64_t unit = POOL_BYTES;
    if (b->options != NULL && b->options->async.align_bytes > 0)
        unit = b->options->async.align_bytes;
    if (pooled && !onv_u64_round_up(r->bytes, unit, &segment.counted))
        return onv_fail(err, ONV_ERR_OVERFLOW, "a size does not fit 64 bits");
    uint32_t index;
    ONV_TRY(onv_script_segment_alloc(b->script, r->first, segment, &index, err));
    return bear(b, row, index, 0, err);
}

static onv_status pool_birth(builder *b, uint32_t row, onv_error *err)
{
    return each_birth(b, row, true, err);
}

static onv_status raw_birth(builder *b, uint32_t row, onv_error *err)
{
    return each_birth(b, row, false, err);
}

static onv_status each_death(builder *b, uint32_t row, onv_error *err)
{
    uint32_t step = b->rows[row].last, buffer = b->buffers[row];
    ONV_TRY(onv_script_end(b->script, step, buffer, err));
    return onv_script_segment_free(b->script, step, b->script->buffers.at[buffer].segment, err);
}

static onv_status build_async(builder *b, onv_error *err)
{
    static const layout how = {pool_birth, each_death};
    onv_trace trace = {0};
    onv_alloc_result run = {0};
    onv_status status = ONV_OK;
    if (!onv_trace_add_intervals(&trace, b->rows, b->count, b->script->n_steps, 0))
        status = onv_fail_memory(err);
    if (status == ONV_OK)
        status = onv_alloc_simulate(&trace, onv_alloc_model_find("async"), b->options, &run, err);
    onv_trace_cleanup(&trace);
    ONV_TRY(status);
    b->script->pool_reserved = run.reserved_peak;
    return walk(b, &how, err);
}

static onv_status build_raw(builder *b, onv_error *err)
{
    static const layout how = {raw_birth, each_death};
    return walk(b, &how, err);
}

/* --- All together ------------------------------------------------------------------------------ */

static onv_status build(onv_status (*lay_out)(builder *b, onv_error *err), onv_script *script,
                        const onv_buffer *rows, uint32_t count, const onv_alloc_options *options,
                        uint64_t plan_effort, onv_error *err)
{
    builder b = {.script = script,
                 .rows = rows,
                 .count = count,
                 .options = options,
                 .plan_effort = plan_effort,
                 .buffers = onv_heap_alloc(count * sizeof(uint32_t)),
                 .offsets = onv_heap_calloc(count, sizeof(uint64_t)),
                 .end = script->n_steps - 1};
    onv_status status = ONV_OK;
    if (b.buffers == NULL || b.offsets == NULL)
        status = onv_fail_memory(err);
    else
        memset(b.buffers, 0xff, count * sizeof(uint32_t));
    if (status == ONV_OK) status = onv_script_expect(script, rows, count, 0, err);
    if (status == ONV_OK) status = lay_out(&b, err);
    onv_heap_free(b.buffers);
    onv_heap_free(b.offsets);
    return status;
}

#define MODE(id, runtime_, text)                                                                   \
    static onv_status run_##id(onv_script *script, const onv_buffer *rows, uint32_t count,         \
                               const onv_alloc_options *options, uint64_t plan_effort,             \
                               onv_error *err)                                                     \
    {                                                                                              \
        return build(build_##id, script, rows, count, options, plan_effort, err);                  \
    }                                                                                              \
    static const onv_replay_mode mode_##id = {                                                     \
        .name = #id, .runtime = runtime_, .summary = text, .build = run_##id};

MODE(arena, "arena", "one allocation, buffers at planned offsets")
MODE(torch, "torch", "the segments of PyTorch's caching allocator, blocks inside them")
MODE(ort, "ort", "ONNX Runtime's reserved initializers and the regions of its arena")
MODE(async, "async", "the device's stream-ordered pool, one allocation per buffer")
MODE(raw, "ideal", "one plain allocation per buffer")

const onv_replay_mode *const onv_replay_modes[] = {&mode_arena, &mode_torch, &mode_ort, &mode_async,
                                                   &mode_raw};
const size_t onv_n_replay_modes = sizeof onv_replay_modes / sizeof onv_replay_modes[0];

const onv_replay_mode *onv_replay_mode_find(const char *name)
{
    for (size_t i = 0; i < onv_n_replay_modes; i++)
        if (strcmp(onv_replay_modes[i]->name, name) == 0 ||
            strcmp(onv_replay_modes[i]->runtime, name) == 0)
            return onv_replay_modes[i];
    return NULL;
}

onv_status onv_script_of_rows(onv_script *script, const onv_replay_mode *mode,
                              const onv_buffer *rows, uint32_t count, uint32_t n_steps,
                              const onv_alloc_options *options, uint64_t plan_effort,
                              onv_error *err)
{
    onv_status status = onv_script_init(script, mode->name, n_steps, err);
    if (status == ONV_OK) status = mode->build(script, rows, count, options, plan_effort, err);
    if (status == ONV_OK) status = onv_script_check(script, err);
    if (status != ONV_OK) onv_script_cleanup(script);
    return status;
}

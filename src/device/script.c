#include "device/script.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"

onv_status onv_script_init(onv_script *script, const char *mode, uint32_t n_steps, onv_error *err)
{
    *script = (onv_script){.mode = mode, .runtime = mode, .n_steps = n_steps};
    script->held = onv_heap_calloc(n_steps, sizeof *script->held);
    script->live = onv_heap_calloc(n_steps, sizeof *script->live);
    if (script->held != NULL && script->live != NULL) return ONV_OK;
    onv_script_cleanup(script);
    return onv_fail_memory(err);
}

void onv_script_cleanup(onv_script *script)
{
    onv_vec_cleanup(&script->events);
    onv_vec_cleanup(&script->segments);
    onv_vec_cleanup(&script->buffers);
    onv_heap_free(script->held);
    onv_heap_free(script->live);
    *script = (onv_script){0};
}

/* --- Appending --------------------------------------------------------------------------------- */

/* Steps that had no event hold what the one before them held at its end. */
static void reach(onv_script *script, uint32_t step)
{
    uint32_t from = 0;
    if (script->events.count > 0) from = script->events.at[script->events.count - 1].step + 1;
    for (uint32_t s = from; s <= step; s++) script->held[s] = script->now;
}

static onv_status add(onv_script *script, onv_script_act act, uint32_t index, uint32_t step,
                      onv_error *err)
{
    if (step >= script->n_steps)
        return onv_fail(err, ONV_ERR_USAGE, "step %" PRIu32 " is behind the last one", step);
    if (!onv_vec_reserve(&script->events, 1)) return onv_fail_memory(err);
    reach(script, step);
    script->events.at[script->events.count++] =
        (onv_script_event){.index = index, .step = step, .act = (uint8_t)act};
    return ONV_OK;
}

onv_status onv_script_segment_alloc(onv_script *script, uint32_t step, onv_script_segment segment,
                                    uint32_t *index, onv_error *err)
{
    uint64_t now;
    if (!onv_u64_add(script->now, segment.counted, &now))
        return onv_fail(err, ONV_ERR_OVERFLOW, "the sum of all allocations does not fit 64 bits");
    *index = (uint32_t)script->segments.count;
    if (!onv_vec_push(&script->segments, segment)) return onv_fail_memory(err);
    ONV_TRY(add(script, ONV_SCRIPT_SEGMENT_ALLOC, *index, step, err));
    script->now = now;
    if (++script->n_now > script->most_segments) script->most_segments = script->n_now;
    if (now > script->held[step]) script->held[step] = now;
    if (now > script->held_peak) script->held_peak = now;
    return ONV_OK;
}

onv_status onv_script_segment_free(onv_script *script, uint32_t step, uint32_t index,
                                   onv_error *err)
{
    ONV_TRY(add(script, ONV_SCRIPT_SEGMENT_FREE, index, step, err));
    script->now -= script->segments.at[index].counted;
    script->n_now--;
    return ONV_OK;
}

onv_status onv_script_birth(onv_script *script, uint32_t step, onv_script_buffer buffer,
                            uint32_t *index, onv_error *err)
{
    *index = (uint32_t)script->buffers.count;
    if (buffer.label == NULL) buffer.label = "";
    if (!onv_vec_push(&script->buffers, buffer)) return onv_fail_memory(err);
    return add(script, ONV_SCRIPT_BIRTH, *index, step, err);
}

onv_status onv_script_end(onv_script *script, uint32_t step, uint32_t index, onv_error *err)
{
    ONV_TRY(add(script, ONV_SCRIPT_READ, index, step, err));
    return add(script, ONV_SCRIPT_DEATH, index, step, err);
}

void onv_script_forget_labels(onv_script *script)
{
    for (size_t i = 0; i < script->buffers.count; i++) script->buffers.at[i].label = "";
    script->plan = NULL;
}

onv_status onv_script_expect(onv_script *script, const onv_buffer *rows, size_t count,
                             uint32_t first_step, onv_error *err)
{
    uint64_t *delta = onv_heap_calloc((size_t)script->n_steps + 1, sizeof *delta);
    if (delta == NULL) return onv_fail_memory(err);
    uint64_t total = 0, now = 0;
    bool fits = true;
    for (size_t i = 0; i < count; i++) {
        fits &= onv_u64_add(total, rows[i].bytes, &total);
        uint64_t first = (uint64_t)first_step + rows[i].first;
        uint64_t last = (uint64_t)first_step + rows[i].last;
        if (last >= script->n_steps || first > last) {
            fits = false;
            break;
        }
        delta[first] += rows[i].bytes; /* differences wrap, their sums do not */
        delta[last + 1] -= rows[i].bytes;
    }
    for (uint32_t s = 0; fits && s < script->n_steps; s++) {
        now += delta[s];
        fits = onv_u64_add(script->live[s], now, &script->live[s]);
        if (script->live[s] > script->live_peak) script->live_peak = script->live[s];
    }
    onv_heap_free(delta);
    if (fits) return ONV_OK;
    return onv_fail(err, ONV_ERR_OVERFLOW, "the rows do not fit 64 bits or the steps");
}

/* --- Check ------------------------------------------------------------------------------------- */

typedef enum life { NOT_YET, ALIVE, READ, OVER } life;

typedef struct lives {
    uint8_t *segments, *buffers; /* life */
} lives;

static onv_status check_buffer(const onv_script *script, lives *at, const onv_script_event *e,
                               onv_error *err)
{
    static const uint8_t before[] = {
        [ONV_SCRIPT_BIRTH] = NOT_YET, [ONV_SCRIPT_READ] = ALIVE, [ONV_SCRIPT_DEATH] = READ};
    if (e->index >= script->buffers.count)
        return onv_fail(err, ONV_ERR_MODEL, "there is no buffer %" PRIu32, e->index);
    const onv_script_buffer *b = &script->buffers.at[e->index];
    if (at->buffers[e->index] != before[e->act])
        return onv_fail(err, ONV_ERR_MODEL, "buffer %" PRIu32 " (%s): events are out of order",
                        e->index, b->label);
    at->buffers[e->index]++;
    uint64_t end;
    if (b->segment >= script->segments.count || at->segments[b->segment] != ALIVE)
        return onv_fail(err, ONV_ERR_MODEL, "buffer %" PRIu32 " (%s) is in no segment", e->index,
                        b->label);
    if (b->bytes == 0 || !onv_u64_add(b->offset, b->bytes, &end) ||
        end > script->segments.at[b->segment].bytes)
        return onv_fail(err, ONV_ERR_MODEL, "buffer %" PRIu32 " (%s) is not inside its segment",
                        e->index, b->label);
    return ONV_OK;
}

static onv_status check_segment(const onv_script *script, lives *at, const onv_script_event *e,
                                onv_error *err)
{
    bool is_alloc = e->act == ONV_SCRIPT_SEGMENT_ALLOC;
    if (e->index >= script->segments.count ||
        at->segments[e->index] != (is_alloc ? NOT_YET : ALIVE))
        return onv_fail(err, ONV_ERR_MODEL, "segment %" PRIu32 ": events are out of order",
                        e->index);
    at->segments[e->index] = is_alloc ? ALIVE : OVER;
    return ONV_OK;
}

static onv_status check_events(const onv_script *script, lives *at, onv_error *err)
{
    uint32_t step = 0;
    for (size_t i = 0; i < script->events.count; i++) {
        const onv_script_event *e = &script->events.at[i];
        if (e->step < step || e->step >= script->n_steps)
            return onv_fail(err, ONV_ERR_MODEL, "event %zu is not in its step", i);
        step = e->step;
        if (e->act == ONV_SCRIPT_SEGMENT_ALLOC || e->act == ONV_SCRIPT_SEGMENT_FREE)
            ONV_TRY(check_segment(script, at, e, err));
        else
            ONV_TRY(check_buffer(script, at, e, err));
    }
    for (size_t i = 0; i < script->buffers.count; i++)
        if (at->buffers[i] != OVER)
            return onv_fail(err, ONV_ERR_MODEL, "buffer %zu (%s) is never freed", i,
                            script->buffers.at[i].label);
    for (size_t i = 0; i < script->segments.count; i++)
        if (at->segments[i] != OVER)
            return onv_fail(err, ONV_ERR_MODEL, "segment %zu is never freed", i);
    return ONV_OK;
}

onv_status onv_script_check(const onv_script *script, onv_error *err)
{
    lives at = {.segments = onv_heap_calloc(script->segments.count, 1),
                .buffers = onv_heap_calloc(script->buffers.count, 1)};
    onv_status status = at.segments != NULL && at.buffers != NULL ? check_events(script, &at, err)
                                                                  : onv_fail_memory(err);
    onv_heap_free(at.segments);
    onv_heap_free(at.buffers);
    return status;
}

#include "timeline/timeline.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/heap.h"
#include "base/quota.h"

const char *onv_buffer_kind_name(onv_buffer_kind kind)
{
    static const char *const names[ONV_N_BUFFER_KINDS] = {
        [ONV_BUFFER_INPUT] = "input",           [ONV_BUFFER_OUTPUT] = "output",
        [ONV_BUFFER_ACTIVATION] = "activation", [ONV_BUFFER_WEIGHT] = "weight",
        [ONV_BUFFER_STATISTIC] = "statistic",   [ONV_BUFFER_GRADIENT] = "gradient",
        [ONV_BUFFER_STATE] = "state",           [ONV_BUFFER_TEMPORARY] = "temporary",
        [ONV_BUFFER_WORKSPACE] = "workspace",   [ONV_BUFFER_POOL] = "pool"};
    return names[kind];
}

const char *onv_phase_name(onv_phase phase)
{
    static const char *const names[ONV_N_PHASES] = {[ONV_PHASE_FORWARD] = "forward",
                                                    [ONV_PHASE_LOSS] = "loss",
                                                    [ONV_PHASE_BACKWARD] = "backward",
                                                    [ONV_PHASE_OPTIMIZER] = "optimizer"};
    return names[phase];
}

void onv_timeline_cleanup(onv_timeline *t)
{
    onv_vec_cleanup(&t->steps);
    onv_vec_cleanup(&t->regions);
    onv_vec_cleanup(&t->buffers);
    t->measured_from = 0;
}

/* --- Check ------------------------------------------------------------------------------------- */

static onv_status check_region(const onv_timeline *t, size_t i, onv_error *err)
{
    const onv_region *r = &t->regions.at[i];
    if (r->first > r->end || r->end > t->steps.count)
        return onv_fail(err, ONV_ERR_MODEL, "region %zu spans steps %" PRIu32 " to %" PRIu32, i,
                        r->first, r->end);
    if (r->parent == ONV_NO_REGION) return ONV_OK;
    if (r->parent >= i)
        return onv_fail(err, ONV_ERR_MODEL, "region %zu is listed before its parent", i);
    const onv_region *p = &t->regions.at[r->parent];
    if (r->first < p->first || r->end > p->end)
        return onv_fail(err, ONV_ERR_MODEL, "region %zu is not inside region %" PRIu32, i,
                        r->parent);
    return ONV_OK;
}

static onv_status check_links(const onv_timeline *t, size_t i, onv_error *err)
{
    const onv_buffer *b = &t->buffers.at[i];
    const char *label = b->label != NULL ? b->label : "";
    if (b->becomes != ONV_NO_BUFFER &&
        (b->becomes >= t->buffers.count || t->buffers.at[b->becomes].first <= b->last))
        return onv_fail(err, ONV_ERR_MODEL,
                        "buffer %zu ('%s') becomes a buffer that is there before "
                        "it ends",
                        i, label);
    if (b->within == ONV_NO_BUFFER) return ONV_OK;
    const onv_buffer *c = b->within < i ? &t->buffers.at[b->within] : NULL;
    uint64_t end;
    if (c == NULL || c->first > b->first || c->last < b->last || c->within != ONV_NO_BUFFER ||
        !onv_u64_add(b->offset, b->bytes, &end) || end > c->bytes)
        return onv_fail(err, ONV_ERR_MODEL, "buffer %zu ('%s') is not inside its container", i,
                        label);
    return ONV_OK;
}

/* A buffer made in a branch ends in it. `end_of` gives, by step, the end of the innermost branch that
 * began before it. */
static onv_status check_buffers(const onv_timeline *t, const uint32_t *end_of, onv_error *err)
{
    for (size_t i = 0; i < t->buffers.count; i++) {
        const onv_buffer *b = &t->buffers.at[i];
        if (b->first > b->last || b->last >= t->steps.count)
            return onv_fail(err, ONV_ERR_MODEL,
                            "buffer %zu ('%s') lives from step %" PRIu32 " to %" PRIu32, i,
                            b->label != NULL ? b->label : "", b->first, b->last);
        if (b->last >= end_of[b->first])
            return onv_fail(err, ONV_ERR_MODEL, "buffer %zu ('%s') outlives its branch", i,
                            b->label != NULL ? b->label : "");
        if (b->is_transient && b->first != b->last)
            return onv_fail(err, ONV_ERR_MODEL, "buffer %zu is transient over several steps", i);
        if (b->stream >= ONV_N_STREAMS)
            return onv_fail(err, ONV_ERR_MODEL, "buffer %zu has the stream %u", i, b->stream);
        ONV_TRY(check_links(t, i, err));
    }
    return ONV_OK;
}

onv_status onv_timeline_check(const onv_timeline *t, onv_error *err)
{
    uint32_t *end_of = onv_heap_alloc((t->steps.count + 1) * sizeof *end_of);
    if (end_of == NULL) return onv_fail_memory(err);
    onv_work(t->steps.count + t->buffers.count);
    memset(end_of, 0xff, (t->steps.count + 1) * sizeof *end_of);
    onv_status status = ONV_OK;
    for (size_t i = 0; i < t->regions.count && status == ONV_OK; i++) {
        const onv_region *r = &t->regions.at[i];
        status = check_region(t, i, err);
        bool is_branch =
            r->parent != ONV_NO_REGION && t->regions.at[r->parent].kind == ONV_REGION_ALTERNATIVES;
        for (uint32_t s = r->first + 1; s < r->end && is_branch && status == ONV_OK; s++)
            end_of[s] = r->end;
    }
    if (status == ONV_OK) status = check_buffers(t, end_of, err);
    onv_heap_free(end_of);
    return status;
}

/* --- The sweep --------------------------------------------------------------------------------- */

/* While a step runs: `live` is there before it or begins with it and stays, `begun` of that began with it
 * so far, and `most` of what began stood beside transient buffers. Where none is transient, the first is all. */
typedef struct sums {
    uint64_t *live, *begun, *most;
} sums;

static bool is_summed(const onv_buffer *b, uint32_t without)
{
    return b->within == ONV_NO_BUFFER && (without >> b->kind & 1) == 0;
}

static onv_status look(const onv_timeline *t, uint32_t without, bool *has_transient, onv_error *err)
{
    uint64_t total = 0;
    *has_transient = false;
    for (size_t i = 0; i < t->buffers.count; i++) {
        const onv_buffer *b = &t->buffers.at[i];
        if (!is_summed(b, without)) continue;
        *has_transient |= b->is_transient;
        if (!onv_u64_add(total, b->bytes, &total))
            return onv_fail(err, ONV_ERR_OVERFLOW,
                            "the bytes of all values up to '%s' do not fit 64 bits",
                            b->label != NULL ? b->label : "");
    }
    return ONV_OK;
}

static void sum_beside_transient(const onv_timeline *t, uint32_t without, const sums *s)
{
    for (size_t i = 0; i < t->buffers.count; i++) {
        const onv_buffer *b = &t->buffers.at[i];
        if (!is_summed(b, without)) continue;
        uint64_t *begun = &s->begun[b->first], *most = &s->most[b->first];
        if (*begun + b->bytes > *most) *most = *begun + b->bytes;
        if (!b->is_transient) *begun += b->bytes;
    }
}

/* Bytes by step: what begins there less what ended before it; differences wrap, sums do not. */
static void sum_steps(const onv_timeline *t, uint32_t without, const sums *s)
{
    uint64_t now = 0;
    for (size_t i = 0; i < t->buffers.count; i++) {
        const onv_buffer *b = &t->buffers.at[i];
        if (!is_summed(b, without) || b->is_transient) continue;
        s->live[b->first] += b->bytes;
        if (b->last + (size_t)1 < t->steps.count) s->live[b->last + 1] -= b->bytes;
    }
    if (s->begun != NULL) sum_beside_transient(t, without, s);
    for (size_t i = 0; i < t->steps.count; i++) {
        now += s->live[i];
        s->live[i] = s->begun != NULL ? now - s->begun[i] + s->most[i] : now;
    }
}

onv_status onv_timeline_peak_without(const onv_timeline *t, uint32_t without, onv_peak *peak,
                                     uint64_t *live_bytes, onv_error *err)
{
    size_t n = t->steps.count;
    bool has_transient;
    *peak = (onv_peak){0};
    ONV_WORK(n + 1 + t->buffers.count);
    ONV_TRY(look(t, without, &has_transient, err));
    const size_t own = live_bytes == NULL ? n : 0;
    uint64_t *room = onv_heap_calloc(has_transient ? own + 2 * n : own, sizeof *room);
    if (room == NULL) return onv_fail_memory(err);
    sums s = {.live = live_bytes != NULL ? memset(live_bytes, 0, n * sizeof *room) : room};
    if (has_transient) {
        s.begun = room + own;
        s.most = s.begun + n;
    }
    sum_steps(t, without, &s);
    for (uint32_t i = t->measured_from; i < n; i++) {
        uint64_t *of_phase = &peak->of_phase[t->steps.at[i].phase];
        if (s.live[i] > *of_phase) *of_phase = s.live[i];
        if (s.live[i] <= peak->bytes) continue;
        peak->bytes = s.live[i];
        peak->step = i;
    }
    onv_heap_free(room);
    return ONV_OK;
}

onv_status onv_timeline_peak(const onv_timeline *t, onv_peak *peak, uint64_t *live_bytes,
                             onv_error *err)
{
    return onv_timeline_peak_without(t, 0, peak, live_bytes, err);
}

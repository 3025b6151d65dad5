#include "timeline/placement.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/heap.h"

onv_status onv_placement_init(onv_placement *p, const onv_timeline *t, onv_error *err)
{
    size_t n = t->buffers.count;
    *p = (onv_placement){.n_steps = (uint32_t)t->steps.count};
    p->reserved_at = onv_heap_calloc(t->steps.count, sizeof *p->reserved_at);
    p->allocated_at = onv_heap_calloc(t->steps.count, sizeof *p->allocated_at);
    if (p->reserved_at == NULL || p->allocated_at == NULL || !onv_vec_reserve(&p->places, n))
        return onv_fail_memory(err);
    p->places.count = n;
    for (size_t i = 0; i < n; i++) p->places.at[i] = (onv_place){.segment = ONV_NO_SEGMENT};
    return onv_timeline_list_events(t, &p->events, err);
}

void onv_placement_cleanup(onv_placement *p)
{
    onv_vec_cleanup(&p->events);
    onv_vec_cleanup(&p->segments);
    onv_vec_cleanup(&p->mappings);
    onv_vec_cleanup(&p->places);
    onv_heap_free(p->reserved_at);
    onv_heap_free(p->allocated_at);
    *p = (onv_placement){0};
}

/* --- Check ------------------------------------------------------------------------------------- */

#define NEVER SIZE_MAX

/* By buffer: the events at which it is allocated and freed. */
typedef struct lives {
    size_t *from, *to;
} lives;

static onv_status check_event(const onv_placement *p, const onv_timeline *t, size_t i, lives *at,
                              onv_error *err)
{
    const onv_timeline_event *e = &p->events.at[i];
    if (e->buffer >= t->buffers.count || e->step >= t->steps.count ||
        (i > 0 && e->step < p->events.at[i - 1].step))
        return onv_fail(err, ONV_ERR_MODEL, "event %zu is about no buffer, or in no step", i);
    const onv_buffer *b = &t->buffers.at[e->buffer];
    size_t *when = e->is_free ? &at->to[e->buffer] : &at->from[e->buffer];
    bool in_turn = *when == NEVER && (e->is_free == (at->from[e->buffer] != NEVER));
    if (!in_turn || e->step != (e->is_free ? b->last : b->first))
        return onv_fail(err, ONV_ERR_MODEL, "buffer %" PRIu32 " ('%s'): events are out of order",
                        e->buffer, b->label != NULL ? b->label : "");
    *when = i;
    return ONV_OK;
}

static onv_status check_place(const onv_placement *p, const onv_timeline *t, size_t i,
                              const lives *at, onv_error *err)
{
    const onv_buffer *b = &t->buffers.at[i];
    const onv_place *place = &p->places.at[i];
    const char *label = b->label != NULL ? b->label : "";
    if (at->to[i] == NEVER)
        return onv_fail(err, ONV_ERR_MODEL, "buffer %zu ('%s') is never freed", i, label);
    if (b->bytes == 0) return ONV_OK;
    const onv_taken_segment *s =
        place->segment < p->segments.count ? &p->segments.at[place->segment] : NULL;
    if (s == NULL || s->taken > at->from[i] || s->returned < at->to[i])
        return onv_fail(err, ONV_ERR_MODEL, "buffer %zu ('%s') is in no segment", i, label);
    uint64_t end;
    if (!onv_u64_add(place->offset, b->bytes, &end) || end > s->bytes)
        return onv_fail(err, ONV_ERR_MODEL, "buffer %zu ('%s') is not inside its segment", i,
                        label);
    return ONV_OK;
}

/* The segments that are there, added up: by step the most. By event, `taken` is what is taken, `back`
 * what goes back; both have room for every event and one more. */
static onv_status check_sums(const onv_placement *p, uint64_t *back, uint64_t *taken,
                             onv_error *err)
{
    uint64_t now = 0;
    const uint64_t *held = onv_placement_held_at(p);
    for (size_t i = 0; i < p->segments.count; i++) {
        const onv_taken_segment *s = &p->segments.at[i];
        if (s->grows) return ONV_OK;
        if (s->taken >= p->events.count || s->returned > p->events.count || s->returned < s->taken)
            return onv_fail(err, ONV_ERR_MODEL, "segment %zu: its events are out of order", i);
        taken[s->taken] += s->counted; /* what does not fit 64 bits was refused by the models */
        back[s->returned] += s->counted;
    }
    size_t i = 0;
    for (uint32_t step = 0; step < p->n_steps; step++) {
        uint64_t most = now;
        for (; i < p->events.count && p->events.at[i].step == step; i++) {
            now += taken[i] - back[i]; /* wraps back */
            if (now > most) most = now;
        }
        if (most != held[step])
            return onv_fail(err, ONV_ERR_MODEL,
                            "step %" PRIu32 ": the segments are %" PRIu64 " bytes, not %" PRIu64,
                            step, most, held[step]);
    }
    return ONV_OK;
}

static onv_status check_all(const onv_placement *p, const onv_timeline *t, lives *at,
                            onv_error *err)
{
    for (size_t i = 0; i < p->events.count; i++) ONV_TRY(check_event(p, t, i, at, err));
    for (size_t i = 0; i < p->places.count; i++) ONV_TRY(check_place(p, t, i, at, err));
    size_t n = p->events.count + 1;
    uint64_t *back = onv_heap_calloc(n, 2 * sizeof *back);
    if (back == NULL) return onv_fail_memory(err);
    onv_status status = check_sums(p, back, back + n, err);
    onv_heap_free(back);
    return status;
}

onv_status onv_placement_check(const onv_placement *p, const onv_timeline *t, onv_error *err)
{
    size_t n = t->buffers.count;
    if (p->places.count != n || p->n_steps != t->steps.count)
        return onv_fail(err, ONV_ERR_MODEL, "the placement is one of another timeline");
    lives at = {.from = onv_heap_alloc(n * sizeof *at.from),
                .to = onv_heap_alloc(n * sizeof *at.to)};
    onv_status status = ONV_OK;
    if (at.from == NULL || at.to == NULL) {
        status = onv_fail_memory(err);
    } else {
        memset(at.from, 0xff, n * sizeof *at.from);
        memset(at.to, 0xff, n * sizeof *at.to);
        status = check_all(p, t, &at, err);
    }
    onv_heap_free(at.from);
    onv_heap_free(at.to);
    return status;
}

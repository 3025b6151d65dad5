/* Timelines through an allocator model. */
#include <inttypes.h>
#include <string.h>

#include "alloc/alloc.h"
#include "base/fail.h"
#include "base/quota.h"

static uint64_t current(const onv_allocator *a, onv_alloc_metric metric)
{
    return a->stats.of[metric][ONV_POOL_ALL].current;
}

static void raise_to(uint64_t *most, uint64_t bytes)
{
    if (bytes > *most) *most = bytes;
}

/* The step that runs holds at least what there is now. */
static void note(const onv_allocator *a, onv_placement *p, uint32_t step)
{
    raise_to(&p->reserved_at[step], current(a, ONV_STAT_RESERVED_BYTES));
    raise_to(&p->allocated_at[step], current(a, ONV_STAT_ALLOCATED_BYTES));
}

/* What lies within a container is at home there, and asks for nothing. */
static onv_status serve(onv_allocator *a, const onv_timeline *t, const onv_timeline_event *e,
                        onv_placement *p, onv_error *err)
{
    const onv_buffer *b = &t->buffers.at[e->buffer];
    if (b->within != ONV_NO_BUFFER) {
        p->places.at[e->buffer] = (onv_place){.offset = p->places.at[b->within].offset + b->offset,
                                              .segment = p->places.at[b->within].segment};
        return ONV_OK;
    }
    if (e->is_free) return onv_allocator_free(a, e->buffer, err);
    if (b->bytes > ONV_ALLOC_MAX_BYTES)
        return onv_fail(err, ONV_ERR_LIMIT,
                        "event %zu: %" PRIu64 " bytes are more than any device ('%s')", a->n_events,
                        b->bytes, b->label != NULL ? b->label : "");
    if (b->bypasses_pool) return onv_allocator_reserve(a, e->buffer, b->bytes, err);
    a->stream = b->stream;
    return onv_allocator_alloc(a, e->buffer, b->bytes, err);
}

/* --- Later iterations of training ------------------------------------------------------------------ */

/* From the second iteration of training on all ask for the same. Where what one leaves is in other places than it found,
 * a later one may still need another segment. The last iteration is served again, in turns under its own numbers of
 * buffers and under those of the one before, which are free by then. */
typedef struct again {
    size_t event;          /* the first one of the last iteration; SIZE_MAX: nothing comes again */
    uint32_t first, shift; /* its first buffer; the iteration before has each one `shift` earlier */
    uint32_t before;       /* the step before it */
} again;

static uint32_t first_step_of(const onv_timeline *t, uint32_t iteration)
{
    uint32_t step = (uint32_t)t->steps.count;
    while (step > 0 && t->steps.at[step - 1].iteration >= iteration) step--;
    return step;
}

/* Freed only because the timeline ends. */
static bool stays(const again *g, const onv_timeline *t, uint32_t id)
{
    if (t->buffers.at[id].last + 1 < t->steps.count) return false;
    if (id < g->first) return id < g->first - g->shift;
    return t->buffers.at[id - g->shift].last != g->before;
}

static bool is_same(const onv_buffer *earlier, const onv_buffer *later, uint32_t steps)
{
    return later->bytes == earlier->bytes && later->first - earlier->first == steps &&
           later->stream == earlier->stream && later->within == ONV_NO_BUFFER &&
           earlier->within == ONV_NO_BUFFER;
}

static again find_again(const onv_timeline *t, const onv_placement *p,
                        const onv_alloc_options *options)
{
    const again none = {.event = SIZE_MAX};
    uint32_t n = (uint32_t)t->buffers.count, n_steps = (uint32_t)t->steps.count;
    uint32_t last = n_steps > 0 ? t->steps.at[n_steps - 1].iteration : 0;
    if (options->later_iterations == 0 || last < 2) return none;
    uint32_t from = first_step_of(t, last), steps = from - first_step_of(t, last - 1);
    again g = {.event = p->events.count, .first = n, .before = from - 1};
    while (g.event > 0 && p->events.at[g.event - 1].step >= from) g.event--;
    while (g.first > 0 && t->buffers.at[g.first - 1].first >= from) g.first--;
    g.shift = n - g.first;
    if (steps != n_steps - from || g.shift > g.first) return none;
    for (uint32_t i = g.first; i < n; i++)
        if (!is_same(&t->buffers.at[i - g.shift], &t->buffers.at[i], steps)) return none;
    for (size_t i = g.event; i < p->events.count; i++) {
        uint32_t id = p->events.at[i].buffer;
        if (id < g.first - g.shift && !stays(&g, t, id)) return none;
    }
    return g;
}

static onv_status serve_again(onv_allocator *a, const onv_timeline *t, const again *g,
                              onv_placement *p, onv_error *err)
{
    uint32_t rounds = a->options.later_iterations;
    a->record = NULL;
    for (uint32_t round = 0; round < rounds; round++)
        for (size_t i = g->event; i < p->events.count && !a->out_of_memory; i++) {
            onv_timeline_event e = p->events.at[i];
            ONV_WORK(4);
            if (e.is_free && stays(g, t, e.buffer)) continue;
            if (round % 2 == 0) e.buffer += e.buffer < g->first ? g->shift : -g->shift;
            ONV_TRY(serve(a, t, &e, p, err));
        }
    note(a, p, p->n_steps - 1);
    for (size_t i = 0; i < p->events.count && !a->out_of_memory; i++) {
        onv_timeline_event e = p->events.at[i];
        if (!e.is_free || !stays(g, t, e.buffer)) continue;
        if (e.buffer >= g->first && rounds % 2 == 1) e.buffer -= g->shift;
        ONV_TRY(serve(a, t, &e, p, err));
    }
    return ONV_OK;
}

static onv_status serve_all(onv_allocator *a, const onv_timeline *t, onv_placement *p,
                            onv_error *err)
{
    again g = find_again(t, p, &a->options);
    uint32_t step = 0;
    for (size_t i = 0; i < p->events.count && !a->out_of_memory; i++) {
        const onv_timeline_event *e = &p->events.at[i];
        ONV_WORK(4);
        while (step < e->step) {
            uint8_t ends = t->steps.at[step].ends;
            if (ends != 0) ONV_TRY(onv_allocator_end_streams(a, ends));
            note(a, p, ++step);
        }
        a->n_events = i;
        if (i >= g.event && e->is_free && stays(&g, t, e->buffer)) continue;
        ONV_TRY(serve(a, t, e, p, err));
        note(a, p, step);
    }
    while (step + 1 < p->n_steps) note(a, p, ++step);
    return g.event < SIZE_MAX ? serve_again(a, t, &g, p, err) : ONV_OK;
}

onv_status onv_allocator_leave_pool(onv_allocator *a, onv_error *err)
{
    uint64_t bytes = a->options.torch.pool_bytes;
    if (bytes == 0 || a->model->release_cached == NULL) return ONV_OK;
    ONV_TRY(onv_allocator_alloc(a, 0, bytes, err));
    if (!a->out_of_memory) ONV_TRY(onv_allocator_free(a, 0, err));
    if (a->record != NULL) a->record->places.at[0] = (onv_place){0};
    memset(a->stats.of[ONV_STAT_ALLOCATED_BYTES], 0, sizeof a->stats.of[0]);
    memset(a->stats.of[ONV_STAT_REQUESTED_BYTES], 0, sizeof a->stats.of[0]);
    memset(a->stats.of[ONV_STAT_ALLOCATIONS], 0, sizeof a->stats.of[0]);
    return ONV_OK;
}

onv_status onv_alloc_run(const onv_timeline *t, const onv_alloc_model *model,
                         const onv_alloc_options *options, onv_placement *placement, onv_error *err)
{
    onv_allocator a;
    onv_status status = onv_placement_init(placement, t, err);
    if (status == ONV_OK) status = onv_allocator_init(&a, model, options, err);
    if (status == ONV_OK) {
        a.record = placement;
        placement->is_pooled = model->is_pooled;
        if (t->buffers.count > 0) status = onv_allocator_leave_pool(&a, err);
        if (status == ONV_OK) status = serve_all(&a, t, placement, err);
        onv_allocator_figures(&a, &placement->figures);
        onv_allocator_cleanup(&a);
    }
    if (status != ONV_OK) onv_placement_cleanup(placement);
    return status;
}

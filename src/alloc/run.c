/* Timelines through an allocator model. */
#include <inttypes.h>
#include <string.h>

#include "alloc/requests.h"
#include "base/fail.h"
#include "base/quota.h"

enum { SERVED_AT_ONCE = 16 }; /* events whose work is counted together */

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
                        "'%s' takes %" PRIu64
                        " bytes, more than any device has: give smaller sizes",
                        b->label != NULL ? b->label : "", b->bytes);
    if (b->bypasses_pool) return onv_allocator_reserve(a, e->buffer, b->bytes, err);
    a->stream = b->stream;
    return onv_allocator_alloc(a, e->buffer, b->bytes, err);
}

/* --- Later iterations of training, later passes of inference ----------------------------------------- */

/* Where what an iteration leaves is in other places than it found, a later one may still need another segment: the last one
 * is served again. A pass of inference finds the segments of the one before, and no results of it. */
typedef struct last_iterations {
    onv_requests of; /* the last two, or the pass */
    /* The last one's first buffer; the iteration before has each `shift` earlier. */
    uint32_t first, shift;
    uint32_t before; /* the step before it */
    bool is_repeated;
} last_iterations;

static uint32_t first_step_of(const onv_timeline *t, uint32_t iteration)
{
    uint32_t step = (uint32_t)t->steps.count;
    while (step > 0 && t->steps.at[step - 1].iteration >= iteration) step--;
    return step;
}

static uint32_t first_buffer_of(const onv_timeline *t, uint32_t step)
{
    uint32_t id = (uint32_t)t->buffers.count;
    while (id > 0 && t->buffers.at[id - 1].first >= step) id--;
    return id;
}

/* Freed only because the timeline ends. */
static bool stays(const last_iterations *l, const onv_timeline *t, uint32_t id)
{
    const onv_buffer *b = &t->buffers.at[id];
    if (!l->is_repeated || b->last + 1 < t->steps.count) return false;
    if (l->of.is_pass) return onv_stays_between_passes(t, b);
    if (id < l->first) return id < l->first - l->shift;
    return t->buffers.at[id - l->shift].last != l->before;
}

/* *from: the first step that counts. False: no memory. */
static bool find_last(last_iterations *l, const onv_timeline *t, uint32_t *from)
{
    uint32_t last = t->steps.at[t->steps.count - 1].iteration;
    l->of.n_ids = (uint32_t)t->buffers.count;
    l->of.is_pass = last == 0;
    l->is_repeated = last != 1;
    l->before = UINT32_MAX;
    *from = 0;
    if (last < 2) return true;
    *from = first_step_of(t, last - 1);
    l->before = first_step_of(t, last) - 1;
    l->first = first_buffer_of(t, l->before + 1);
    l->shift = l->of.n_ids - l->first;
    l->is_repeated = l->shift > 0 && l->shift <= l->first;
    return onv_requests_mark(&l->of, 0) && onv_requests_mark(&l->of, first_buffer_of(t, *from));
}

static onv_status take_last(last_iterations *l, const onv_timeline *t, const onv_placement *p,
                            const onv_alloc_options *options, onv_error *err)
{
    uint32_t from;
    if (options->later_iterations == 0 || t->steps.count == 0) return ONV_OK;
    bool fits = find_last(l, t, &from);
    for (size_t i = 0; i < p->events.count && fits && l->is_repeated; i++) {
        const onv_timeline_event *e = &p->events.at[i];
        const onv_buffer *b = &t->buffers.at[e->buffer];
        if (e->step < from || (e->is_free && stays(l, t, e->buffer))) continue;
        if (e->step > l->before && l->of.marks.count < 3)
            fits = onv_requests_mark(&l->of, l->first);
        onv_alloc_request request = {.bytes = e->is_free ? 0 : b->bytes,
                                     .id = e->buffer,
                                     .kind = e->is_free ? ONV_REQUEST_FREE : ONV_REQUEST_ALLOC};
        fits = fits && onv_vec_push(&l->of.at, request);
        if (b->within != ONV_NO_BUFFER || b->bypasses_pool || b->stream > 0) l->is_repeated = false;
    }
    return fits ? ONV_OK : onv_fail_memory(err);
}

static onv_status serve_again(onv_allocator *a, const onv_timeline *t, const last_iterations *l,
                              onv_placement *p, onv_error *err)
{
    uint32_t served;
    a->record = NULL;
    ONV_TRY(onv_requests_serve_rest(a, &l->of, l->of.at.count, 0, &served, err));
    note(a, p, p->n_steps - 1);
    for (size_t i = 0; i < p->events.count && !a->out_of_memory; i++) {
        onv_timeline_event e = p->events.at[i];
        if (!e.is_free || !stays(l, t, e.buffer)) continue;
        if (!l->of.is_pass && e.buffer >= l->first && served % 2 == 1) e.buffer -= l->shift;
        ONV_TRY(serve(a, t, &e, p, err));
    }
    return ONV_OK;
}

static onv_status serve_events(onv_allocator *a, const onv_timeline *t, const last_iterations *l,
                               onv_placement *p, onv_error *err)
{
    uint32_t step = 0;
    for (size_t i = 0; i < p->events.count && !a->out_of_memory; i++) {
        const onv_timeline_event *e = &p->events.at[i];
        if (i % SERVED_AT_ONCE == 0) ONV_WORK(UINT64_C(4) * SERVED_AT_ONCE);
        while (step < e->step) {
            uint8_t ends = t->steps.at[step].ends;
            if (ends != 0) ONV_TRY(onv_allocator_end_streams(a, ends));
            note(a, p, ++step);
        }
        a->n_events = i;
        if (e->is_free && stays(l, t, e->buffer)) continue;
        ONV_TRY(serve(a, t, e, p, err));
        note(a, p, step);
    }
    while (step + 1 < p->n_steps) note(a, p, ++step);
    return l->is_repeated ? serve_again(a, t, l, p, err) : ONV_OK;
}

static onv_status serve_all(onv_allocator *a, const onv_timeline *t, onv_placement *p,
                            onv_error *err)
{
    last_iterations l = {.is_repeated = false};
    onv_status status = take_last(&l, t, p, &a->options, err);
    if (status == ONV_OK) status = serve_events(a, t, &l, p, err);
    onv_requests_cleanup(&l.of);
    return status;
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
        a.has_totals_alone = true;
        placement->is_pooled = model->is_pooled;
        if (t->buffers.count > 0) status = onv_allocator_leave_pool(&a, err);
        if (status == ONV_OK) status = serve_all(&a, t, placement, err);
        onv_allocator_figures(&a, &placement->figures);
        onv_allocator_cleanup(&a);
    }
    if (status != ONV_OK) onv_placement_cleanup(placement);
    return status;
}

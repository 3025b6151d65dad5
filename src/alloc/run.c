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

static onv_status serve_all(onv_allocator *a, const onv_timeline *t, onv_placement *p,
                            onv_error *err)
{
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
        ONV_TRY(serve(a, t, e, p, err));
        note(a, p, step);
    }
    while (step + 1 < p->n_steps) note(a, p, ++step);
    return ONV_OK;
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

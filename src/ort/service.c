#include "ort/service.h"

#include "base/fail.h"

/* Streams that end behind steps from `from` up to `to`. */
static void add_ends(const onv_timeline *t, uint32_t from, uint32_t to, uint32_t iteration,
                     onv_ort_requests *requests)
{
    for (uint32_t s = from; s < to; s++)
        if (t->steps.at[s].iteration == iteration && t->steps.at[s].ends != 0)
            requests->at[requests->count++] =
                (onv_ort_request){.buffer = ONV_NO_BUFFER, .stream = t->steps.at[s].ends};
}

onv_status onv_ort_list_requests(const onv_timeline *t, uint32_t n_weights, uint32_t iteration,
                                 onv_ort_requests *to, onv_error *err)
{
    onv_timeline_events events = {0};
    uint32_t step = 0;
    onv_status status = onv_timeline_list_events(t, &events, err);
    if (status == ONV_OK && !onv_vec_reserve(to, events.count + t->steps.count))
        status = onv_fail_memory(err);
    for (size_t i = 0; i < events.count && status == ONV_OK; i++) {
        const onv_timeline_event *e = &events.at[i];
        const onv_buffer *b = &t->buffers.at[e->buffer];
        add_ends(t, step, e->step, iteration, to);
        step = e->step;
        if (e->buffer < n_weights || b->within != ONV_NO_BUFFER ||
            t->steps.at[e->step].iteration != iteration)
            continue;
        to->at[to->count++] = (onv_ort_request){.bytes = b->bytes,
                                                .buffer = e->buffer,
                                                .stream = b->stream,
                                                .is_free = e->is_free,
                                                .bypasses = b->bypasses_pool};
    }
    if (status == ONV_OK) add_ends(t, step, (uint32_t)t->steps.count, iteration, to);
    onv_vec_cleanup(&events);
    return status;
}

onv_status onv_ort_service_init(onv_ort_service *s, const onv_alloc_options *options,
                                onv_error *err)
{
    *s = (onv_ort_service){0};
    return onv_allocator_init(&s->arena, onv_alloc_model_find("bfc"), options, err);
}

void onv_ort_service_cleanup(onv_ort_service *s)
{
    onv_allocator_cleanup(&s->arena);
}

onv_status onv_ort_service_load(onv_ort_service *s, const onv_timeline *t, uint32_t n_weights,
                                onv_error *err)
{
    for (uint32_t i = 0; i < n_weights; i++) {
        const onv_buffer *b = &t->buffers.at[i];
        onv_status status = b->bypasses_pool
                                ? onv_allocator_reserve(&s->arena, s->n_kept, b->bytes, err)
                                : onv_allocator_alloc(&s->arena, s->n_kept, b->bytes, err);
        if (status != ONV_OK) return status;
        s->n_kept++;
    }
    return ONV_OK;
}

onv_status onv_ort_service_run(onv_ort_service *s, const onv_ort_requests *run, onv_error *err)
{
    for (size_t i = 0; i < run->count && !s->arena.out_of_memory; i++) {
        const onv_ort_request *r = &run->at[i];
        uint32_t id = s->n_kept + r->buffer;
        s->arena.stream = r->stream;
        if (r->buffer == ONV_NO_BUFFER)
            ONV_TRY(onv_allocator_end_streams(&s->arena, r->stream));
        else if (r->is_free)
            ONV_TRY(onv_allocator_free(&s->arena, id, err));
        else if (r->bypasses)
            ONV_TRY(onv_allocator_reserve(&s->arena, id, r->bytes, err));
        else
            ONV_TRY(onv_allocator_alloc(&s->arena, id, r->bytes, err));
    }
    s->arena.stream = 0;
    return ONV_OK;
}

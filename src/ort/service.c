#include "ort/service.h"

#include "base/fail.h"

onv_status onv_ort_list_requests(const onv_timeline *t, uint32_t n_weights, uint32_t iteration,
                                 onv_ort_requests *to, onv_error *err)
{
    onv_timeline_events events = {0};
    size_t before = to->count;
    onv_status status = onv_timeline_list_events(t, &events, err);
    if (status == ONV_OK && !onv_vec_reserve(to, events.count)) status = onv_fail_memory(err);
    for (size_t i = 0; i < events.count && status == ONV_OK; i++) {
        const onv_timeline_event *e = &events.at[i];
        const onv_buffer *b = &t->buffers.at[e->buffer];
        if (e->buffer < n_weights || b->within != ONV_NO_BUFFER ||
            t->steps.at[e->step].iteration != iteration)
            continue;
        to->at[to->count++] = (onv_ort_request){.bytes = b->bytes,
                                                .buffer = e->buffer,
                                                .stream = b->stream,
                                                .is_free = e->is_free,
                                                .bypasses = b->bypasses_pool};
    }
    if (status == ONV_OK && to->count > before) to->at[to->count - 1].ends_run = true;
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
        onv_status status = r->is_free    ? onv_allocator_free(&s->arena, id, err)
                            : r->bypasses ? onv_allocator_reserve(&s->arena, id, r->bytes, err)
                                          : onv_allocator_alloc(&s->arena, id, r->bytes, err);
        if (status == ONV_OK && r->ends_run) status = onv_allocator_end_run(&s->arena);
        if (status != ONV_OK) return status;
    }
    s->arena.stream = 0;
    return ONV_OK;
}

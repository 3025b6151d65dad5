#include "ort/service.h"

#include "base/fail.h"

typedef struct lister {
    const onv_timeline *t;
    onv_ort_requests *runs;
    uint32_t n_runs, step;
    bool failed;
} lister;

static void add(lister *l, uint32_t step, onv_ort_request request)
{
    uint32_t run = l->t->steps.at[step].iteration;
    if (run < l->n_runs) l->failed |= !onv_vec_push(&l->runs[run], request);
}

/* Streams that end behind steps before this one. */
static void add_ends(lister *l, uint32_t before)
{
    for (; l->step < before; l->step++) {
        uint8_t stream = l->t->steps.at[l->step].ends;
        if (stream != 0)
            add(l, l->step, (onv_ort_request){.buffer = ONV_NO_BUFFER, .stream = stream});
    }
}

onv_status onv_ort_list_requests(const onv_timeline *t, uint32_t n_weights, onv_ort_requests *runs,
                                 uint32_t n_runs, onv_error *err)
{
    onv_timeline_events events = {0};
    lister l = {.t = t, .runs = runs, .n_runs = n_runs};
    ONV_TRY(onv_timeline_list_events(t, &events, err));
    for (size_t i = 0; i < events.count; i++) {
        const onv_timeline_event *e = &events.at[i];
        const onv_buffer *b = &t->buffers.at[e->buffer];
        add_ends(&l, e->step);
        if (e->buffer < n_weights || b->within != ONV_NO_BUFFER) continue;
        add(&l, e->step,
            (onv_ort_request){.bytes = b->bytes,
                              .buffer = e->buffer,
                              .stream = b->stream,
                              .is_free = e->is_free,
                              .bypasses = b->bypasses_pool,
                              .is_pattern = b->kind == ONV_BUFFER_POOL});
    }
    add_ends(&l, (uint32_t)t->steps.count);
    onv_vec_cleanup(&events);
    return l.failed ? onv_fail_memory(err) : ONV_OK;
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

onv_status onv_ort_service_load(onv_ort_service *s, const onv_timeline *t,
                                const onv_ort_orders *drawn, uint32_t n_weights, onv_error *err)
{
    for (uint32_t i = 0; i < n_weights; i++) {
        bool is_drawn = drawn != NULL && i < drawn->n_weights; /* others are made by kernels */
        const onv_buffer *b = &t->buffers.at[is_drawn ? drawn->order[i] : i];
        onv_status status = b->bypasses_pool
                                ? onv_allocator_reserve(&s->arena, s->n_kept, b->bytes, err)
                                : onv_allocator_alloc(&s->arena, s->n_kept, b->bytes, err);
        if (status != ONV_OK) return status;
        s->n_kept++;
    }
    return ONV_OK;
}

static onv_status serve(onv_ort_service *s, const onv_ort_request *r, onv_error *err)
{
    uint32_t id = s->n_kept + r->buffer;
    s->arena.stream = r->stream;
    if (r->buffer == ONV_NO_BUFFER) return onv_allocator_end_streams(&s->arena, r->stream);
    if (r->is_free) return onv_allocator_free(&s->arena, id, err);
    return r->bypasses ? onv_allocator_reserve(&s->arena, id, r->bytes, err)
                       : onv_allocator_alloc(&s->arena, id, r->bytes, err);
}

/* Gives back what these requests took. */
static onv_status give_back(onv_ort_service *s, const onv_ort_requests *run, size_t n,
                            onv_error *err)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t id = s->n_kept + run->at[i].buffer;
        bool is_taken = run->at[i].buffer != ONV_NO_BUFFER && !run->at[i].is_free;
        if (is_taken && s->arena.owned.at[id] != ONV_OWNS_NOTHING)
            ONV_TRY(onv_allocator_free(&s->arena, id, err));
    }
    return ONV_OK;
}

onv_status onv_ort_service_run(onv_ort_service *s, const onv_ort_requests runs[2], bool is_later,
                               onv_error *err)
{
    const onv_ort_requests *run = &runs[is_later];
    for (size_t i = 0; i < run->count && !s->arena.out_of_memory; i++) {
        ONV_TRY(serve(s, &run->at[i], err));
        if (!s->arena.out_of_memory || !run->at[i].is_pattern) continue;
        s->arena.out_of_memory = false;
        ONV_TRY(give_back(s, run, i, err));
        return onv_ort_service_run(s, runs, false, err);
    }
    s->arena.stream = 0;
    return ONV_OK;
}

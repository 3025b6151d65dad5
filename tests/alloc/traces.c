#include "alloc/traces.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { POPULAR = 40 };

typedef struct maker {
    ONV_VEC(onv_trace_event) events;
    ONV_VEC(uint32_t) live;
    ONV_VEC(uint32_t) spare;
    uint32_t n_ids;
    uint64_t random;
    unsigned streams;
} maker;

static uint64_t next_random(maker *m)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return m->random >> 11;
}

static uint64_t random_size(maker *m, unsigned size_bits)
{
    uint64_t power = UINT64_C(1) << next_random(m) % size_bits;
    return power + next_random(m) % power;
}

static void need(bool ok)
{
    if (!ok) abort();
}

static void make_alloc(maker *m, uint64_t bytes)
{
    uint32_t id = m->spare.count > 0 ? m->spare.at[--m->spare.count] : m->n_ids++;
    uint8_t stream = m->streams > 1 ? (uint8_t)(next_random(m) % m->streams) : 0;
    need(onv_vec_push(&m->events, ((onv_trace_event){.id = id, .bytes = bytes, .stream = stream})));
    need(onv_vec_push(&m->live, id));
}

static void make_free(maker *m, size_t which)
{
    uint32_t id = m->live.at[which];
    need(onv_vec_push(&m->events, ((onv_trace_event){.id = id, .is_free = true})));
    need(onv_vec_push(&m->spare, id));
    m->live.at[which] = m->live.at[--m->live.count];
}

test_trace random_trace(trace_shape shape)
{
    maker m = {.random = (uint64_t)shape.seed * 0x9e3779b97f4a7c15u + 1, .streams = shape.streams};
    uint64_t popular[POPULAR];
    for (int i = 0; i < POPULAR; i++) popular[i] = random_size(&m, shape.size_bits);
    if (shape.first_bytes > 0) {
        make_alloc(&m, shape.first_bytes);
        make_free(&m, 0);
    }
    while (m.events.count < shape.events) {
        if (m.live.count > 0 && next_random(&m) % 100 < shape.free_percent)
            make_free(&m, next_random(&m) % m.live.count);
        else if (next_random(&m) % 10 < 6)
            make_alloc(&m, popular[next_random(&m) % POPULAR]);
        else
            make_alloc(&m, random_size(&m, shape.size_bits));
    }
    onv_vec_cleanup(&m.live);
    onv_vec_cleanup(&m.spare);
    return (test_trace){.events = m.events.at, .count = m.events.count, .n_ids = m.n_ids};
}

void random_trace_free(test_trace *trace)
{
    onv_vec_free(trace->events);
    trace->events = NULL;
}

onv_status trace_feed(onv_allocator *a, const onv_trace_event *event, onv_error *err)
{
    if (event->is_free) return onv_allocator_free(a, event->id, err);
    a->stream = event->stream;
    return onv_allocator_alloc(a, event->id, event->bytes, err);
}

onv_status trace_serve(const test_trace *trace, const onv_alloc_model *model,
                       const onv_alloc_options *options, onv_held_figures *figures, onv_error *err)
{
    onv_allocator a;
    ONV_TRY(onv_allocator_init(&a, model, options, err));
    onv_status status = ONV_OK;
    for (size_t i = 0; i < trace->count && status == ONV_OK && !a.out_of_memory; i++)
        status = trace_feed(&a, &trace->events[i], err);
    onv_allocator_figures(&a, figures);
    onv_allocator_cleanup(&a);
    return status;
}

char *trace_text(const test_trace *trace)
{
    enum { LINE = 64 };
    char *text = malloc(trace->count * LINE + 1), *at = text;
    need(text != NULL);
    *at = '\0';
    for (size_t i = 0; i < trace->count; i++) {
        const onv_trace_event *e = &trace->events[i];
        at += e->is_free ? sprintf(at, "free,%" PRIu32 "\n", e->id)
                         : sprintf(at, "alloc,%" PRIu32 ",%" PRIu64 "\n", e->id, e->bytes);
    }
    return text;
}

uint64_t hash_add(uint64_t hash, uint64_t number)
{
    for (int i = 0; i < 8; i++) {
        hash = (hash ^ (number & 0xff)) * UINT64_C(0x100000001b3);
        number >>= 8;
    }
    return hash;
}

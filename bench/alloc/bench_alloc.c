/* Events per second of every allocator model, and of the reader of traces, on a synthetic trace in
 * the shape of training: layers allocate activations, backward frees them in turn and allocates
 * gradients and workspaces, an optimizer step follows; sizes vary a little from step to step.
 *
 *     bench_alloc [EVENTS]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alloc/trace_csv.h"

enum { LAYERS = 400, SCRATCH = 3 };

typedef struct maker {
    ONV_VEC(onv_event) events;
    size_t wanted;
    uint64_t random;
    uint32_t n_ids;
} maker;

static uint64_t next_random(maker *m)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return m->random;
}

static void add(maker *m, onv_event event)
{
    if (!onv_vec_push(&m->events, event)) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    if (event.id >= m->n_ids) m->n_ids = event.id + 1;
}

static void alloc_id(maker *m, uint32_t id, uint64_t bytes)
{
    add(m, (onv_event){.id = id, .bytes = bytes});
}

static void free_id(maker *m, uint32_t id)
{
    add(m, (onv_event){.id = id, .is_free = true});
}

/* From some hundred bytes to some ten megabytes. */
static uint64_t size_of_layer(maker *m, uint32_t layer, uint64_t batch)
{
    uint64_t base = UINT64_C(1) << (8 + (layer * 7) % 17);
    return (base + (next_random(m) % 4) * 64) * batch / 16 + 4;
}

static void one_iteration(maker *m)
{
    uint64_t batch = 12 + next_random(m) % 5;
    uint32_t scratch = LAYERS * 2;
    for (uint32_t l = 0; l < LAYERS; l++) {
        for (uint32_t s = 0; s < SCRATCH; s++)
            alloc_id(m, scratch + s, size_of_layer(m, l + s + 5, batch));
        alloc_id(m, LAYERS + l, size_of_layer(m, l, batch));
        for (uint32_t s = 0; s < SCRATCH; s++) free_id(m, scratch + s);
    }
    for (uint32_t l = LAYERS; l-- > 0;) {
        uint32_t grad = scratch + SCRATCH + l % 2;
        alloc_id(m, grad, size_of_layer(m, l, batch));
        for (uint32_t s = 0; s < SCRATCH; s++)
            alloc_id(m, scratch + s, size_of_layer(m, l + s, batch));
        for (uint32_t s = 0; s < SCRATCH; s++) free_id(m, scratch + s);
        free_id(m, LAYERS + l);
        if (l + 1 < LAYERS) free_id(m, scratch + SCRATCH + (l + 1) % 2);
    }
    free_id(m, scratch + SCRATCH);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void time_model(const onv_alloc_model *model, const onv_trace *trace)
{
    onv_error err = {0};
    onv_alloc_result result;
    double best = 0;
    for (int round = 0; round < 3; round++) {
        double start = now();
        if (onv_alloc_simulate(trace, model, NULL, &result, &err) != ONV_OK) {
            fprintf(stderr, "%s: %s\n", model->name, err.message);
            exit(1);
        }
        double rate = (double)trace->count / (now() - start);
        if (rate > best) best = rate;
    }
    printf("%-18s %8.2f M events/s  reserved peak %" PRIu64 " in %" PRIu64 " segments\n",
           model->name, best / 1e6, result.reserved_peak, result.segments_peak);
}

typedef struct bytes {
    char *at;
    size_t count, capacity;
} bytes;

static bool keep(void *context, const char *text, size_t count)
{
    bytes *b = context;
    if (!onv_vec_reserve(b, count)) return false;
    memcpy(b->at + b->count, text, count);
    b->count += count;
    return true;
}

static onv_status ignore(void *context, const onv_event *event, onv_error *err)
{
    (void)err;
    *(uint64_t *)context += event->bytes;
    return ONV_OK;
}

static void time_reader(const onv_trace *trace)
{
    bytes text = {0};
    uint64_t sum = 0;
    double start = now();
    if (onv_trace_csv_write(trace, keep, &text, NULL) != ONV_OK) exit(1);
    double written = now();
    if (onv_trace_csv_scan(text.at, text.count, ignore, &sum, NULL, NULL) != ONV_OK) exit(1);
    double read = now();
    printf("%-18s %8.2f M events/s\n", "csv write", (double)trace->count / (written - start) / 1e6);
    printf("%-18s %8.2f M events/s, %.0f MB/s\n", "csv read",
           (double)trace->count / (read - written) / 1e6,
           (double)text.count / (read - written) / 1e6);
    onv_vec_cleanup(&text);
}

int main(int argc, char **argv)
{
    maker m = {.wanted = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000000,
               .random = 88172645463325252};
    for (uint32_t l = 0; l < LAYERS; l++) alloc_id(&m, l, size_of_layer(&m, l + 3, 16));
    while (m.events.count < m.wanted) one_iteration(&m);
    onv_trace trace = {.events = m.events.at, .count = m.events.count, .n_ids = m.n_ids};
    printf("%zu events, %" PRIu32 " ids\n", trace.count, trace.n_ids);
    for (size_t i = 0; i < onv_n_alloc_models; i++) time_model(onv_alloc_models[i], &trace);
    time_reader(&trace);
    onv_vec_cleanup(&m.events);
    return 0;
}

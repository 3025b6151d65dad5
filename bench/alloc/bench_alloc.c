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

#include "alloc/csv_text.h"

enum { LAYERS = 400, SCRATCH = 3 };

typedef struct maker {
    ONV_VEC(onv_trace_event) events;
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

static void add(maker *m, onv_trace_event event)
{
    if (!onv_vec_push(&m->events, event)) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    if (event.id >= m->n_ids) m->n_ids = event.id + 1;
}

static void alloc_id(maker *m, uint32_t id, uint64_t bytes)
{
    add(m, (onv_trace_event){.id = id, .bytes = bytes});
}

static void free_id(maker *m, uint32_t id)
{
    add(m, (onv_trace_event){.id = id, .is_free = true});
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

typedef struct text {
    char *at;
    size_t count, capacity;
    size_t events;
} text;

static text text_of(const maker *m)
{
    text t = {.events = m->events.count};
    for (size_t i = 0; i < m->events.count; i++) {
        const onv_trace_event *e = &m->events.at[i];
        if (!onv_vec_reserve(&t, 64)) exit(1);
        t.count += (size_t)(e->is_free ? sprintf(t.at + t.count, "free,%" PRIu32 "\n", e->id)
                                       : sprintf(t.at + t.count, "alloc,%" PRIu32 ",%" PRIu64 "\n",
                                                 e->id, e->bytes));
    }
    return t;
}

static onv_status ignore(void *context, const onv_trace_event *event, onv_error *err)
{
    (void)err;
    *(uint64_t *)context += event->bytes;
    return ONV_OK;
}

static void time_reader(const text *csv)
{
    uint64_t sum = 0;
    double start = now();
    if (onv_trace_csv_scan(csv->at, csv->count, ignore, &sum, NULL, NULL) != ONV_OK) exit(1);
    double read = now() - start;
    printf("%-18s %8.2f M events/s, %.0f MB/s\n", "csv read", (double)csv->events / read / 1e6,
           (double)csv->count / read / 1e6);
}

static void time_model(const onv_alloc_model *model, const onv_timeline *t, size_t events)
{
    onv_error err = {0};
    onv_placement p;
    onv_held_figures figures = {0};
    double best = 0;
    for (int round = 0; round < 3; round++) {
        double start = now();
        if (onv_alloc_run(t, model, NULL, &p, &err) != ONV_OK) {
            fprintf(stderr, "%s: %s\n", model->name, err.message);
            exit(1);
        }
        double rate = (double)events / (now() - start);
        if (rate > best) best = rate;
        figures = p.figures;
        onv_placement_cleanup(&p);
    }
    printf("%-18s %8.2f M events/s  reserved peak %" PRIu64 " in %" PRIu64 " segments\n",
           model->name, best / 1e6, figures.reserved_peak, figures.segments_peak);
}

int main(int argc, char **argv)
{
    maker m = {.wanted = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000000,
               .random = 88172645463325252};
    for (uint32_t l = 0; l < LAYERS; l++) alloc_id(&m, l, size_of_layer(&m, l + 3, 16));
    while (m.events.count < m.wanted) one_iteration(&m);
    text csv = text_of(&m);
    onv_timeline t;
    if (csv_text_read(csv.at, csv.count, &t, NULL) != ONV_OK) return 1;
    printf("%zu events, %" PRIu32 " ids, %zu steps\n", csv.events, m.n_ids, t.steps.count);
    for (size_t i = 0; i < onv_n_alloc_models; i++) time_model(onv_alloc_models[i], &t, csv.events);
    time_reader(&csv);
    onv_timeline_cleanup(&t);
    onv_vec_cleanup(&csv);
    onv_vec_cleanup(&m.events);
    return 0;
}

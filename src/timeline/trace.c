#include "timeline/trace.h"

#include "base/heap.h"

void onv_trace_cleanup(onv_trace *trace)
{
    onv_heap_free(trace->events);
    *trace = (onv_trace){0};
}

static bool reserve(onv_trace *trace, size_t extra)
{
    if (extra <= trace->capacity - trace->count) return true;
    if (extra > SIZE_MAX / 2 / sizeof *trace->events - trace->count) return false;
    size_t capacity = trace->count + extra;
    if (capacity < trace->capacity * 2) capacity = trace->capacity * 2;
    onv_event *grown = onv_heap_realloc(trace->events, capacity * sizeof *grown);
    if (grown == NULL) return false;
    trace->events = grown;
    trace->capacity = capacity;
    return true;
}

bool onv_trace_alloc(onv_trace *trace, uint32_t id, uint64_t bytes, uint32_t step,
                     const char *label)
{
    if (!reserve(trace, 1)) return false;
    trace->events[trace->count++] =
        (onv_event){.bytes = bytes, .id = id, .step = step, .label = label};
    if (id >= trace->n_ids) trace->n_ids = id + 1;
    return true;
}

bool onv_trace_free(onv_trace *trace, uint32_t id, uint32_t step)
{
    if (!reserve(trace, 1)) return false;
    trace->events[trace->count++] = (onv_event){.id = id, .step = step, .is_free = true};
    return true;
}

/* Row numbers grouped by a step, in row order: start[s] .. start[s + 1] of `rows`. */
typedef struct by_step {
    uint32_t *start, *rows;
} by_step;

static bool group(by_step *g, const onv_buffer *rows, uint32_t count, uint32_t n_steps,
                  bool by_last)
{
    g->start = onv_heap_calloc((size_t)n_steps + 2, sizeof *g->start);
    g->rows = onv_heap_alloc(count * sizeof *g->rows);
    if (g->start == NULL || g->rows == NULL) return false;
    for (uint32_t i = 0; i < count; i++) g->start[(by_last ? rows[i].last : rows[i].first) + 2]++;
    for (uint32_t s = 2; s < n_steps + 2; s++) g->start[s] += g->start[s - 1];
    for (uint32_t i = 0; i < count; i++)
        g->rows[g->start[(by_last ? rows[i].last : rows[i].first) + 1]++] = i;
    return true;
}

static bool add_steps(onv_trace *trace, const onv_buffer *rows, uint32_t n_steps, uint32_t first_id,
                      const by_step *births, const by_step *deaths)
{
    for (uint32_t s = 0; s < n_steps; s++) {
        for (uint32_t k = births->start[s]; k < births->start[s + 1]; k++) {
            uint32_t i = births->rows[k];
            if (!onv_trace_alloc(trace, first_id + i, rows[i].bytes, s, rows[i].label))
                return false;
        }
        for (uint32_t k = deaths->start[s]; k < deaths->start[s + 1]; k++)
            if (!onv_trace_free(trace, first_id + deaths->rows[k], s)) return false;
    }
    return true;
}

bool onv_trace_add_intervals(onv_trace *trace, const onv_buffer *rows, uint32_t count,
                             uint32_t n_steps, uint32_t first_id)
{
    by_step births = {0}, deaths = {0};
    bool good = group(&births, rows, count, n_steps, false) &&
                group(&deaths, rows, count, n_steps, true) && reserve(trace, 2 * (size_t)count) &&
                add_steps(trace, rows, n_steps, first_id, &births, &deaths);
    onv_heap_free(births.start);
    onv_heap_free(births.rows);
    onv_heap_free(deaths.start);
    onv_heap_free(deaths.rows);
    return good;
}

/* The order of allocations and frees. */
#include "base/fail.h"
#include "base/heap.h"
#include "base/quota.h"
#include "timeline/timeline.h"

/* Buffers grouped by a step, in the order of the list: start[s] .. start[s + 1] of `at`. */
typedef struct by_step {
    uint32_t *start, *at;
} by_step;

static uint32_t step_of(const onv_buffer *b, bool by_last)
{
    return by_last ? b->last : b->first;
}

static bool group(by_step *g, const onv_timeline *t, bool by_last)
{
    size_t n_steps = t->steps.count, n = t->buffers.count;
    g->start = onv_heap_calloc(n_steps + 2, sizeof *g->start);
    g->at = onv_heap_alloc(n * sizeof *g->at);
    if (g->start == NULL || g->at == NULL) return false;
    for (size_t i = 0; i < n; i++) g->start[step_of(&t->buffers.at[i], by_last) + 2]++;
    for (size_t s = 2; s < n_steps + 2; s++) g->start[s] += g->start[s - 1];
    for (size_t i = 0; i < n; i++)
        g->at[g->start[step_of(&t->buffers.at[i], by_last) + 1]++] = (uint32_t)i;
    return true;
}

static void add(onv_timeline_events *events, uint32_t buffer, uint32_t step, bool is_free)
{
    events->at[events->count++] = (onv_timeline_event){buffer, step, is_free};
}

/* Containers begin before what is within them because they are listed before; they end after it. */
static void add_frees(const onv_timeline *t, onv_timeline_events *events, const by_step *ends,
                      uint32_t step)
{
    bool has_others = true;
    for (int container = 0; container < 2 && has_others; container++) {
        has_others = false;
        for (uint32_t k = ends->start[step]; k < ends->start[step + 1]; k++) {
            const onv_buffer *b = &t->buffers.at[ends->at[k]];
            bool is_other = (b->kind == ONV_BUFFER_POOL) != (container == 1);
            has_others |= is_other;
            if (!is_other && !b->is_transient) add(events, ends->at[k], step, true);
        }
    }
}

onv_status onv_timeline_list_events(const onv_timeline *t, onv_timeline_events *events,
                                    onv_error *err)
{
    by_step begins = {0}, ends = {0};
    ONV_WORK(t->steps.count + 2 * t->buffers.count);
    bool good = group(&begins, t, false) && group(&ends, t, true) &&
                onv_vec_reserve(events, 2 * t->buffers.count);
    for (uint32_t s = 0; good && s < t->steps.count; s++) {
        for (uint32_t k = begins.start[s]; k < begins.start[s + 1]; k++) {
            add(events, begins.at[k], s, false);
            if (t->buffers.at[begins.at[k]].is_transient) add(events, begins.at[k], s, true);
        }
        add_frees(t, events, &ends, s);
    }
    onv_heap_free(begins.start);
    onv_heap_free(begins.at);
    onv_heap_free(ends.start);
    onv_heap_free(ends.at);
    return good ? ONV_OK : onv_fail_memory(err);
}

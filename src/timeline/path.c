/* One run of a timeline with branches. */
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "timeline/timeline.h"

typedef struct chooser {
    const onv_timeline *t;
    uint64_t *live;   /* by step */
    uint32_t *chosen; /* by region: of ALTERNATIVES the branch that runs */
    uint32_t *off;    /* by step: the end of the branches around it that do not run; 0: it runs */
} chooser;

static uint64_t peak_of(const chooser *c, const onv_region *r)
{
    uint64_t peak = 0;
    for (uint32_t s = r->first; s < r->end; s++)
        if (c->live[s] > peak) peak = c->live[s];
    return peak;
}

/* Made in a branch that does not run: what only begins with it and outlives it was there before. */
static bool is_off(const chooser *c, const onv_buffer *b)
{
    return b->last < c->off[b->first];
}

/* The first of the branches with the largest peak, or the smallest. The sweep is over all steps, so a nested If
 * counts with its own larger branch. */
static void choose(const chooser *c)
{
    const onv_timeline *t = c->t;
    for (uint32_t i = 0; i < t->regions.count; i++) c->chosen[i] = ONV_NO_REGION;
    for (uint32_t i = 0; i < t->regions.count; i++) {
        const onv_region *r = &t->regions.at[i];
        if (r->parent == ONV_NO_REGION || t->regions.at[r->parent].kind != ONV_REGION_ALTERNATIVES)
            continue;
        uint32_t best = c->chosen[r->parent];
        uint64_t peak = peak_of(c, r);
        uint64_t other = best == ONV_NO_REGION ? 0 : peak_of(c, &t->regions.at[best]);
        if (best == ONV_NO_REGION || (t->takes_least ? peak < other : peak > other))
            c->chosen[r->parent] = i;
    }
    for (uint32_t i = 0; i < t->regions.count; i++) {
        const onv_region *r = &t->regions.at[i];
        if (r->parent == ONV_NO_REGION ||
            t->regions.at[r->parent].kind != ONV_REGION_ALTERNATIVES || c->chosen[r->parent] == i)
            continue;
        for (uint32_t s = r->first; s < r->end; s++)
            if (r->end > c->off[s]) c->off[s] = r->end;
    }
}

/* A buffer that runs stands for the whole chain that it becomes: it lives to the chain's end, as large as it is, and
 * the later ones of the chain are not there. */
static void join_chains(const chooser *c, uint32_t *head)
{
    const onv_timeline *t = c->t;
    for (uint32_t i = 0; i < t->buffers.count; i++) head[i] = i;
    for (uint32_t i = 0; i < t->buffers.count; i++) {
        const onv_buffer *b = &t->buffers.at[i];
        if (b->becomes != ONV_NO_BUFFER && !is_off(c, b)) head[b->becomes] = i;
    }
    for (uint32_t i = 0; i < t->buffers.count; i++)
        while (head[head[i]] != head[i]) head[i] = head[head[i]];
}

static bool copy_buffers(const chooser *c, const uint32_t *head, onv_timeline *path,
                         uint32_t *of_buffer)
{
    const onv_timeline *t = c->t;
    if (!onv_vec_reserve(&path->buffers, t->buffers.count)) return false;
    for (uint32_t i = 0; i < t->buffers.count; i++) {
        const onv_buffer *b = &t->buffers.at[i];
        of_buffer[i] = ONV_NO_BUFFER;
        if (is_off(c, b) || head[i] != i) continue;
        of_buffer[i] = (uint32_t)path->buffers.count;
        onv_buffer copy = *b;
        copy.becomes = ONV_NO_BUFFER;
        if (b->within != ONV_NO_BUFFER) copy.within = of_buffer[head[b->within]];
        path->buffers.at[path->buffers.count++] = copy;
    }
    for (uint32_t i = 0; i < t->buffers.count; i++) {
        if (is_off(c, &t->buffers.at[i]) || head[i] == i) continue;
        of_buffer[i] = of_buffer[head[i]];
        onv_buffer *to = &path->buffers.at[of_buffer[i]];
        const onv_buffer *b = &t->buffers.at[i];
        if (b->last > to->last) to->last = b->last;
        if (b->kind == ONV_BUFFER_OUTPUT) to->kind = ONV_BUFFER_OUTPUT;
    }
    return true;
}

static bool copy_rest(const onv_timeline *t, onv_timeline *path)
{
    path->measured_from = t->measured_from;
    if (!onv_vec_reserve(&path->steps, t->steps.count) ||
        !onv_vec_reserve(&path->regions, t->regions.count))
        return false;
    if (t->steps.count > 0)
        memcpy(path->steps.at, t->steps.at, t->steps.count * sizeof *t->steps.at);
    if (t->regions.count > 0)
        memcpy(path->regions.at, t->regions.at, t->regions.count * sizeof *t->regions.at);
    /* One branch of each is left, so nothing is an alternative any more. */
    for (size_t i = 0; i < t->regions.count; i++)
        if (path->regions.at[i].kind == ONV_REGION_ALTERNATIVES)
            path->regions.at[i].kind = ONV_REGION_SEQUENCE;
    path->steps.count = t->steps.count;
    path->regions.count = t->regions.count;
    return true;
}

onv_status onv_timeline_path(const onv_timeline *t, onv_timeline *path, uint32_t *of_buffer,
                             onv_error *err)
{
    size_t n = t->buffers.count;
    onv_peak peak;
    chooser c = {.t = t,
                 .live = onv_heap_calloc(t->steps.count + 1, sizeof *c.live),
                 .chosen = onv_heap_calloc(t->regions.count + 1, sizeof *c.chosen),
                 .off = onv_heap_calloc(t->steps.count + 1, sizeof *c.off)};
    uint32_t *head = onv_heap_calloc(n + 1, sizeof *head);
    uint32_t *map = of_buffer != NULL ? of_buffer : onv_heap_calloc(n + 1, sizeof *map);
    bool good = c.live != NULL && c.chosen != NULL && c.off != NULL && head != NULL &&
                map != NULL && copy_rest(t, path);
    onv_status status = good ? onv_timeline_peak(t, &peak, c.live, err) : onv_fail_memory(err);
    if (status == ONV_OK) {
        choose(&c);
        join_chains(&c, head);
        if (!copy_buffers(&c, head, path, map)) status = onv_fail_memory(err);
    }
    onv_heap_free(c.live);
    onv_heap_free(c.chosen);
    onv_heap_free(c.off);
    onv_heap_free(head);
    if (map != of_buffer) onv_heap_free(map);
    return status;
}

#include "graph/steps.h"

#include <stdlib.h>

#include "base/fail.h"
#include "base/heap.h"

typedef struct search {
    uint32_t *first; /* by node: its producers in `producers`, the highest one first */
    uint32_t *producers;
    uint32_t *stack, *next; /* nodes on the path, and the producer to look at */
    bool *is_leaf, *seen;   /* by node */
    uint32_t *order, n_ordered;
} search;

static int compare_descending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x < y) - (x > y);
}

static bool prepare(search *s, uint32_t n, const onv_edges *edges)
{
    s->first = onv_heap_calloc((size_t)n + 2, sizeof *s->first);
    s->producers = onv_heap_alloc((edges->count + 1) * sizeof *s->producers);
    s->stack = onv_heap_alloc(((size_t)n + 1) * sizeof *s->stack);
    s->next = onv_heap_alloc(((size_t)n + 1) * sizeof *s->next);
    s->is_leaf = onv_heap_alloc((size_t)n + 1);
    s->seen = onv_heap_calloc((size_t)n + 1, 1);
    if (s->first == NULL || s->producers == NULL || s->stack == NULL || s->next == NULL ||
        s->is_leaf == NULL || s->seen == NULL)
        return false;
    for (uint32_t i = 0; i < n; i++) s->is_leaf[i] = true;
    for (size_t i = 0; i < edges->count; i++) {
        const onv_edge *e = &edges->at[i];
        if (e->from == e->to) continue;
        s->is_leaf[e->from] = false;
        s->first[e->to + 2]++;
    }
    for (uint32_t i = 0; i < n; i++) s->first[i + 2] += s->first[i + 1];
    for (size_t i = 0; i < edges->count; i++) {
        const onv_edge *e = &edges->at[i];
        if (e->from != e->to) s->producers[s->first[e->to + 1]++] = e->from;
    }
    for (uint32_t i = 0; i < n; i++)
        qsort(s->producers + s->first[i], s->first[i + 1] - s->first[i], sizeof *s->producers,
              compare_descending);
    return true;
}

static void visit(search *s, uint32_t leaf)
{
    uint32_t depth = 0;
    s->seen[leaf] = true;
    s->stack[depth] = leaf;
    s->next[depth++] = s->first[leaf];
    while (depth > 0) {
        uint32_t at = s->stack[depth - 1];
        if (s->next[depth - 1] == s->first[at + 1]) {
            s->order[s->n_ordered++] = at;
            depth--;
            continue;
        }
        uint32_t producer = s->producers[s->next[depth - 1]++];
        if (s->seen[producer]) continue;
        s->seen[producer] = true;
        s->stack[depth] = producer;
        s->next[depth++] = s->first[producer];
    }
}

onv_status onv_backward_order(uint32_t n_nodes, const onv_edges *edges, uint32_t *order,
                              onv_error *err)
{
    search s = {.order = order};
    bool good = prepare(&s, n_nodes, edges);
    for (uint32_t i = n_nodes; good && i-- > 0;)
        if (s.is_leaf[i] && !s.seen[i]) visit(&s, i);
    onv_heap_free(s.first);
    onv_heap_free(s.producers);
    onv_heap_free(s.stack);
    onv_heap_free(s.next);
    onv_heap_free(s.is_leaf);
    onv_heap_free(s.seen);
    return good ? ONV_OK : onv_fail_memory(err);
}

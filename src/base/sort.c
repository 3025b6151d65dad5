#include "base/sort.h"

#include <stdlib.h>

typedef struct sorting {
    uint32_t *ids;
    int (*compare)(const void *a, const void *b, void *context);
    void *context;
} sorting;

static void swap(const sorting *s, size_t a, size_t b)
{
    uint32_t id = s->ids[a];
    s->ids[a] = s->ids[b];
    s->ids[b] = id;
}

/* Lets ids[at] sink to its place in the heap of the first `count`. */
static void sink(const sorting *s, size_t at, size_t count)
{
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && s->compare(&s->ids[child], &s->ids[child + 1], s->context) < 0)
            child++;
        if (s->compare(&s->ids[at], &s->ids[child], s->context) >= 0) return;
        swap(s, at, child);
    }
}

void onv_sort_ids(uint32_t *ids, size_t count,
                  int (*compare)(const void *a, const void *b, void *context), void *context)
{
    const sorting s = {ids, compare, context};
    for (size_t at = count / 2; at-- > 0;) sink(&s, at, count);
    for (size_t end = count; end-- > 1;) {
        swap(&s, 0, end);
        sink(&s, 0, end);
    }
}

void onv_sort(void *at, size_t count, size_t bytes, int (*compare)(const void *a, const void *b))
{
    const char *elements = at;
    size_t in_order = 1;
    while (in_order < count &&
           compare(elements + (in_order - 1) * bytes, elements + in_order * bytes) <= 0)
        in_order++;
    if (in_order < count) qsort(at, count, bytes, compare);
}

void onv_smallest_push(uint32_t *heap, uint32_t *count, uint32_t number)
{
    uint32_t at = (*count)++;
    for (; at > 0 && heap[(at - 1) / 2] > number; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = number;
}

uint32_t onv_smallest_pop(uint32_t *heap, uint32_t *count)
{
    uint32_t top = heap[0], last = heap[--(*count)], at = 0;
    for (uint32_t child; (child = 2 * at + 1) < *count; at = child) {
        if (child + 1 < *count && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= last) break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return top;
}

/* Sorting by what stands elsewhere: qsort() hands its comparison no context, and qsort_r() is not in every C library. */
#ifndef ONV_BASE_SORT_H
#define ONV_BASE_SORT_H

#include <stddef.h>
#include <stdint.h>

/* Sorts ids in place; of those that compare equal any may come first. Heap sort: without memory, n log n in every case. */
void onv_sort_ids(uint32_t *ids, size_t count,
                  int (*compare)(const void *a, const void *b, void *context), void *context);

/* qsort(), for what mostly is in order by then. */
void onv_sort(void *at, size_t count, size_t bytes, int (*compare)(const void *a, const void *b));

/* A heap of numbers, the smallest on top. Its array has room for all that is pushed. */
void onv_smallest_push(uint32_t *heap, uint32_t *count, uint32_t number);
uint32_t onv_smallest_pop(uint32_t *heap, uint32_t *count);

#endif

/* The one place that calls malloc.
 *
 * Everything the library allocates passes here, so that the tests can make the nth allocation fail
 * (a build with ONV_FAULT_INJECTION) and prove that every path cleans up, and so that all of an
 * analysis, its arenas, vectors and tables, counts to one quota (quota.h).
 */
#ifndef ONV_BASE_HEAP_H
#define ONV_BASE_HEAP_H

#include <stddef.h>

void onv_heap_free(void *pointer);

/* Lets the compiler's analysis follow memory from here to where it is freed. */
#if defined __GNUC__ && !defined __clang__
#define ONV_HEAP_OWNED __attribute__((malloc(onv_heap_free, 1)))
#else
#define ONV_HEAP_OWNED
#endif

void *onv_heap_alloc(size_t bytes) ONV_HEAP_OWNED;
void *onv_heap_calloc(size_t count, size_t size) ONV_HEAP_OWNED;
void *onv_heap_realloc(void *pointer, size_t bytes);
void *onv_heap_copy(const void *data, size_t bytes) ONV_HEAP_OWNED;

#ifdef ONV_FAULT_INJECTION
/* Lets `n` more allocations of this thread succeed and fails all later ones; negative: never fail. */
void onv_heap_fail_after(long n);
#endif

#endif

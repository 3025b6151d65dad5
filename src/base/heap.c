#include "base/heap.h"

#include <stdbool.h>
#include <stdlib.h>

#ifdef ONV_FAULT_INJECTION
static _Thread_local long fail_countdown = -1;

void onv_heap_fail_after(long n)
{
    fail_countdown = n;
}

static bool refused(void)
{
    if (fail_countdown < 0) return false;
    if (fail_countdown == 0) return true;
    fail_countdown--;
    return false;
}
#else
static inline bool refused(void)
{
    return false;
}
#endif

void *onv_heap_alloc(size_t bytes)
{
    return refused() ? NULL : malloc(bytes > 0 ? bytes : 1);
}

void *onv_heap_calloc(size_t count, size_t size)
{
    return refused() ? NULL : calloc(count > 0 ? count : 1, size > 0 ? size : 1);
}

void *onv_heap_realloc(void *pointer, size_t bytes)
{
    return refused() ? NULL : realloc(pointer, bytes > 0 ? bytes : 1);
}

void onv_heap_free(void *pointer)
{
    free(pointer);
}

#include "base/heap.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local onv_heap_budget *budget;

onv_heap_budget *onv_heap_enter(onv_heap_budget *entered)
{
    onv_heap_budget *before = budget;
    budget = entered;
    return before;
}

/* Whether `bytes` more fit beside what is held, less `given_back`. */
static bool fits(size_t bytes, size_t given_back)
{
    if (budget == NULL) return true;
    size_t held = budget->used > given_back ? budget->used - given_back : 0;
    if (held <= budget->limit && bytes <= budget->limit - held) return true;
    budget->refused = true;
    return false;
}

static void *take(void *pointer)
{
    if (budget != NULL && pointer != NULL) budget->used += malloc_usable_size(pointer);
    return pointer;
}

/* What was allocated before the budget began may go within it. */
static void give_back(size_t bytes)
{
    if (budget != NULL) budget->used -= bytes < budget->used ? bytes : budget->used;
}

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
    if (refused() || !fits(bytes, 0)) return NULL;
    return take(malloc(bytes > 0 ? bytes : 1));
}

void *onv_heap_calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    if (refused() || !fits(bytes, 0)) return NULL;
    return take(calloc(count > 0 ? count : 1, size > 0 ? size : 1));
}

void *onv_heap_realloc(void *pointer, size_t bytes)
{
    size_t before = budget != NULL && pointer != NULL ? malloc_usable_size(pointer) : 0;
    if (refused() || !fits(bytes, before)) return NULL;
    void *grown = realloc(pointer, bytes > 0 ? bytes : 1);
    if (grown == NULL) return NULL;
    give_back(before);
    return take(grown);
}

void *onv_heap_copy(const void *data, size_t bytes)
{
    void *copy = onv_heap_alloc(bytes);
    if (copy != NULL && bytes > 0) memcpy(copy, data, bytes);
    return copy;
}

void onv_heap_free(void *pointer)
{
    if (budget != NULL && pointer != NULL) give_back(malloc_usable_size(pointer));
    free(pointer);
}

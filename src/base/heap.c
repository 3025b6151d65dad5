#include "base/heap.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/quota.h"

/* Whether `bytes` more fit beside what is held, less `given_back`, whose last part of a unit is the allocator's choice. */
static bool fits(size_t bytes, size_t given_back)
{
    enum { UNIT = 64 }; /* bytes whose use counts as one unit of work */
    onv_quota *q = onv_quota_now();
    if (q == NULL) return true;
    size_t held = q->used > given_back ? q->used - given_back : 0;
    if (held > q->limit || bytes > q->limit - held) q->refused = true;
    return onv_work(1 + (bytes > given_back ? bytes / UNIT - given_back / UNIT : 0)) && !q->refused;
}

static void *take(void *pointer)
{
    onv_quota *q = onv_quota_now();
    if (q == NULL || pointer == NULL) return pointer;
    q->used += malloc_usable_size(pointer);
    if (q->used > q->most) q->most = q->used;
    return pointer;
}

/* What was allocated before the quota began may go within it. */
static void give_back(size_t bytes)
{
    onv_quota *q = onv_quota_now();
    if (q != NULL) q->used -= bytes < q->used ? bytes : q->used;
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
    size_t before = onv_quota_now() != NULL && pointer != NULL ? malloc_usable_size(pointer) : 0;
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
    if (onv_quota_now() != NULL && pointer != NULL) give_back(malloc_usable_size(pointer));
    free(pointer);
}

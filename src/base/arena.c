#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

/* AddressSanitizer sees one large block per chunk. It is told what of it is handed out, with a gap
 * behind every object, so that it reports what runs over the end of one. */
#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif
#ifdef HAS_ASAN
#include <sanitizer/asan_interface.h>
/* What begins in the middle of eight bytes cannot be told from what is before it. */
enum { GAP = 16, LEAST_ALIGN = 8 };
#define close_memory(at, bytes) __asan_poison_memory_region((at), (bytes))
#define open_memory(at, bytes)  __asan_unpoison_memory_region((at), (bytes))
#else
enum { GAP = 0, LEAST_ALIGN = 1 };
#define close_memory(at, bytes) ((void)(at), (void)(bytes))
#define open_memory(at, bytes)  ((void)(at), (void)(bytes))
#endif

enum { FIRST_CHUNK = 64 << 10, LARGEST_CHUNK = 1 << 20, ALIGN = alignof(max_align_t) };

struct onv_arena_chunk {
    onv_arena_chunk *older;
    size_t size; /* of data */
    size_t used;
    alignas(max_align_t) unsigned char data[];
};

void onv_arena_init(onv_arena *arena, size_t limit_bytes)
{
    *arena = (onv_arena){.limit_bytes = limit_bytes};
}

void onv_arena_cleanup(onv_arena *arena)
{
    for (onv_arena_chunk *chunk = arena->chunk; chunk != NULL;) {
        onv_arena_chunk *older = chunk->older;
        onv_heap_free(chunk);
        chunk = older;
    }
    *arena = (onv_arena){.limit_bytes = arena->limit_bytes};
}

void onv_arena_reset(onv_arena *arena)
{
    onv_arena_chunk *newest = arena->chunk;
    if (newest == NULL) return;
    onv_arena_chunk *chunk = newest->older;
    while (chunk != NULL) {
        onv_arena_chunk *older = chunk->older;
        arena->held_bytes -= chunk->size;
        onv_heap_free(chunk);
        chunk = older;
    }
    newest->older = NULL;
    newest->used = 0;
    close_memory(newest->data, newest->size);
    arena->used_bytes = 0;
    arena->failed = false;
}

/* A chunk that the arena does not list yet. Of zeros where that is asked for: pages that nobody touched are, at no cost. */
static onv_arena_chunk *new_chunk(onv_arena *arena, size_t size, bool zeroed)
{
    bool fits = size <= arena->limit_bytes && arena->held_bytes <= arena->limit_bytes - size &&
                size <= SIZE_MAX - sizeof(onv_arena_chunk);
    onv_arena_chunk *chunk = !fits    ? NULL
                             : zeroed ? onv_heap_calloc(1, sizeof *chunk + size)
                                      : onv_heap_alloc(sizeof *chunk + size);
    if (chunk == NULL) return NULL;
    *chunk = (onv_arena_chunk){.size = size};
    close_memory(chunk->data, size);
    arena->held_bytes += size;
    return chunk;
}

static bool add_chunk(onv_arena *arena, size_t bytes)
{
    size_t size = arena->chunk == NULL ? FIRST_CHUNK : arena->chunk->size * 2;
    if (size > LARGEST_CHUNK) size = LARGEST_CHUNK;
    if (size < bytes) size = bytes;
    /* Near the limit a chunk of just the needed size may still fit. */
    if (size > arena->limit_bytes || arena->held_bytes > arena->limit_bytes - size) size = bytes;
    onv_arena_chunk *chunk = new_chunk(arena, size, false);
    if (chunk == NULL) return false;
    chunk->older = arena->chunk;
    arena->chunk = chunk;
    return true;
}

/* `align` is a power of two. Where an object ends the next one may begin, if that has less alignment. */
static void *take(onv_arena *arena, size_t bytes, size_t align)
{
    if (align < LEAST_ALIGN) align = LEAST_ALIGN;
    size_t skipped = arena->chunk != NULL ? -arena->chunk->used & (align - 1) : 0;
    if (bytes > SIZE_MAX - ALIGN - GAP) {
        arena->failed = true;
        return NULL;
    }
    if (bytes == 0) bytes = 1;
    if (arena->chunk == NULL || arena->chunk->size - arena->chunk->used < skipped + bytes + GAP) {
        skipped = 0;
        if (!add_chunk(arena, bytes + GAP)) {
            arena->failed = true;
            return NULL;
        }
    }
    void *result = arena->chunk->data + arena->chunk->used + skipped;
    arena->chunk->used += skipped + bytes + GAP;
    arena->used_bytes += skipped + bytes + GAP;
    open_memory(result, bytes);
    return result;
}

/* A chunk of its own, behind the newest one, which goes on. */
static void *take_zeros(onv_arena *arena, size_t bytes)
{
    onv_arena_chunk *chunk = new_chunk(arena, bytes + GAP, true);
    if (chunk == NULL) {
        arena->failed = true;
        return NULL;
    }
    chunk->older = arena->chunk->older;
    chunk->used = chunk->size;
    arena->chunk->older = chunk;
    arena->used_bytes += chunk->size;
    open_memory(chunk->data, bytes);
    return chunk->data;
}

void *onv_arena_alloc(onv_arena *arena, size_t bytes)
{
    return take(arena, bytes, ALIGN);
}

void *onv_arena_packed(onv_arena *arena, size_t bytes)
{
    return take(arena, bytes, 1);
}

void *onv_arena_calloc(onv_arena *arena, size_t count, size_t size, size_t align)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        arena->failed = true;
        return NULL;
    }
    if (bytes >= FIRST_CHUNK && arena->chunk != NULL && bytes <= SIZE_MAX - GAP)
        return take_zeros(arena, bytes);
    void *result = take(arena, bytes, align);
    if (result != NULL) memset(result, 0, bytes);
    return result;
}

void *onv_arena_copy(onv_arena *arena, const void *data, size_t bytes)
{
    void *result = onv_arena_alloc(arena, bytes);
    if (result != NULL && bytes > 0) memcpy(result, data, bytes);
    return result;
}

char *onv_arena_strndup(onv_arena *arena, const char *text, size_t length)
{
    if (length == SIZE_MAX) {
        arena->failed = true;
        return NULL;
    }
    char *result = take(arena, length + 1, 1);
    if (result == NULL) return NULL;
    if (length > 0) memcpy(result, text, length);
    result[length] = '\0';
    return result;
}

char *onv_arena_printf(onv_arena *arena, const char *format, ...)
{
    char buffer[256]; /* most texts are short, and formatted once */
    va_list args;
    va_start(args, format);
    int length = vsnprintf(buffer, sizeof buffer, format, args);
    va_end(args);
    if (length < 0) return NULL;
    char *result = take(arena, (size_t)length + 1, 1);
    if (result == NULL) return NULL;
    if ((size_t)length < sizeof buffer) return memcpy(result, buffer, (size_t)length + 1);
    va_start(args, format);
    vsnprintf(result, (size_t)length + 1, format, args);
    va_end(args);
    return result;
}

/* A bump allocator: many small objects that live and die together.
 *
 * Memory comes in chunks from malloc and goes back all at once. Objects are never freed alone.
 * Chunks start small (a ResNet needs some 200 KiB) and double up to 1 MiB, so that a small model
 * touches few pages. An allocation that would pass `limit_bytes` fails like one that malloc
 * refuses; `failed` then stays set, so that code which builds a lot (the dim expressions) may
 * check once at the end instead of at every step.
 *
 * Not thread-safe: one arena belongs to one analysis.
 */
#ifndef ONV_BASE_ARENA_H
#define ONV_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct onv_arena_chunk onv_arena_chunk;

typedef struct onv_arena {
    onv_arena_chunk *chunk; /* newest; older ones are linked from it */
    size_t used_bytes;      /* handed out, in all chunks */
    size_t held_bytes;      /* taken from malloc */
    size_t limit_bytes;     /* on held_bytes */
    bool failed;            /* an allocation was refused */
} onv_arena;

void onv_arena_init(onv_arena *arena, size_t limit_bytes);
void onv_arena_cleanup(onv_arena *arena);

/* Drops everything allocated, keeps the newest chunk for the next round. */
void onv_arena_reset(onv_arena *arena);

/* Uninitialised memory aligned for any object, or NULL. A request of 0 bytes gives a valid pointer. */
void *onv_arena_alloc(onv_arena *arena, size_t bytes);

/* The same for bytes, which need no alignment. */
void *onv_arena_packed(onv_arena *arena, size_t bytes);

/* `count` objects of `size` bytes, zeroed; NULL also when the product overflows. */
void *onv_arena_calloc(onv_arena *arena, size_t count, size_t size, size_t align);

/* A copy of `bytes` bytes at `data` / of a string of `length` bytes, NUL added. */
void *onv_arena_copy(onv_arena *arena, const void *data, size_t bytes);
char *onv_arena_strndup(onv_arena *arena, const char *text, size_t length);

/* printf into the arena. */
char *onv_arena_printf(onv_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A zeroed array of `count` objects of `type`, or NULL. */
#define ONV_ARENA_ARRAY(arena, type, count)                                                        \
    ((type *)onv_arena_calloc((arena), (count), sizeof(type), _Alignof(type)))

#endif

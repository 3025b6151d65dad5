/* Structs that cross the library's border, of headers older or newer than the library.
 *
 * A struct grows at its end alone. Those of an older header are shorter, those of a newer one longer, so both sides
 * copy what both have. Structs that the caller fills begin with their size (`struct_size`); for those that the
 * library fills, the caller's header passes it.
 */
#ifndef ONV_API_SIZED_H
#define ONV_API_SIZED_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* An empty struct that begins with its size. */
static inline void onv_start(void *given, size_t size)
{
    memset(given, 0, size);
    memcpy(given, &size, sizeof size);
}

/* The caller's struct over the library's defaults; both begin with their size. */
static inline void onv_take(void *to, size_t size, const void *given, size_t given_size)
{
    memcpy(to, given, given_size < size ? given_size : size);
    memcpy(to, &size, sizeof size);
}

/* The library's struct into the caller's; what this library does not know is 0. Always true. */
static inline bool onv_give(void *given, size_t given_size, const void *from, size_t size)
{
    if (given_size > size) memset((char *)given + size, 0, given_size - size);
    memcpy(given, from, given_size < size ? given_size : size);
    return true;
}

#endif

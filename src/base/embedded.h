/* Files of the source tree, or of its build, that are part of the program: deflated, by cmake/embed.cmake. */
#ifndef ONV_BASE_EMBEDDED_H
#define ONV_BASE_EMBEDDED_H

#include <stddef.h>

typedef struct onv_embedded {
    const unsigned char *at; /* deflated, without a header */
    size_t packed_bytes, bytes;
} onv_embedded;

/* Its bytes and a NUL behind them, which the caller frees with onv_heap_free. NULL without memory. */
char *onv_embedded_inflate(const onv_embedded *file);

#endif

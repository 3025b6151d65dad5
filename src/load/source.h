/* A file in memory. A small one is read; a large one is mapped read-only: its pages come in when they
 * are touched, and only those.
 *
 * A mapped file that shrinks raises SIGBUS where it is read behind its new end. That is the process'
 * to handle (the program does, see cli/guard.h): signal handlers belong to nobody's library.
 */
#ifndef ONV_LOAD_SOURCE_H
#define ONV_LOAD_SOURCE_H

#include <stdint.h>

#include "base/status.h"

typedef struct onv_source {
    const unsigned char *data;
    uint64_t bytes;
    bool is_mapped; /* else on the heap */
} onv_source;

/* ONV_ERR_IO: cannot be opened, or no regular file; ONV_ERR_FORMAT: empty. The messages do not name
 * the file ("is a directory"): their reader has its name. */
onv_status onv_source_open(onv_source *source, const char *path, uint64_t most_bytes,
                           onv_error *err);
void onv_source_close(onv_source *source);

/* What the bytes look like where they are no ONNX model: "a zip archive ...", or NULL. */
const char *onv_source_guess(const void *data, uint64_t bytes);

#endif

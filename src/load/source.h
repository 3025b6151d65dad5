/* The bytes of a file, read by ranges: onv_source_view() shows a stretch of it. Whoever reads says where, and
 * what nobody asks for (weights) is never in memory.
 *
 * A window of the file is in memory. That of a small file, of bytes that are there anyway and of a file that is
 * mapped (read-only: its pages come in when they are touched) is all of it; else the window is moved
 * to what is asked for: where a system cannot map files, as in a browser.
 *
 * A mapped file that shrinks raises SIGBUS where it is read behind its new end. That is the process'
 * to handle (the program does, see cli/guard.h): signal handlers belong to nobody's library.
 */
#ifndef ONV_LOAD_SOURCE_H
#define ONV_LOAD_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/quota.h"
#include "base/status.h"

typedef struct onv_source {
    uint64_t bytes;              /* of all of it */
    const unsigned char *window; /* what is in memory, from the byte `first` of the file on */
    uint64_t first;
    size_t window_bytes;
    unsigned char *buffer; /* on the heap, of the window; NULL: mapped, or the caller's */
    size_t room;           /* of the buffer */
    uint32_t step;         /* how much was read last, and may be at most */
    uint32_t most_step;
    int fd; /* where the window is moved; else -1 */
    bool is_mapped;
    const char *
        absent; /* external data that was looked for last and is not there, or NULL; its tensors' */
} onv_source;

typedef enum onv_source_how {
    ONV_SOURCE_BEST,   /* whole where it is small, else mapped, else by windows */
    ONV_SOURCE_WINDOWS /* by windows, however small it is */
} onv_source_how;

/* ONV_ERR_IO: cannot be opened, or no regular file; ONV_ERR_FORMAT: empty. The messages do not name
 * the file ("is a directory"): their reader has its name. */
onv_status onv_source_open(onv_source *source, const char *path, onv_source_how how,
                           uint64_t most_bytes, onv_error *err);

/* Of bytes that outlive it. */
void onv_source_memory(onv_source *source, const void *data, size_t bytes);

void onv_source_close(onv_source *source);

/* What was read of a mapped file may leave memory until it is read again. */
void onv_source_forget(onv_source *source);

/* Moves the window to that range. ONV_ERR_IO: it cannot be read. */
onv_status onv_source_move(onv_source *source, uint64_t offset, uint64_t bytes, onv_error *err);

/* *data is `bytes` bytes of the source from `offset` on, until the next call. Who asks has made sure that they
 * are so few that they may be in memory together. All that is read of a file is read here, and counts as work. */
static inline onv_status onv_source_view(onv_source *source, uint64_t offset, uint64_t bytes,
                                         const unsigned char **data, onv_error *err)
{
    enum { PER_WORK = 64 };
    if (bytes >= PER_WORK) ONV_WORK(bytes / PER_WORK);
    if (offset < source->first || offset - source->first > source->window_bytes ||
        bytes > source->window_bytes - (offset - source->first))
        ONV_TRY(onv_source_move(source, offset, bytes, err));
    *data = source->window + (size_t)(offset - source->first);
    return ONV_OK;
}

/* What the first bytes of a file look like where it is no ONNX model: "a zip archive ...", or NULL. */
enum { ONV_SOURCE_HEAD = 64 };
const char *onv_source_guess(const void *data, size_t bytes);

#endif

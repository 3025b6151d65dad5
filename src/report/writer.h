/* A writer: the buffer between a report and the caller's onv_write_fn.
 *
 * Failure is sticky: after the callback has refused once nothing more is written, and
 * onv_writer_finish reports it. So a report writes on without looking and checks once, at its end
 * (long loops may look at `failed` to stop early).
 */
#ifndef ONV_REPORT_WRITER_H
#define ONV_REPORT_WRITER_H

#include "base/status.h"
#include "onnxvram/common.h"

typedef struct onv_writer {
    onv_write_fn write;
    void *context;
    bool failed;
    bool is_over;        /* `most` was reached, which fails like a refusal */
    uint64_t most, done; /* bytes: that may be written (0: no limit), that were */
    size_t used;
    char buffer[8192];
} onv_writer;

void onv_writer_init(onv_writer *writer, onv_write_fn write, void *context);

/* Hands over what is buffered; ONV_ERR_IO if the callback refused anything, ONV_ERR_LIMIT where there
 * is too much. */
onv_status onv_writer_finish(onv_writer *writer, onv_error *err);

void onv_write_bytes(onv_writer *writer, const char *text, size_t bytes);
void onv_write_text(onv_writer *writer, const char *text);

void onv_writer_flush(onv_writer *writer); /* what is buffered; most callers need not */

static inline void onv_write_char(onv_writer *writer, char c)
{
    writer->buffer[writer->used++] = c;
    if (writer->used == sizeof writer->buffer) onv_writer_flush(writer);
}

/* Where to put so many bytes, fewer than the buffer has; whoever does adds them to `used`. */
static inline char *onv_writer_room(onv_writer *writer, size_t bytes)
{
    if (sizeof writer->buffer - writer->used <= bytes) onv_writer_flush(writer);
    return writer->buffer + writer->used;
}

/* For numbers and fixed text: a result longer than the buffer fails. */
void onv_write_format(onv_writer *writer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif

#include "report/writer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "load/limits.h"

void onv_writer_init(onv_writer *writer, onv_write_fn write, void *context)
{
    writer->write = write;
    writer->context = context;
    writer->failed = false;
    writer->is_over = false;
    writer->most = writer->done = 0;
    writer->used = 0;
}

void onv_writer_flush(onv_writer *writer)
{
    if (writer->most > 0 && writer->used > writer->most - writer->done)
        writer->is_over = writer->failed = true;
    if (!onv_work(1 + writer->used / 16)) writer->failed = true;
    if (!writer->failed) writer->done += writer->used;
    if (writer->used > 0 && !writer->failed)
        writer->failed = !writer->write(writer->context, writer->buffer, writer->used);
    writer->used = 0;
}

onv_status onv_writer_finish(onv_writer *writer, onv_error *err)
{
    onv_writer_flush(writer);
    if (writer->is_over)
        return onv_fail(err, ONV_ERR_LIMIT,
                        "the report has more than %llu bytes, the limit" ONV_RAISE("output"),
                        (unsigned long long)writer->most);
    if (writer->failed) return onv_fail(err, ONV_ERR_IO, "the report could not be written");
    return ONV_OK;
}

void onv_write_bytes(onv_writer *writer, const char *text, size_t bytes)
{
    if (bytes < sizeof writer->buffer - writer->used) { /* nearly always */
        memcpy(writer->buffer + writer->used, text, bytes);
        writer->used += bytes;
        return;
    }
    while (bytes > 0 && !writer->failed) {
        size_t room = sizeof writer->buffer - writer->used;
        size_t part = bytes < room ? bytes : room;
        memcpy(writer->buffer + writer->used, text, part);
        writer->used += part;
        text += part;
        bytes -= part;
        if (writer->used == sizeof writer->buffer) onv_writer_flush(writer);
    }
}

void onv_write_text(onv_writer *writer, const char *text)
{
    onv_write_bytes(writer, text, strlen(text));
}

void onv_write_format(onv_writer *writer, const char *format, ...)
{
    if (writer->failed) return;
    if (sizeof writer->buffer - writer->used < 256) onv_writer_flush(writer);
    for (int attempt = 0; attempt < 2; attempt++) {
        size_t room = sizeof writer->buffer - writer->used;
        va_list args;
        va_start(args, format);
        int length = vsnprintf(writer->buffer + writer->used, room, format, args);
        va_end(args);
        if (length >= 0 && (size_t)length < room) {
            writer->used += (size_t)length;
            return;
        }
        onv_writer_flush(writer);
    }
    writer->failed = true;
}

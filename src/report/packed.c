#include "report/packed.h"

#include "base/base64.h"
#include "program/archive.h"

bool onv_packer_begin(onv_packer *packer, onv_writer *to)
{
    packer->to = to;
    packer->stream = (z_stream){.zalloc = onv_program_zalloc, .zfree = onv_program_zfree};
    /* Names and numbers that repeat: the fastest level leaves a thirtieth. */
    if (deflateInit(&packer->stream, Z_BEST_SPEED) != Z_OK) return false;
    packer->stream.next_out = packer->packed;
    packer->stream.avail_out = sizeof packer->packed;
    return true;
}

/* Hands over what is packed, where the buffer is full or nothing follows. */
static void drain(onv_packer *packer)
{
    char text[sizeof packer->packed / 3 * 4];
    size_t n = sizeof packer->packed - packer->stream.avail_out; /* whole groups, but at the end */
    onv_base64_encode(packer->packed, n, text);
    onv_write_bytes(packer->to, text, (n + 2) / 3 * 4);
    packer->stream.next_out = packer->packed;
    packer->stream.avail_out = sizeof packer->packed;
}

bool onv_packer_write(void *context, const char *text, size_t bytes)
{
    onv_packer *packer = context;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): zlib reads it alone, and takes it without const */
    packer->stream.next_in = (Bytef *)(uintptr_t)text;
    packer->stream.avail_in = (uInt)bytes; /* a buffer of the writer, at most */
    while (packer->stream.avail_in > 0) {
        if (deflate(&packer->stream, Z_NO_FLUSH) == Z_STREAM_ERROR) return false;
        if (packer->stream.avail_out == 0) drain(packer);
    }
    return !packer->to->failed;
}

bool onv_packer_end(onv_packer *packer)
{
    int status = Z_OK;
    packer->stream.avail_in = 0;
    while (status == Z_OK) {
        status = deflate(&packer->stream, Z_FINISH);
        drain(packer);
    }
    deflateEnd(&packer->stream);
    return status == Z_STREAM_END;
}

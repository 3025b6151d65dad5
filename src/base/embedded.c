#include "base/embedded.h"

#include <stdbool.h>
#define ZLIB_CONST /* inflate() does not change what it reads */
#include <zlib.h>

#include "base/heap.h"

char *onv_embedded_inflate(const onv_embedded *file)
{
    z_stream z = {.next_in = file->at, .avail_in = (uInt)file->packed_bytes};
    char *text = onv_heap_alloc(file->bytes + 1);
    if (text == NULL) return NULL;
    z.next_out = (Bytef *)text;
    z.avail_out = (uInt)file->bytes;
    /* Files of the build are whole, so that nothing but memory can be missing. */
    bool whole = inflateInit2(&z, -MAX_WBITS) == Z_OK && inflate(&z, Z_FINISH) == Z_STREAM_END;
    inflateEnd(&z);
    text[file->bytes] = '\0';
    if (whole) return text;
    onv_heap_free(text);
    return NULL;
}

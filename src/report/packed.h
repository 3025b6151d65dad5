/* A writer whose text is deflated and written as base64 to another one: what a page takes of a large report. */
#ifndef ONV_REPORT_PACKED_H
#define ONV_REPORT_PACKED_H

#include <zlib.h>

#include "report/writer.h"

typedef struct onv_packer {
    onv_writer *to;
    z_stream stream; /* zlib's format */
    unsigned char packed[3 * 4096];
} onv_packer;

/* An onv_write_fn over the packer. */
bool onv_packer_write(void *packer, const char *text, size_t bytes);

/* false: out of memory. Then and after onv_packer_end nothing is to be cleaned up. */
bool onv_packer_begin(onv_packer *packer, onv_writer *to);

/* Writes the rest; false: out of memory. */
bool onv_packer_end(onv_packer *packer);

#endif

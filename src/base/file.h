/* Files that a caller named, and that need not be mapped. */
#ifndef ONV_BASE_FILE_H
#define ONV_BASE_FILE_H

#include "base/status.h"
#include "base/vec.h"

typedef ONV_VEC(char) onv_file_bytes;

/* Reads all of a file. Pipes may be given (/dev/stdin, <(command)); a FIFO with a name would be waited for, perhaps for
 * ever, and is refused. ONV_ERR_LIMIT: it has more than `most` bytes. The caller cleans up, also after a failure; errors
 * begin with the path. */
onv_status onv_file_read(const char *path, size_t most, onv_file_bytes *bytes, onv_error *err);

/* Opens a file to read: a descriptor, or -1 and *why. */
int onv_file_open(const char *path, const char **why);

/* Appends what is left of a file that is open; errors do not name it. */
onv_status onv_file_read_all(int file, size_t most, onv_file_bytes *bytes, onv_error *err);

#endif

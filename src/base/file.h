/* Files that a caller named, and that need not be mapped. */
#ifndef ONV_BASE_FILE_H
#define ONV_BASE_FILE_H

/* Opens a file to read: a descriptor, or -1 and *why. Pipes may be given (/dev/stdin, <(command));
 * a FIFO with a name would be waited for, perhaps for ever, and is refused. */
int onv_file_open(const char *path, const char **why);

#endif

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/magic.h>
#include <sys/vfs.h>
#endif

/* Pipes without a name lie on a file system of their own. */
static bool has_name(int fd)
{
#ifdef __linux__
    struct statfs info;
    return fstatfs(fd, &info) != 0 || (unsigned long)info.f_type != PIPEFS_MAGIC;
#else
    (void)fd;
    return true;
#endif
}

int onv_file_open(const char *path, const char **why)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && fstat(fd, &info) == 0) {
        bool is_fifo = S_ISFIFO(info.st_mode) && has_name(fd);
        /* Whoever writes into a pipe is waited for. */
        if (!is_fifo && fcntl(fd, F_SETFL, 0) == 0) return fd;
        *why = is_fifo ? "is a FIFO, which may never end" : strerror(errno);
    } else {
        *why = strerror(errno);
    }
    if (fd >= 0) close(fd);
    return -1;
}

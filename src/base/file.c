#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"

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

onv_status onv_file_read_all(int file, size_t most, onv_file_bytes *bytes, onv_error *err)
{
    enum { PIECE = 1 << 16 };
    for (ssize_t n = 1; n != 0;) {
        if (bytes->count > most) return onv_fail(err, ONV_ERR_LIMIT, "more than %zu bytes", most);
        if (!onv_vec_reserve(bytes, PIECE)) return onv_fail_memory(err);
        n = read(file, bytes->at + bytes->count, PIECE);
        if (n > 0) bytes->count += (size_t)n;
        if (n < 0 && errno != EINTR) return onv_fail(err, ONV_ERR_IO, "%s", strerror(errno));
    }
    return ONV_OK;
}

onv_status onv_file_read(const char *path, size_t most, onv_file_bytes *bytes, onv_error *err)
{
    const char *why;
    onv_error local = {0};
    *bytes = (onv_file_bytes){0};
    int file = onv_file_open(path, &why);
    if (file < 0) return onv_fail(err, ONV_ERR_IO, "%s: %s", path, why);
    onv_status status = onv_file_read_all(file, most, bytes, &local);
    close(file);
    return status == ONV_OK ? ONV_OK : onv_fail(err, status, "%s: %s", path, local.message);
}

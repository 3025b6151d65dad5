#include "load/external.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder a path lies in, without a slash at its end; "." for a bare name, "" for the root. */
static bool folder_of(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t length = slash != NULL ? (size_t)(slash - path) : 1;
    if (length >= PATH_MAX) return false;
    memcpy(folder, slash != NULL ? path : ".", length);
    folder[length] = '\0';
    return true;
}

static bool lies_in(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && path[length] == '/';
}

/* Whether a real path is in the model's folder: the one it was named in, or the one it really lies
 * in. Download caches keep model and data side by side under other names and link to both. */
static bool is_inside(const onv_model *model, const char *real)
{
    char folder[PATH_MAX], resolved[PATH_MAX];
    if (folder_of(model->path, folder) && realpath(folder[0] != '\0' ? folder : "/", resolved)) {
        if (strcmp(resolved, "/") == 0) resolved[0] = '\0';
        if (lies_in(real, resolved)) return true;
    }
    return realpath(model->path, resolved) != NULL && folder_of(resolved, folder) &&
           lies_in(real, folder);
}

/* The path that was opened must be the path that was checked, whatever happens in between. */
static onv_status check_place(const onv_model *model, const onv_tensor *tensor, const char *path,
                              const struct stat *opened, onv_error *err)
{
    char real[PATH_MAX];
    struct stat checked;
    if (realpath(path, real) != NULL && stat(real, &checked) == 0 &&
        checked.st_dev == opened->st_dev && checked.st_ino == opened->st_ino &&
        is_inside(model, real))
        return ONV_OK;
    return onv_fail(err, ONV_ERR_MODEL,
                    "external data of tensor '%s' lies outside the model's folder: '%s'",
                    tensor->name, tensor->payload.location);
}

static onv_status read_at(int fd, const onv_tensor *tensor, void *to, size_t bytes, onv_error *err)
{
    unsigned char *at = to;
    uint64_t offset = tensor->payload.offset;
    for (size_t left = bytes; left > 0;) {
        ssize_t n = pread(fd, at, left, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return onv_fail(err, ONV_ERR_IO, "external data '%s' cannot be read: %s",
                            tensor->payload.location, strerror(errno));
        if (n == 0)
            return onv_fail(err, ONV_ERR_MODEL,
                            "external data of tensor '%s' needs %zu bytes at offset %" PRIu64
                            " of '%s', which ends before",
                            tensor->name, bytes, tensor->payload.offset, tensor->payload.location);
        at += n;
        left -= (size_t)n;
        offset += (uint64_t)n;
    }
    return ONV_OK;
}

static onv_status read_file(int fd, const onv_model *model, const onv_tensor *tensor,
                            const char *path, void *to, size_t bytes, onv_error *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return onv_fail(err, ONV_ERR_IO, "external data '%s' is not a regular file",
                        tensor->payload.location);
    ONV_TRY(check_place(model, tensor, path, &info, err));
    return read_at(fd, tensor, to, bytes, err);
}

onv_status onv_external_read(const onv_model *model, const onv_tensor *tensor, void *to,
                             size_t bytes, bool *found, onv_error *err)
{
    char folder[PATH_MAX], path[PATH_MAX];
    *found = false;
    if (model->path[0] == '\0') return ONV_OK; /* from memory: there is no folder */
    if (!folder_of(model->path, folder)) return ONV_OK;
    int length = snprintf(path, sizeof path, "%s/%s", folder, tensor->payload.location);
    if (length < 0 || (size_t)length >= sizeof path) return ONV_OK; /* no file has such a name */
    /* O_NONBLOCK: a FIFO or a device must be refused, not waited for. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG)) return ONV_OK;
    if (fd < 0)
        return onv_fail(err, ONV_ERR_IO, "external data '%s' cannot be opened: %s",
                        tensor->payload.location, strerror(errno));
    onv_status status = read_file(fd, model, tensor, path, to, bytes, err);
    close(fd);
    *found = status == ONV_OK;
    return status;
}

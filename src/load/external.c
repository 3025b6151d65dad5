#include "load/load.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/magic.h>
#include <sys/vfs.h>
#else /* a page: its files are plain ones, and to open one wakes no device */
#undef O_PATH
#define O_PATH O_RDONLY
#endif

#include "base/fail.h"
#include "load/source.h"

#ifndef CGROUP2_SUPER_MAGIC
#define CGROUP2_SUPER_MAGIC 0x63677270
#endif

/* Ten system calls take as long as so many units. */
enum { MOST_NAME_BYTES = 255, OPEN_WORK = 500 };

/* --- Names ------------------------------------------------------------------------------------- */

static bool ends_with(const char *text, size_t length, const char *end)
{
    size_t n = strlen(end);
    return n <= length && strncasecmp(text + length - n, end, n) == 0;
}

/* "model.onnx.data", "model.onnx_data_1", "weights", "conv1.weight": what exporters write. */
static bool is_weights_name(const char *name, size_t length)
{
    static const char *const extensions[] = {".bin",         ".raw",       ".weight",
                                             ".weights",     ".bias",      ".params",
                                             ".safetensors", ".onnx_data", ".pb_data"};
    static const char onnx[] = "onnx__", attribute[] = "_attr__value";
    if (length > sizeof onnx - 1 && memcmp(name, onnx, sizeof onnx - 1) == 0) return true;
    if (ends_with(name, length, attribute)) return true;
    /* The number of a part. */
    while (length > 0 &&
           (isdigit((unsigned char)name[length - 1]) || strchr("._-", name[length - 1]) != NULL))
        length--;
    for (size_t i = 0; i < sizeof extensions / sizeof extensions[0]; i++)
        if (ends_with(name, length, extensions[i])) return true;
    static const char *const words[] = {"data", "weights"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t n = strlen(words[i]);
        if (ends_with(name, length, words[i]) &&
            (length == n || strchr("._-", name[length - n - 1]) != NULL))
            return true;
    }
    return false;
}

/* Files of a cache of downloads are called by the digest of what they hold. */
static bool is_digest(const char *name)
{
    size_t length = strspn(name, "0123456789abcdef");
    return name[length] == '\0' && (length == 40 || length == 64);
}

/* Whether the file's name is one that weights have. */
static bool is_name_of_weights(const char *location)
{
    bool in_folder_of_weights = false;
    for (;;) {
        size_t length = strcspn(location, "/");
        bool is_here = length == 0 || (length == 1 && location[0] == '.');
        if (!is_here && location[0] == '.') return false;
        if (location[length] == '\0') {
            if (is_weights_name(location, length)) return true;
            return in_folder_of_weights && !is_here && memchr(location, '.', length) == NULL;
        }
        if (!is_here) in_folder_of_weights = is_weights_name(location, length);
        location += length + 1;
    }
}

/* --- Places ------------------------------------------------------------------------------------ */

/* File systems whose files are not files: their contents are the system's, and the reader's own. */
static bool is_of_the_system(int fd)
{
#ifdef __linux__
    static const unsigned long magics[] = {
        PROC_SUPER_MAGIC, SYSFS_MAGIC,        DEBUGFS_MAGIC,      TRACEFS_MAGIC,
        SECURITYFS_MAGIC, DEVPTS_SUPER_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
        SELINUX_MAGIC,    BPF_FS_MAGIC,       EFIVARFS_MAGIC,     PSTOREFS_MAGIC};
    struct statfs info;
    if (fstatfs(fd, &info) != 0) return true;
    for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++)
        if ((unsigned long)info.f_type == magics[i]) return true;
#else
    (void)fd;
#endif
    return false;
}

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

/* What a real path is called inside a real folder, NULL if it lies elsewhere. */
static const char *name_in(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && path[length] == '/' ? path + length + 1 : NULL;
}

/* Opens a file below a folder as a mere place: nothing is read, no device wakes. Links are not
 * followed and ".." is not taken, so that whatever happens in between the file lies in the folder.
 * -1 with errno; ELOOP: a link. */
static int walk(int folder, const char *location)
{
    int at = dup(folder);
    while (at >= 0) {
        char name[MOST_NAME_BYTES + 1];
        location += strspn(location, "/");
        size_t length = strcspn(location, "/");
        bool is_last = location[length + strspn(location + length, "/")] == '\0';
        int next = -1;
        if (length > MOST_NAME_BYTES || (length == 2 && memcmp(location, "..", 2) == 0)) {
            errno = length == 2 ? EXDEV : ENAMETOOLONG;
        } else {
            memcpy(name, location, length);
            name[length] = '\0';
            next = openat(at, length > 0 ? name : ".",
                          O_PATH | O_NOFOLLOW | O_CLOEXEC | (is_last ? 0 : O_DIRECTORY));
        }
        int cause = errno;
        struct stat info;
        if (next < 0 && !is_last && cause == ENOTDIR &&
            fstatat(at, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode))
            cause = ELOOP; /* a folder that is a link */
        close(at);
        errno = cause;
        if (next < 0) return -1;
        at = next;
        location += length;
        if (is_last) break;
    }
    return at;
}

/* A place becomes a file to read. */
static int reopen(int place)
{
#ifdef __linux__
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", place);
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
#else
    return dup(place);
#endif
}

/* A link may stand for the file, as in caches of downloads, where the model is a link too: what it
 * leads to lies in the folder the model was named in, or really lies in, and is called as weights or
 * as files of such a cache are. */
static int walk_link(const onv_model *model, const char *folder, const char *path)
{
    char real[PATH_MAX], model_real[PATH_MAX], bases[2][PATH_MAX];
    errno = EXDEV;
    if (realpath(path, real) == NULL) return -1;
    bool has[2] = {realpath(folder, bases[0]) != NULL,
                   realpath(model->path, model_real) != NULL && folder_of(model_real, bases[1])};
    for (int i = 0; i < 2; i++) {
        /* The root of the file system is "/" or "", and no model's folder. */
        const char *name = has[i] && bases[i][0] != '\0' ? name_in(real, bases[i]) : NULL;
        if (name == NULL || !(is_name_of_weights(name) || is_digest(name))) continue;
        int base = open(bases[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
        int place = base >= 0 ? walk(base, name) : -1;
        if (base >= 0) close(base);
        return place;
    }
    errno = EXDEV;
    return -1;
}

/* --- Reading ----------------------------------------------------------------------------------- */

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

static onv_status cannot_open(const onv_tensor *tensor, int cause, onv_error *err)
{
    return onv_fail(err, ONV_ERR_IO, "external data '%s' cannot be opened: %s",
                    tensor->payload.location, strerror(cause));
}

static onv_status read_place(int place, const onv_tensor *tensor, void *to, size_t bytes,
                             onv_error *err)
{
    struct stat info;
    if (fstat(place, &info) != 0 || !S_ISREG(info.st_mode) || is_of_the_system(place))
        return onv_fail(err, ONV_ERR_IO, "external data '%s' is not a regular file",
                        tensor->payload.location);
    int fd = reopen(place);
    if (fd < 0) return cannot_open(tensor, errno, err);
    onv_status status = read_at(fd, tensor, to, bytes, err);
    close(fd);
    return status;
}

static onv_status leave_out(const char **unread, const char *why)
{
    *unread = why;
    return ONV_OK;
}

onv_status onv_external_read(const onv_model *model, const onv_tensor *tensor, void *to,
                             size_t bytes, const char **unread, onv_error *err)
{
    char folder[PATH_MAX], path[PATH_MAX], real[PATH_MAX];
    const char *location = tensor->payload.location;
    *unread = "";
    if (model->source != NULL && model->source->absent != NULL &&
        strcmp(model->source->absent, location) == 0)
        return ONV_OK;
    if (model->no_external_data) return leave_out(unread, "external data is not to be read");
    if (model->path[0] == '\0') return ONV_OK; /* from memory: there is no folder */
    if (!is_name_of_weights(location))
        return leave_out(unread,
                         "it is not called as weights are (*.data, *.bin, *.weight, *_data ...)");
    if (!folder_of(model->path, folder)) return ONV_OK;
    int length = snprintf(path, sizeof path, "%s/%s", folder, location);
    if (length < 0 || (size_t)length >= sizeof path) return ONV_OK; /* no file has such a name */
    if (folder[0] == '\0' || realpath(folder, real) == NULL || strcmp(real, "/") == 0)
        return leave_out(unread, "the model lies in the root of the file system");
    ONV_WORK(OPEN_WORK);
    int base = open(real, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (base < 0) return ONV_OK;
    int place = walk(base, location);
    int cause = errno;
    close(base);
    struct stat info;
    bool is_link = place < 0 ? cause == ELOOP : fstat(place, &info) == 0 && S_ISLNK(info.st_mode);
    if (is_link) {
        if (place >= 0) close(place);
        place = walk_link(model, real, path);
        cause = errno;
    }
    if (place < 0 && (cause == ENOENT || cause == ENOTDIR || cause == ENAMETOOLONG)) {
        if (model->source != NULL) model->source->absent = location;
        return ONV_OK;
    }
    if (place < 0 && is_link && (cause == EXDEV || cause == ELOOP))
        return onv_fail(err, ONV_ERR_MODEL,
                        "external data of tensor '%s' lies outside the model's folder: '%s'",
                        tensor->name, location);
    if (place < 0) return cannot_open(tensor, cause, err);
    onv_status status = read_place(place, tensor, to, bytes, err);
    close(place);
    if (status == ONV_OK) *unread = NULL;
    return status;
}

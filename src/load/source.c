#include "load/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/heap.h"
#include "load/limits.h"

/* From this size on a file is mapped, so that its weights stay where they are. A smaller one comes in
 * faster whole than page by page, and nothing that others do to it is seen. */
enum { MAPPED_BYTES = 4 << 20 };

static onv_status read_whole(onv_source *source, int fd, size_t bytes, onv_error *err)
{
    unsigned char *data = onv_heap_alloc(bytes);
    if (data == NULL) return onv_fail_memory(err);
    *source = (onv_source){.data = data, .bytes = bytes};
    for (size_t got = 0; got < bytes;) {
        ssize_t n = read(fd, data + got, bytes - got);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return onv_fail(err, ONV_ERR_IO, "cannot be read: %s", strerror(errno));
        if (n == 0) return onv_fail(err, ONV_ERR_IO, "shrank while it was read");
        got += (size_t)n;
    }
    return ONV_OK;
}

static onv_status map(onv_source *source, int fd, size_t bytes, onv_error *err)
{
    void *data = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return onv_fail(err, ONV_ERR_IO, "cannot be mapped: %s", strerror(errno));
    /* Read-ahead around the touched pages would pull in weights; advice: may be ignored. */
    (void)madvise(data, bytes, MADV_RANDOM);
    *source = (onv_source){.data = data, .bytes = bytes, .is_mapped = true};
    return ONV_OK;
}

static onv_status take(onv_source *source, int fd, uint64_t most_bytes, onv_error *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return onv_fail(err, ONV_ERR_IO, "cannot be read: %s", strerror(errno));
    if (S_ISDIR(info.st_mode)) return onv_fail(err, ONV_ERR_IO, "is a directory, not a file");
    if (!S_ISREG(info.st_mode))
        return onv_fail(err, ONV_ERR_IO,
                        "is not a regular file; '-' reads a model from standard input");
    if (info.st_size == 0) return onv_fail(err, ONV_ERR_FORMAT, "is empty");
    if ((uint64_t)info.st_size > SIZE_MAX)
        return onv_fail(err, ONV_ERR_IO, "is too large to be mapped");
    if ((uint64_t)info.st_size > most_bytes)
        return onv_fail(err, ONV_ERR_LIMIT,
                        "has %" PRIu64 " bytes; the limit is %" PRIu64 ONV_RAISE("file-bytes"),
                        (uint64_t)info.st_size, most_bytes);
    size_t bytes = (size_t)info.st_size;
    return bytes < MAPPED_BYTES ? read_whole(source, fd, bytes, err) : map(source, fd, bytes, err);
}

onv_status onv_source_open(onv_source *source, const char *path, uint64_t most_bytes,
                           onv_error *err)
{
    *source = (onv_source){0};
    /* O_NONBLOCK: a FIFO must be refused, not waited for. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return onv_fail(err, ONV_ERR_IO, "cannot be opened: %s", strerror(errno));
    onv_status status = take(source, fd, most_bytes, err);
    close(fd);
    if (status != ONV_OK) onv_source_close(source);
    return status;
}

void onv_source_close(onv_source *source)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the way to shed a const */
    void *data = (void *)(uintptr_t)source->data;
    if (source->is_mapped)
        munmap(data, (size_t)source->bytes);
    else
        onv_heap_free(data);
    *source = (onv_source){0};
}

const char *onv_source_guess(const void *data, uint64_t bytes)
{
    static const struct {
        uint8_t offset, length;
        const char *magic, *what;
    } known[] = {
        {0, 24, "version https://git-lfs.",
         "a Git LFS pointer; fetch the file with 'git lfs pull'"},
        {0, 4, "PK\x03\x04",
         "a zip archive, perhaps a PyTorch checkpoint; export it to ONNX first"},
        {0, 2, "\x1f\x8b", "gzip data; unpack it first"},
        {0, 4, "\x28\xb5\x2f\xfd", "zstd data; unpack it first"},
        {0, 6,
         "\xfd"
         "7zXZ\0",
         "xz data; unpack it first"},
        {0, 2, "\x80\x02",
         "a Python pickle, perhaps a PyTorch checkpoint; export it to ONNX first"},
        {0, 8, "\x89HDF\r\n\x1a\n", "an HDF5 file, perhaps a Keras model; export it to ONNX first"},
        {0, 4, "GGUF", "a GGUF file"},
        {4, 4, "TFL3", "a TensorFlow Lite model"},
        {4, 4, "ORTM", "a model in ORT format; give the ONNX file it was made from"},
    };
    const unsigned char *p = data;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (bytes >= (uint64_t)known[i].offset + known[i].length &&
            memcmp(p + known[i].offset, known[i].magic, known[i].length) == 0)
            return known[i].what;
    size_t head = bytes < 64 ? (size_t)bytes : 64, at = 0;
    for (size_t i = 0; i < head; i++)
        if ((p[i] < ' ' || p[i] > '~') && (p[i] < '\t' || p[i] > '\r')) return NULL;
    while (at < head && p[at] <= ' ') at++;
    if (at < head && p[at] == '<') return "HTML or XML, perhaps the page of a failed download";
    if (at < head && (p[at] == '{' || p[at] == '[')) return "JSON text";
    return "plain text";
}

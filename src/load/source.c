#include "load/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef ONV_NO_MMAP
#include <sys/mman.h>
#endif

#include "base/fail.h"
#include "base/heap.h"
#include "load/limits.h"

/* From this size on a file stays where it is. A smaller one comes in faster whole than page by page, and
 * nothing that others do to it is seen. */
enum { WHOLE_BYTES = 4 << 20 };

/* A window is that large where it is moved elsewhere: most of a model is weights, which are passed over.
 * Each time it is moved on from its end it is twice as large as before. */
enum { MOST_STEP = 256 << 10, LEAST_PART = 16 };

/* --- Files --------------------------------------------------------------------------------------- */

static onv_status read_at(int fd, uint64_t offset, unsigned char *to, size_t bytes, onv_error *err)
{
    for (size_t got = 0; got < bytes;) {
        ssize_t n = pread(fd, to + got, bytes - got, (off_t)(offset + got));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return onv_fail(err, ONV_ERR_IO, "cannot be read: %s", strerror(errno));
        if (n == 0) return onv_fail(err, ONV_ERR_IO, "shrank while it was read");
        got += (size_t)n;
    }
    return ONV_OK;
}

static onv_status make_room(onv_source *source, size_t bytes, onv_error *err)
{
    source->window_bytes = 0;
    if (bytes <= source->room) return ONV_OK;
    onv_heap_free(source->buffer);
    source->room = 0;
    source->window = source->buffer = onv_heap_alloc(bytes);
    if (source->buffer == NULL) return onv_fail_memory(err);
    source->room = bytes;
    return ONV_OK;
}

onv_status onv_source_move(onv_source *source, uint64_t offset, uint64_t bytes, onv_error *err)
{
    if (offset > source->bytes || bytes > source->bytes - offset)
        return onv_fail(err, ONV_ERR_FORMAT,
                        "needs %" PRIu64 " bytes at byte %" PRIu64 ", and ends before", bytes,
                        offset);
    uint64_t left = source->bytes - offset;
    bool goes_on = offset >= source->first && offset - source->first <= source->window_bytes;
    uint32_t least = source->most_step / LEAST_PART;
    source->step = !goes_on || source->step < least        ? least
                   : source->step >= source->most_step / 2 ? source->most_step
                                                           : 2 * source->step;
    uint64_t wanted = bytes > source->step ? bytes : source->step;
    if (wanted > left) wanted = left;
    if (wanted > SIZE_MAX) return onv_fail_memory(err);
    ONV_TRY(make_room(source, (size_t)wanted, err));
    ONV_TRY(read_at(source->fd, offset, source->buffer, (size_t)wanted, err));
    source->first = offset;
    source->window_bytes = (size_t)wanted;
    return ONV_OK;
}

/* False where the system cannot map this file. */
static bool map(onv_source *source)
{
#ifdef ONV_NO_MMAP
    (void)source;
    return false;
#else
    if (source->bytes > SIZE_MAX) return false;
    size_t bytes = (size_t)source->bytes;
    void *data = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, source->fd, 0);
    if (data == MAP_FAILED) return false;
    /* Read-ahead around the touched pages would pull in weights; advice: may be ignored. */
    (void)madvise(data, bytes, MADV_RANDOM);
    source->window = data;
    source->window_bytes = bytes;
    source->is_mapped = true;
    return true;
#endif
}

static onv_status look(onv_source *source, uint64_t most_bytes, onv_error *err)
{
    struct stat info;
    if (fstat(source->fd, &info) != 0)
        return onv_fail(err, ONV_ERR_IO, "cannot be read: %s", strerror(errno));
    if (S_ISDIR(info.st_mode))
        return onv_fail(err, ONV_ERR_IO, "is a directory, not a file: give the model in it");
    if (!S_ISREG(info.st_mode))
        return onv_fail(err, ONV_ERR_IO,
                        "is not a regular file; '-' reads a model from standard input");
    if (info.st_size == 0) return onv_fail(err, ONV_ERR_FORMAT, "is empty");
    if ((uint64_t)info.st_size > most_bytes)
        return onv_fail(err, ONV_ERR_LIMIT,
                        "has %" PRIu64 " bytes; the limit is %" PRIu64 ONV_RAISE("file-bytes"),
                        (uint64_t)info.st_size, most_bytes);
    source->bytes = (uint64_t)info.st_size;
    return ONV_OK;
}

/* The whole file is the window, which is then never moved. */
static onv_status take_whole(onv_source *source, onv_error *err)
{
    size_t bytes = (size_t)source->bytes;
    if (source->bytes < WHOLE_BYTES) {
        ONV_TRY(make_room(source, bytes, err));
        ONV_TRY(read_at(source->fd, 0, source->buffer, bytes, err));
        source->window_bytes = bytes;
    } else if (!map(source)) {
        return ONV_OK;
    }
    close(source->fd);
    source->fd = -1;
    return ONV_OK;
}

onv_status onv_source_open(onv_source *source, const char *path, onv_source_how how,
                           uint64_t most_bytes, onv_error *err)
{
    /* O_NONBLOCK: a FIFO must be refused, not waited for. */
    *source =
        (onv_source){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), .most_step = MOST_STEP};
    if (source->fd < 0) return onv_fail(err, ONV_ERR_IO, "cannot be opened: %s", strerror(errno));
    onv_status status = look(source, most_bytes, err);
    if (status == ONV_OK && how == ONV_SOURCE_BEST) status = take_whole(source, err);
    if (status != ONV_OK) onv_source_close(source);
    return status;
}

void onv_source_memory(onv_source *source, const void *data, size_t bytes)
{
    *source = (onv_source){.bytes = bytes, .window = data, .window_bytes = bytes, .fd = -1};
}

/* Its pages are clean, and the system's cache may still have them. */
void onv_source_forget(onv_source *source)
{
#ifndef ONV_NO_MMAP
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the way to shed a const */
    void *data = (void *)(uintptr_t)source->window;
    if (source->is_mapped) (void)madvise(data, source->window_bytes, MADV_DONTNEED);
#else
    (void)source;
#endif
}

void onv_source_close(onv_source *source)
{
#ifndef ONV_NO_MMAP
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the way to shed a const */
    if (source->is_mapped) munmap((void *)(uintptr_t)source->window, source->window_bytes);
#endif
    onv_heap_free(source->buffer);
    if (source->fd >= 0) close(source->fd);
    *source = (onv_source){.fd = -1};
}

/* --- Other formats ------------------------------------------------------------------------------- */

const char *onv_source_guess(const void *data, size_t bytes)
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
        if (bytes >= (size_t)known[i].offset + known[i].length &&
            memcmp(p + known[i].offset, known[i].magic, known[i].length) == 0)
            return known[i].what;
    size_t head = bytes < ONV_SOURCE_HEAD ? bytes : ONV_SOURCE_HEAD, at = 0;
    for (size_t i = 0; i < head; i++)
        if ((p[i] < ' ' || p[i] > '~') && (p[i] < '\t' || p[i] > '\r')) return NULL;
    while (at < head && p[at] <= ' ') at++;
    if (at < head && p[at] == '<') return "HTML or XML, perhaps the page of a failed download";
    if (at < head && (p[at] == '{' || p[at] == '[')) return "JSON text";
    return "plain text";
}

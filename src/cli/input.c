#include "cli/input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/message.h"

bool onv_cli_is_input(const char *path)
{
    return strcmp(path, ONV_CLI_INPUT) == 0;
}

static bool failed(const char *why)
{
    onv_error error = {.code = ONV_ERR_IO};
    snprintf(error.message, sizeof error.message, "%s", why);
    onv_cli_complain(ONV_CLI_INPUT, &error);
    return false;
}

/* Up to `room` bytes; fewer at the end only. -1: it cannot be read. */
static ssize_t read_fully(unsigned char *to, size_t room)
{
    size_t got = 0;
    while (got < room) {
        ssize_t n = read(STDIN_FILENO, to + got, room - got);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        if (n == 0) break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

bool onv_cli_read_input(onv_cli_input *input, uint64_t most_bytes)
{
    enum { FIRST = 1 << 20 };
    uint64_t most = most_bytes > 0 ? most_bytes : (uint64_t)4 << 30;
    size_t capacity = 0;
    *input = (onv_cli_input){0};
    for (;;) {
        if (input->bytes > most) {
            char why[160];
            snprintf(why, sizeof why,
                     "has more than %" PRIu64 " bytes, the limit; --limit file-bytes=N raises it",
                     most);
            return failed(why);
        }
        capacity = capacity == 0 ? FIRST : 2 * capacity;
        if (capacity > most) capacity = (size_t)most + 1;
        unsigned char *data = realloc(input->data, capacity);
        if (data == NULL) return failed("out of memory");
        input->data = data;
        ssize_t n = read_fully(data + input->bytes, capacity - input->bytes);
        if (n < 0) return failed(strerror(errno));
        input->bytes += (size_t)n;
        if (input->bytes < capacity) return true;
    }
}

void onv_cli_drop_input(onv_cli_input *input)
{
    free(input->data);
    *input = (onv_cli_input){0};
}

/* As a file that has no name. */
static const char *copy_input(void)
{
    enum { PIECE = 1 << 16 };
    static const uint64_t most = (uint64_t)1 << 30;
    static char path[40];
    static unsigned char piece[PIECE];
    uint64_t bytes = 0;
#ifdef __linux__
    int copy = memfd_create("input", MFD_CLOEXEC);
#else
    int copy = -1;
    errno = ENOSYS;
#endif
    ssize_t n = 0;
    while (copy >= 0 && (n = read_fully(piece, PIECE)) > 0) {
        bytes += (uint64_t)n;
        for (ssize_t at = 0, written; at < n; at += written)
            if ((written = write(copy, piece + at, (size_t)(n - at))) < 0) n = -1;
        if (bytes > most)
            failed("has more than 1 GiB, too much for several runtimes; write it to a file");
        if (bytes > most) return NULL;
    }
    if (copy < 0 || n < 0) failed(strerror(errno));
    if (copy < 0 || n < 0) return NULL;
    snprintf(path, sizeof path, "/proc/self/fd/%d", copy);
    return path;
}

const char *onv_cli_input_path(const char *path, bool more_than_once)
{
    if (!onv_cli_is_input(path)) return path;
    return more_than_once ? copy_input() : "/dev/stdin";
}

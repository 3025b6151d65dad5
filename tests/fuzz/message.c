#include "fuzz/message.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/hold.h"
#include "fuzz/schema.h"

static void put(message *m, const void *data, size_t size)
{
    hold(size <= sizeof m->at - m->size);
    if (size > 0) memcpy(m->at + m->size, data, size);
    m->size += size;
}

static void put_varint(message *m, uint64_t value)
{
    uint8_t coded[10];
    put(m, coded, fuzz_put_varint(coded, value));
}

void put_number(message *m, unsigned field, uint64_t value)
{
    put_varint(m, field << 3);
    put_varint(m, value);
}

void put_bytes(message *m, unsigned field, const void *data, size_t size)
{
    put_varint(m, field << 3 | 2);
    put_varint(m, size);
    put(m, data, size);
}

void put_text(message *m, unsigned field, const char *text)
{
    put_bytes(m, field, text, strlen(text));
}

void put_part(message *m, unsigned field, message *part)
{
    put_bytes(m, field, part->at, part->size);
    part->size = 0;
}

/* Both lengths have as many bytes as they need: one, or three. */
static size_t length_of(size_t size)
{
    uint8_t coded[10];
    return fuzz_put_varint(coded, size);
}

void put_note(message *m, unsigned field, const char *key, const void *value, size_t size)
{
    size_t n = strlen(key);
    put_varint(m, field << 3 | 2);
    put_varint(m, 1 + length_of(n) + n + 1 + length_of(size) + size);
    put_bytes(m, 1, key, n);
    put_bytes(m, 2, value, size);
}

int fuzz_as_file(const uint8_t *data, size_t size, char path[FUZZ_PATH])
{
    int fd = memfd_create("input", MFD_CLOEXEC);
    hold(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, FUZZ_PATH, "/proc/self/fd/%d", fd);
    return fd;
}

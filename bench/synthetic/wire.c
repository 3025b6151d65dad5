#include "wire.h"

#include <string.h>

enum { WIRE_NUMBER = 0, WIRE_BYTES = 2, VARINT_BYTES = 10 };

static size_t encode_varint(unsigned char at[VARINT_BYTES], uint64_t value)
{
    size_t size = 0;
    for (; value >= 0x80; value >>= 7) at[size++] = (unsigned char)(value | 0x80);
    at[size++] = (unsigned char)value;
    return size;
}

static void put(message *m, const void *data, size_t size)
{
    if (size > sizeof m->at - m->size) {
        m->full = true;
        return;
    }
    memcpy(m->at + m->size, data, size);
    m->size += size;
}

static void put_varint(message *m, uint64_t value)
{
    unsigned char at[VARINT_BYTES];
    put(m, at, encode_varint(at, value));
}

static void put_bytes(message *m, unsigned field, const void *data, size_t size)
{
    put_varint(m, (uint64_t)field << 3 | WIRE_BYTES);
    put_varint(m, size);
    put(m, data, size);
}

void put_number(message *m, unsigned field, uint64_t value)
{
    put_varint(m, (uint64_t)field << 3 | WIRE_NUMBER);
    put_varint(m, value);
}

void put_text(message *m, unsigned field, const char *text)
{
    put_bytes(m, field, text, strlen(text));
}

void put_message(message *m, unsigned field, const message *inner)
{
    put_bytes(m, field, inner->at, inner->size);
    m->full |= inner->full;
}

static void emit(sink *out, const void *data, size_t size)
{
    out->bytes += size;
    if (out->file != NULL && fwrite(data, 1, size, out->file) != size) out->failed = true;
}

void emit_open(sink *out, unsigned field, uint64_t bytes)
{
    unsigned char at[VARINT_BYTES];
    emit(out, at, encode_varint(at, (uint64_t)field << 3 | WIRE_BYTES));
    emit(out, at, encode_varint(at, bytes));
}

uint64_t open_bytes(unsigned field, uint64_t bytes)
{
    sink count = {0};
    emit_open(&count, field, bytes);
    return count.bytes;
}

void emit_body(sink *out, const message *m)
{
    emit(out, m->at, m->size);
    out->failed |= m->full;
}

void emit_message(sink *out, unsigned field, const message *m)
{
    emit_open(out, field, m->size);
    emit_body(out, m);
}

void emit_hole(sink *out, uint64_t bytes)
{
    out->bytes += bytes;
    if (out->file != NULL && fseeko(out->file, (off_t)bytes, SEEK_CUR) != 0) out->failed = true;
}

void emit_noise(sink *out, uint64_t bytes)
{
    if (out->file == NULL) {
        out->bytes += bytes;
        return;
    }
    uint64_t block[512], state = 88172645463325252u; /* xorshift64 */
    while (bytes > 0 && !out->failed) {
        for (size_t i = 0; i < sizeof block / sizeof block[0]; i++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            block[i] = state;
        }
        size_t size = bytes < sizeof block ? (size_t)bytes : sizeof block;
        emit(out, block, size);
        bytes -= size;
    }
}

#include "program/attached.h"

#include <string.h>

#include <zlib.h>

#include "base/base64.h"
#include "base/fail.h"
#include "base/heap.h"
#include "base/quota.h"
#include "load/limits.h"
#include "load/wire.h"

/* --- base64 -------------------------------------------------------------------------------------- */

static onv_status to_base64(const unsigned char *from, size_t bytes, onv_program_text *to,
                            onv_error *err)
{
    if (bytes > SIZE_MAX / 2) return onv_fail_memory(err);
    to->bytes = (bytes + 2) / 3 * 4;
    to->at = onv_heap_alloc(to->bytes + 1);
    if (to->at == NULL) return onv_fail_memory(err);
    onv_base64_encode(from, bytes, to->at);
    to->at[to->bytes] = '\0';
    return ONV_OK;
}

static onv_status of_base64(const unsigned char *from, size_t bytes, onv_program_text *to,
                            onv_error *err)
{
    uint8_t values[256];
    uint32_t word = 0, bits = 0;
    memset(values, 64, sizeof values);
    for (uint8_t i = 0; i < 64; i++) values[(unsigned char)onv_base64_digits[i]] = i;
    to->at = onv_heap_alloc(bytes / 4 * 3 + 3);
    if (to->at == NULL) return onv_fail_memory(err);
    while (bytes > 0 && from[bytes - 1] == '=') bytes--;
    for (size_t i = 0; i < bytes; i++) {
        uint8_t value = values[from[i]];
        if (value == 64)
            return onv_fail(err, ONV_ERR_FORMAT,
                            "the program inside the model (" ONV_PROGRAM_KEY ") is damaged");
        word = word << 6 | value;
        bits += 6;
        if (bits < 8) continue;
        bits -= 8;
        to->at[to->bytes++] = (char)(word >> bits & 255);
    }
    return ONV_OK;
}

/* --- Entries ------------------------------------------------------------------------------------- */

bool onv_program_is_entry(const unsigned char *at, const unsigned char *end)
{
    onv_wire_field field;
    size_t length = sizeof ONV_PROGRAM_KEY - 1;
    while (onv_wire_next(&at, end, &field))
        if (field.number == ONV_PAIR_KEY && field.type == ONV_WIRE_BYTES)
            return (size_t)(field.end - field.value) == length &&
                   memcmp(field.value, ONV_PROGRAM_KEY, length) == 0;
    return false;
}

static onv_status take_value(const unsigned char *at, const unsigned char *end,
                             onv_program_text *packed, onv_error *err)
{
    onv_wire_field field;
    while (onv_wire_next(&at, end, &field))
        if (field.number == ONV_PAIR_VALUE && field.type == ONV_WIRE_BYTES)
            return of_base64(field.value, (size_t)(field.end - field.value), packed, err);
    return onv_fail(err, ONV_ERR_FORMAT, "the entry " ONV_PROGRAM_KEY " of the model has no value");
}

/* The field that begins at an offset of the file: its number and type, where its value is. False where there is none. */
typedef struct field_at {
    uint64_t value, end;
    uint32_t number;
    onv_wire_type type;
} field_at;

static onv_status read_field(onv_source *source, uint64_t offset, field_at *field, onv_error *err)
{
    const unsigned char *data, *at;
    const size_t most = (size_t)2 * ONV_VARINT_MOST_BYTES;
    uint64_t left = source->bytes - offset, bytes;
    size_t n = left < most ? (size_t)left : most;
    ONV_TRY(onv_source_view(source, offset, n, &data, err));
    at = data;
    bool reads = onv_wire_head(&at, data + n, &field->number, &field->type, &bytes);
    field->value = offset + (uint64_t)(at - data);
    if (reads && bytes <= source->bytes - field->value) {
        field->end = field->value + bytes;
        return ONV_OK;
    }
    return onv_fail(err, ONV_ERR_IO, "the file changed while it was read");
}

onv_status onv_program_attached(const onv_model *model, uint64_t most_bytes,
                                onv_program_text *packed, onv_error *err)
{
    onv_source *source = model->source;
    field_at field;
    *packed = (onv_program_text){0};
    if (source == NULL) return ONV_OK;
    for (uint64_t offset = 0; offset < source->bytes; offset = field.end) {
        const unsigned char *data;
        ONV_WORK(1);
        ONV_TRY(read_field(source, offset, &field, err));
        if (field.number != ONV_MODEL_METADATA || field.type != ONV_WIRE_BYTES) continue;
        uint64_t bytes = field.end - field.value;
        if (bytes > most_bytes) continue; /* of another's */
        ONV_TRY(onv_source_view(source, field.value, bytes, &data, err));
        if (onv_program_is_entry(data, data + bytes))
            return take_value(data, data + bytes, packed, err);
    }
    return ONV_OK;
}

/* --- Packing ------------------------------------------------------------------------------------- */

static onv_status compress_text(z_stream *z, const onv_program_text *text, unsigned char *to,
                                size_t room, onv_error *err)
{
    if (text->bytes > UINT32_MAX / 2 || room > UINT32_MAX)
        return onv_fail(err, ONV_ERR_LIMIT, "the program has more than 2 GiB");
    z->next_in = (Bytef *)text->at;
    z->avail_in = (uInt)text->bytes;
    z->next_out = to;
    z->avail_out = (uInt)room;
    return deflate(z, Z_FINISH) == Z_STREAM_END ? ONV_OK : onv_fail_memory(err);
}

onv_status onv_program_pack(const onv_program_text *text, onv_program_text *packed, onv_error *err)
{
    enum { MEMORY = 8 };
    z_stream z = {.zalloc = onv_program_zalloc, .zfree = onv_program_zfree};
    *packed = (onv_program_text){0};
    if (deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, MEMORY,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return onv_fail_memory(err);
    size_t room = deflateBound(&z, (uLong)text->bytes);
    unsigned char *to = onv_heap_alloc(room);
    onv_status status = to != NULL ? compress_text(&z, text, to, room, err) : onv_fail_memory(err);
    if (status == ONV_OK) status = to_base64(to, room - z.avail_out, packed, err);
    deflateEnd(&z);
    onv_heap_free(to);
    return status;
}

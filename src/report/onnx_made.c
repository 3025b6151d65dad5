#include "report/onnx_made.h"

#include <string.h>

#include "base/fail.h"
#include "load/source.h"
#include "program/attached.h"

/* --- Messages ---------------------------------------------------------------------------------- */

void onv_made_span(onv_made *to, onv_span piece)
{
    size_t n = to->pieces.count;
    to->bytes += (uint64_t)(piece.end - piece.at);
    if (n > 0 && to->pieces.at[n - 1].end == piece.at)
        to->pieces.at[n - 1].end = piece.end;
    else if (piece.end > piece.at && !onv_vec_push(&to->pieces, piece))
        to->arena->failed = true;
}

void onv_made_bytes(onv_made *to, const void *data, size_t n)
{
    unsigned char *copy = n > 0 ? onv_arena_packed(to->arena, n) : NULL;
    if (copy == NULL) return;
    memcpy(copy, data, n);
    onv_made_span(to, (onv_span){copy, copy + n});
}

static void add_varint(onv_made *to, uint64_t value)
{
    unsigned char bytes[ONV_VARINT_MOST_BYTES];
    onv_made_bytes(to, bytes, onv_varint_write(value, bytes));
}

void onv_made_number(onv_made *to, uint32_t field, uint64_t value)
{
    add_varint(to, (uint64_t)field << 3 | ONV_WIRE_VARINT);
    add_varint(to, value);
}

static void add_tag(onv_made *to, uint32_t field, uint64_t length)
{
    add_varint(to, (uint64_t)field << 3 | ONV_WIRE_BYTES);
    add_varint(to, length);
}

void onv_made_field(onv_made *to, uint32_t field, const void *data, size_t n)
{
    add_tag(to, field, n);
    onv_made_bytes(to, data, n);
}

void onv_made_message(onv_made *to, uint32_t field, onv_made *part)
{
    add_tag(to, field, part->bytes);
    for (size_t i = 0; i < part->pieces.count; i++) onv_made_span(to, part->pieces.at[i]);
    onv_vec_cleanup(&part->pieces);
}

void onv_made_pair(onv_made *to, uint32_t field, const char *key, const char *value)
{
    onv_made pair = {.arena = to->arena};
    onv_made_field(&pair, ONV_PAIR_KEY, key, strlen(key));
    onv_made_field(&pair, ONV_PAIR_VALUE, value, strlen(value));
    onv_made_message(to, field, &pair);
}

void onv_made_write(onv_made *made, onv_writer *out)
{
    for (size_t i = 0; i < made->pieces.count && !out->failed; i++) {
        const onv_span *piece = &made->pieces.at[i];
        onv_write_bytes(out, (const char *)piece->at, (size_t)(piece->end - piece->at));
    }
    onv_vec_cleanup(&made->pieces);
}

/* --- A program in its model -------------------------------------------------------------------- */

/* Copies the file without the entries of a key. The order of fields is free in a message, so the new entry goes to the end. */
static onv_status attach(onv_source *source, const char *text, onv_made *to, onv_error *err)
{
    const unsigned char *at, *end;
    onv_wire_field field;
    ONV_TRY(onv_source_view(source, 0, source->bytes, &at, err));
    for (end = at + source->bytes; at < end;) {
        if (!onv_wire_next(&at, end, &field))
            return onv_fail(err, ONV_ERR_IO, "the file changed while it was read");
        if (field.number != ONV_MODEL_METADATA || field.type != ONV_WIRE_BYTES ||
            !onv_program_is_entry(field.value, field.end))
            onv_made_span(to, (onv_span){field.start, field.end});
    }
    onv_made_pair(to, ONV_MODEL_METADATA, ONV_PROGRAM_KEY, text);
    return to->arena->failed ? onv_fail_memory(err) : ONV_OK;
}

onv_status onv_onnx_attach(const onv_model *model, const onv_program_text *packed,
                           onv_write_fn write, void *context, onv_error *err)
{
    onv_writer out;
    onv_arena arena;
    onv_made made = {.arena = &arena};
    onv_arena_init(&arena, SIZE_MAX);
    onv_writer_init(&out, write, context);
    onv_status status = attach(model->source, packed->at, &made, err);
    if (status == ONV_OK) onv_made_write(&made, &out);
    if (status == ONV_OK) status = onv_writer_finish(&out, err);
    onv_vec_cleanup(&made.pieces);
    onv_arena_cleanup(&arena);
    return status;
}

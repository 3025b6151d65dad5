#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/fail.h"
#include "load/limits.h"
#include "load/scan_walk.h"
#include "load/text.h"

enum { NODE_NAME = 3 };

/* protobuf-c counts in int. */
enum { MOST_SKELETON_BYTES = INT_MAX - (1 << 20) };

/* --- Writing ----------------------------------------------------------------------------------- */

onv_status onv_walk_put(onv_walk *w, onv_bytes *out, const void *data, size_t bytes)
{
    if (bytes > MOST_SKELETON_BYTES - out->count)
        return onv_fail(w->err, ONV_ERR_LIMIT,
                        "the model has more than 2 GiB besides the contents of its tensors");
    if (!onv_vec_reserve(out, bytes)) return onv_fail_memory(w->err);
    if (bytes > 0) memcpy(out->at + out->count, data, bytes);
    out->count += bytes;
    return ONV_OK;
}

onv_status onv_walk_put_varint(onv_walk *w, onv_bytes *out, uint64_t value)
{
    unsigned char text[ONV_VARINT_MOST_BYTES];
    size_t n = 0;
    do {
        text[n++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value != 0);
    return onv_walk_put(w, out, text, n);
}

onv_status onv_walk_put_field(onv_walk *w, onv_bytes *out, uint32_t number, const void *data,
                              size_t bytes)
{
    if (number < 16 && bytes < 0x80) {
        const unsigned char head[] = {(unsigned char)(number << 3 | ONV_WIRE_BYTES),
                                      (unsigned char)bytes};
        ONV_TRY(onv_walk_put(w, out, head, sizeof head));
    } else {
        ONV_TRY(onv_walk_put_varint(w, out, (uint64_t)number << 3 | ONV_WIRE_BYTES));
        ONV_TRY(onv_walk_put_varint(w, out, bytes));
    }
    return onv_walk_put(w, out, data, bytes);
}

onv_status onv_walk_put_stretch(onv_walk *w, onv_bytes *out, uint64_t from, uint64_t bytes)
{
    const unsigned char *data;
    for (uint64_t piece; bytes > 0; bytes -= piece, from += piece) {
        piece = bytes < ONV_PIECE_BYTES ? bytes : ONV_PIECE_BYTES;
        ONV_TRY(onv_source_view(w->source, from, piece, &data, w->err));
        ONV_TRY(onv_walk_put(w, out, data, (size_t)piece));
    }
    return ONV_OK;
}

onv_status onv_walk_put_field_from(onv_walk *w, onv_bytes *out, uint32_t number, uint64_t from,
                                   uint64_t bytes)
{
    const unsigned char *data;
    if (bytes <= ONV_PIECE_BYTES) {
        ONV_TRY(onv_source_view(w->source, from, bytes, &data, w->err));
        return onv_walk_put_field(w, out, number, data, (size_t)bytes);
    }
    ONV_TRY(onv_walk_put_varint(w, out, (uint64_t)number << 3 | ONV_WIRE_BYTES));
    ONV_TRY(onv_walk_put_varint(w, out, bytes));
    return onv_walk_put_stretch(w, out, from, bytes);
}

/* --- Strings ----------------------------------------------------------------------------------- */

/* Bytes of the UTF-8 sequence at `p`, 0 if it is not one (overlong forms and surrogates are not). */
static size_t utf8_sequence(const unsigned char *p, const unsigned char *end)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (n == 0 || p[0] > 0xf4 || (size_t)(end - p) < n) return 0;
    if (n == 1) return p[0] != 0;
    uint32_t code = p[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (p[i] & 0x3f);
    }
    if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return 0;
    return n;
}

/* How many bytes from `p` on are ASCII without NUL; eight at a time, as most names are no more. */
static size_t plain_text(const unsigned char *p, const unsigned char *end)
{
    const uint64_t ones = UINT64_MAX / 0xff, highs = ones << 7;
    const unsigned char *at = p;
    for (uint64_t word; (size_t)(end - at) >= sizeof word; at += sizeof word) {
        memcpy(&word, at, sizeof word);
        /* The high bit of a byte that has it, or that borrows since it is 0. */
        if (((word | (word - ones)) & highs) != 0) break;
    }
    while (at<end && * at> 0 && *at < 0x80) at++;
    return (size_t)(at - p);
}

static bool is_text(const unsigned char *p, size_t bytes)
{
    const unsigned char *end = p + bytes;
    while (p < end) {
        p += plain_text(p, end);
        if (p == end) break;
        size_t n = utf8_sequence(p, end);
        if (n == 0) return false;
        p += n;
    }
    return true;
}

/* Names are interned, but for those of nodes: they are many, and nothing refers to them. */
static const char *name_of(onv_walk *w, const onv_item *it, const char *text, size_t bytes)
{
    const bool is_node = onv_walk_top(w)->message == ONV_MSG_NODE && it->number == NODE_NAME;
    return is_node ? onv_arena_strndup(w->strings->arena, text, bytes)
                   : onv_intern_n(w->strings, text, bytes);
}

onv_status onv_walk_string(onv_walk *w, const onv_item *it, uint64_t bytes)
{
    const unsigned char *data;
    const onv_frame *top = onv_walk_top(w);
    if (bytes > w->limits->name_bytes)
        return onv_fail(w->err, ONV_ERR_LIMIT,
                        "%s.%s of %" PRIu64 " bytes at byte %" PRIu64
                        "; the limit is %" PRIu64 ONV_RAISE("name-bytes"),
                        onv_message_name(top->message), onv_walk_field_name(it), bytes, it->tag,
                        w->limits->name_bytes);
    ONV_TRY(onv_source_view(w->source, w->at, bytes, &data, w->err));
    if (!is_text(data, (size_t)bytes)) return onv_walk_damaged(w, it, "is not UTF-8 text");
    if (it->field->use == ONV_USE_STRING)
        return onv_walk_put_field(w, top->out, it->number, data, (size_t)bytes);
    const char *name = name_of(w, it, (const char *)data, (size_t)bytes);
    return name != NULL ? onv_walk_name(w, it, name) : onv_fail_memory(w->err);
}

/* --- Notes ------------------------------------------------------------------------------------- */

/* The signature of a graph lists all parameters, in one text. */
enum { MOST_SIGNATURE_NAMES = 64 };

/* A call has arguments, of which names tell, and rules join a Pad. */
static bool is_of_use(onv_note note, const unsigned char *text, uint64_t bytes)
{
    const char *wanted = note == ONV_NOTED_CALL    ? ONV_NOTE_ARGS
                         : note == ONV_NOTED_RULES ? ONV_NOTE_PAD
                                                   : "";
    return onv_text_has((onv_text){(const char *)text, (size_t)bytes}, wanted) || wanted[0] == '\0';
}

/* Metadata decides nothing, so what is no plain key and value is dropped without a word. */
onv_status onv_walk_note(onv_walk *w, uint64_t bytes)
{
    enum { MOST_HEAD = 64 }; /* of a key, as it lies there */
    onv_message message = onv_walk_top(w)->message;
    const unsigned char *data;
    ONV_TRY(
        onv_source_view(w->source, w->at, bytes < MOST_HEAD ? bytes : MOST_HEAD, &data, w->err));
    for (onv_note note = 0; note < ONV_NOTED_COUNT; note++) {
        const char *key = onv_note_key(note);
        const size_t length = strlen(key), head = 2 + length + 1;
        uint64_t value;
        if (bytes <= head || head > MOST_HEAD || data[0] != 0x0a || data[1] != length ||
            data[2 + length] != 0x12 || memcmp(data + 2, key, length) != 0)
            continue; /* fields 1 and 2 */
        uint64_t most =
            w->limits->name_bytes * (note == ONV_NOTED_SIGNATURE ? MOST_SIGNATURE_NAMES : 1);
        if (onv_note_owner(note) != message || bytes > most) return ONV_OK;
        ONV_TRY(onv_source_view(w->source, w->at, bytes, &data, w->err));
        const unsigned char *at = data + head, *end = data + bytes;
        if (onv_varint_read(&at, end, &value) && value == (uint64_t)(end - at) &&
            is_of_use(note, at, value) && is_text(at, (size_t)value))
            return onv_walk_add_note(w, note, w->at + (uint64_t)(at - data), at, value);
        return ONV_OK;
    }
    return ONV_OK;
}

/* --- Lists of attributes ----------------------------------------------------------------------- */

enum { ATTR_FLOATS = 7, ATTR_STRINGS = 9 };

uint64_t onv_walk_count_list(onv_walk *w, const onv_item *it, uint64_t more)
{
    const onv_frame *top = onv_walk_top(w);
    if (top->message != ONV_MSG_ATTRIBUTE || it->number < ATTR_FLOATS || it->number > ATTR_STRINGS)
        return more;
    uint32_t *count = &w->scan->attrs.at[top->record].lists[it->number - ATTR_FLOATS];
    const uint64_t before = *count, after = before + more, most = onv_limits_list(w->limits);
    *count = after < UINT32_MAX ? (uint32_t)after : UINT32_MAX;
    const uint64_t room = before < most ? most - before : 0;
    return more < room ? more : room;
}

/* --- Numbers ----------------------------------------------------------------------------------- */

/* Packed varints: the last one must end with the field. */
static onv_status count_varints(onv_walk *w, const onv_item *it, uint64_t bytes, uint64_t *count)
{
    uint64_t at = w->at, end = at + bytes, value;
    *count = 0;
    while (at < end) {
        uint64_t piece = end - at < ONV_PIECE_BYTES ? end - at : ONV_PIECE_BYTES;
        const unsigned char *p, *start, *stop;
        ONV_TRY(onv_source_view(w->source, at, piece, &start, w->err));
        /* A number that may go on behind the piece is of the next one. */
        size_t sure = at + piece == end ? 1 : ONV_VARINT_MOST_BYTES;
        for (p = start, stop = start + piece; (size_t)(stop - p) >= sure; ++*count)
            if (!onv_varint_read(&p, stop, &value))
                return onv_walk_damaged(w, it, "holds a broken number");
        at += (uint64_t)(p - start);
    }
    return ONV_OK;
}

onv_status onv_walk_varints(onv_walk *w, const onv_item *it, uint64_t bytes)
{
    uint64_t count, value;
    ONV_TRY(count_varints(w, it, bytes, &count));
    uint64_t keep = onv_walk_count_list(w, it, count);
    if (keep < count) {
        const unsigned char *start, *p;
        uint64_t most = keep * ONV_VARINT_MOST_BYTES;
        if (most < bytes) bytes = most;
        ONV_TRY(onv_source_view(w->source, w->at, bytes, &start, w->err));
        for (p = start; keep > 0; keep--) (void)onv_varint_read(&p, start + bytes, &value);
        bytes = (uint64_t)(p - start);
    }
    return onv_walk_put_field_from(w, onv_walk_top(w)->out, it->number, w->at, bytes);
}

onv_status onv_walk_floats(onv_walk *w, const onv_item *it, uint64_t bytes)
{
    if (bytes % 4 != 0) return onv_walk_damaged(w, it, "holds a broken number");
    uint64_t keep = onv_walk_count_list(w, it, bytes / 4);
    return onv_walk_put_field_from(w, onv_walk_top(w)->out, it->number, w->at, 4 * keep);
}

/* --- Payloads ---------------------------------------------------------------------------------- */

onv_status onv_walk_chunk(onv_walk *w, const onv_item *it, uint64_t offset, uint64_t bytes,
                          bool tagged)
{
    onv_scan *scan = w->scan;
    if (tagged && scan->chunks.count > onv_walk_top(w)->first) {
        /* The next of a row of elements: one chunk for all, or the table could outgrow the file. */
        onv_chunk *last = &scan->chunks.at[scan->chunks.count - 1];
        if (last->tagged && last->field == it->number && last->offset + last->bytes == offset) {
            last->bytes += bytes;
            return ONV_OK;
        }
    }
    onv_chunk chunk = {
        .offset = offset, .bytes = bytes, .field = (uint8_t)it->number, .tagged = tagged};
    return onv_vec_push(&scan->chunks, chunk) ? ONV_OK : onv_fail_memory(w->err);
}

#include "load/scan.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/quota.h"
#include "load/limits.h"
#include "load/text.h"

onv_status onv_walk_damaged(onv_walk *w, const onv_item *it, const char *what)
{
    return onv_fail(w->err, ONV_ERR_FORMAT, "damaged at byte %" PRIu64 ": %s.%s %s", it->tag,
                    onv_message_name(onv_walk_top(w)->message), onv_walk_field_name(it), what);
}

enum { NODE_NAME = 3 };

/* What is looked at or copied at a time where it may be long; a tag and a number behind it. */
enum { ONV_PIECE_BYTES = 16 << 10, ONV_HEAD_BYTES = 2 * ONV_VARINT_MOST_BYTES };

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

/* What is before the value of a field. */
static onv_status put_head(onv_walk *w, onv_bytes *out, uint32_t number, uint64_t bytes)
{
    unsigned char head[ONV_HEAD_BYTES];
    size_t n = onv_varint_write((uint64_t)number << 3 | ONV_WIRE_BYTES, head);
    n += onv_varint_write(bytes, head + n);
    return onv_walk_put(w, out, head, n);
}

/* A stretch of the source, in pieces: of what is kept some may be long. */
static onv_status put_stretch(onv_walk *w, onv_bytes *out, uint64_t from, uint64_t bytes)
{
    const unsigned char *data;
    for (uint64_t piece; bytes > 0; bytes -= piece, from += piece) {
        piece = bytes < ONV_PIECE_BYTES ? bytes : ONV_PIECE_BYTES;
        ONV_TRY(onv_source_view(w->source, from, piece, &data, w->err));
        ONV_TRY(onv_walk_put(w, out, data, (size_t)piece));
    }
    return ONV_OK;
}

static onv_status put_field_from(onv_walk *w, onv_bytes *out, uint32_t number, uint64_t from,
                                 uint64_t bytes)
{
    ONV_TRY(put_head(w, out, number, bytes));
    return put_stretch(w, out, from, bytes);
}

/* --- Strings ----------------------------------------------------------------------------------- */

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
        uint32_t code = 0;
        size_t n = onv_utf8_decode(p, (size_t)(end - p), &code);
        if (code == 0) return false;
        p += n;
    }
    return true;
}

/* Names are interned, but for those of nodes, which are many, and nothing refers to them; likewise what pairs say. */
static const char *name_of(onv_walk *w, const onv_item *it, const char *text, size_t bytes)
{
    const uint8_t message = onv_walk_top(w)->message;
    const bool is_text =
        (message == ONV_MSG_NODE && it->number == NODE_NAME) || message == ONV_MSG_PAIR;
    return is_text ? onv_arena_strndup(w->strings->arena, text, bytes)
                   : onv_intern_n(w->strings, text, bytes);
}

static onv_status keep_string(onv_walk *w, const onv_item *it, uint64_t bytes)
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
        return put_field_from(w, top->out, it->number, w->at, bytes);
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
static onv_status keep_note(onv_walk *w, uint64_t bytes)
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

/* Counts `more` elements of a list of an attribute, before anything is made of them; gives how many of them go
 * into the skeleton. Other messages have their numbers counted elsewhere. */
static uint64_t count_list(onv_walk *w, const onv_item *it, uint64_t more)
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

/* Packed varints: the last one must end with the field. A record takes them. */
static onv_status count_varints(onv_walk *w, const onv_item *it, uint64_t bytes, uint64_t *count)
{
    const bool is_record = onv_walk_top(w)->out == NULL;
    uint64_t at = w->at, end = at + bytes, value;
    *count = 0;
    while (at < end) {
        uint64_t piece = end - at < ONV_PIECE_BYTES ? end - at : ONV_PIECE_BYTES;
        const unsigned char *p, *start, *stop;
        ONV_TRY(onv_source_view(w->source, at, piece, &start, w->err));
        /* A number that may go on behind the piece is of the next one. */
        size_t sure = at + piece == end ? 1 : ONV_VARINT_MOST_BYTES;
        for (p = start, stop = start + piece; (size_t)(stop - p) >= sure; ++*count) {
            if (!onv_varint_read(&p, stop, &value))
                return onv_walk_damaged(w, it, "holds a broken number");
            if (is_record) ONV_TRY(onv_walk_number(w, it, value));
        }
        at += (uint64_t)(p - start);
    }
    return ONV_OK;
}

static onv_status keep_varints(onv_walk *w, const onv_item *it, uint64_t bytes)
{
    uint64_t count, value;
    ONV_TRY(count_varints(w, it, bytes, &count));
    if (onv_walk_top(w)->out == NULL) return ONV_OK;
    uint64_t keep = count_list(w, it, count);
    if (keep < count) {
        const unsigned char *start, *p;
        uint64_t most = keep * ONV_VARINT_MOST_BYTES;
        if (most < bytes) bytes = most;
        ONV_TRY(onv_source_view(w->source, w->at, bytes, &start, w->err));
        for (p = start; keep > 0; keep--) (void)onv_varint_read(&p, start + bytes, &value);
        bytes = (uint64_t)(p - start);
    }
    return put_field_from(w, onv_walk_top(w)->out, it->number, w->at, bytes);
}

static onv_status keep_floats(onv_walk *w, const onv_item *it, uint64_t bytes)
{
    if (bytes % 4 != 0) return onv_walk_damaged(w, it, "holds a broken number");
    uint64_t keep = count_list(w, it, bytes / 4);
    return put_field_from(w, onv_walk_top(w)->out, it->number, w->at, 4 * keep);
}

/* --- Payloads ---------------------------------------------------------------------------------- */

static onv_status keep_chunk(onv_walk *w, const onv_item *it, uint64_t offset, uint64_t bytes,
                             bool tagged)
{
    onv_scan *scan = w->scan;
    if (tagged && scan->chunks.count > onv_walk_top(w)->n_chunks) {
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

/* --- Fields ------------------------------------------------------------------------------------ */

/* A value of wire type BYTES, from w->at on. */
static onv_status take_bytes(onv_walk *w, const onv_item *it, uint64_t bytes)
{
    switch ((onv_field_use)it->field->use) {
    case ONV_USE_DROP: break;
    case ONV_USE_NAME:
    case ONV_USE_STRING: ONV_TRY(keep_string(w, it, bytes)); break;
    case ONV_USE_BYTES:
        /* Attributes may carry whole compiled engines as a string. Nothing reads more of one than
         * its head. */
        if (bytes > w->limits->name_bytes) bytes = w->limits->name_bytes;
        if (count_list(w, it, 1) == 0) return ONV_OK;
        return put_field_from(w, onv_walk_top(w)->out, it->number, w->at, bytes);
    case ONV_USE_VARINTS: ONV_TRY(keep_varints(w, it, bytes)); break;
    case ONV_USE_FLOATS: ONV_TRY(keep_floats(w, it, bytes)); break;
    case ONV_USE_NOTES: return keep_note(w, bytes);
    case ONV_USE_ONE:
    case ONV_USE_MANY:
    case ONV_USE_ONE_OF: return onv_walk_enter(w, it, bytes);
    case ONV_USE_RAW:
    case ONV_USE_PAYLOAD32:
    case ONV_USE_PAYLOAD64:
    case ONV_USE_PAYLOAD: ONV_TRY(keep_chunk(w, it, w->at, bytes, false)); break;
    case ONV_USE_VARINT:
    case ONV_USE_FLOAT: return onv_walk_damaged(w, it, "has the wrong wire type");
    }
    return ONV_OK;
}

static onv_wire_type single_of(onv_field_use use)
{
    switch (use) {
    case ONV_USE_VARINT:
    case ONV_USE_VARINTS:
    case ONV_USE_PAYLOAD: return ONV_WIRE_VARINT;
    case ONV_USE_FLOAT:
    case ONV_USE_FLOATS:
    case ONV_USE_PAYLOAD32: return ONV_WIRE_FIXED32;
    case ONV_USE_PAYLOAD64: return ONV_WIRE_FIXED64;
    default: return ONV_WIRE_BYTES;
    }
}

/* A value of another wire type, which ends at w->at; `number` where it is a varint. */
static onv_status take_number(onv_walk *w, const onv_item *it, uint64_t number)
{
    const onv_field_use use = it->field->use;
    if (use == ONV_USE_DROP) return ONV_OK;
    if (single_of(use) != it->type) return onv_walk_damaged(w, it, "has the wrong wire type");
    if (use >= ONV_USE_RAW) return keep_chunk(w, it, it->tag, w->at - it->tag, true);
    onv_bytes *out = onv_walk_top(w)->out;
    if (out == NULL) return onv_walk_number(w, it, number);
    if (count_list(w, it, 1) == 0) return ONV_OK;
    /* Its tag may be longer than it needs to be, which protobuf-c does not read. */
    unsigned char tag[ONV_HEAD_BYTES];
    size_t n = onv_varint_write((uint64_t)it->number << 3 | it->type, tag);
    if (it->value - it->tag == n) return put_stretch(w, out, it->tag, w->at - it->tag);
    ONV_TRY(onv_walk_put(w, out, tag, n));
    return put_stretch(w, out, it->value, w->at - it->value);
}

/* Where a field that does not fit its message was cut: a file that simply ends too early is told
 * from one that contradicts itself. */
static onv_status overrun(onv_walk *w, const onv_item *it, uint64_t bytes)
{
    uint64_t left = w->source->bytes - w->at;
    if (bytes > left)
        return onv_fail(w->err, ONV_ERR_FORMAT,
                        "truncated: %s.%s at byte %" PRIu64 " has %" PRIu64
                        " bytes, but only %" PRIu64 " follow",
                        onv_message_name(onv_walk_top(w)->message), onv_walk_field_name(it),
                        it->tag, bytes, left);
    return onv_walk_damaged(w, it, "is longer than the message it stands in");
}

static onv_status read_tag(onv_walk *w, const unsigned char **at, const unsigned char *end,
                           onv_item *it)
{
    const onv_frame *top = onv_walk_top(w);
    uint64_t tag;
    it->tag = w->at;
    if (!onv_varint_read(at, end, &tag) || tag >> 3 == 0 || tag >> 3 > ONV_FIELD_NUMBER_MOST ||
        (tag & 7) > ONV_WIRE_FIXED32)
        return onv_fail(w->err, ONV_ERR_FORMAT, "damaged at byte %" PRIu64 ": no field of %s",
                        it->tag, onv_message_name(top->message));
    it->number = (uint32_t)(tag >> 3);
    it->type = (onv_wire_type)(tag & 7);
    it->field = onv_message_field(top->message, it->number);
    return ONV_OK;
}

/* *at is the source from `from` on, as far as a tag and a number or a length reach within `end`. */
static onv_status view_head(onv_walk *w, uint64_t from, uint64_t end, const unsigned char **at,
                            const unsigned char **stop)
{
    uint64_t bytes = end - from < ONV_HEAD_BYTES ? end - from : ONV_HEAD_BYTES;
    ONV_TRY(onv_source_view(w->source, from, bytes, at, w->err));
    *stop = *at + bytes;
    return ONV_OK;
}

enum { COUNTED_AT_ONCE = 16 }; /* fields, as work */

static onv_status walk_field(onv_walk *w)
{
    onv_item it;
    const unsigned char *start, *p, *stop;
    const uint64_t end = onv_walk_top(w)->end;
    if (++w->n_fields % COUNTED_AT_ONCE == 0) ONV_WORK(COUNTED_AT_ONCE);
    ONV_TRY(view_head(w, w->at, end, &start, &stop));
    p = start;
    ONV_TRY(read_tag(w, &p, stop, &it));
    it.value = w->at + (uint64_t)(p - start);
    if (it.type == ONV_WIRE_GROUP_START || it.type == ONV_WIRE_GROUP_END)
        return onv_walk_damaged(w, &it, "is a group, which ONNX does not have");
    const bool has_bytes = it.type == ONV_WIRE_BYTES, is_varint = it.type == ONV_WIRE_VARINT;
    uint64_t value = it.type == ONV_WIRE_FIXED32 ? 4 : 8;
    if ((has_bytes || is_varint) && !onv_varint_read(&p, stop, &value))
        return onv_walk_damaged(w, &it,
                                has_bytes ? "has a broken length" : "holds a broken number");
    w->at += (uint64_t)(p - start);
    if (is_varint) return take_number(w, &it, value);
    if (value > end - w->at) return overrun(w, &it, value);
    if (!has_bytes) {
        w->at += value;
        return take_number(w, &it, 0);
    }
    uint32_t depth = w->depth;
    ONV_TRY(take_bytes(w, &it, value));
    if (w->depth == depth) w->at += value; /* else the walk goes on inside it */
    return ONV_OK;
}

static onv_status walk_all(onv_walk *w, onv_scan_root root)
{
    bool is_model = root == ONV_SCAN_MODEL;
    if (onv_intern(w->strings, "") == NULL) return onv_fail_memory(w->err);
    if (!is_model && !onv_vec_push(&w->scan->tensors, (onv_scan_tensor){0}))
        return onv_fail_memory(w->err);
    w->stack[w->depth++] = (onv_frame){
        .message = is_model ? ONV_MSG_MODEL : ONV_MSG_TENSOR,
        .end = w->source->bytes,
        .out = is_model ? &w->scan->header : NULL,
    };
    while (w->depth > 0) {
        if (w->at == onv_walk_top(w)->end) {
            ONV_TRY(onv_walk_leave(w));
        } else {
            ONV_TRY(walk_field(w));
        }
    }
    return ONV_OK;
}

/* What the scan holds stays until the model is built. */
static onv_status fit(onv_scan *scan, onv_error *err)
{
    bool fits =
        onv_vec_fit(&scan->skeleton) && onv_vec_fit(&scan->chunks) && onv_vec_fit(&scan->names) &&
        onv_vec_fit(&scan->nodes) && onv_vec_fit(&scan->attrs) && onv_vec_fit(&scan->attr_lists) &&
        onv_vec_fit(&scan->notes) && onv_vec_fit(&scan->values) && onv_vec_fit(&scan->tensors) &&
        onv_vec_fit(&scan->pairs) && onv_vec_fit(&scan->dims);
    return fits ? ONV_OK : onv_fail_memory(err);
}

onv_status onv_scan_run(onv_scan *scan, onv_scan_root root, onv_source *source,
                        const onv_limits *limits, onv_strings *strings, onv_error *err)
{
    *scan = (onv_scan){.source = source};
    onv_walk w = {
        .scan = scan,
        .limits = limits,
        .strings = strings,
        .source = source,
        .stack = onv_heap_calloc(limits->nesting, sizeof *w.stack),
        .err = err,
    };
    if (w.stack == NULL) return onv_fail_memory(err);
    onv_status status = walk_all(&w, root);
    if (status == ONV_OK) status = fit(scan, err);
    onv_heap_free(w.stack);
    onv_vec_cleanup(&w.inputs);
    onv_vec_cleanup(&w.outputs);
    onv_vec_cleanup(&w.attrs);
    onv_vec_cleanup(&w.put_off);
    onv_heap_free(w.walked);
    if (status != ONV_OK) onv_scan_cleanup(scan);
    return status;
}

void onv_scan_cleanup(onv_scan *scan)
{
    onv_vec_cleanup(&scan->header);
    onv_vec_cleanup(&scan->skeleton);
    onv_vec_cleanup(&scan->chunks);
    onv_vec_cleanup(&scan->names);
    onv_vec_cleanup(&scan->graphs);
    onv_vec_cleanup(&scan->nodes);
    onv_vec_cleanup(&scan->attrs);
    onv_vec_cleanup(&scan->attr_lists);
    onv_vec_cleanup(&scan->notes);
    onv_vec_cleanup(&scan->values);
    onv_vec_cleanup(&scan->tensors);
    onv_vec_cleanup(&scan->pairs);
    onv_vec_cleanup(&scan->dims);
    onv_vec_cleanup(&scan->parts);
    onv_vec_cleanup(&scan->functions);
}

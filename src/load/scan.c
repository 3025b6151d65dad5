#include "load/scan.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/heap.h"
#include "base/quota.h"
#include "load/fields.h"
#include "load/limits.h"
#include "load/wire.h"

/* A length in the skeleton is known only when its message is finished, so it gets a varint of fixed
 * width, which readers accept, and is filled in then. */
enum { LENGTH_BYTES = 5 };

/* protobuf-c counts in int. */
enum { MOST_SKELETON_BYTES = INT_MAX - (1 << 20) };

/* A message that is being walked. */
typedef struct frame {
    const unsigned char *end;
    size_t length_at; /* of its length in the skeleton */
    size_t first_chunk;
    uint32_t seen; /* ONV_USE_ONE fields that occurred, by number */
    uint8_t message;
    bool learnt;       /* a node of ai.onnx.ml, or an attribute of one */
    uint64_t lists[3]; /* of an attribute: elements of floats, ints, strings */
    const unsigned char *name;
    uint64_t name_bytes;
} frame;

typedef struct walk {
    onv_scan *scan;
    const onv_limits *limits;
    const unsigned char *start, *end; /* of the source */
    const unsigned char *at;
    frame *stack;
    uint32_t depth;
    onv_error *err;
} walk;

/* One field as its tag announces it. */
typedef struct item {
    const onv_field *field;
    const unsigned char *tag; /* where it starts */
    const char *message;      /* name of the message it stands in */
    uint32_t number;
    onv_wire_type type;
} item;

static const char *field_name(const item *it)
{
    return it->field->name != NULL ? it->field->name : "an unknown field";
}

static onv_status damaged(walk *w, const item *it, const char *what)
{
    return onv_fail(w->err, ONV_ERR_FORMAT, "damaged at byte %" PRIu64 ": %s.%s %s",
                    (uint64_t)(it->tag - w->start), it->message, field_name(it), what);
}

/* --- Writing the skeleton ---------------------------------------------------------------------- */

static onv_status put_bytes(walk *w, const void *data, size_t bytes)
{
    if (bytes > MOST_SKELETON_BYTES - w->scan->skeleton.count)
        return onv_fail(w->err, ONV_ERR_LIMIT,
                        "the model has more than 2 GiB besides the contents of its tensors");
    if (!onv_vec_reserve(&w->scan->skeleton, bytes)) return onv_fail_memory(w->err);
    if (bytes > 0) memcpy(w->scan->skeleton.at + w->scan->skeleton.count, data, bytes);
    w->scan->skeleton.count += bytes;
    return ONV_OK;
}

static onv_status put_varint(walk *w, uint64_t value)
{
    unsigned char text[ONV_VARINT_MOST_BYTES];
    size_t n = 0;
    do {
        text[n++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value != 0);
    return put_bytes(w, text, n);
}

static onv_status put_field(walk *w, uint32_t number, const void *data, size_t bytes)
{
    ONV_TRY(put_varint(w, (uint64_t)number << 3 | ONV_WIRE_BYTES));
    ONV_TRY(put_varint(w, bytes));
    return put_bytes(w, data, bytes);
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

static bool is_text(const unsigned char *p, size_t bytes)
{
    const unsigned char *end = p + bytes;
    while (p < end) {
        size_t n = utf8_sequence(p, end);
        if (n == 0) return false;
        p += n;
    }
    return true;
}

static onv_status keep_string(walk *w, const item *it, const unsigned char *data, uint64_t bytes)
{
    if (bytes > w->limits->name_bytes)
        return onv_fail(w->err, ONV_ERR_LIMIT,
                        "%s.%s of %" PRIu64 " bytes at byte %" PRIu64
                        "; the limit is %" PRIu64 ONV_RAISE("name-bytes"),
                        it->message, field_name(it), bytes, (uint64_t)(it->tag - w->start),
                        w->limits->name_bytes);
    if (!is_text(data, (size_t)bytes)) return damaged(w, it, "is not UTF-8 text");
    frame *top = &w->stack[w->depth - 1];
    if (top->message == ONV_MSG_ATTRIBUTE && it->number == 1) {
        top->name = data;
        top->name_bytes = bytes;
    }
    return put_field(w, it->number, data, (size_t)bytes);
}

static bool tells_of_call(const unsigned char *text, size_t bytes)
{
    return memmem(text, bytes, ONV_NOTE_LINEAR, sizeof ONV_NOTE_LINEAR - 1) != NULL ||
           memmem(text, bytes, ONV_NOTE_SLICE, sizeof ONV_NOTE_SLICE - 1) != NULL ||
           memmem(text, bytes, ONV_NOTE_DIV, sizeof ONV_NOTE_DIV - 1) != NULL ||
           memmem(text, bytes, ONV_NOTE_CLONE, sizeof ONV_NOTE_CLONE - 1) != NULL ||
           memmem(text, bytes, ONV_NOTE_SUB, sizeof ONV_NOTE_SUB - 1) != NULL ||
           (memmem(text, bytes, ONV_NOTE_SOFTMAX, sizeof ONV_NOTE_SOFTMAX - 1) != NULL &&
            memmem(text, bytes, ONV_NOTE_FLOAT32, sizeof ONV_NOTE_FLOAT32 - 1) != NULL);
}

static bool joins_pad(const unsigned char *text, size_t bytes)
{
    return memmem(text, bytes, ONV_NOTE_PAD, sizeof ONV_NOTE_PAD - 1) != NULL;
}

enum { MAX_LISTED = 64 };

/* Metadata decides nothing, so what is no plain key and value is dropped without a word. */
static bool is_note(const walk *w, const unsigned char *data, uint64_t bytes)
{
    static const char *const keys[] = {ONV_NOTE_SCOPES, ONV_NOTE_CLASSES, ONV_NOTE_ROLE,
                                       ONV_NOTE_TRACE,  ONV_NOTE_CALL,    ONV_NOTE_SIGNATURE,
                                       ONV_NOTE_RULES};
    /* That of a graph lists all parameters, in one text. */
    bool is_graph = w->stack[w->depth - 1].message == ONV_MSG_GRAPH;
    if (bytes / (is_graph ? MAX_LISTED : 1) > w->limits->name_bytes) return false;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const size_t length = strlen(keys[i]), head = 2 + length + 1;
        uint64_t value;
        if (bytes <= head || data[0] != 0x0a || data[1] != length || data[2 + length] != 0x12 ||
            memcmp(data + 2, keys[i], length) != 0)
            continue; /* fields 1 and 2 */
        const unsigned char *at = data + head, *end = data + bytes;
        return onv_varint_read(&at, end, &value) && value == (uint64_t)(end - at) &&
               (strcmp(keys[i], ONV_NOTE_RULES) != 0 || joins_pad(at, (size_t)value)) &&
               (strcmp(keys[i], ONV_NOTE_CALL) != 0 || tells_of_call(at, (size_t)value)) &&
               is_text(at, (size_t)value);
    }
    return false;
}

/* --- Lists of attributes ----------------------------------------------------------------------- */

enum { ATTR_FLOATS = 7, ATTR_STRINGS = 9, NODE_DOMAIN = 7 };

/* Whether the node that lies there is of ai.onnx.ml. Its domain stands behind its attributes. */
static bool is_learnt(const unsigned char *at, const unsigned char *end)
{
    static const char domain[] = "ai.onnx.ml";
    bool found = false;
    uint64_t tag, value;
    while (at < end && onv_varint_read(&at, end, &tag)) {
        if ((tag & 7) == ONV_WIRE_VARINT) {
            if (!onv_varint_read(&at, end, &value)) return false;
            continue;
        }
        value = (tag & 7) == ONV_WIRE_FIXED32 ? 4 : 8;
        if ((tag & 7) == ONV_WIRE_BYTES && !onv_varint_read(&at, end, &value)) return false;
        if (value > (uint64_t)(end - at)) return false;
        if (tag == (NODE_DOMAIN << 3 | ONV_WIRE_BYTES))
            found = value == sizeof domain - 1 && memcmp(at, domain, sizeof domain - 1) == 0;
        at += value;
    }
    return found;
}

/* Counts `more` elements of a list of an attribute, before anything is made of them; *keep says how many
 * of them go into the skeleton. Other messages have their numbers counted elsewhere. */
static onv_status count_list(walk *w, const item *it, uint64_t more, uint64_t *keep)
{
    frame *top = &w->stack[w->depth - 1];
    *keep = more;
    if (top->message != ONV_MSG_ATTRIBUTE || it->number < ATTR_FLOATS || it->number > ATTR_STRINGS)
        return ONV_OK;
    uint64_t *count = &top->lists[it->number - ATTR_FLOATS], before = *count;
    *count += more; /* each takes a byte of the file at least */
    uint64_t most = top->learnt ? UINT32_MAX : w->limits->attr_elems;
    if (*count > most)
        return onv_fail(w->err, ONV_ERR_LIMIT,
                        "attribute '%.*s' has more than %" PRIu64
                        " elements, the limit" ONV_RAISE("attr-elems"),
                        (int)top->name_bytes, (const char *)top->name, most);
    if (!top->learnt) return ONV_OK;
    uint64_t room = before < ONV_LEARNT_KEPT ? ONV_LEARNT_KEPT - before : 0;
    if (*keep > room) *keep = room;
    return ONV_OK;
}

/* Lists that were cut leave their counts where the skeleton has no other use. */
static onv_status mark_lists(walk *w)
{
    const uint64_t *lists = w->stack[w->depth - 1].lists;
    if (lists[0] <= ONV_LEARNT_KEPT && lists[1] <= ONV_LEARNT_KEPT && lists[2] <= ONV_LEARNT_KEPT)
        return ONV_OK;
    char text[3 * 21 + 1];
    int length = snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64 " %" PRIu64, lists[0], lists[1],
                          lists[2]);
    return put_field(w, ONV_FIELD_LIST_COUNTS, text, (size_t)length);
}

/* --- Numbers ----------------------------------------------------------------------------------- */

/* Packed varints: the last one must end with the field. */
static onv_status keep_packed_varints(walk *w, const item *it, const unsigned char *data,
                                      uint64_t bytes)
{
    const unsigned char *p = data, *end = data + bytes;
    uint64_t value, count = 0, keep;
    for (; p < end; count++)
        if (!onv_varint_read(&p, end, &value)) return damaged(w, it, "holds a broken number");
    ONV_TRY(count_list(w, it, count, &keep));
    if (keep < count)
        for (p = data; keep > 0; keep--) (void)onv_varint_read(&p, end, &value);
    return put_field(w, it->number, data, (size_t)(p - data));
}

static onv_status keep_packed_floats(walk *w, const item *it, const unsigned char *data,
                                     uint64_t bytes)
{
    uint64_t keep;
    if (bytes % 4 != 0) return damaged(w, it, "holds a broken number");
    ONV_TRY(count_list(w, it, bytes / 4, &keep));
    return put_field(w, it->number, data, (size_t)(4 * keep));
}

/* --- Payloads ---------------------------------------------------------------------------------- */

static onv_status add_chunk(walk *w, const item *it, const unsigned char *data, uint64_t bytes,
                            bool tagged)
{
    onv_scan *scan = w->scan;
    size_t first = w->stack[w->depth - 1].first_chunk;
    if (tagged && scan->chunks.count > first) {
        /* The next of a row of elements: one chunk for all, or the table could outgrow the file. */
        onv_chunk *last = &scan->chunks.at[scan->chunks.count - 1];
        if (last->tagged && last->field == it->number && last->data + last->bytes == data) {
            last->bytes += bytes;
            return ONV_OK;
        }
    }
    onv_chunk chunk = {
        .data = data, .bytes = bytes, .field = (uint8_t)it->number, .tagged = tagged};
    return onv_vec_push(&scan->chunks, chunk) ? ONV_OK : onv_fail_memory(w->err);
}

/* --- Messages ---------------------------------------------------------------------------------- */

static onv_status count_up(walk *w, uint64_t *counter, uint64_t limit, const char *what)
{
    if (++*counter <= limit) return ONV_OK;
    return onv_fail(w->err, ONV_ERR_LIMIT,
                    "the model has more than %" PRIu64 " %s, the limit; --limit %s=N raises it",
                    limit, what, what);
}

static onv_status count_field(walk *w, const item *it)
{
    onv_message message = w->stack[w->depth - 1].message;
    bool is_node = (message == ONV_MSG_GRAPH && it->number == 1) ||
                   (message == ONV_MSG_FUNCTION && it->number == 7);
    bool is_value =
        (message == ONV_MSG_GRAPH && (it->number == 5 || it->number == 11 || it->number == 15)) ||
        (message == ONV_MSG_NODE && it->number == 2);
    if (is_node) return count_up(w, &w->scan->nodes, w->limits->nodes, "nodes");
    if (is_value) return count_up(w, &w->scan->values, w->limits->values, "values");
    return ONV_OK;
}

static onv_status enter(walk *w, const item *it, uint64_t bytes)
{
    frame *top = &w->stack[w->depth - 1];
    if (it->field->use == ONV_USE_ONE) {
        if (top->seen & (uint32_t)1 << it->number) return damaged(w, it, "occurs twice");
        top->seen |= (uint32_t)1 << it->number;
    }
    if (w->depth == w->limits->nesting)
        return onv_fail(w->err, ONV_ERR_LIMIT,
                        "messages nested more than %" PRIu32
                        " deep, the limit (%s.%s at byte %" PRIu64 ")" ONV_RAISE("nesting"),
                        w->limits->nesting, it->message, field_name(it),
                        (uint64_t)(it->tag - w->start));
    static const unsigned char room[LENGTH_BYTES];
    ONV_TRY(put_varint(w, (uint64_t)it->number << 3 | ONV_WIRE_BYTES));
    w->stack[w->depth++] = (frame){
        .message = it->field->message,
        .end = w->at + bytes,
        .length_at = w->scan->skeleton.count,
        .first_chunk = w->scan->chunks.count,
        .learnt = it->field->message == ONV_MSG_NODE ? is_learnt(w->at, w->at + bytes)
                                                     : top->learnt && top->message == ONV_MSG_NODE,
    };
    return put_bytes(w, room, LENGTH_BYTES);
}

static onv_status leave(walk *w)
{
    onv_scan *scan = w->scan;
    const frame *top = &w->stack[w->depth - 1];
    if (top->message == ONV_MSG_TENSOR && scan->chunks.count > top->first_chunk) {
        onv_chunk_mark mark = {top->first_chunk, scan->chunks.count - top->first_chunk};
        ONV_TRY(put_field(w, ONV_FIELD_RAW_DATA, &mark, sizeof mark));
    }
    if (top->message == ONV_MSG_ATTRIBUTE) ONV_TRY(mark_lists(w));
    w->depth--;
    if (w->depth == 0) return ONV_OK; /* the root stands there without a length */
    size_t length = scan->skeleton.count - top->length_at - LENGTH_BYTES;
    unsigned char *to = scan->skeleton.at + top->length_at;
    for (int i = 0; i < LENGTH_BYTES; i++) {
        to[i] = (unsigned char)((length & 0x7f) | (i < LENGTH_BYTES - 1 ? 0x80 : 0));
        length >>= 7;
    }
    return ONV_OK;
}

/* --- Fields ------------------------------------------------------------------------------------ */

/* A value of wire type BYTES, from w->at on. */
static onv_status take_bytes(walk *w, const item *it, uint64_t bytes)
{
    const unsigned char *data = w->at;
    uint64_t keep;
    switch ((onv_field_use)it->field->use) {
    case ONV_USE_DROP: break;
    case ONV_USE_STRING: ONV_TRY(keep_string(w, it, data, bytes)); break;
    case ONV_USE_BYTES:
        /* Attributes may carry whole compiled engines as a string. Nothing reads more of one than
         * its head. */
        if (bytes > w->limits->name_bytes) bytes = w->limits->name_bytes;
        ONV_TRY(count_list(w, it, 1, &keep));
        if (keep == 0) return ONV_OK;
        return put_field(w, it->number, data, (size_t)bytes);
    case ONV_USE_VARINTS: ONV_TRY(keep_packed_varints(w, it, data, bytes)); break;
    case ONV_USE_FLOATS: ONV_TRY(keep_packed_floats(w, it, data, bytes)); break;
    case ONV_USE_NOTES:
        return is_note(w, data, bytes) ? put_field(w, it->number, data, (size_t)bytes) : ONV_OK;
    case ONV_USE_ONE:
    case ONV_USE_MANY:
    case ONV_USE_ONE_OF: return enter(w, it, bytes);
    case ONV_USE_RAW:
    case ONV_USE_PAYLOAD32:
    case ONV_USE_PAYLOAD64:
    case ONV_USE_PAYLOAD: ONV_TRY(add_chunk(w, it, data, bytes, false)); break;
    case ONV_USE_VARINT:
    case ONV_USE_FLOAT: return damaged(w, it, "has the wrong wire type");
    }
    return ONV_OK;
}

/* A value of another wire type, which ends at `end`. */
static onv_status take_number(walk *w, const item *it, const unsigned char *end)
{
    static const struct {
        onv_wire_type single;
        bool payload;
    } expected[] = {
        [ONV_USE_VARINT] = {ONV_WIRE_VARINT, false},
        [ONV_USE_VARINTS] = {ONV_WIRE_VARINT, false},
        [ONV_USE_FLOAT] = {ONV_WIRE_FIXED32, false},
        [ONV_USE_FLOATS] = {ONV_WIRE_FIXED32, false},
        [ONV_USE_STRING] = {ONV_WIRE_BYTES, false},
        [ONV_USE_BYTES] = {ONV_WIRE_BYTES, false},
        [ONV_USE_ONE] = {ONV_WIRE_BYTES, false},
        [ONV_USE_MANY] = {ONV_WIRE_BYTES, false},
        [ONV_USE_ONE_OF] = {ONV_WIRE_BYTES, false},
        [ONV_USE_NOTES] = {ONV_WIRE_BYTES, false},
        [ONV_USE_RAW] = {ONV_WIRE_BYTES, true},
        [ONV_USE_PAYLOAD32] = {ONV_WIRE_FIXED32, true},
        [ONV_USE_PAYLOAD64] = {ONV_WIRE_FIXED64, true},
        [ONV_USE_PAYLOAD] = {ONV_WIRE_VARINT, true},
    };
    onv_field_use use = it->field->use;
    if (use == ONV_USE_DROP) return ONV_OK;
    if (expected[use].single != it->type) return damaged(w, it, "has the wrong wire type");
    if (expected[use].payload) return add_chunk(w, it, it->tag, (uint64_t)(end - it->tag), true);
    uint64_t keep;
    ONV_TRY(count_list(w, it, 1, &keep));
    return keep == 0 ? ONV_OK : put_bytes(w, it->tag, (size_t)(end - it->tag));
}

/* Where a field that does not fit its message was cut: a file that simply ends too early is told
 * from one that contradicts itself. */
static onv_status overrun(walk *w, const item *it, uint64_t bytes)
{
    uint64_t left = (uint64_t)(w->end - w->at);
    if (bytes > left)
        return onv_fail(w->err, ONV_ERR_FORMAT,
                        "truncated: %s.%s at byte %" PRIu64 " has %" PRIu64
                        " bytes, but only %" PRIu64 " follow",
                        it->message, field_name(it), (uint64_t)(it->tag - w->start), bytes, left);
    return damaged(w, it, "is longer than the message it stands in");
}

static onv_status read_tag(walk *w, item *it)
{
    const frame *top = &w->stack[w->depth - 1];
    *it = (item){.tag = w->at, .message = onv_message_name(top->message)};
    uint64_t tag;
    if (!onv_varint_read(&w->at, top->end, &tag) || tag >> 3 == 0 ||
        tag >> 3 > ONV_FIELD_NUMBER_MOST || (tag & 7) > ONV_WIRE_FIXED32)
        return onv_fail(w->err, ONV_ERR_FORMAT, "damaged at byte %" PRIu64 ": no field of %s",
                        (uint64_t)(it->tag - w->start), it->message);
    it->number = (uint32_t)(tag >> 3);
    it->type = (onv_wire_type)(tag & 7);
    it->field = onv_message_field(top->message, it->number);
    return ONV_OK;
}

static onv_status walk_field(walk *w)
{
    item it;
    ONV_WORK(1);
    ONV_TRY(read_tag(w, &it));
    ONV_TRY(count_field(w, &it));
    const unsigned char *end = w->stack[w->depth - 1].end;
    uint64_t value = 0;
    switch (it.type) {
    case ONV_WIRE_VARINT:
        if (!onv_varint_read(&w->at, end, &value)) return damaged(w, &it, "holds a broken number");
        return take_number(w, &it, w->at);
    case ONV_WIRE_FIXED32:
    case ONV_WIRE_FIXED64:
        value = it.type == ONV_WIRE_FIXED32 ? 4 : 8;
        if (value > (uint64_t)(end - w->at)) return overrun(w, &it, value);
        w->at += value;
        return take_number(w, &it, w->at);
    case ONV_WIRE_BYTES: {
        if (!onv_varint_read(&w->at, end, &value)) return damaged(w, &it, "has a broken length");
        if (value > (uint64_t)(end - w->at)) return overrun(w, &it, value);
        uint32_t depth = w->depth;
        ONV_TRY(take_bytes(w, &it, value));
        if (w->depth == depth) w->at += value; /* else the walk goes on inside it */
        return ONV_OK;
    }
    case ONV_WIRE_GROUP_START:
    case ONV_WIRE_GROUP_END: return damaged(w, &it, "is a group, which ONNX does not have");
    }
    return ONV_OK;
}

static onv_status walk_all(walk *w, onv_message root)
{
    w->stack[w->depth++] = (frame){.message = root, .end = w->end};
    while (w->depth > 0) {
        if (w->at == w->stack[w->depth - 1].end) {
            ONV_TRY(leave(w));
        } else {
            ONV_TRY(walk_field(w));
        }
    }
    return ONV_OK;
}

onv_status onv_scan_run(onv_scan *scan, onv_scan_root root, const void *data, uint64_t bytes,
                        const onv_limits *limits, onv_error *err)
{
    *scan = (onv_scan){0};
    walk w = {
        .scan = scan,
        .limits = limits,
        .start = data,
        .at = data,
        .end = (const unsigned char *)data + bytes,
        .stack = onv_heap_calloc(limits->nesting, sizeof *w.stack),
        .err = err,
    };
    if (w.stack == NULL) return onv_fail_memory(err);
    onv_status status = walk_all(&w, root == ONV_SCAN_MODEL ? ONV_MSG_MODEL : ONV_MSG_TENSOR);
    onv_heap_free(w.stack);
    if (status != ONV_OK) onv_scan_cleanup(scan);
    return status;
}

void onv_scan_cleanup(onv_scan *scan)
{
    onv_vec_cleanup(&scan->skeleton);
    onv_vec_cleanup(&scan->chunks);
}

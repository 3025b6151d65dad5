#include "alloc/trace_csv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/heap.h"
#include "base/strings.h"

/* A field as it stands in the text, without its quotes. */
typedef struct field {
    const char *at;
    size_t bytes;
    bool doubled; /* holds "" for " */
} field;

/* --- Live ids ---------------------------------------------------------------------------------- */

/* An open-addressing table of the ids that are live; the names lie in the text. */
typedef struct live_id {
    const char *name; /* NULL: empty slot */
    size_t bytes;
    uint64_t hash;
    uint32_t number;
} live_id;

typedef struct live_ids {
    live_id *slots;
    size_t n_slots; /* a power of two, or 0 */
    size_t count;
    ONV_VEC(uint32_t) spare; /* numbers of freed ids */
    uint32_t n_numbers;
} live_ids;

static size_t find_id(const live_ids *ids, field name, uint64_t hash)
{
    size_t mask = ids->n_slots - 1, slot = hash & mask;
    for (; ids->slots[slot].name != NULL; slot = (slot + 1) & mask) {
        const live_id *id = &ids->slots[slot];
        if (id->hash == hash && id->bytes == name.bytes &&
            memcmp(id->name, name.at, name.bytes) == 0)
            break;
    }
    return slot;
}

static bool grow_ids(live_ids *ids)
{
    size_t n_slots = ids->n_slots == 0 ? 256 : ids->n_slots * 2;
    live_id *slots = onv_heap_calloc(n_slots, sizeof *slots);
    if (slots == NULL) return false;
    for (size_t i = 0; i < ids->n_slots; i++) {
        if (ids->slots[i].name == NULL) continue;
        size_t slot = ids->slots[i].hash & (n_slots - 1);
        while (slots[slot].name != NULL) slot = (slot + 1) & (n_slots - 1);
        slots[slot] = ids->slots[i];
    }
    onv_heap_free(ids->slots);
    ids->slots = slots;
    ids->n_slots = n_slots;
    return true;
}

/* Empties a slot and moves up what was pushed past it, so that no marks of the dead pile up. */
static void remove_slot(live_ids *ids, size_t hole)
{
    size_t mask = ids->n_slots - 1;
    for (size_t at = (hole + 1) & mask; ids->slots[at].name != NULL; at = (at + 1) & mask) {
        size_t home = ids->slots[at].hash & mask;
        if (((at - home) & mask) < ((at - hole) & mask)) continue;
        ids->slots[hole] = ids->slots[at];
        hole = at;
    }
    ids->slots[hole].name = NULL;
    ids->count--;
}

/* --- Reader ------------------------------------------------------------------------------------ */

enum { MAX_FIELDS = 6 };

typedef struct reader {
    const char *at, *end;
    uint64_t line; /* of the row that is being read */
    uint64_t next_line;
    live_ids ids;
    uint32_t step;
    ONV_VEC(char) label;
    onv_trace_take take;
    void *context;
} reader;

static onv_status bad(const reader *r, onv_error *err, const char *what)
{
    return onv_fail(err, ONV_ERR_FORMAT, "line %" PRIu64 ": %s", r->line, what);
}

/* Text for a message: not more of it than fits, and nothing a terminal would obey. */
static onv_status bad_field(const reader *r, onv_error *err, const char *what, field f)
{
    char shown[41];
    size_t n = f.bytes < sizeof shown - 1 ? f.bytes : sizeof shown - 1;
    for (size_t i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)f.at[i];
        shown[i] = f.at[i];
        if (byte < 0x20 || byte >= 0x7f) shown[i] = '?';
    }
    shown[n] = '\0';
    return onv_fail(err, ONV_ERR_FORMAT, "line %" PRIu64 ": %s '%s'%s", r->line, what, shown,
                    n < f.bytes ? "..." : "");
}

/* Whether a field ends here: a comma, the end of the line or of the text. */
static bool at_border(const reader *r, const char *p)
{
    return p == r->end || *p == ',' || *p == '\n' ||
           (*p == '\r' && p + 1 != r->end && p[1] == '\n');
}

static onv_status read_quoted(reader *r, field *f, onv_error *err)
{
    const char *p = r->at + 1;
    *f = (field){.at = p};
    for (;; p++) {
        if (p == r->end) return bad(r, err, "a quote is not closed");
        if (*p == '\n') r->next_line++;
        if (*p == '\0') return bad(r, err, "a NUL byte");
        if (*p != '"') continue;
        if (p + 1 == r->end || p[1] != '"') break;
        f->doubled = true;
        p++;
    }
    f->bytes = (size_t)(p - f->at);
    r->at = p + 1;
    if (!at_border(r, r->at)) return bad(r, err, "text after a closing quote");
    return ONV_OK;
}

static onv_status read_field(reader *r, field *f, onv_error *err)
{
    if (r->at != r->end && *r->at == '"') return read_quoted(r, f, err);
    const char *p = r->at;
    for (; !at_border(r, p); p++) {
        if (*p == '"') return bad(r, err, "a quote inside of a field that does not start with one");
        if (*p == '\0') return bad(r, err, "a NUL byte");
        if (*p == '\r') return bad(r, err, "a carriage return without a line feed");
    }
    *f = (field){.at = r->at, .bytes = (size_t)(p - r->at)};
    r->at = p;
    return ONV_OK;
}

/* A row of at most MAX_FIELDS; the position is then at the next line. */
static onv_status read_row(reader *r, field *fields, size_t *count, onv_error *err)
{
    r->line = r->next_line++;
    for (*count = 0;;) {
        if (*count == MAX_FIELDS) return bad(r, err, "more than 6 fields");
        ONV_TRY(read_field(r, &fields[*count], err));
        ++*count;
        if (r->at == r->end) return ONV_OK;
        if (*r->at != ',') break;
        r->at++;
    }
    r->at += *r->at == '\r' ? 2 : 1;
    return ONV_OK;
}

static bool field_is(field f, const char *text)
{
    return f.bytes == strlen(text) && memcmp(f.at, text, f.bytes) == 0;
}

/* Decimal digits, at most `limit`. */
static onv_status read_number(const reader *r, field f, const char *what, uint64_t limit,
                              uint64_t *number, onv_error *err)
{
    char text[64];
    *number = 0;
    if (f.bytes == 0) {
        snprintf(text, sizeof text, "%s is missing", what);
        return bad(r, err, text);
    }
    for (size_t i = 0; i < f.bytes; i++) {
        unsigned digit = (unsigned)(f.at[i] - '0');
        if (digit > 9) {
            snprintf(text, sizeof text, "%s is not a number without sign:", what);
            return bad_field(r, err, text, f);
        }
        if (!onv_u64_mul(*number, 10, number) || !onv_u64_add(*number, digit, number) ||
            *number > limit)
            return onv_fail(err, ONV_ERR_LIMIT, "line %" PRIu64 ": %s is more than %" PRIu64,
                            r->line, what, limit);
    }
    return ONV_OK;
}

/* The label as a string, in the reader's buffer. */
static onv_status read_label(reader *r, field f, const char **label, onv_error *err)
{
    r->label.count = 0;
    if (!onv_vec_reserve(&r->label, f.bytes + 1)) return onv_fail_memory(err);
    for (size_t i = 0; i < f.bytes; i++) {
        r->label.at[r->label.count++] = f.at[i];
        if (f.at[i] == '"') i++; /* the second of two */
    }
    r->label.at[r->label.count] = '\0';
    *label = r->label.at;
    return ONV_OK;
}

static onv_status read_alloc(reader *r, const field *fields, size_t count, onv_trace_event *event,
                             onv_error *err)
{
    if (count < 3) return bad(r, err, "expected alloc,ID,BYTES");
    uint64_t number;
    ONV_TRY(read_number(r, fields[2], "BYTES", ONV_ALLOC_MAX_BYTES, &event->bytes, err));
    if (count > 3 && (fields[3].bytes > 0 || count == 4)) {
        ONV_TRY(read_number(r, fields[3], "STEP", UINT32_MAX, &number, err));
        r->step = (uint32_t)number;
    }
    if (count > 4 && fields[4].bytes > 0) ONV_TRY(read_label(r, fields[4], &event->label, err));
    if (count > 5) {
        ONV_TRY(read_number(r, fields[5], "STREAM", ONV_N_STREAMS - 1, &number, err));
        event->stream = (uint8_t)number;
    }

    live_ids *ids = &r->ids;
    if (ids->count * 2 >= ids->n_slots && !grow_ids(ids)) return onv_fail_memory(err);
    uint64_t hash = onv_hash_bytes(fields[1].at, fields[1].bytes, 0);
    size_t slot = find_id(ids, fields[1], hash);
    if (ids->slots[slot].name != NULL)
        return bad_field(r, err, "allocated twice without a free: id", fields[1]);
    event->id = ids->spare.count > 0 ? ids->spare.at[--ids->spare.count] : ids->n_numbers++;
    ids->slots[slot] = (live_id){fields[1].at, fields[1].bytes, hash, event->id};
    ids->count++;
    return ONV_OK;
}

static onv_status read_free(reader *r, const field *fields, size_t count, onv_trace_event *event,
                            onv_error *err)
{
    if (count != 2) return bad(r, err, "expected free,ID");
    event->is_free = true;
    live_ids *ids = &r->ids;
    size_t slot = 0;
    if (ids->n_slots > 0) {
        uint64_t hash = onv_hash_bytes(fields[1].at, fields[1].bytes, 0);
        slot = find_id(ids, fields[1], hash);
    }
    if (ids->n_slots == 0 || ids->slots[slot].name == NULL)
        return bad_field(r, err, "freed but not allocated: id", fields[1]);
    event->id = ids->slots[slot].number;
    remove_slot(ids, slot);
    if (!onv_vec_push(&ids->spare, event->id)) return onv_fail_memory(err);
    return ONV_OK;
}

static onv_status read_event(reader *r, onv_error *err)
{
    field fields[MAX_FIELDS] = {0};
    size_t count;
    ONV_TRY(read_row(r, fields, &count, err));
    if (count == 1 && fields[0].bytes == 0) return bad(r, err, "an empty line");
    onv_trace_event event = {0};
    bool is_alloc = field_is(fields[0], "alloc");
    if (!is_alloc && !field_is(fields[0], "free"))
        return bad_field(r, err, "expected alloc or free, not", fields[0]);
    if (count < 2 || fields[1].bytes == 0) return bad(r, err, "ID is missing");
    if (is_alloc)
        ONV_TRY(read_alloc(r, fields, count, &event, err));
    else
        ONV_TRY(read_free(r, fields, count, &event, err));
    event.step = r->step;
    return r->take(r->context, &event, err);
}

onv_status onv_trace_csv_scan(const char *text, size_t bytes, onv_trace_take take, void *context,
                              uint32_t *n_ids, onv_error *err)
{
    if (bytes == 0) text = ""; /* it may be NULL, to which not even 0 may be added */
    reader r = {.at = text, .end = text + bytes, .next_line = 1, .take = take, .context = context};
    onv_status status = ONV_OK;
    while (r.at != r.end && status == ONV_OK) status = read_event(&r, err);
    if (n_ids != NULL) *n_ids = r.ids.n_numbers;
    onv_heap_free(r.ids.slots);
    onv_vec_cleanup(&r.ids.spare);
    onv_vec_cleanup(&r.label);
    return status;
}

#include "alloc/trace_csv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/csv.h"
#include "base/fail.h"
#include "base/heap.h"
#include "base/strings.h"

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

/* The slot of an id, or the empty one where it belongs, with its hash. The table is never full. */
static live_id *find_id(const live_ids *ids, onv_csv_field name)
{
    uint64_t hash = onv_hash_bytes(name.at, name.bytes, 0);
    size_t mask = ids->n_slots - 1, slot = hash & mask;
    for (; ids->slots[slot].name != NULL; slot = (slot + 1) & mask) {
        live_id *id = &ids->slots[slot];
        if (id->hash == hash && id->bytes == name.bytes &&
            memcmp(id->name, name.at, name.bytes) == 0)
            return id;
    }
    ids->slots[slot].hash = hash;
    return &ids->slots[slot];
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
    onv_csv csv;
    live_ids ids;
    uint32_t step;
    ONV_VEC(char) label;
    onv_trace_take take;
    void *context;
} reader;

static onv_status bad(const reader *r, onv_error *err, const char *what)
{
    return onv_fail(err, ONV_ERR_FORMAT, "line %zu: %s", r->csv.line, what);
}

/* Text for a message: not more of it than fits, and nothing a terminal would obey. */
static onv_status bad_field(const reader *r, onv_error *err, const char *what, onv_csv_field f)
{
    char shown[41];
    size_t n = f.bytes < sizeof shown - 1 ? f.bytes : sizeof shown - 1;
    for (size_t i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)f.at[i];
        shown[i] = f.at[i];
        if (byte < 0x20 || byte >= 0x7f) shown[i] = '?';
    }
    shown[n] = '\0';
    return onv_fail(err, ONV_ERR_FORMAT, "line %zu: %s '%s'%s", r->csv.line, what, shown,
                    n < f.bytes ? "..." : "");
}

/* A row of at most MAX_FIELDS, without their quotes; the position is then at the next line. */
static onv_status read_row(reader *r, onv_csv_field *fields, size_t *count, onv_error *err)
{
    static const char *const faults[ONV_CSV_N_FAULTS] = {
        [ONV_CSV_OPEN] = "a quote is not closed",
        [ONV_CSV_AFTER] = "text after a closing quote",
        [ONV_CSV_INSIDE] = "a quote inside of a field that does not start with one",
        [ONV_CSV_ZERO] = "a NUL byte",
        [ONV_CSV_RETURN] = "a carriage return without a line feed",
    };
    onv_csv_field f = {0};
    for (*count = 0; !f.last; fields[(*count)++] = f) {
        if (*count == MAX_FIELDS) return bad(r, err, "more than 6 fields");
        onv_csv_fault fault = onv_csv_next(&r->csv, &f);
        bool quoted = f.bytes > 0 && *f.at == '"'; /* of a whole field: behind it "\r" is text */
        if (fault != ONV_CSV_GOOD) return bad(r, err, faults[quoted ? ONV_CSV_AFTER : fault]);
        if (!quoted) continue;
        f.at++;
        f.bytes -= 2;
    }
    return ONV_OK;
}

static bool field_is(onv_csv_field f, const char *text)
{
    return f.bytes == strlen(text) && memcmp(f.at, text, f.bytes) == 0;
}

/* Decimal digits, at most `limit`. */
static onv_status read_number(const reader *r, onv_csv_field f, const char *what, uint64_t limit,
                              uint64_t *number, onv_error *err)
{
    char text[64];
    onv_status status = onv_csv_number(f, limit, number);
    if (status == ONV_ERR_LIMIT)
        return onv_fail(err, status, "line %zu: %s is more than %" PRIu64, r->csv.line, what,
                        limit);
    if (status == ONV_OK) return ONV_OK;
    bool missing = f.bytes == 0;
    snprintf(text, sizeof text, "%s is %s", what,
             missing ? "missing" : "not a number without sign:");
    return missing ? bad(r, err, text) : bad_field(r, err, text, f);
}

/* The label as a string, in the reader's buffer. */
static onv_status read_label(reader *r, onv_csv_field f, const char **label, onv_error *err)
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

static onv_status read_alloc(reader *r, const onv_csv_field *fields, size_t count,
                             onv_trace_event *event, onv_error *err)
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
    live_id *id = find_id(ids, fields[1]);
    if (id->name != NULL) return bad_field(r, err, "allocated twice without a free: id", fields[1]);
    event->id = ids->spare.count > 0 ? ids->spare.at[--ids->spare.count] : ids->n_numbers++;
    *id = (live_id){fields[1].at, fields[1].bytes, id->hash, event->id};
    ids->count++;
    return ONV_OK;
}

static onv_status read_free(reader *r, const onv_csv_field *fields, size_t count,
                            onv_trace_event *event, onv_error *err)
{
    if (count != 2) return bad(r, err, "expected free,ID");
    event->is_free = true;
    live_ids *ids = &r->ids;
    live_id *id = find_id(ids, fields[1]);
    if (id->name == NULL) return bad_field(r, err, "freed but not allocated: id", fields[1]);
    event->id = id->number;
    remove_slot(ids, (size_t)(id - ids->slots));
    if (!onv_vec_push(&ids->spare, event->id)) return onv_fail_memory(err);
    return ONV_OK;
}

static onv_status read_event(reader *r, onv_error *err)
{
    onv_csv_field fields[MAX_FIELDS] = {0};
    size_t count;
    ONV_TRY(read_row(r, fields, &count, err));
    if (count == 1 && fields[0].bytes == 0) return bad(r, err, "an empty line");
    onv_trace_event event = {0};
    bool is_alloc = field_is(fields[0], "alloc");
    if (!is_alloc && !field_is(fields[0], "free"))
        return bad_field(r, err, "expected alloc or free, not", fields[0]);
    if (count < 2 || fields[1].bytes == 0) return bad(r, err, "ID is missing");
    if (r->ids.count * 2 >= r->ids.n_slots && !grow_ids(&r->ids)) return onv_fail_memory(err);
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
    reader r = {.csv = {.at = text, .end = text + bytes, .quotes = ONV_CSV_TEXT_QUOTES},
                .take = take,
                .context = context};
    onv_status status = ONV_OK;
    while (r.csv.at != r.csv.end && status == ONV_OK) status = read_event(&r, err);
    if (n_ids != NULL) *n_ids = r.ids.n_numbers;
    onv_heap_free(r.ids.slots);
    onv_vec_cleanup(&r.ids.spare);
    onv_vec_cleanup(&r.label);
    return status;
}

#include "fuzz/mutate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/schema.h"
#include "fuzz/words.h"
#include "load/wire.h"

/* --- Drawing ----------------------------------------------------------------------------------- */

uint64_t fuzz_next(fuzz_random *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

size_t fuzz_below(fuzz_random *random, size_t bound)
{
    return bound > 0 ? (size_t)(fuzz_next(random) % bound) : 0;
}

/* --- Picking a field --------------------------------------------------------------------------- */

typedef struct pick {
    fuzz_random *random;
    int kind, message, of;     /* what is wanted; -1: any */
    const fuzz_field_row *row; /* NULL: any */
    size_t seen;
    fuzz_field field;
    fuzz_path around;
} pick;

static void consider(void *context, const fuzz_field *field, const fuzz_path *around)
{
    pick *p = context;
    const fuzz_field_row *row = field->row;
    if (p->row != NULL && p->row != row) return;
    if (p->kind >= 0 && row->kind != p->kind) return;
    if (p->message >= 0 && row->message != p->message) return;
    if (p->of >= 0 && (row->kind != KIND_MESSAGE || row->of != p->of)) return;
    if (fuzz_below(p->random, ++p->seen) != 0) return;
    p->field = *field;
    p->around.depth = around->depth;
    memcpy(p->around.at, around->at, around->depth * sizeof around->at[0]);
}

static void pick_init(pick *p, fuzz_random *random)
{
    p->random = random;
    p->kind = p->message = p->of = -1;
    p->row = NULL;
    p->seen = 0;
    p->around.depth = 0;
}

/* Any of those that fit, each as likely as the others. */
static bool pick_from(pick *p, const uint8_t *data, size_t size)
{
    p->seen = 0;
    if (data != NULL) fuzz_walk(data, size, consider, p);
    return p->seen > 0;
}

/* --- Changing the file ------------------------------------------------------------------------- */

typedef struct file {
    uint8_t *data;
    size_t size, capacity;
    const uint8_t *donor;
    size_t donor_size;
    fuzz_random *random;
} file;

typedef struct bytes {
    uint8_t *at;
    size_t size, capacity;
} bytes;

static void put(bytes *b, const void *data, size_t size)
{
    if (size > b->capacity - b->size) {
        b->capacity = (b->size + size) * 2 + 64;
        b->at = realloc(b->at, b->capacity);
        if (b->at == NULL) abort();
    }
    if (size > 0) memcpy(b->at + b->size, data, size);
    b->size += size;
}

static void put_varint(bytes *b, uint64_t value)
{
    uint8_t coded[10];
    put(b, coded, fuzz_put_varint(coded, value));
}

static void put_tagged(bytes *b, uint64_t number, const void *data, size_t size)
{
    put_varint(b, number << 3 | ONV_WIRE_BYTES);
    put_varint(b, size);
    put(b, data, size);
}

static void put_number(bytes *b, uint64_t number, uint64_t value)
{
    put_varint(b, number << 3 | ONV_WIRE_VARINT);
    put_varint(b, value);
}

static void put_message(bytes *b, uint64_t number, bytes *message)
{
    put_tagged(b, number, message->at, message->size);
    free(message->at);
    *message = (bytes){0};
}

static void move_tail(file *f, size_t from, size_t to)
{
    memmove(f->data + to, f->data + from, f->size - from);
    f->size = f->size - from + to;
}

/* Puts b in the place of [start, end), and new lengths before all messages around it. Frees b. */
static void replace(file *f, const fuzz_path *around, size_t start, size_t end, bytes *b)
{
    /* Ten bytes for every length that grows. */
    if (b->size + 10 * around->depth <= f->capacity - f->size) {
        move_tail(f, end, start + b->size);
        if (b->size > 0) memcpy(f->data + start, b->at, b->size);
        ptrdiff_t more = (ptrdiff_t)b->size - (ptrdiff_t)(end - start);
        for (size_t i = around->depth; i-- > 0;) {
            const fuzz_field *outer = &around->at[i];
            uint8_t coded[10];
            uint64_t tag;
            const unsigned char *p = f->data + outer->start;
            if (!onv_varint_read(&p, f->data + f->size, &tag)) break;
            size_t at = (size_t)(p - f->data);
            size_t length = (size_t)((ptrdiff_t)(outer->end - outer->value) + more);
            size_t n = fuzz_put_varint(coded, length);
            move_tail(f, outer->value, at + n);
            memcpy(f->data + at, coded, n);
            more += (ptrdiff_t)n - (ptrdiff_t)(outer->value - at);
        }
    }
    free(b->at);
    *b = (bytes){0};
}

/* --- New values -------------------------------------------------------------------------------- */

static bool is_wire(const file *f, const fuzz_field *field, onv_wire_type wire)
{
    return (f->data[field->start] & 7) == wire;
}

static void new_number(file *f, const fuzz_field *field, bytes *b)
{
    const unsigned char *p = f->data + field->value;
    uint64_t value = 0;
    (void)onv_varint_read(&p, f->data + field->end, &value);
    switch (fuzz_below(f->random, 6)) {
    case 0: value++; break;
    case 1: value--; break;
    case 2: value *= 2; break;
    case 3: value ^= UINT64_C(1) << fuzz_below(f->random, 64); break;
    default: value = fuzz_interesting(f->random); break;
    }
    put_varint(b, value);
}

static void new_float(file *f, bytes *b)
{
    static const float values[] = {0.0f, -0.0f, 1.0f, -1.0f, 0.5f, 2.0f, 1e30f, -1e30f, 1e-30f};
    float value = ONE_OF(f->random, values);
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (fuzz_below(f->random, 4) == 0) bits = (uint32_t)fuzz_next(f->random); /* NaNs, infinities */
    put(b, &bits, sizeof bits);
}

/* Another name of the file or of the donor; odd ones now and then. */
static void new_name(file *f, const fuzz_field *field, bytes *b)
{
    if (fuzz_below(f->random, 4) == 0) {
        const char *name = fuzz_odd_name(f->random);
        put(b, name, strlen(name));
        if (fuzz_below(f->random, 64) == 0)
            for (size_t n = fuzz_below(f->random, 2000); n > 0; n--) put(b, "name", 4);
        return;
    }
    pick *p = malloc(sizeof *p);
    if (p == NULL) abort();
    pick_init(p, f->random);
    static const int holders[] = {MSG_NODE, MSG_NODE, MSG_VALUE_INFO, MSG_TENSOR};
    p->kind = KIND_NAME;
    if (field == NULL)
        p->message = ONE_OF(f->random, holders);
    else if (fuzz_below(f->random, 2) == 0)
        p->row = field->row;
    bool other = f->donor != NULL && fuzz_below(f->random, 8) == 0;
    const uint8_t *from = other ? f->donor : f->data;
    if (pick_from(p, from, other ? f->donor_size : f->size))
        put(b, from + p->field.value, p->field.end - p->field.value);
    free(p);
}

/* Payloads: most are 8-byte integers or dims in some coding. */
static void new_payload(file *f, const fuzz_field *field, bytes *b)
{
    put(b, f->data + field->value, field->end - field->value);
    switch (fuzz_below(f->random, 5)) {
    case 0: b->size = fuzz_below(f->random, b->size + 1); break;
    case 1: put_varint(b, fuzz_interesting(f->random)); break;
    case 2: {
        uint64_t value = fuzz_interesting(f->random);
        if (b->size < 8)
            put(b, &value, 8);
        else
            memcpy(b->at + fuzz_below(f->random, b->size / 8) * 8, &value, 8);
        break;
    }
    case 3:
        if (b->size > 0) b->at[fuzz_below(f->random, b->size)] ^= 1u << fuzz_below(f->random, 8);
        break;
    default: {
        size_t more = fuzz_below(f->random, 64);
        for (size_t i = 0; i < more; i++) put(b, &(uint8_t){(uint8_t)fuzz_next(f->random)}, 1);
    }
    }
}

/* Another message of the same type. */
static void new_message(file *f, const fuzz_field *field, bytes *b)
{
    pick *p = malloc(sizeof *p);
    if (p == NULL) abort();
    pick_init(p, f->random);
    p->of = field->row->of;
    bool other = f->donor != NULL && fuzz_below(f->random, 2) == 0;
    const uint8_t *from = other ? f->donor : f->data;
    if (pick_from(p, from, other ? f->donor_size : f->size))
        put(b, from + p->field.value, p->field.end - p->field.value);
    free(p);
}

static void change_value(file *f, const pick *p)
{
    const fuzz_field *field = &p->field;
    bytes value = {0}, whole = {0};
    if (is_wire(f, field, ONV_WIRE_VARINT)) {
        new_number(f, field, &value);
        replace(f, &p->around, field->value, field->end, &value);
        return;
    }
    if (is_wire(f, field, ONV_WIRE_FIXED32)) {
        new_float(f, &value);
        replace(f, &p->around, field->value, field->end, &value);
        return;
    }
    if (!is_wire(f, field, ONV_WIRE_BYTES)) return;
    const char *domain, *name = NULL;
    switch ((fuzz_kind)field->row->kind) {
    case KIND_OP: {
        const onv_op *op = fuzz_any_operator(f->random, &domain);
        name = op != NULL ? op->name : "";
        break;
    }
    case KIND_ATTR: name = fuzz_attribute_name(f->random); break;
    case KIND_NAME: new_name(f, field, &value); break;
    case KIND_MESSAGE: new_message(f, field, &value); break;
    case KIND_NUMBER:
    case KIND_FLOAT:
    case KIND_BYTES:
    case N_KINDS: new_payload(f, field, &value); break;
    }
    if (name != NULL) put(&value, name, strlen(name));
    put_message(&whole, field->row->number, &value);
    replace(f, &p->around, field->start, field->end, &whole);
}

/* --- Structure --------------------------------------------------------------------------------- */

static void remove_field(file *f, const pick *p)
{
    bytes none = {0};
    replace(f, &p->around, p->field.start, p->field.end, &none);
}

static void repeat_field(file *f, const pick *p)
{
    bytes copies = {0};
    size_t times = fuzz_below(f->random, 32) == 0 ? 300 : 1 + fuzz_below(f->random, 3);
    for (; times > 0 && copies.size < 65536; times--)
        put(&copies, f->data + p->field.start, p->field.end - p->field.start);
    replace(f, &p->around, p->field.end, p->field.end, &copies);
}

/* Moves a field to another place of the same kind of message: nodes change their order, inputs
 * their node. */
static void move_field(file *f, pick *p)
{
    bytes copy = {0};
    const fuzz_field_row *row = p->field.row;
    put(&copy, f->data + p->field.start, p->field.end - p->field.start);
    remove_field(f, p);
    pick_init(p, f->random);
    p->row = row;
    if (pick_from(p, f->data, f->size))
        replace(f, &p->around, p->field.start, p->field.start, &copy);
    free(copy.at);
}

/* A field from the donor, or from here, into a message that may hold it. */
static void insert_field(file *f, pick *p)
{
    bytes copy = {0};
    bool other = f->donor != NULL && fuzz_below(f->random, 2) == 0;
    const uint8_t *from = other ? f->donor : f->data;
    pick_init(p, f->random);
    if (!pick_from(p, from, other ? f->donor_size : f->size)) return;
    put(&copy, from + p->field.start, p->field.end - p->field.start);
    int message = p->field.row->message;
    pick_init(p, f->random);
    p->of = message;
    if (pick_from(p, f->data, f->size)) {
        p->around.at[p->around.depth++] = p->field;
        replace(f, &p->around, p->field.end, p->field.end, &copy);
    }
    free(copy.at);
}

static void put_attribute(file *f, bytes *node)
{
    /* Number in AttributeProto and the type it stands for. */
    static const uint8_t kinds[][2] = {{3, 2}, {3, 2}, {8, 7}, {8, 7},
                                       {8, 7}, {2, 1}, {4, 3}, {7, 6}};
    bytes attribute = {0}, text = {0};
    const uint8_t *kind = ONE_OF(f->random, kinds);
    const char *name = fuzz_attribute_name(f->random);
    put_tagged(&attribute, 1, name, strlen(name));
    put_number(&attribute, 20, kind[1]);
    switch (kind[0]) {
    case 3: put_number(&attribute, 3, fuzz_interesting(f->random)); break;
    case 8:
        for (size_t n = fuzz_below(f->random, 7); n > 0; n--)
            put_number(&attribute, 8, fuzz_interesting(f->random));
        break;
    case 4:
        new_name(f, NULL, &text);
        put_message(&attribute, 4, &text);
        break;
    default:
        for (size_t n = kind[0] == 2 ? 1 : fuzz_below(f->random, 7); n > 0; n--) {
            put_varint(&attribute, (uint64_t)kind[0] << 3 | ONV_WIRE_FIXED32);
            new_float(f, &attribute);
        }
    }
    put_message(node, 5, &attribute);
}

/* A node of any operator, with inputs from the file, into a graph or function. */
static void insert_node(file *f, pick *p)
{
    const char *domain;
    const onv_op *op = fuzz_any_operator(f->random, &domain);
    if (op == NULL) return;
    bytes node = {0}, name = {0}, field = {0};
    size_t least = (size_t)op->in.min, most = (size_t)op->in.max;
    if (most > least + 4) most = least + 4;
    for (size_t n = least + fuzz_below(f->random, most - least + 1); n > 0 && least < 64; n--) {
        new_name(f, NULL, &name);
        put_message(&node, 1, &name);
    }
    for (int16_t n = op->out.min > 0 ? op->out.min : 1; n > 0; n--) {
        char text[24];
        int length = snprintf(text, sizeof text, "f%u", (unsigned)fuzz_below(f->random, 100000));
        put_tagged(&node, 2, text, (size_t)length);
    }
    put_tagged(&node, 4, op->name, strlen(op->name));
    put_tagged(&node, 7, domain, strlen(domain));
    for (size_t n = fuzz_below(f->random, 4); n > 0; n--) put_attribute(f, &node);
    bool in_function = fuzz_below(f->random, 8) == 0;
    pick_init(p, f->random);
    p->of = in_function ? MSG_FUNCTION : MSG_GRAPH;
    put_message(&field, in_function ? 7 : 1, &node);
    if (pick_from(p, f->data, f->size)) {
        p->around.at[p->around.depth++] = p->field;
        size_t at = fuzz_below(f->random, 4) == 0 ? p->field.value : p->field.end;
        replace(f, &p->around, at, at, &field);
    }
    free(field.at);
}

/* --- All of it --------------------------------------------------------------------------------- */

/* Kinds first, then fields of the kind: most fields of a file are names. */
static bool pick_target(file *f, pick *p)
{
    pick_init(p, f->random);
    p->kind = (int)fuzz_below(f->random, N_KINDS + 2) - 2;
    if (p->kind < 0) p->kind = p->kind == -1 ? KIND_MESSAGE : -1;
    if (pick_from(p, f->data, f->size)) return true;
    p->kind = -1;
    return pick_from(p, f->data, f->size);
}

size_t fuzz_mutate_model(uint8_t *data, size_t size, size_t capacity, const uint8_t *donor,
                         size_t donor_size, fuzz_random *random)
{
    if (size > capacity) size = capacity;
    file f = {data, size, capacity, donor, donor_size, random};
    pick *p = malloc(sizeof *p);
    if (p == NULL) abort();
    size_t what = fuzz_below(random, 20);
    if (what < 6)
        insert_node(&f, p);
    else if (what == 6)
        insert_field(&f, p);
    else if (what == 7)
        f.size = fuzz_mutate_bytes(data, size, capacity, donor, donor_size, random);
    else if (!pick_target(&f, p))
        f.size = fuzz_mutate_bytes(data, size, capacity, donor, donor_size, random);
    else if (what < 10)
        remove_field(&f, p);
    else if (what < 12)
        repeat_field(&f, p);
    else if (what < 14 && p->field.row != NULL)
        move_field(&f, p);
    else
        change_value(&f, p);
    free(p);
    return f.size;
}

size_t fuzz_mutate_bytes(uint8_t *data, size_t size, size_t capacity, const uint8_t *donor,
                         size_t donor_size, fuzz_random *random)
{
    file f = {.data = data, .size = size, .capacity = capacity, .random = random};
    fuzz_path nowhere = {.depth = 0};
    size_t at = fuzz_below(random, size + 1), end = at + fuzz_below(random, size - at + 1);
    if (end - at > 4096) end = at + 4096;
    bytes b = {0};
    char number[32];
    switch (fuzz_below(random, 6)) {
    case 0: f.size = at; break;
    case 1: replace(&f, &nowhere, at, end, &b); break;
    case 2: /* a range again, elsewhere; or one of the donor */
        if (donor != NULL && fuzz_below(random, 2) == 0) {
            at = fuzz_below(random, donor_size + 1);
            end = at + fuzz_below(random, donor_size - at + 1);
            put(&b, donor + at, end - at < 4096 ? end - at : 4096);
        } else {
            put(&b, data + at, end - at);
        }
        at = fuzz_below(random, size + 1);
        replace(&f, &nowhere, at, at, &b);
        break;
    case 3:
        put(&b, number,
            (size_t)snprintf(number, sizeof number, "%llu",
                             (unsigned long long)fuzz_interesting(random)));
        replace(&f, &nowhere, at, fuzz_below(random, 2) == 0 && at < size ? at + 1 : at, &b);
        break;
    default:
        for (size_t n = 1 + fuzz_below(random, 8); n > 0 && size > 0; n--)
            data[fuzz_below(random, size)] ^= 1u << fuzz_below(random, 8);
    }
    return f.size;
}

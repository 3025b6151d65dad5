#include "snapshot/pickle.h"

#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "base/vec.h"

typedef struct reader {
    const unsigned char *at, *end, *begin;
    onv_arena *arena;
    ONV_VEC(onv_pickled) stack;
    ONV_VEC(onv_pickled) memo;
    onv_error *err;
} reader;

static onv_status damaged(const reader *r, const char *what)
{
    return onv_fail(r->err, ONV_ERR_FORMAT, "a pickle, but %s at byte %zu", what,
                    (size_t)(r->at - r->begin));
}

/* --- Bytes ------------------------------------------------------------------------------------- */

/* A little-endian number of `n` bytes, up to 8. */
static onv_status take_number(reader *r, unsigned n, uint64_t *number)
{
    *number = 0;
    if ((size_t)(r->end - r->at) < n) return damaged(r, "it ends too early,");
    for (unsigned i = 0; i < n; i++) *number |= (uint64_t)*r->at++ << (8 * i);
    return ONV_OK;
}

/* Text or bytes whose length is written in `n` bytes before them. */
static onv_status take_text(reader *r, unsigned n, onv_pickled_type type, onv_pickled *value)
{
    uint64_t length;
    ONV_TRY(take_number(r, n, &length));
    if (length > (uint64_t)(r->end - r->at) || length > UINT32_MAX)
        return damaged(r, "text is longer than the file");
    *value = (onv_pickled){.type = type, .length = (uint32_t)length, .text = (const char *)r->at};
    r->at += length;
    return ONV_OK;
}

/* In two's complement, of as many bytes as it takes. */
static onv_status take_long(reader *r, onv_pickled *value)
{
    uint64_t n, bits;
    ONV_TRY(take_number(r, 1, &n));
    if (n > (uint64_t)(r->end - r->at)) return damaged(r, "a number is longer than the file");
    *value = (onv_pickled){.type = n <= 8 ? ONV_PICKLED_INTEGER : ONV_PICKLED_OTHER};
    if (n > 8) {
        r->at += n;
        return ONV_OK;
    }
    ONV_TRY(take_number(r, (unsigned)n, &bits));
    if (n > 0 && n < 8 && (bits >> (8 * n - 1)) != 0) bits |= UINT64_MAX << (8 * n);
    memcpy(&value->integer, &bits, sizeof bits);
    return ONV_OK;
}

/* --- The stack --------------------------------------------------------------------------------- */

static onv_status push(reader *r, onv_pickled value)
{
    return onv_vec_push(&r->stack, value) ? ONV_OK : onv_fail_memory(r->err);
}

static onv_status push_items(reader *r, onv_pickled_type type, uint32_t capacity)
{
    onv_pickled_items *items = ONV_ARENA_ARRAY(r->arena, onv_pickled_items, 1);
    if (items == NULL) return onv_fail_memory(r->err);
    items->at = ONV_ARENA_ARRAY(r->arena, onv_pickled, capacity);
    if (items->at == NULL) return onv_fail_memory(r->err);
    items->capacity = capacity;
    return push(r, (onv_pickled){.type = type, .items = items});
}

static onv_status append(reader *r, onv_pickled_items *to, const onv_pickled *values, size_t count)
{
    if (count > UINT32_MAX / 4 - to->count) return damaged(r, "a list is too long");
    if (count > to->capacity - to->count) {
        uint32_t capacity = (to->count + (uint32_t)count) * (to->count > 0 ? 2 : 1);
        onv_pickled *more = ONV_ARENA_ARRAY(r->arena, onv_pickled, capacity);
        if (more == NULL) return onv_fail_memory(r->err);
        if (to->count > 0) memcpy(more, to->at, to->count * sizeof *more);
        to->at = more;
        to->capacity = capacity;
    }
    if (count > 0) memcpy(to->at + to->count, values, count * sizeof *values);
    to->count += (uint32_t)count;
    return ONV_OK;
}

/* How many values stand above the last mark. */
static bool above_mark(const reader *r, size_t *count)
{
    for (size_t i = r->stack.count; i-- > 0;)
        if (r->stack.at[i].type == ONV_PICKLED_MARK) {
            *count = r->stack.count - i - 1;
            return onv_work(*count);
        }
    return false;
}

/* That none of the last `count` values is a mark. */
static onv_status need_values(const reader *r, size_t count)
{
    for (size_t i = r->stack.count - count; i < r->stack.count; i++)
        if (r->stack.at[i].type == ONV_PICKLED_MARK) return damaged(r, "a mark is not a value,");
    return ONV_OK;
}

/* The last `count` values, and the mark below them if there is one, go into the object below. */
static onv_status put_into(reader *r, onv_pickled_type type, size_t count, bool has_mark)
{
    size_t used = count + has_mark;
    if (r->stack.count <= used || (type == ONV_PICKLED_DICT && count % 2 != 0))
        return damaged(r, "there is nothing to put a value into");
    onv_pickled *below = &r->stack.at[r->stack.count - used - 1];
    if (below->type != type) return damaged(r, "there is nothing to put a value into");
    ONV_TRY(need_values(r, count));
    ONV_TRY(append(r, below->items, r->stack.at + r->stack.count - count, count));
    r->stack.count -= used;
    return ONV_OK;
}

/* The last values become a list of their own. */
static onv_status make_tuple(reader *r, size_t count, bool has_mark)
{
    if (r->stack.count < count + has_mark) return damaged(r, "a tuple lacks values");
    if (count > UINT32_MAX / 4) return damaged(r, "a tuple is too long");
    size_t first = r->stack.count - count;
    ONV_TRY(need_values(r, count));
    ONV_TRY(push_items(r, ONV_PICKLED_LIST, (uint32_t)count));
    onv_pickled made = r->stack.at[r->stack.count - 1];
    ONV_TRY(append(r, made.items, r->stack.at + first, count));
    r->stack.count = first - has_mark;
    return push(r, made);
}

static onv_status of_mark(reader *r, onv_pickled_type into, bool is_tuple)
{
    size_t count;
    if (!above_mark(r, &count)) return damaged(r, "a mark is missing");
    return is_tuple ? make_tuple(r, count, true) : put_into(r, into, count, true);
}

/* --- The memo ---------------------------------------------------------------------------------- */

static onv_status remember(reader *r, uint64_t at)
{
    const onv_pickled none = {.type = ONV_PICKLED_MARK};
    if (r->stack.count == 0) return damaged(r, "there is nothing to remember");
    /* Python counts from 0 on; others may number what they could remember. */
    if (at > (uint64_t)(r->end - r->begin)) return damaged(r, "a number in the memo is too large");
    if (at >= r->memo.count && !onv_work(at - r->memo.count)) return ONV_ERR_CANCELLED;
    while (r->memo.count <= at)
        if (!onv_vec_push(&r->memo, none)) return onv_fail_memory(r->err);
    r->memo.at[at] = r->stack.at[r->stack.count - 1];
    return ONV_OK;
}

static onv_status recall(reader *r, uint64_t at)
{
    if (at >= r->memo.count || r->memo.at[at].type == ONV_PICKLED_MARK)
        return damaged(r, "the memo lacks a value");
    return push(r, r->memo.at[at]);
}

/* --- Operations -------------------------------------------------------------------------------- */

enum { STOP = '.' };

static const char *name_of_call(unsigned op)
{
    static const struct {
        unsigned op;
        const char *name;
    } names[] = {{'c', "GLOBAL"}, {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},  {'b', "BUILD"},
                 {'i', "INST"},   {'o', "OBJ"},           {0x81, "NEWOBJ"}, {0x92, "NEWOBJ_EX"},
                 {'P', "PERSID"}, {'Q', "BINPERSID"},     {0x82, "EXT1"},   {0x83, "EXT2"},
                 {0x84, "EXT4"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].op == op) return names[i].name;
    return NULL;
}

static onv_status refuse(const reader *r, unsigned op)
{
    const char *name = name_of_call(op);
    if (name == NULL) return damaged(r, "an unknown operation stands");
    return onv_fail(r->err, ONV_ERR_FORMAT,
                    "a pickle with code in it (%s at byte %zu), which is not run: a snapshot of "
                    "torch.cuda.memory._dump_snapshot() has none",
                    name, (size_t)(r->at - r->begin) - 1);
}

static onv_status run_scalar(reader *r, unsigned op)
{
    onv_pickled value = {.type = ONV_PICKLED_OTHER};
    uint64_t bits = 0;
    switch (op) {
    case 'N': break;
    case 0x88:
    case 0x89: value = (onv_pickled){.type = ONV_PICKLED_BOOL, .integer = op == 0x88}; break;
    case 'J':
        ONV_TRY(take_number(r, 4, &bits));
        value = (onv_pickled){.type = ONV_PICKLED_INTEGER, .integer = (int32_t)(uint32_t)bits};
        break;
    case 'K':
    case 'M':
        ONV_TRY(take_number(r, op == 'K' ? 1 : 2, &bits));
        value = (onv_pickled){.type = ONV_PICKLED_INTEGER, .integer = (int64_t)bits};
        break;
    case 0x8a: ONV_TRY(take_long(r, &value)); break;
    case 'G': ONV_TRY(take_number(r, 8, &bits)); break;
    case 'X': ONV_TRY(take_text(r, 4, ONV_PICKLED_TEXT, &value)); break;
    case 0x8c: ONV_TRY(take_text(r, 1, ONV_PICKLED_TEXT, &value)); break;
    case 0x8d: ONV_TRY(take_text(r, 8, ONV_PICKLED_TEXT, &value)); break;
    case 'C': ONV_TRY(take_text(r, 1, ONV_PICKLED_OTHER, &value)); break;
    case 'B': ONV_TRY(take_text(r, 4, ONV_PICKLED_OTHER, &value)); break;
    default: return refuse(r, op);
    }
    return push(r, value);
}

static onv_status run_memo(reader *r, unsigned op)
{
    uint64_t at;
    if (op == 0x94) return remember(r, r->memo.count);
    ONV_TRY(take_number(r, op == 'q' || op == 'h' ? 1 : 4, &at));
    return op == 'q' || op == 'r' ? remember(r, at) : recall(r, at);
}

static onv_status run(reader *r, unsigned op)
{
    uint64_t ignored;
    switch (op) {
    case 0x80: return take_number(r, 1, &ignored); /* PROTO, which the caller has looked at */
    case 0x95: return take_number(r, 8, &ignored); /* FRAME: how much to read at once */
    case '(': return push(r, (onv_pickled){.type = ONV_PICKLED_MARK});
    case '}': return push_items(r, ONV_PICKLED_DICT, 0);
    case ']':
    case ')': return push_items(r, ONV_PICKLED_LIST, 0);
    case 't': return of_mark(r, ONV_PICKLED_LIST, true);
    case 0x85:
    case 0x86:
    case 0x87: return make_tuple(r, op - 0x84, false);
    case 'a': return put_into(r, ONV_PICKLED_LIST, 1, false);
    case 'e': return of_mark(r, ONV_PICKLED_LIST, false);
    case 's': return put_into(r, ONV_PICKLED_DICT, 2, false);
    case 'u': return of_mark(r, ONV_PICKLED_DICT, false);
    case 'q':
    case 'r':
    case 'h':
    case 'j':
    case 0x94: return run_memo(r, op);
    default: return run_scalar(r, op);
    }
}

static onv_status run_all(reader *r, onv_pickled *root)
{
    if (r->end - r->at < 2 || r->at[0] != 0x80 || r->at[1] < 2 || r->at[1] > 5)
        return onv_fail(r->err, ONV_ERR_FORMAT,
                        "not a pickle of protocol 2 to 5: write it with "
                        "torch.cuda.memory._dump_snapshot()");
    while (r->at < r->end) {
        unsigned op = *r->at++;
        if (op == STOP) {
            if (r->stack.count != 1 || r->stack.at[0].type == ONV_PICKLED_MARK)
                return damaged(r, "it does not end with one value");
            *root = r->stack.at[0];
            return ONV_OK;
        }
        ONV_WORK(1);
        ONV_TRY(run(r, op));
    }
    return damaged(r, "it ends too early,");
}

onv_status onv_pickled_read(const char *data, size_t bytes, onv_arena *arena, onv_pickled *root,
                            onv_error *err)
{
    const unsigned char *begin = (const unsigned char *)data;
    reader r = {.at = begin, .end = begin + bytes, .begin = begin, .arena = arena, .err = err};
    *root = (onv_pickled){.type = ONV_PICKLED_OTHER};
    onv_status status = run_all(&r, root);
    onv_vec_cleanup(&r.stack);
    onv_vec_cleanup(&r.memo);
    return status;
}

/* --- Reading ----------------------------------------------------------------------------------- */

bool onv_pickled_is_text(const onv_pickled *value, const char *text)
{
    return value != NULL && value->type == ONV_PICKLED_TEXT && value->length == strlen(text) &&
           memcmp(value->text, text, value->length) == 0;
}

/* One object may stand in many places, and each is looked through again. */
const onv_pickled *onv_pickled_get(const onv_pickled *of, const char *key)
{
    enum { MOST_MEMBERS = 64 };
    if (of == NULL || of->type != ONV_PICKLED_DICT || of->items->count > 2 * MOST_MEMBERS)
        return NULL;
    for (uint32_t i = of->items->count; i >= 2; i -= 2)
        if (onv_pickled_is_text(&of->items->at[i - 2], key)) return &of->items->at[i - 1];
    return NULL;
}

uint32_t onv_pickled_count(const onv_pickled *of)
{
    return of != NULL && of->type == ONV_PICKLED_LIST ? of->items->count : 0;
}

bool onv_pickled_u64(const onv_pickled *value, uint64_t *number)
{
    bool good = value != NULL && value->type == ONV_PICKLED_INTEGER && value->integer >= 0;
    *number = good ? (uint64_t)value->integer : 0;
    return good;
}

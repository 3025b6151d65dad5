#include "report/pickle.h"

#include <string.h>

/* Opcodes by their names in Python's pickletools. */
enum {
    OP_MARK = '(',
    OP_STOP = '.',
    OP_BININT = 'J',
    OP_BININT1 = 'K',
    OP_BININT2 = 'M',
    OP_BINUNICODE = 'X',
    OP_APPEND = 'a',
    OP_BINGET = 'h',
    OP_LONG_BINGET = 'j',
    OP_BINPUT = 'q',
    OP_LONG_BINPUT = 'r',
    OP_SETITEMS = 'u',
    OP_EMPTY_DICT = '}',
    OP_EMPTY_LIST = ']',
    OP_PROTO = 0x80,
    OP_NEWTRUE = 0x88,
    OP_NEWFALSE = 0x89,
    OP_LONG1 = 0x8a,
    PROTOCOL = 2
};

static void put_op(onv_writer *out, unsigned op)
{
    onv_write_char(out, (char)op);
}

/* Little-endian. */
static void put_bytes(onv_writer *out, uint64_t value, unsigned n)
{
    for (unsigned i = 0; i < n; i++) put_op(out, (unsigned)(value >> (8 * i)) & 0xff);
}

void onv_pickle_begin(onv_writer *out)
{
    put_op(out, OP_PROTO);
    put_op(out, PROTOCOL);
}

void onv_pickle_end(onv_writer *out)
{
    put_op(out, OP_STOP);
}

void onv_pickle_dict(onv_writer *out)
{
    put_op(out, OP_EMPTY_DICT);
    put_op(out, OP_MARK);
}

void onv_pickle_end_dict(onv_writer *out)
{
    put_op(out, OP_SETITEMS);
}

void onv_pickle_list(onv_writer *out)
{
    put_op(out, OP_EMPTY_LIST);
}

void onv_pickle_append(onv_writer *out)
{
    put_op(out, OP_APPEND);
}

/* Python's own choice: the shortest form. A long is in two's complement, so its top bit is a sign. */
void onv_pickle_u64(onv_writer *out, uint64_t value)
{
    if (value <= UINT8_MAX) {
        put_op(out, OP_BININT1);
        put_bytes(out, value, 1);
    } else if (value <= UINT16_MAX) {
        put_op(out, OP_BININT2);
        put_bytes(out, value, 2);
    } else if (value <= INT32_MAX) {
        put_op(out, OP_BININT);
        put_bytes(out, value, 4);
    } else {
        unsigned n = 4;
        while (n < 8 && value >> (8 * n - 1) != 0) n++;
        put_op(out, OP_LONG1);
        put_op(out, n);
        put_bytes(out, value, n);
    }
}

void onv_pickle_bool(onv_writer *out, bool value)
{
    put_op(out, value ? OP_NEWTRUE : OP_NEWFALSE);
}

void onv_pickle_text(onv_writer *out, const char *text)
{
    size_t n = strlen(text);
    put_op(out, OP_BINUNICODE);
    put_bytes(out, n, 4);
    onv_write_bytes(out, text, n);
}

static void put_memo(onv_writer *out, uint32_t memo, unsigned short_op, unsigned long_op)
{
    bool is_short = memo <= UINT8_MAX;
    put_op(out, is_short ? short_op : long_op);
    put_bytes(out, memo, is_short ? 1 : 4);
}

void onv_pickle_put(onv_writer *out, uint32_t memo)
{
    put_memo(out, memo, OP_BINPUT, OP_LONG_BINPUT);
}

void onv_pickle_get(onv_writer *out, uint32_t memo)
{
    put_memo(out, memo, OP_BINGET, OP_LONG_BINGET);
}

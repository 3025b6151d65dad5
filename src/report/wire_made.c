#include "report/wire_made.h"

#include <string.h>

#include "load/wire.h"

void onv_made_bytes(onv_made *to, const void *data, size_t n)
{
    if (to->failed || !onv_vec_reserve(&to->bytes, n)) {
        to->failed = true;
        return;
    }
    if (n > 0) memcpy(to->bytes.at + to->bytes.count, data, n);
    to->bytes.count += n;
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

void onv_made_field(onv_made *to, uint32_t field, const void *data, size_t n)
{
    add_varint(to, (uint64_t)field << 3 | ONV_WIRE_BYTES);
    add_varint(to, n);
    onv_made_bytes(to, data, n);
}

void onv_made_message(onv_made *to, uint32_t field, onv_made *part)
{
    onv_made_field(to, field, part->bytes.at, part->bytes.count);
    to->failed |= part->failed;
    onv_vec_cleanup(&part->bytes);
}

void onv_made_pair(onv_made *to, uint32_t field, const char *key, const char *value)
{
    onv_made pair = {0};
    onv_made_field(&pair, ONV_PAIR_KEY, key, strlen(key));
    onv_made_field(&pair, ONV_PAIR_VALUE, value, strlen(value));
    onv_made_message(to, field, &pair);
}

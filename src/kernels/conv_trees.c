#include "kernels/conv_trees.h"

#include <stddef.h>
#include <string.h>

/* share/cudnn/conv.trees: cmake/embed.cmake makes it C. */
extern const unsigned char onv_cudnn_conv_trees[];

enum { KINDS, PARTS, PAIRS, LIMITS, ROOTS, NODES, N_TABLES = NODES };
enum { FEATURE = 63, LOW_IS_LEAF = 64, HIGH_IS_LEAF = 128 };

static const uint8_t row_bytes[N_TABLES] = {
    [KINDS] = 6, [PARTS] = 8, [PAIRS] = 4, [LIMITS] = 4, [ROOTS] = 8};

static uint32_t u16(const unsigned char *at)
{
    return at[0] | (uint32_t)at[1] << 8;
}

static uint32_t u32(const unsigned char *at)
{
    return u16(at) | u16(at + 2) << 16;
}

static uint32_t count_of(uint32_t table)
{
    return u32(onv_cudnn_conv_trees + sizeof(uint32_t) * table);
}

static const unsigned char *table_at(uint32_t table)
{
    const unsigned char *at = onv_cudnn_conv_trees + sizeof(uint32_t) * N_TABLES;
    for (uint32_t i = 0; i < table; i++) at += (size_t)count_of(i) * row_bytes[i];
    return at;
}

static const unsigned char *row_at(uint32_t table, uint32_t row)
{
    return table_at(table) + (size_t)row * row_bytes[table];
}

static onv_conv_form form_of(uint32_t part)
{
    const unsigned char *row = row_at(PARTS, part), *kind = row_at(KINDS, row[1]);
    return (onv_conv_form){
        .base = row[0],
        .splits = (uint16_t)u16(row + 2),
        .tail = u32(row + 4),
        .tiles = {(uint16_t)u16(kind), (uint16_t)u16(kind + 2), kind[4], kind[5]}};
}

/* `at` goes behind it. */
static uint32_t number_at(const unsigned char **at)
{
    uint32_t number = 0;
    for (uint32_t bits = 0;; bits += 7) {
        unsigned char byte = *(*at)++;
        number |= (uint32_t)(byte & 127) << bits;
        if (byte < 128) return number;
    }
}

bool onv_conv_tree_has(uint32_t root)
{
    return root < count_of(ROOTS) && u32(row_at(ROOTS, root)) != 0;
}

uint32_t onv_conv_tree_most_mib(uint32_t root)
{
    return u32(row_at(ROOTS, root) + sizeof(uint32_t));
}

static void walk(const onv_conv_question *q, const unsigned char *at, bool is_leaf, bool is_own)
{
    const unsigned char *limits = table_at(LIMITS);
    while (!is_leaf) {
        uint8_t head = *at++, which = head & FEATURE;
        uint32_t bits = u32(limits + (size_t)number_at(&at) * row_bytes[LIMITS]);
        float size = (float)q->feature(q->context, which), limit;
        memcpy(&limit, &bits, sizeof limit);
        size_t skip = (head & LOW_IS_LEAF) != 0 ? 0 : number_at(&at);
        const unsigned char *low = at, *high = at + skip;
        if (skip == 0) number_at(&high);
        bool is_low = size <= limit;
        bool is_near = is_low ? limit + 1 < q->reach * size : size < q->reach * limit;
        bool low_is_leaf = skip == 0, high_is_leaf = (head & HIGH_IS_LEAF) != 0;
        if (is_near && is_own && (q->sizes >> which & 1) != 0)
            walk(q, is_low ? high : low, is_low ? high_is_leaf : low_is_leaf, false);
        at = is_low ? low : high;
        is_leaf = is_low ? low_is_leaf : high_is_leaf;
    }
    const unsigned char *pair = row_at(PAIRS, number_at(&at));
    q->meet(q->context, form_of(u16(pair)), is_own ? ONV_CONV_LIKELIEST : ONV_CONV_NEARBY);
    q->meet(q->context, form_of(u16(pair + 2)), is_own ? ONV_CONV_SECOND : ONV_CONV_NEARBY);
}

void onv_conv_tree_ask(uint32_t root, const onv_conv_question *question)
{
    walk(question, table_at(NODES) + u32(row_at(ROOTS, root)) - 1, false, true);
}

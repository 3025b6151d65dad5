#include "kernels/conv_trees.h"

#include <stddef.h>
#include <string.h>

/* share/cudnn/conv.trees: cmake/embed.cmake makes it C. */
extern const unsigned char onv_cudnn_conv_trees[];

enum { KINDS, TAILS, PARTS, PAIRS, LIMITS, ROOTS, NODES, N_TABLES };
/* First bytes that are a number, and those of leaves that are pairs: they follow the places of tables. */
enum { ONE_LIMIT = N_TABLES * 4, ONE_PAIR, PAIR, ONE_PART };
enum { LOW_IS_LEAF, LOW_IS_SHORT, LOW_IS_LONG, LOW_KINDS };
enum { ONE_SKIP = 128 };

static const uint8_t row_bytes[N_TABLES] = {
    [KINDS] = 7, [TAILS] = 4, [PARTS] = 4, [PAIRS] = 4, [LIMITS] = 4, [ROOTS] = 8, [NODES] = 1};

static uint32_t u16(const unsigned char *at)
{
    return at[0] | (uint32_t)at[1] << 8;
}

static uint32_t u32(const unsigned char *at)
{
    return u16(at) | u16(at + 2) << 16;
}

static const unsigned char *row_at(uint32_t table, uint32_t row)
{
    const unsigned char *trees = onv_cudnn_conv_trees;
    return trees + u32(trees + sizeof(uint32_t) * table) + (size_t)row * row_bytes[table];
}

static uint32_t first_bytes(uint32_t which)
{
    return onv_cudnn_conv_trees[which];
}

static onv_conv_form form_of(uint32_t part)
{
    uint32_t row = u32(row_at(PARTS, part));
    const unsigned char *kind = row_at(KINDS, row % 1024);
    return (onv_conv_form){
        .base = kind[6],
        .splits = row >> 10 & 2047,
        .tail = u32(row_at(TAILS, row >> 21)),
        .tiles = {(uint16_t)u16(kind), (uint16_t)u16(kind + 2), kind[4], kind[5]}};
}

static float limit_of(uint32_t number)
{
    static const double powers[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10};
    enum { ROUND = 1000 * sizeof powers / sizeof powers[0] };
    if (number < ROUND) return (float)(number % 1000 * powers[number / 1000]);
    uint32_t bits = u32(row_at(LIMITS, number - ROUND));
    float limit;
    memcpy(&limit, &bits, sizeof limit);
    return limit;
}

/* `at` goes behind it. */
static uint32_t number_at(const unsigned char **at, uint32_t of_one_byte)
{
    uint32_t number = *(*at)++;
    return number < of_one_byte ? number : of_one_byte + ((number - of_one_byte) << 8 | *(*at)++);
}

static const unsigned char *behind_number(const unsigned char *at, uint32_t of_one_byte)
{
    return at + (*at < of_one_byte ? 1 : 2);
}

/* The place behind a node and all under it, or behind a leaf. */
static const unsigned char *behind(const unsigned char *at, bool is_leaf)
{
    while (!is_leaf) {
        uint32_t head = *at, low = head / 2 % LOW_KINDS, skip = 0;
        at = behind_number(at + 1, first_bytes(ONE_LIMIT));
        if (low == LOW_IS_LONG) skip = number_at(&at, ONE_SKIP);
        at = skip > 0 ? at + skip : behind(at, low == LOW_IS_LEAF);
        is_leaf = head % 2 != 0;
    }
    bool is_pair = *at < first_bytes(PAIR);
    at = behind_number(at, first_bytes(ONE_PAIR));
    return is_pair ? at : behind_number(at, first_bytes(ONE_PART));
}

bool onv_conv_tree_has(uint32_t root)
{
    return row_at(ROOTS, root) < row_at(NODES, 0) && u32(row_at(ROOTS, root)) != 0;
}

uint32_t onv_conv_tree_most_mib(uint32_t root)
{
    return u32(row_at(ROOTS, root) + sizeof(uint32_t));
}

static void meet_leaf(const onv_conv_question *q, const unsigned char *at, bool is_own)
{
    uint32_t pairs = first_bytes(PAIR), likeliest, second;
    if (*at < pairs) {
        const unsigned char *pair = row_at(PAIRS, number_at(&at, first_bytes(ONE_PAIR)));
        likeliest = u16(pair);
        second = u16(pair + 2);
    } else {
        likeliest = number_at(&at, pairs) - pairs;
        second = number_at(&at, first_bytes(ONE_PART));
    }
    q->meet(q->context, form_of(likeliest), is_own ? ONV_CONV_LIKELIEST : ONV_CONV_NEARBY);
    q->meet(q->context, form_of(second), is_own ? ONV_CONV_SECOND : ONV_CONV_NEARBY);
}

static void walk(const onv_conv_question *q, const unsigned char *at, bool is_leaf, bool is_own)
{
    while (!is_leaf) {
        uint32_t head = *at++, low_is = head / 2 % LOW_KINDS, which = head / 2 / LOW_KINDS;
        float limit = limit_of(number_at(&at, first_bytes(ONE_LIMIT)));
        float size = (float)q->feature(q->context, which);
        bool is_low = size <= limit, low_is_leaf = low_is == LOW_IS_LEAF, high_is_leaf = head % 2;
        bool is_near = is_own && (q->sizes >> which & 1) != 0 &&
                       (is_low ? limit + 1 < q->reach * size : size < q->reach * limit);
        uint32_t skip = low_is == LOW_IS_LONG ? number_at(&at, ONE_SKIP) : 0;
        const unsigned char *low = at, *high = at + skip;
        if (skip == 0 && (is_near || !is_low)) high = behind(low, low_is_leaf);
        if (is_near) walk(q, is_low ? high : low, is_low ? high_is_leaf : low_is_leaf, false);
        at = is_low ? low : high;
        is_leaf = is_low ? low_is_leaf : high_is_leaf;
    }
    meet_leaf(q, at, is_own);
}

void onv_conv_tree_ask(uint32_t root, const onv_conv_question *question)
{
    walk(question, row_at(NODES, u32(row_at(ROOTS, root)) - 1), false, true);
}

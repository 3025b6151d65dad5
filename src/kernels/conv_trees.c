#include "kernels/conv_trees.h"

#include <stddef.h>
#include <string.h>

/* share/cudnn/conv.trees: cmake/embed.cmake makes it C. */
extern const unsigned char onv_cudnn_conv_trees[];
extern const size_t onv_cudnn_conv_trees_bytes;

enum { KINDS, PARTS, PAIRS, LIMITS, ROOTS, NODES, N_TABLES = NODES };
enum { IS_LEAF = 128, IS_FAR = 64, SURE = 1 << 15, NEAR_BYTES = 5, FAR_BYTES = 7, LEAF_BYTES = 2 };

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

static float limit_of(uint32_t index)
{
    uint32_t bits = u32(row_at(LIMITS, index));
    float limit;
    memcpy(&limit, &bits, sizeof limit);
    return limit;
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

static uint32_t pair_of(const unsigned char *leaf)
{
    return (uint32_t)(leaf[0] & (IS_LEAF - 1)) << 8 | leaf[1];
}

bool onv_conv_tree_has(uint32_t root)
{
    return root < count_of(ROOTS) && u32(row_at(ROOTS, root)) != 0;
}

uint32_t onv_conv_tree_most_mib(uint32_t root)
{
    return u32(row_at(ROOTS, root) + sizeof(uint32_t));
}

onv_conv_leaf onv_conv_tree_find(uint32_t root, uint64_t (*feature)(const void *, uint32_t),
                                 const void *context)
{
    const unsigned char *at = table_at(NODES) + u32(row_at(ROOTS, root)) - 1;
    while ((*at & IS_LEAF) == 0) {
        bool is_far = (*at & IS_FAR) != 0;
        bool is_low = (float)feature(context, *at & (IS_FAR - 1)) <= limit_of(u16(at + 1));
        uint32_t skip = is_low ? 0 : is_far ? u32(at + 3) : u16(at + 3);
        at += (is_far ? FAR_BYTES : NEAR_BYTES) + skip;
    }
    const unsigned char *pair = row_at(PAIRS, pair_of(at));
    uint32_t other = u16(pair + 2);
    return (onv_conv_leaf){form_of(u16(pair)), form_of(other & (SURE - 1)), (other & SURE) != 0};
}

static bool checks_tables(void)
{
    size_t tables = (size_t)(table_at(NODES) - onv_cudnn_conv_trees);
    bool good = tables <= onv_cudnn_conv_trees_bytes && count_of(ROOTS) <= ONV_CONV_MAX_ROOTS;
    for (uint32_t i = 0; i < count_of(PARTS) && good; i++)
        good = row_at(PARTS, i)[1] < count_of(KINDS);
    for (uint32_t i = 0; i < count_of(PAIRS) && good; i++)
        good = u16(row_at(PAIRS, i)) < count_of(PARTS) &&
               (u16(row_at(PAIRS, i) + 2) & (SURE - 1)) < count_of(PARTS);
    for (uint32_t i = 0; i < count_of(ROOTS) && good; i++)
        good = u32(row_at(ROOTS, i)) <= onv_cudnn_conv_trees_bytes - tables;
    return good;
}

bool onv_conv_trees_check(void)
{
    bool good = checks_tables();
    const unsigned char *end = onv_cudnn_conv_trees + onv_cudnn_conv_trees_bytes;
    const unsigned char *at = table_at(NODES);
    while (good && at < end) { /* nodes follow each other without gaps */
        bool is_leaf = (*at & IS_LEAF) != 0, is_far = (*at & IS_FAR) != 0;
        size_t bytes = is_leaf ? LEAF_BYTES : is_far ? FAR_BYTES : NEAR_BYTES;
        good = (size_t)(end - at) >= bytes;
        if (good && is_leaf) good = pair_of(at) < count_of(PAIRS);
        if (good && !is_leaf)
            good = u16(at + 1) < count_of(LIMITS) &&
                   (is_far ? u32(at + 3) : u16(at + 3)) < (size_t)(end - at) - bytes;
        at += bytes;
    }
    return good;
}

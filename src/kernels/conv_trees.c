#include "kernels/conv_trees.h"

#include <stddef.h>
#include <string.h>

/* share/cudnn/conv.trees: cmake/embed.cmake makes it C. */
extern const unsigned char onv_cudnn_conv_trees[];
extern const size_t onv_cudnn_conv_trees_bytes;

enum { KINDS, PARTS, PAIRS, LIMITS, ROOTS, NODES, N_TABLES = NODES };
enum { IS_LEAF = 128, SURE = 1 << 15, INNER_BYTES = 3, LEAF_BYTES = 2 };

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

static const unsigned char *end_of_nodes(void)
{
    return onv_cudnn_conv_trees + onv_cudnn_conv_trees_bytes;
}

/* `at` goes behind it; UINT64_MAX where it does not end. */
static uint64_t skip_of(const unsigned char **at)
{
    uint64_t skip = 0;
    for (uint32_t bits = 0; bits < 32 && *at < end_of_nodes(); bits += 7) {
        unsigned char byte = *(*at)++;
        skip |= (uint64_t)(byte & 127) << bits;
        if (byte < 128) return skip;
    }
    return UINT64_MAX;
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
        bool is_low = (float)feature(context, *at) <= limit_of(u16(at + 1));
        at += INNER_BYTES;
        uint64_t skip = skip_of(&at);
        if (!is_low) at += skip;
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
    const unsigned char *end = end_of_nodes(), *at = table_at(NODES);
    while (good && at < end) { /* nodes follow each other without gaps */
        bool is_leaf = (*at & IS_LEAF) != 0;
        const unsigned char *node = at;
        good = end - at >= (is_leaf ? LEAF_BYTES : INNER_BYTES);
        at += is_leaf ? LEAF_BYTES : INNER_BYTES;
        if (good && is_leaf) good = pair_of(node) < count_of(PAIRS);
        if (good && !is_leaf)
            good = u16(node + 1) < count_of(LIMITS) && skip_of(&at) < (uint64_t)(end - at);
    }
    return good;
}

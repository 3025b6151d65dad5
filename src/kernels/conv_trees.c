#include "kernels/conv_trees.h"

#include <stddef.h>
#include <string.h>

/* share/cudnn/conv.trees: cmake/embed.cmake makes it C. */
extern const unsigned char onv_cudnn_conv_trees[];

enum { HEADS, KINDS, TAILS, PARTS, PAIRS, LIMITS, ROOTS, NODES, N_TABLES };
/* What is under an inner node, and what of it is first. */
enum { LEAVES, LOW_LEAF, HIGH_LEAF, LOW, HIGH, SKIPPED_LOW, KINDS_OF_HEAD = 8 };

/* What numbers in nodes are: each kind has a code, and so have the limits of each feature. */
enum { OF_HEAD, OF_SKIP, OF_ONE, OF_PAIR, OF_FIRST, OF_SECOND, OF_LIMIT };
enum { CLASS_BITS = 3, CODE_BYTES = 4 << CLASS_BITS };

static const uint8_t row_bytes[N_TABLES] = {[HEADS] = 2, [KINDS] = 7,  [TAILS] = 4, [PARTS] = 4,
                                            [PAIRS] = 4, [LIMITS] = 4, [ROOTS] = 8, [NODES] = 1};

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
    enum { WHOLE = 1000, ROUND = 10000 };
    if (number < WHOLE) return (float)number;
    uint32_t power = (number - 100) / 900;
    if (number < ROUND) return (float)((number - 900 * power) * powers[power]);
    uint32_t bits = u32(row_at(LIMITS, number - ROUND));
    float limit;
    memcpy(&limit, &bits, sizeof limit);
    return limit;
}

/* A place among the nodes. */
typedef struct place {
    const unsigned char *nodes;
    uint32_t at; /* bits */
} place;

static uint32_t word_at(place p)
{
    return u32(p.nodes + p.at / 8) >> p.at % 8;
}

/* The number of that code with which the word begins; `p` goes behind it. */
static inline uint32_t number_of(uint32_t word, place *p, uint32_t code)
{
    uint32_t class = word % (1 << CLASS_BITS);
    uint32_t row = u32(onv_cudnn_conv_trees + N_TABLES * sizeof row + (size_t)CODE_BYTES * code +
                       sizeof row * class);
    uint32_t bits = row >> 24, first = row & 0xffffff;
    p->at += CLASS_BITS + bits;
    return first + (word >> CLASS_BITS & ((1u << bits) - 1));
}

static inline uint32_t number_at(place *p, uint32_t code)
{
    return number_of(word_at(*p), p, code);
}

/* An inner node, up to what is under it. */
typedef struct inner {
    uint32_t feature, limit;
    uint32_t skip; /* bits of what is first; 0: it is read to find what is behind */
    bool high_is_first, first_is_leaf, second_is_leaf;
} inner;

/* `p` goes to what is first. */
static inline inner inner_at(place *p)
{
    uint32_t head = u16(row_at(HEADS, number_at(p, OF_HEAD))), kind = head % KINDS_OF_HEAD;
    inner node = {.feature = head / KINDS_OF_HEAD,
                  .high_is_first = kind == HIGH_LEAF || kind == HIGH,
                  .first_is_leaf = kind <= HIGH_LEAF,
                  .second_is_leaf = kind == LEAVES};
    node.limit = number_at(p, OF_LIMIT + node.feature);
    if (kind == SKIPPED_LOW) node.skip = number_at(p, OF_SKIP);
    return node;
}

typedef struct leaf {
    uint32_t likeliest, second; /* parts */
} leaf;

static leaf leaf_at(place *p)
{
    uint32_t word = word_at(*p), is_one = word & 1;
    p->at++;
    uint32_t first = number_of(word >> 1, p, is_one ? OF_ONE : OF_PAIR);
    if (is_one) return (leaf){first, first};
    if (first > 0) {
        const unsigned char *pair = row_at(PAIRS, first - 1);
        return (leaf){u16(pair), u16(pair + 2)};
    }
    first = number_at(p, OF_FIRST);
    return (leaf){first, number_at(p, OF_SECOND)};
}

/* The place behind a node and all under it, or behind a leaf. */
static place behind(place p, bool is_leaf)
{
    while (!is_leaf) {
        inner node = inner_at(&p);
        p.at += node.skip;
        if (node.skip == 0) p = behind(p, node.first_is_leaf);
        is_leaf = node.second_is_leaf;
    }
    (void)leaf_at(&p);
    return p;
}

bool onv_conv_tree_has(uint32_t root)
{
    return row_at(ROOTS, root) < row_at(NODES, 0) && u32(row_at(ROOTS, root)) != 0;
}

uint32_t onv_conv_tree_most_mib(uint32_t root)
{
    return u32(row_at(ROOTS, root) + sizeof(uint32_t));
}

static void walk(const onv_conv_question *q, place p, bool is_leaf, bool is_own)
{
    while (!is_leaf) {
        inner node = inner_at(&p);
        float limit = limit_of(node.limit), size = (float)q->feature(q->context, node.feature);
        bool is_low = size <= limit, is_first = is_low != node.high_is_first;
        bool is_near = is_own && (q->sizes >> node.feature & 1) != 0 &&
                       (is_low ? limit + 1 < q->reach * size : size < q->reach * limit);
        place second = {p.nodes, p.at + node.skip};
        if (node.skip == 0 && (is_near || !is_first)) second = behind(p, node.first_is_leaf);
        if (is_near)
            walk(q, is_first ? second : p, is_first ? node.second_is_leaf : node.first_is_leaf,
                 false);
        if (!is_first) p = second;
        is_leaf = is_first ? node.first_is_leaf : node.second_is_leaf;
    }
    leaf forms = leaf_at(&p);
    q->meet(q->context, form_of(forms.likeliest), is_own ? ONV_CONV_LIKELIEST : ONV_CONV_NEARBY);
    q->meet(q->context, form_of(forms.second), is_own ? ONV_CONV_SECOND : ONV_CONV_NEARBY);
}

void onv_conv_tree_ask(uint32_t root, const onv_conv_question *question)
{
    walk(question, (place){row_at(NODES, 0), u32(row_at(ROOTS, root)) - 1}, false, true);
}

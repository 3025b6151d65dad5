#include "alloc/alloc_model.h"

typedef struct key {
    uint64_t bytes, address;
} key;

static bool before(key a, key b)
{
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.address < b.address;
}

static key key_of(const onv_block_set *set, const onv_block *b)
{
    return (key){set->by_address ? 0 : b->bytes, b->address};
}

/* The position of the top bit. */
static unsigned class_of(uint64_t bytes)
{
    return 63 - (unsigned)__builtin_clzll(bytes | 1);
}

void onv_block_set_init(onv_block_set *set, bool by_address)
{
    set->by_address = by_address;
    set->random = 0x9e3779b9u;
    set->filled = 0;
    set->newest = ONV_NO_BLOCK;
}

static uint32_t root_of(const onv_block_set *set, unsigned class)
{
    return (set->filled >> class & 1) != 0 ? set->roots[class] : ONV_NO_BLOCK;
}

/* Xorshift; never 0. */
static uint32_t next_random(uint32_t *state)
{
    uint32_t x = *state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *state = x;
}

static void plant(onv_block_set *set, const onv_space *space, uint32_t block)
{
    onv_block *blocks = space->blocks.at;
    key k = key_of(set, &blocks[block]);
    unsigned class = class_of(k.bytes);
    uint32_t *link = &set->roots[class];
    if ((set->filled >> class & 1) == 0) {
        set->filled |= UINT64_C(1) << class;
        blocks[block].left = blocks[block].right = ONV_NO_BLOCK;
        *link = block;
        return;
    }
    blocks[block].priority = next_random(&set->random);
    while (*link != ONV_NO_BLOCK && blocks[*link].priority >= blocks[block].priority) {
        onv_block *at = &blocks[*link];
        link = before(k, key_of(set, at)) ? &at->left : &at->right;
    }
    /* What hangs here goes below the new block, cut in two at its key. */
    uint32_t below = *link;
    uint32_t *left = &blocks[block].left, *right = &blocks[block].right;
    while (below != ONV_NO_BLOCK) {
        if (before(key_of(set, &blocks[below]), k)) {
            *left = below;
            left = &blocks[below].right;
            below = *left;
        } else {
            *right = below;
            right = &blocks[below].left;
            below = *right;
        }
    }
    *left = *right = ONV_NO_BLOCK;
    *link = block;
}

void onv_block_set_insert(onv_block_set *set, onv_space *space, uint32_t block)
{
    if (set->newest != ONV_NO_BLOCK) plant(set, space, set->newest);
    set->newest = block;
}

void onv_block_set_remove(onv_block_set *set, onv_space *space, uint32_t block)
{
    if (block == set->newest) {
        set->newest = ONV_NO_BLOCK;
        return;
    }
    onv_block *blocks = space->blocks.at;
    key k = key_of(set, &blocks[block]);
    unsigned class = class_of(k.bytes);
    uint32_t *link = &set->roots[class];
    while (*link != block) {
        onv_block *at = &blocks[*link];
        link = before(k, key_of(set, at)) ? &at->left : &at->right;
    }
    uint32_t left = blocks[block].left, right = blocks[block].right;
    while (left != ONV_NO_BLOCK && right != ONV_NO_BLOCK) {
        if (blocks[left].priority >= blocks[right].priority) {
            *link = left;
            link = &blocks[left].right;
            left = *link;
        } else {
            *link = right;
            link = &blocks[right].left;
            right = *link;
        }
    }
    *link = left != ONV_NO_BLOCK ? left : right;
    if (set->roots[class] == ONV_NO_BLOCK) set->filled &= ~(UINT64_C(1) << class);
}

/* The same of the blocks in classes. */
static uint32_t lower_bound(const onv_block_set *set, const onv_block *blocks, key k)
{
    unsigned class = class_of(k.bytes);
    uint32_t found = ONV_NO_BLOCK;
    for (uint32_t at = root_of(set, class); at != ONV_NO_BLOCK;) {
        if (before(key_of(set, &blocks[at]), k)) {
            at = blocks[at].right;
        } else {
            found = at;
            at = blocks[at].left;
        }
    }
    uint64_t later = set->filled >> class & ~UINT64_C(1);
    if (found != ONV_NO_BLOCK || later == 0) return found;
    found = set->roots[class + (unsigned)__builtin_ctzll(later)];
    while (blocks[found].left != ONV_NO_BLOCK) found = blocks[found].left;
    return found;
}

uint32_t onv_block_set_lower_bound(const onv_block_set *set, const onv_space *space, uint64_t bytes,
                                   uint64_t address)
{
    const onv_block *blocks = space->blocks.at;
    key k = {set->by_address ? 0 : bytes, address};
    uint32_t found = lower_bound(set, blocks, k);
    if (set->newest == ONV_NO_BLOCK) return found;
    key newest = key_of(set, &blocks[set->newest]);
    bool is_first = found == ONV_NO_BLOCK || before(newest, key_of(set, &blocks[found]));
    return is_first && !before(newest, k) ? set->newest : found;
}

uint32_t onv_block_set_before(const onv_block_set *set, const onv_space *space, uint64_t bytes,
                              uint64_t address)
{
    const onv_block *blocks = space->blocks.at;
    key k = {set->by_address ? 0 : bytes, address};
    uint32_t found = ONV_NO_BLOCK;
    for (int class = (int)class_of(k.bytes); class >= 0 && found == ONV_NO_BLOCK; class --) {
        for (uint32_t at = root_of(set, (unsigned)class); at != ONV_NO_BLOCK;) {
            if (before(key_of(set, &blocks[at]), k)) {
                found = at;
                at = blocks[at].right;
            } else {
                at = blocks[at].left;
            }
        }
    }
    if (set->newest == ONV_NO_BLOCK) return found;
    key newest = key_of(set, &blocks[set->newest]);
    bool is_last = found == ONV_NO_BLOCK || before(key_of(set, &blocks[found]), newest);
    return is_last && before(newest, k) ? set->newest : found;
}

/* A set of blocks in order of (bytes, address), or of address alone.
 *
 * Best fit with ties to the lowest address is a lower bound in that order. Sizes are sorted into
 * classes, one for each power of two, so that a class holds few different sizes; inside a class the
 * blocks form a treap through their own fields left, right and priority. The order, and so every
 * answer, does not depend on the priorities: they come from a fixed sequence. All operations cost
 * the logarithm of the class, and none allocates.
 */
#ifndef ONV_ALLOC_BLOCK_SET_H
#define ONV_ALLOC_BLOCK_SET_H

#include "alloc/space.h"

enum { ONV_BLOCK_SET_CLASSES = 64 };

typedef struct onv_block_set {
    uint32_t roots[ONV_BLOCK_SET_CLASSES]; /* of classes that are not empty */
    uint64_t filled;                       /* bit k: class k is not empty */
    uint32_t random;
    bool by_address;
} onv_block_set;

void onv_block_set_init(onv_block_set *set, bool by_address);
void onv_block_set_insert(onv_block_set *set, onv_space *space, uint32_t block);

/* The block must be in the set, with the size and address it went in with. */
void onv_block_set_remove(onv_block_set *set, onv_space *space, uint32_t block);

/* The first block not before (bytes, address) / the last one before it; ONV_NO_BLOCK: none. Sets by
 * address ignore `bytes`. */
uint32_t onv_block_set_lower_bound(const onv_block_set *set, const onv_space *space, uint64_t bytes,
                                   uint64_t address);
uint32_t onv_block_set_before(const onv_block_set *set, const onv_space *space, uint64_t bytes,
                              uint64_t address);

static inline uint32_t onv_block_set_first(const onv_block_set *set, const onv_space *space)
{
    return onv_block_set_lower_bound(set, space, 0, 0);
}

static inline uint32_t onv_block_set_next(const onv_block_set *set, const onv_space *space,
                                          uint32_t block)
{
    const onv_block *b = onv_space_block(space, block);
    return onv_block_set_lower_bound(set, space, b->bytes, b->address + 1);
}

#endif

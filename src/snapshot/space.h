/* Addresses of a device, and which of them something begins at: the next one is found in time that hardly grows. */
#ifndef ONV_SNAPSHOT_SPACE_H
#define ONV_SNAPSHOT_SPACE_H

#include "base/arena.h"

enum { ONV_ADDRESS_LEVELS = 6 };

/* A set of indices below `count`. */
typedef struct onv_address_set {
    uint64_t
        *words[ONV_ADDRESS_LEVELS]; /* a bit of each level says whether the word below has any */
    uint32_t count;
    unsigned n_levels;
} onv_address_set;

/* False without memory. */
bool onv_address_set_init(onv_address_set *set, uint32_t count, onv_arena *arena);
void onv_address_set_put(onv_address_set *set, uint32_t index, bool is_in);
bool onv_address_set_has(const onv_address_set *set, uint32_t index);

/* The first index of the set above that one; `count`: none. */
uint32_t onv_address_set_next(const onv_address_set *set, uint32_t index);

#endif

#include "snapshot/space.h"

bool onv_address_set_init(onv_address_set *set, uint32_t count, onv_arena *arena)
{
    *set = (onv_address_set){.count = count};
    for (uint64_t n = count; set->n_levels == 0 || n > 1; set->n_levels++) {
        n = n / 64 + 1;
        set->words[set->n_levels] = ONV_ARENA_ARRAY(arena, uint64_t, (size_t)n);
        if (set->words[set->n_levels] == NULL) return false;
    }
    return true;
}

void onv_address_set_put(onv_address_set *set, uint32_t index, bool is_in)
{
    for (unsigned level = 0; level < set->n_levels; level++) {
        uint64_t *word = &set->words[level][index / 64];
        uint64_t bit = UINT64_C(1) << (index % 64);
        *word = is_in ? *word | bit : *word & ~bit;
        if (!is_in && *word != 0) return;
        index /= 64;
    }
}

bool onv_address_set_has(const onv_address_set *set, uint32_t index)
{
    return (set->words[0][index / 64] >> (index % 64) & 1) != 0;
}

uint32_t onv_address_set_next(const onv_address_set *set, uint32_t index)
{
    for (unsigned level = 0; level < set->n_levels; level++) {
        unsigned bit = index % 64;
        uint64_t above = bit == 63 ? 0 : set->words[level][index / 64] >> (bit + 1) << (bit + 1);
        index /= 64;
        if (above == 0) continue;
        for (;; level--) {
            index = index * 64 + (uint32_t)__builtin_ctzll(above);
            if (level == 0) return index;
            above = set->words[level - 1][index];
        }
    }
    return set->count;
}

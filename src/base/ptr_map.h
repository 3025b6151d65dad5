/* A hash map from pointers (interned strings, so from text) to numbers. */
#ifndef ONV_BASE_PTR_MAP_H
#define ONV_BASE_PTR_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct onv_ptr_map {
    struct onv_ptr_slot *slots;
    size_t count, capacity; /* a power of two, or 0 */
} onv_ptr_map;

/* Makes room for `extra` more keys at once. */
bool onv_ptr_map_reserve(onv_ptr_map *map, size_t extra);

/* Adds or replaces; false when memory is short. The key is not NULL. */
bool onv_ptr_map_set(onv_ptr_map *map, const void *key, uint32_t value);

/* Whether the key is there; then *value is set (NULL allowed). */
bool onv_ptr_map_get(const onv_ptr_map *map, const void *key, uint32_t *value);

void onv_ptr_map_cleanup(onv_ptr_map *map);

#endif

#include "base/ptr_map.h"

#include "base/heap.h"
#include "base/strings.h"

struct onv_ptr_slot {
    const void *key;
    uint32_t value;
};

static struct onv_ptr_slot *find(const onv_ptr_map *map, const void *key)
{
    size_t slot = onv_hash_word((uintptr_t)key) & (map->capacity - 1);
    while (map->slots[slot].key != NULL && map->slots[slot].key != key)
        slot = (slot + 1) & (map->capacity - 1);
    return &map->slots[slot];
}

bool onv_ptr_map_reserve(onv_ptr_map *map, size_t extra)
{
    if (extra > SIZE_MAX / 4 - map->count) return false;
    size_t capacity = map->capacity == 0 ? 8 : map->capacity;
    while (map->count + extra > capacity / 4 * 3) capacity *= 2;
    if (capacity == map->capacity) return true;
    onv_ptr_map grown = {.capacity = capacity, .count = map->count};
    grown.slots = onv_heap_calloc(capacity, sizeof *grown.slots);
    if (grown.slots == NULL) return false;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->slots[i].key != NULL) *find(&grown, map->slots[i].key) = map->slots[i];
    onv_heap_free(map->slots);
    *map = grown;
    return true;
}

bool onv_ptr_map_set(onv_ptr_map *map, const void *key, uint32_t value)
{
    if (!onv_ptr_map_reserve(map, 1)) return false;
    struct onv_ptr_slot *slot = find(map, key);
    if (slot->key == NULL) map->count++;
    *slot = (struct onv_ptr_slot){.key = key, .value = value};
    return true;
}

bool onv_ptr_map_get(const onv_ptr_map *map, const void *key, uint32_t *value)
{
    if (map->count == 0) return false;
    const struct onv_ptr_slot *slot = find(map, key);
    if (slot->key == NULL) return false;
    if (value != NULL) *value = slot->value;
    return true;
}

void onv_ptr_map_cleanup(onv_ptr_map *map)
{
    onv_heap_free(map->slots);
    *map = (onv_ptr_map){0};
}

#include "load/name_map.h"

#include <string.h>

#include "base/heap.h"

static bool grow(onv_name_map *map, size_t n)
{
    if (n <= map->n) return true;
    uint32_t *grown = onv_heap_realloc(map->all, n * sizeof *grown);
    if (grown == NULL) return false;
    memset(grown + map->n, 0, (n - map->n) * sizeof *grown);
    map->all = grown;
    map->n = n;
    return true;
}

bool onv_name_map_reserve(onv_name_map *map, size_t extra, const onv_strings *strings)
{
    return map->is_dense ? grow(map, strings->count) : onv_ptr_map_reserve(&map->some, extra);
}

bool onv_name_map_set(onv_name_map *map, const char *name, onv_value_id id)
{
    if (!map->is_dense) return onv_ptr_map_set(&map->some, name, id.index);
    size_t at = onv_string_number(name);
    if (at >= map->n && !grow(map, at + at / 2 + 1)) return false;
    map->all[at] = id.index + 1;
    return true;
}

bool onv_name_map_get(const onv_name_map *map, const char *name, onv_value_id *id)
{
    uint32_t found;
    if (!map->is_dense) {
        if (!onv_ptr_map_get(&map->some, name, &found)) return false;
    } else {
        size_t at = onv_string_number(name);
        if (at >= map->n || map->all[at] == 0) return false;
        found = map->all[at] - 1;
    }
    if (id != NULL) id->index = found;
    return true;
}

void onv_name_map_cleanup(onv_name_map *map)
{
    onv_ptr_map_cleanup(&map->some);
    onv_heap_free(map->all);
    *map = (onv_name_map){0};
}

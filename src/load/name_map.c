#include "load/build.h"

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

bool onv_name_map_reserve(onv_name_map *map, size_t extra)
{
    return map->is_dense ? grow(map, map->strings->count) : onv_ptr_map_reserve(&map->some, extra);
}

bool onv_name_map_set(onv_name_map *map, onv_name name, onv_value_id id)
{
    if (!map->is_dense)
        return onv_ptr_map_set(&map->some, onv_string_at(map->strings, name), id.index);
    if (name >= map->n && !grow(map, name + (size_t)name / 2 + 1)) return false;
    map->all[name] = id.index + 1;
    return true;
}

bool onv_name_map_get(const onv_name_map *map, onv_name name, onv_value_id *id)
{
    uint32_t found;
    if (!map->is_dense) {
        if (!onv_ptr_map_get(&map->some, onv_string_at(map->strings, name), &found)) return false;
    } else {
        if (name >= map->n || map->all[name] == 0) return false;
        found = map->all[name] - 1;
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

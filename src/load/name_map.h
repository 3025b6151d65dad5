/* From names, which are interned, to values: of one scope.
 *
 * The scope of the main graph has most names of a file, so its map is an array by the number of the string:
 * names that are defined one after the other stand side by side. Scopes of inner graphs and calls
 * are many, and small: they have a hash map.
 */
#ifndef ONV_LOAD_NAME_MAP_H
#define ONV_LOAD_NAME_MAP_H

#include "base/ptr_map.h"
#include "ir/model.h"
#include "load/scan.h"

typedef struct onv_name_map {
    const onv_strings *strings;
    onv_ptr_map some; /* of a scope that is not dense: by text */
    uint32_t *all;    /* 1 + the value, by the number of its name; 0: none */
    size_t n;
    bool is_dense;
} onv_name_map;

/* Makes room for `extra` more names, where all of the table may come. */
bool onv_name_map_reserve(onv_name_map *map, size_t extra);

/* Adds or replaces; false when memory is short. A name may stand for no value. */
bool onv_name_map_set(onv_name_map *map, onv_name name, onv_value_id id);

/* Whether the name is there; then *id is set (NULL allowed). */
bool onv_name_map_get(const onv_name_map *map, onv_name name, onv_value_id *id);

void onv_name_map_cleanup(onv_name_map *map);

#endif

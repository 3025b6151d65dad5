#include "base/vec.h"

#include <stdint.h>

#include "base/heap.h"

typedef ONV_VEC(void) vector;

bool onv_vec_grow(void *vec, size_t extra, size_t size)
{
    vector *v = vec;
    if (extra <= v->capacity - v->count) return true;
    if (extra > SIZE_MAX / 2 / size - v->count) return false;
    size_t wanted = v->capacity < 8 ? 8 : v->capacity * 2;
    if (wanted < v->count + extra) wanted = v->count + extra;
    void *grown = onv_heap_realloc(v->at, wanted * size);
    if (grown == NULL) return false;
    v->at = grown;
    v->capacity = wanted;
    return true;
}

bool onv_vec_shrink(void *vec, size_t size)
{
    vector *v = vec;
    if (v->count == v->capacity) return true;
    void *fitted = onv_heap_realloc(v->at, v->count * size);
    if (fitted == NULL) return false;
    v->at = fitted;
    v->capacity = v->count;
    return true;
}

void onv_vec_free(void *data)
{
    onv_heap_free(data);
}

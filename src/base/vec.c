#include "base/vec.h"

#include <stdint.h>

#include "base/heap.h"

bool onv_vec_grow(void **data, size_t *capacity, size_t count, size_t extra, size_t size)
{
    if (extra <= *capacity - count) return true;
    if (extra > SIZE_MAX / 2 / size - count) return false;
    size_t wanted = *capacity < 8 ? 8 : *capacity * 2;
    if (wanted < count + extra) wanted = count + extra;
    void *grown = onv_heap_realloc(*data, wanted * size);
    if (grown == NULL) return false;
    *data = grown;
    *capacity = wanted;
    return true;
}

bool onv_vec_shrink(void **data, size_t *capacity, size_t count, size_t size)
{
    if (count == *capacity) return true;
    void *fitted = onv_heap_realloc(*data, count * size);
    if (fitted == NULL) return false;
    *data = fitted;
    *capacity = count;
    return true;
}

void onv_vec_free(void *data)
{
    onv_heap_free(data);
}

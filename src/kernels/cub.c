#include "kernels/cub.h"

#include "base/checked.h"

enum { DIGITS = 256, UNIT = 256, STATE = DIGITS * 4, REST = 511 };

static uint64_t copy_bytes(uint64_t n, uint64_t each)
{
    uint64_t bytes = onv_u64_plus(onv_u64_times(n, each), UNIT - 1);
    return bytes == UINT64_MAX ? bytes : bytes / UNIT * UNIT;
}

uint64_t onv_cub_sort_bytes(const onv_cub_sort *sort)
{
    if (sort->n <= sort->single) return 1;
    uint64_t tiles = sort->n / sort->tile + (sort->n % sort->tile > 0);
    uint64_t bytes =
        onv_u64_plus(onv_u64_times(tiles, STATE), sort->passes * DIGITS * sort->counter + REST);
    if (sort->passes == 1) return bytes;
    return onv_u64_plus(
        bytes, onv_u64_plus(copy_bytes(sort->n, sort->key), copy_bytes(sort->n, sort->value)));
}

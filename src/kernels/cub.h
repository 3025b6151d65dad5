/* What the sorts of cub take while they run. */
#ifndef ONV_KERNELS_CUB_H
#define ONV_KERNELS_CUB_H

#include <stdint.h>

/* A radix sort of n pairs. Sizes are bytes. */
typedef struct onv_cub_sort {
    uint64_t n;
    uint64_t key, value, counter; /* of a key, of a value, of a count of digits */
    uint64_t passes;              /* of eight bits each */
    uint64_t tile;                /* pairs that a block of threads takes at a time */
    uint64_t single;              /* up to so many pairs are sorted by one block, without memory */
} onv_cub_sort;

/* Keys and values once more where one pass is not enough, how often each digit occurs in each pass, and a state of each tile. One byte where
 * a block is enough; UINT64_MAX where it does not fit. Measured: CUDA builds of PyTorch 2.15 and ONNX Runtime 1.31. */
uint64_t onv_cub_sort_bytes(const onv_cub_sort *sort);

#endif

/* What PyTorch's kernels for sums and other reductions take while they run. */
#ifndef ONV_KERNELS_REDUCTION_H
#define ONV_KERNELS_REDUCTION_H

#include "kernels/device.h"

/* Multiprocessors of the largest common device of a compute capability. */
uint64_t onv_processors(uint32_t capability);

/* `inputs` values of `elem` bytes are reduced to each of `outputs`, of which `adjacent` at a time lie side by side: the sum over the rows
 * of a matrix, as the gradient of a bias, or over the pixels of images whose channels come last. A part has `part_bytes`. Nothing where each
 * result is the work of one block of threads; UINT64_MAX where it does not fit. */
typedef struct onv_column_sum {
    uint64_t part_bytes;    /* what the blocks leave */
    uint64_t counter_bytes; /* beside it, allocated by itself: how many of them are through */
} onv_column_sum;

onv_column_sum onv_column_sum_of(uint64_t inputs, uint64_t outputs, uint64_t adjacent,
                                 uint32_t elem, uint32_t part_bytes,
                                 const onv_cuda_library_settings *settings);

#endif

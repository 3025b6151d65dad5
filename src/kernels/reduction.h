/* What PyTorch's kernels for sums take while they run. */
#ifndef ONV_KERNELS_REDUCTION_H
#define ONV_KERNELS_REDUCTION_H

#include "kernels/device.h"

/* `inputs` values of `elem` bytes are added up to each of `outputs`, which lie side by side: the sum over the rows of a matrix, as the
 * gradient of a bias. 0 where each result is the work of one block of threads; UINT64_MAX where it does not fit. */
uint64_t onv_column_sum_bytes(uint64_t inputs, uint64_t outputs, uint32_t elem,
                              const onv_cuda_library_settings *settings);

#endif

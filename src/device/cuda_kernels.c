#include "device/cuda_kernels.h"

/* The build writes the bytes as a list of numbers, if it has a compiler for them. The loader wants
 * them aligned. */
#ifdef ONV_CUDA_KERNELS_FILE
_Alignas(16) const unsigned char onv_cuda_kernels[] = {
#include ONV_CUDA_KERNELS_FILE
};
const size_t onv_cuda_kernels_bytes = sizeof onv_cuda_kernels;
#else
const unsigned char onv_cuda_kernels[1] = {0};
const size_t onv_cuda_kernels_bytes = 0;
#endif

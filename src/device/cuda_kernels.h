/* The kernels of kernels.cu as the driver loads them: a fat binary, or nothing (0 bytes) in builds
 * without the CUDA Toolkit. */
#ifndef ONV_DEVICE_CUDA_KERNELS_H
#define ONV_DEVICE_CUDA_KERNELS_H

#include <stddef.h>

extern const unsigned char onv_cuda_kernels[];
extern const size_t onv_cuda_kernels_bytes;

#endif

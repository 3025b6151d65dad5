/* What cuBLAS takes while it computes a product, and what its handles take from the driver. */
#ifndef ONV_KERNELS_CUBLAS_H
#define ONV_KERNELS_CUBLAS_H

#include "ir/type.h"
#include "kernels/device.h"

typedef struct onv_cublas_workspace {
    bool is_lt;          /* cuBLASLt's */
    uint64_t bytes;      /* for the time of the call */
    uint64_t kept_bytes; /* by the handle, from its first use on */
} onv_cublas_workspace;

/* A product of any kind and size: PyTorch gives the handle memory of its caching allocator. */
onv_cublas_workspace onv_cublas_product(const onv_cuda_library_settings *settings);

/* [m, k] x [k, n] + bias, a vector of n or (`has_bias` false) none: cuBLASLt adds the bias, where it can. */
onv_cublas_workspace onv_cublas_linear(int64_t k, int64_t n, bool has_bias,
                                       const onv_cuda_library_settings *settings);

/* Beside the allocator, for each handle; every thread that multiplies has one. */
uint64_t onv_cublas_handle_bytes(const onv_cuda_library_settings *settings);

#endif

/* Workspaces of products, as aten/src/ATen/cuda/CublasHandlePool.cpp chooses them: 32 MiB from compute
 * capability 9.0 on, otherwise two of 4 MiB and eight of 16 KiB. Measured with the CUDA builds of PyTorch 2.15:
 * every dtype, size and kind of product takes the same. */
#include "kernels/cublas.h"

#define LARGE                 UINT64_C(33554432)
#define SMALL                 UINT64_C(8519680)
#define OF_LT                 UINT64_C(1048576)
#define RELEASE(major, minor) (1000 * (major) + (minor))

static uint64_t chosen_bytes(const onv_cuda_library_settings *settings)
{
    uint32_t major = settings->compute_capability / 10;
    if (major == 9) return LARGE;
    /* Blackwell was small at first. */
    return major > 9 && settings->pytorch >= RELEASE(2, 12) ? LARGE : SMALL;
}

onv_cublas_workspace onv_cublas_product(const onv_cuda_library_settings *settings)
{
    /* Before 2.0 cuBLAS had memory of its own. */
    if (settings->compute_capability == 0 || settings->pytorch < RELEASE(2, 0))
        return (onv_cublas_workspace){0};
    uint64_t bytes = chosen_bytes(settings);
    bool is_kept = settings->pytorch < RELEASE(2, 15);
    return (onv_cublas_workspace){.bytes = is_kept ? 0 : bytes, .kept_bytes = is_kept ? bytes : 0};
}

onv_cublas_workspace onv_cublas_linear(int64_t k, int64_t n, bool has_bias,
                                       const onv_cuda_library_settings *settings)
{
    /* Releases between share one workspace between cuBLAS and cuBLASLt. */
    bool shares = settings->pytorch >= RELEASE(2, 8) && settings->pytorch < RELEASE(2, 15);
    bool is_lt = has_bias && k > 1 && n > 1 && !shares;
    if (!is_lt || settings->compute_capability == 0) return onv_cublas_product(settings);
    /* Before, cuBLASLt takes the handle of cuBLAS, which is given its own memory with that. */
    return (onv_cublas_workspace){
        .is_lt = true, .bytes = OF_LT, .kept_bytes = onv_cublas_product(settings).kept_bytes};
}

uint64_t onv_cublas_handle_bytes(const onv_cuda_library_settings *settings)
{
    if (settings->compute_capability == 0) return 0;
    uint64_t own = settings->compute_capability >= 90 ? UINT64_C(67108864) : UINT64_C(8388608);
    return 1024 + 131072 + own;
}

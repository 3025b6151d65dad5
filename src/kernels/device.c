#include "kernels/device.h"

onv_cuda_library_settings onv_cuda_library_defaults(void)
{
    return (onv_cuda_library_settings){.compute_capability = 90, .pytorch = 2015, .tf32 = true};
}

#include "kernels/device.h"

onv_cuda_library_settings onv_cuda_library_defaults(void)
{
    return (onv_cuda_library_settings){.compute_capability = 90,
                                       .pytorch = 2015,
                                       .device_bytes = UINT64_C(80) << 30,
                                       .tf32 = true};
}

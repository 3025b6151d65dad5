#include "kernels/cudnn.h"

uint64_t onv_cudnn_handle_bytes(const onv_cuda_library_settings *settings)
{
    if (settings->compute_capability == 0) return 0;
    if (settings->compute_capability >= 90) return 25348;
    if (settings->compute_capability == 89) return 24580;
    return settings->compute_capability == 86 ? 15748 : 20740;
}

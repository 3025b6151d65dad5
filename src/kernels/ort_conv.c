#include "kernels/ort_conv.h"

#include "base/checked.h"

/* The fallback engine keeps an offset for each tap of a filter: 4 bytes. */
static uint64_t fallback_bytes(const onv_conv_problem *p)
{
    if (p->groups < 1 || p->in_channels < 1 || p->spatial_rank > 3) return 0;
    uint64_t bytes =
        4 * ((uint64_t)(p->transposed ? p->out_channels : p->in_channels) / (uint64_t)p->groups);
    for (uint32_t i = 0; i < p->spatial_rank; i++)
        bytes = p->kernel[i] < 0 ? UINT64_MAX : onv_u64_times(bytes, (uint64_t)p->kernel[i]);
    return bytes;
}

/* One axis is asked for as the height of an image of width 1 (core/providers/cuda/nn/conv.cc; what
 * cudnn_conv1d_pad_to_nc1d would make the width is the height). */
static onv_conv_problem as_image(onv_conv_problem p)
{
    if (p.spatial_rank != 1) return p;
    p.spatial_rank = 2;
    p.in[1] = p.out[1] = p.kernel[1] = p.stride[1] = p.dilation[1] = 1;
    p.pad_begin[1] = p.pad_end[1] = 0;
    return p;
}

onv_conv_workspace onv_ort_conv_workspace(const onv_conv_problem *p, onv_ort_conv_search search,
                                          const onv_cuda_library_settings *settings)
{
    onv_cuda_library_settings own = *settings;
    own.pytorch = 0;
    own.channels_last = false;
    onv_cudnn_heuristics asked =
        search == ONV_ORT_CONV_HEURISTIC ? ONV_CUDNN_HEURISTICS_A : ONV_CUDNN_HEURISTICS_B;
    onv_conv_problem image = as_image(*p);
    if (search != ONV_ORT_CONV_DEFAULT)
        return onv_cudnn_conv_workspace_range(&image, ONV_CONV_FORWARD, asked, &own);
    uint64_t bytes = fallback_bytes(p);
    return (onv_conv_workspace){.bytes = bytes, .low = bytes, .high = bytes};
}

/* Workspaces of convolutions.
 *
 * Kernels that use tensor cores want NHWC. Where tensors are NCHW, copies of them in the other order stand in
 * the workspace. */
#include "base/checked.h"
#include "kernels/cudnn.h"

static uint64_t product(const int64_t *dims, uint32_t n, uint64_t of)
{
    for (uint32_t i = 0; i < n; i++)
        if (dims[i] < 0 || !onv_u64_mul(of, (uint64_t)dims[i], &of)) return UINT64_MAX;
    return of;
}

static uint64_t bytes_of(const onv_conv_problem *p, int64_t a, int64_t b, const int64_t *spatial)
{
    uint64_t bytes;
    uint64_t elems = product((const int64_t[]){a, b}, 2, product(spatial, p->spatial_rank, 1));
    return onv_dtype_bytes(p->dtype, elems, &bytes) ? bytes : UINT64_MAX;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return onv_u64_add(a, b, &a) ? a : UINT64_MAX;
}

uint64_t onv_cudnn_conv_workspace(const onv_conv_problem *p, onv_conv_pass pass,
                                  const onv_cuda_library_settings *settings)
{
    bool pointwise = true, strided = false;
    for (uint32_t i = 0; i < p->spatial_rank; i++) {
        pointwise &= p->kernel[i] == 1;
        strided |= p->stride[i] != 1;
    }
    bool low = p->dtype == ONV_FLOAT16 || p->dtype == ONV_BFLOAT16;
    if (settings->channels_last || p->groups != 1 || (!low && !settings->tf32)) return 0;
    uint64_t x = bytes_of(p, p->batch, p->in_channels, p->in);
    uint64_t y = bytes_of(p, p->batch, p->out_channels, p->out);
    uint64_t w = bytes_of(p, p->in_channels, p->out_channels, p->kernel);
    if (!pointwise) return add(add(x, y), w);
    if (strided) return add(x, y);
    return pass == ONV_CONV_FORWARD ? 0 : w;
}

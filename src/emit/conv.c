/* Convolutions: the order of memory that they answer in, their copies and workspaces. */
#include "emit/conv.h"

#include "base/checked.h"
#include "kernels/cudnn.h"

/* A kernel of one place, or of one channel, is the same whichever comes last. */
static bool is_in_both_orders(const onv_eager_tensor *kernel)
{
    uint64_t places = 1;
    for (uint32_t i = 2; i < kernel->rank; i++) places *= kernel->dims[i] > 1 ? 2 : 1;
    return places == 1 || kernel->dims[1] == 1;
}

/* What it pads itself at both ends. Uneven pads were added by an operation of their own. */
static bool find_pad(const onv_conv_call *call, uint32_t i, const onv_conv_problem *p, int64_t *pad)
{
    int64_t needed;
    if (!onv_conv_needed_pad(p, i, &needed)) return false;
    int64_t least = needed / 2 + needed % 2;
    *pad = call->pad[i] >= 0 ? call->pad[i] : least;
    if (!p->transposed && (*pad < least || *pad > least + p->stride[i])) *pad = least;
    return true;
}

/* Of the tensors that cuDNN sees. */
static bool describe_conv(onv_emitter *e, const onv_conv_call *call, uint32_t x, uint32_t w,
                          uint32_t out, onv_conv_problem *p)
{
    onv_eager_tensor in = onv_tensor_at(e, x), kernel = onv_tensor_at(e, w);
    onv_eager_tensor y = onv_tensor_at(e, out);
    if (e->status != ONV_OK || in.rank < 3 || in.rank > 5 || kernel.rank != in.rank ||
        y.rank != in.rank || in.elems == 0 || y.elems == 0 || kernel.elems == 0)
        return false;
    *p = (onv_conv_problem){.dtype = (onv_dtype)in.dtype,
                            .spatial_rank = in.rank - 2,
                            .batch = in.dims[0],
                            .in_channels = in.dims[1],
                            .out_channels = y.dims[1],
                            .groups = call->groups,
                            .transposed = call->is_transposed};
    for (uint32_t i = 0; i < p->spatial_rank; i++) {
        p->in[i] = in.dims[2 + i];
        p->out[i] = y.dims[2 + i];
        p->kernel[i] = kernel.dims[2 + i];
        p->stride[i] = call->stride[i];
        p->dilation[i] = call->dilation[i];
        if (!find_pad(call, i, p, &p->pad_begin[i])) return false;
        p->pad_end[i] = p->pad_begin[i];
    }
    return p->groups > 0;
}

static void emit_conv_workspaces(onv_emitter *e, const onv_conv_call *call, uint32_t x, uint32_t w,
                                 uint32_t out, bool is_last)
{
    onv_cuda_library_settings settings = e->options->cuda, *cuda = &settings;
    onv_conv_problem p;
    if (cuda->compute_capability == 0 || !describe_conv(e, call, x, w, out, &p)) return;
    cuda->channels_last |= is_last;
    cuda->answers = &e->convolutions;
    e->eager->uses_cudnn = true;
    e->op.swaps_grads = p.spatial_rank < 3 && onv_is_native_depthwise(&p, cuda);
    onv_cuda_library_settings first = *cuda;
    first.first = true;
    onv_eager_workspace of[3] = {0};
    uint32_t n_passes = e->options->inference ? ONV_CONV_FORWARD + 1 : 3;
    for (uint32_t pass = 0; pass < n_passes; pass++) {
        of[pass].library = "cuDNN";
        onv_conv_workspace chosen =
            onv_cudnn_conv_workspace_range(&p, (onv_conv_pass)pass, ONV_CUDNN_HEURISTICS_A, cuda);
        of[pass].bytes = chosen.bytes;
        of[pass].low_bytes = chosen.low;
        of[pass].high_bytes = chosen.high;
        e->eager->has_open_workspaces |= chosen.low < chosen.high;
        if (cuda->benchmark && chosen.high > e->benchmark_high) e->benchmark_high = chosen.high;
        if (cuda->benchmark)
            of[pass].first_bytes = onv_cudnn_conv_workspace_range(&p, (onv_conv_pass)pass,
                                                                  ONV_CUDNN_HEURISTICS_A, &first)
                                       .bytes;
    }
    onv_emit_workspace(e, of[ONV_CONV_FORWARD]);
    onv_emit_grad_workspace(e, x, of[ONV_CONV_BACKWARD_DATA]);
    onv_emit_grad_workspace(e, w, of[ONV_CONV_BACKWARD_WEIGHT]);
}

/* Without gaps: of tokens that are a part of a sequence, the images lie apart. */
static bool is_dense(const onv_eager_tensor *t)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < t->rank; i++) last += (uint64_t)((t->dims[i] - 1) * t->strides[i]);
    return t->elems == 0 || last + 1 == t->elems;
}

/* Images whose channels come last: cuDNN takes them as they are, those of one channel a kernel too, and answers in their
 * order, with a copy of the weight in it. Everything else that is not contiguous, in that order or by itself, is copied. */
static uint64_t copied_bytes(const onv_emitter *e, uint32_t x, uint32_t w, bool is_last)
{
    onv_eager_tensor t = onv_tensor_at(e, x), kernel = onv_tensor_at(e, w);
    if (!is_last) return onv_tensor_is_contiguous(&t) ? 0 : t.bytes;
    bool copies_kernel = kernel.rank == t.rank && !is_in_both_orders(&kernel);
    return onv_u64_plus(is_dense(&t) ? 0 : t.bytes, copies_kernel ? kernel.bytes : 0);
}

/* Each place of the result, of a transposed one of the input, takes all of a filter. */
static uint64_t count_macs(const onv_emitter *e, uint32_t w, uint32_t places)
{
    onv_eager_tensor kernel = onv_tensor_at(e, w);
    uint64_t macs;
    if (kernel.rank == 0 || kernel.dims[0] <= 0) return 0;
    return onv_u64_mul(onv_tensor_at(e, places).elems, kernel.elems / (uint64_t)kernel.dims[0],
                       &macs)
               ? macs
               : 0;
}

uint32_t onv_emit_conv(onv_emitter *e, const onv_conv_call *call, uint32_t x, uint32_t w,
                       uint32_t bias, uint32_t out)
{
    onv_eager_tensor t = onv_tensor_at(e, x);
    bool is_last = x != ONV_NO_TENSOR && onv_tensor_is_channels_last(&t);
    uint64_t bytes = x != ONV_NO_TENSOR ? copied_bytes(e, x, w, is_last) : 0;
    onv_emit_begin_op(e, ONV_ATEN_conv);
    onv_emit_in_saved(e, x, ONV_GRAD_NEW);
    onv_emit_in_saved(e, w, ONV_GRAD_NEW);
    onv_emit_in(e, bias, ONV_GRAD_NEW);
    emit_conv_workspaces(e, call, x, w, out, is_last);
    onv_emit_bias_workspace(e, bias, out);
    onv_emit_temps(e, bytes, bytes);
    e->op.copies_first = true;
    e->op.macs = count_macs(e, w, call->is_transposed ? x : out);
    onv_emit_out(e, out);
    onv_emit_end(e);
    return out;
}

/* Convolutions: what was padded before them, the order of memory that they answer in, their workspaces. */
#include <string.h>

#include "base/checked.h"
#include "kernels/cudnn.h"
#include "lower/lowering.h"

/* The older exporter names what it computed itself: weight and bias where it folded a batch norm into a
 * convolution, which had no bias before, as usual. Constant folding alone computes a weight. */
bool onv_is_computed_conv(const onv_lowering *l, onv_value_id id)
{
    static const char prefix[] = "onnx::Conv_";
    return onv_is_value(id) &&
           strncmp(onv_model_value(l->model, id)->name, prefix, strlen(prefix)) == 0;
}

/* A kernel of one place, or of one channel, is the same whichever comes last. */
static bool is_in_both_orders(const onv_eager_tensor *kernel)
{
    uint64_t places = 1;
    for (uint32_t i = 2; i < kernel->rank; i++) places *= kernel->dims[i] > 1 ? 2 : 1;
    return places == 1 || kernel->dims[1] == 1;
}

/* What it pads itself at both ends. Uneven pads were added by an operation of their own. */
static bool find_pad(const onv_node *node, uint32_t i, const onv_conv_problem *p, int64_t *pad)
{
    int64_t needed;
    if (!onv_conv_needed_pad(p, i, &needed)) return false;
    int64_t least = needed / 2 + needed % 2;
    *pad = onv_node_int_at(node, "pads", i, least);
    if (!p->transposed && (*pad < least || *pad > least + p->stride[i])) *pad = least;
    return true;
}

/* Of the tensors that cuDNN sees. */
static bool describe_conv(onv_lowering *l, const onv_node *node, uint32_t x, uint32_t w,
                          uint32_t out, onv_conv_problem *p)
{
    onv_eager_tensor in = onv_tensor_at(l, x), kernel = onv_tensor_at(l, w);
    onv_eager_tensor y = onv_tensor_at(l, out);
    if (l->status != ONV_OK || in.rank < 3 || in.rank > 5 || kernel.rank != in.rank ||
        y.rank != in.rank || in.elems == 0 || y.elems == 0 || kernel.elems == 0)
        return false;
    *p = (onv_conv_problem){.dtype = (onv_dtype)in.dtype,
                            .spatial_rank = in.rank - 2,
                            .batch = in.dims[0],
                            .in_channels = in.dims[1],
                            .out_channels = y.dims[1],
                            .groups = onv_node_int(node, "group", 1),
                            .transposed = strcmp(node->op_type, "ConvTranspose") == 0};
    for (uint32_t i = 0; i < p->spatial_rank; i++) {
        p->in[i] = in.dims[2 + i];
        p->out[i] = y.dims[2 + i];
        p->kernel[i] = kernel.dims[2 + i];
        p->stride[i] = onv_node_int_at(node, "strides", i, 1);
        p->dilation[i] = onv_node_int_at(node, "dilations", i, 1);
        if (!find_pad(node, i, p, &p->pad_begin[i])) return false;
        p->pad_end[i] = p->pad_begin[i];
    }
    return p->groups > 0;
}

static void emit_conv_workspaces(onv_lowering *l, const onv_node *node, uint32_t x, uint32_t w,
                                 uint32_t out, bool is_last)
{
    onv_cuda_library_settings settings = l->options->cuda, *cuda = &settings;
    onv_conv_problem p;
    if (cuda->compute_capability == 0 || !describe_conv(l, node, x, w, out, &p)) return;
    cuda->channels_last |= is_last;
    l->eager->uses_cudnn = true;
    l->emit.op.swaps_grads = p.spatial_rank < 3 && onv_is_native_depthwise(&p, cuda);
    onv_cuda_library_settings first = *cuda;
    first.first = true;
    onv_eager_workspace of[3] = {0};
    for (uint32_t pass = 0; pass < 3; pass++) {
        of[pass].library = "cuDNN";
        bool runs = pass == ONV_CONV_FORWARD || !l->options->inference;
        onv_conv_workspace chosen =
            onv_cudnn_conv_workspace_range(&p, (onv_conv_pass)pass, ONV_CUDNN_HEURISTICS_A, cuda);
        of[pass].bytes = chosen.bytes;
        if (cuda->benchmark && runs && chosen.high > l->benchmark_high)
            l->benchmark_high = chosen.high;
        if (cuda->benchmark)
            of[pass].first_bytes = onv_cudnn_conv_workspace(&p, (onv_conv_pass)pass, &first);
    }
    onv_emit_workspace(l, of[ONV_CONV_FORWARD]);
    onv_emit_grad_workspace(l, x, of[ONV_CONV_BACKWARD_DATA]);
    onv_emit_grad_workspace(l, w, of[ONV_CONV_BACKWARD_WEIGHT]);
}

/* What a convolution copies, forward and backward. */
typedef struct copied {
    uint64_t forward, backward;
} copied;

/* Images whose channels come last: cuDNN takes them as they are, those of one channel a kernel too, and answers in their
 * order, with a copy of the weight in it. The gradient of the weight comes in that order, too, and is copied once
 * the node has returned. Everything else that is not contiguous is copied. */
static uint32_t new_convolved(onv_lowering *l, const onv_node *node, uint32_t x, uint32_t w,
                              bool is_last, copied *bytes)
{
    onv_eager_tensor t = onv_tensor_at(l, x), kernel = onv_tensor_at(l, w);
    *bytes = (copied){0};
    if (x == ONV_NO_TENSOR) return onv_node_new(l, node, 0, t.dtype);
    uint32_t out = onv_node_new_image(l, node, &t, t.dtype);
    if (!is_last && !onv_tensor_is_contiguous(&t)) *bytes = (copied){t.bytes, t.bytes};
    if (!is_last || kernel.rank != t.rank || is_in_both_orders(&kernel)) return out;
    uint64_t beside;
    if (!onv_u64_add(onv_tensor_at(l, out).bytes, t.bytes, &beside)) beside = UINT64_MAX;
    *bytes = (copied){kernel.bytes, kernel.bytes > beside ? kernel.bytes - beside : 0};
    return out;
}

void onv_lower_conv(onv_lowering *l, const onv_node *node)
{
    uint32_t x = onv_amp_low(l, onv_emit_padded(l, node, onv_node_in(l, node, 0)));
    uint32_t w = onv_amp_low(l, onv_node_in(l, node, 1));
    uint32_t bias = onv_node_in(l, node, 2), norm_bias;
    bool unfolds = onv_node_unfolds(l, node, &bias, &norm_bias);
    onv_cached_keep(l, node, x);
    onv_eager_tensor t = onv_tensor_at(l, x);
    bool is_last = x != ONV_NO_TENSOR && onv_tensor_is_channels_last(&t);
    copied bytes;
    uint32_t out = new_convolved(l, node, x, w, is_last, &bytes);
    if (bias == ONV_NO_TENSOR && onv_tensor_at(l, out).rank > 1)
        bias = onv_dropped_bias(l, node, onv_tensor_at(l, out).dims[1]);
    bias = onv_amp_low(l, bias);
    onv_emit_begin(l, "conv");
    onv_emit_in(l, x, ONV_GRAD_NEW);
    onv_emit_in(l, w, ONV_GRAD_NEW);
    onv_emit_in(l, bias, ONV_GRAD_NEW);
    onv_emit_save(l, x);
    onv_emit_save(l, w);
    emit_conv_workspaces(l, node, x, w, out, is_last);
    onv_emit_temps(l, bytes.forward, bytes.backward);
    l->emit.op.copies_first = true;
    onv_emit_out(l, out);
    onv_emit_end(l);
    onv_node_set(l, node, 0, unfolds ? onv_emit_unfolded_norm(l, node, out, norm_bias) : out);
    l->eager->folded_norms += onv_is_computed_conv(l, node->inputs[1]);
}

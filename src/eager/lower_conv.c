/* Convolutions: what was padded before them, the order of memory that they answer in, their workspaces. */
#include <string.h>

#include "base/checked.h"
#include "eager/lower.h"
#include "kernels/cudnn.h"

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

/* The result of a Pad of the same tensor to the same size: the convolution reads it, too. */
static uint32_t padded_before(onv_lowering *l, onv_value_id id, uint32_t rank, const int64_t *dims)
{
    uint32_t pad = l->pad_of[id.index];
    if (pad == 0) return ONV_NO_TENSOR;
    onv_value_id result = l->model->nodes.at[pad - 1].outputs[0];
    uint32_t tensor = l->tensor_known[result.index] ? l->tensor_of[result.index] : ONV_NO_TENSOR;
    onv_eager_tensor t = onv_tensor_at(l, tensor);
    bool same = tensor != ONV_NO_TENSOR && t.rank == rank;
    for (uint32_t i = 0; same && i < rank; i++) same = t.dims[i] == dims[i];
    return same ? tensor : ONV_NO_TENSOR;
}

/* A convolution pads both ends alike, unless its notes tell of a padding of its own: what does not was padded before it, into a copy. */
static uint32_t emit_padded(onv_lowering *l, const onv_node *node, uint32_t x)
{
    const onv_attr *pads = onv_node_attr(node, "pads");
    onv_eager_tensor t = onv_tensor_at(l, x);
    if (x == ONV_NO_TENSOR || pads == NULL || pads->kind != ONV_ATTR_INTS || t.rank < 3) return x;
    uint32_t n = t.rank - 2;
    int64_t dims[ONV_MAX_RANK];
    bool uneven = false;
    if (pads->count != 2 * n || strcmp(node->op_type, "Conv") != 0) return x;
    for (uint32_t i = 0; i < t.rank; i++) dims[i] = t.dims[i];
    for (uint32_t i = 0; i < n; i++) {
        uneven |= pads->ints[i] != pads->ints[n + i];
        if (__builtin_add_overflow(dims[2 + i], pads->ints[i], &dims[2 + i]) ||
            __builtin_add_overflow(dims[2 + i], pads->ints[n + i], &dims[2 + i]) || dims[2 + i] < 0)
            return x;
    }
    if ((!uneven && !node->has_pad) || l->options->as_exported) return x;
    uint32_t again = padded_before(l, node->inputs[0], t.rank, dims);
    if (again != ONV_NO_TENSOR) return again;
    int64_t strides[ONV_MAX_RANK];
    bool last = onv_tensor_is_channels_last(&t);
    onv_eager_tensor padded = t;
    padded.dims = dims;
    if (last) onv_strides_like(&padded, strides);
    uint32_t out = onv_tensor_new(l, t.dtype, t.rank, dims, last ? strides : NULL);
    onv_emit_begin(l, "pad");
    onv_emit_in(l, x, ONV_GRAD_NEW);
    onv_emit_out(l, out);
    onv_emit_end(l);
    return out;
}

/* Element i of an attribute with one number for each spatial dim. */
static int64_t spatial(const onv_node *node, const char *name, uint32_t i, int64_t fallback)
{
    const onv_attr *attr = onv_node_attr(node, name);
    bool good = attr != NULL && attr->kind == ONV_ATTR_INTS && i < attr->count;
    return good ? attr->ints[i] : fallback;
}

/* What a convolution reaches beyond its first and last place of the kernel; negative: within it. */
static bool find_pad(const onv_node *node, uint32_t i, const onv_conv_problem *p, int64_t *pad)
{
    int64_t places = p->transposed ? p->in[i] : p->out[i];
    int64_t covered = p->transposed ? p->out[i] : p->in[i];
    int64_t reach, steps;
    if (p->kernel[i] < 1 || p->stride[i] < 1 || p->dilation[i] < 1 ||
        !onv_i64_mul(p->kernel[i] - 1, p->dilation[i], &reach) ||
        !onv_i64_mul(places - 1, p->stride[i], &steps) || !onv_i64_add(reach, steps, &reach) ||
        !onv_i64_add(reach, 2, &reach))
        return false;
    /* Uneven pads were added by an operation of their own. */
    int64_t least = reach > covered ? (reach - covered) / 2 : 0;
    *pad = spatial(node, "pads", i, least);
    if (!p->transposed && *pad < least) *pad = least;
    if (!p->transposed && *pad > least + p->stride[i]) *pad = least;
    return true;
}

/* Of the tensors that cuDNN sees. */
static bool describe_conv(onv_lowering *l, const onv_node *node, uint32_t x, uint32_t w,
                          onv_eager_tensor y, onv_conv_problem *p)
{
    onv_eager_tensor in = onv_tensor_at(l, x), kernel = onv_tensor_at(l, w);
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
        p->stride[i] = spatial(node, "strides", i, 1);
        p->dilation[i] = spatial(node, "dilations", i, 1);
        if (!find_pad(node, i, p, &p->pad_begin[i])) return false;
        p->pad_end[i] = p->pad_begin[i];
    }
    return p->groups > 0;
}

static void emit_conv_workspaces(onv_lowering *l, const onv_node *node, uint32_t x, uint32_t w,
                                 uint32_t out)
{
    onv_cuda_library_settings settings = l->options->cuda, *cuda = &settings;
    onv_eager_tensor t = onv_tensor_at(l, x);
    onv_conv_problem p;
    cuda->channels_last |= !onv_tensor_is_contiguous(&t) && onv_tensor_is_channels_last(&t);
    if (cuda->compute_capability == 0 || !describe_conv(l, node, x, w, onv_tensor_at(l, out), &p))
        return;
    l->eager->uses_cudnn = true;
    l->op.swaps_grads = p.spatial_rank < 3 && onv_is_native_depthwise(&p, cuda);
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

/* Images whose channels come last: cuDNN takes them as they are and answers in their order, with a copy of the
 * weight in it. The gradient of the weight comes in that order, too, and is copied once the node has returned. Kernels
 * for one channel each copy the image, backward before its gradient is made. Everything else that is not contiguous
 * is copied. */
static uint32_t new_convolved(onv_lowering *l, const onv_node *node, uint32_t x, uint32_t w,
                              copied *bytes)
{
    onv_eager_tensor t = onv_tensor_at(l, x), kernel = onv_tensor_at(l, w), y = {0};
    onv_shape shape = {0};
    onv_conv_problem p;
    bool last = x != ONV_NO_TENSOR && onv_tensor_is_channels_last(&t);
    *bytes = (copied){0};
    if (x == ONV_NO_TENSOR || onv_tensor_is_contiguous(&t))
        return onv_node_new(l, node, 0, t.dtype);
    *bytes = (copied){t.bytes, last ? 0 : t.bytes};
    if (!last || l->options->on_cpu || kernel.rank != t.rank ||
        !onv_value_shape(l, node->outputs[0], &shape) || shape.rank != t.rank)
        return onv_node_new(l, node, 0, t.dtype);
    y.rank = shape.rank;
    y.dims = shape.dims;
    y.elems = 1; /* not empty: that is all that is asked for */
    if (!describe_conv(l, node, x, w, y, &p) || onv_is_native_depthwise(&p, &l->options->cuda))
        return onv_node_new(l, node, 0, t.dtype);
    uint32_t out = onv_node_new_image(l, node, &t, t.dtype);
    uint64_t beside = onv_tensor_at(l, out).bytes, weight = kernel.bytes;
    if (is_in_both_orders(&kernel)) weight = 0;
    if (!onv_u64_add(beside, t.bytes, &beside)) beside = UINT64_MAX;
    *bytes = (copied){weight, weight > beside ? weight - beside : 0};
    return out;
}

void onv_lower_conv(onv_lowering *l, const onv_node *node)
{
    uint32_t x = onv_amp_low(l, emit_padded(l, node, onv_node_in(l, node, 0)));
    uint32_t w = onv_amp_low(l, onv_node_in(l, node, 1));
    uint32_t bias = onv_node_in(l, node, 2), norm_bias;
    bool unfolds = onv_node_unfolds(l, node, &bias, &norm_bias);
    copied bytes;
    uint32_t out = new_convolved(l, node, x, w, &bytes);
    if (bias == ONV_NO_TENSOR && onv_tensor_at(l, out).rank > 1)
        bias = onv_dropped_bias(l, node, onv_tensor_at(l, out).dims[1]);
    bias = onv_amp_low(l, bias);
    onv_emit_begin(l, "conv");
    onv_emit_in(l, x, ONV_GRAD_NEW);
    onv_emit_in(l, w, ONV_GRAD_NEW);
    onv_emit_in(l, bias, ONV_GRAD_NEW);
    onv_emit_save(l, x);
    onv_emit_save(l, w);
    emit_conv_workspaces(l, node, x, w, out);
    onv_emit_temps(l, bytes.forward, bytes.backward);
    l->op.copies_first = true;
    onv_emit_out(l, out);
    onv_emit_end(l);
    onv_node_set(l, node, 0, unfolds ? onv_emit_unfolded_norm(l, node, out, norm_bias) : out);
    l->eager->folded_norms += onv_is_computed_conv(l, node->inputs[1]);
}

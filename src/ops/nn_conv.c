/* Convolutions: Conv, ConvInteger, QLinearConv, ConvTranspose, DeformConv, CausalConvWithState,
 * and Col2Im. */
#include "ops/op.h"
#include "ops/rules.h"

enum { W = 1, QLINEAR_W = 3, QLINEAR_ZERO_POINT = 7 }; /* inputs */

static uint32_t weights_input(const onv_op_ctx *c)
{
    return c->op->in.min == 8 ? QLINEAR_W : W;
}

/* The rank that input, weights or kernel_shape tell, -1 where none does. */
static onv_status conv_rank(onv_op_ctx *c, uint32_t w, int *rank)
{
    uint32_t kernel;
    onv_op_attr_ints(c, "kernel_shape", &kernel);
    int x_rank = onv_op_in_rank(c, 0), w_rank = onv_op_in_rank(c, w);
    if (kernel > ONV_MAX_RANK - 2)
        return onv_op_fail(c, "kernel_shape has %u values; at most %d axes can be handled", kernel,
                           ONV_MAX_RANK - 2);
    *rank = x_rank >= 0 ? x_rank : w_rank;
    if (*rank < 0 && kernel > 0) *rank = (int)kernel + 2;
    if (x_rank >= 0 && w_rank >= 0 && x_rank != w_rank)
        return onv_op_fail(c, "input %s and weights %s differ in rank", onv_op_in_text(c, 0),
                           onv_op_in_text(c, w));
    if (*rank >= 0 && *rank < 3)
        return onv_op_fail(c,
                           "rank is %d; a convolution needs a batch, channels and at least one "
                           "spatial axis",
                           *rank);
    return ONV_OK;
}

static onv_status read_group(onv_op_ctx *c, const char *name, onv_dim *group)
{
    int64_t value = onv_op_attr_int(c, name, 1);
    if (value < 1) return onv_op_fail(c, "attribute %s is %lld", name, (long long)value);
    *group = onv_dim_const(value);
    return ONV_OK;
}

static onv_status check_bias(onv_op_ctx *c, uint32_t bias, onv_dim channels)
{
    ONV_TRY(onv_tensor_need_rank(c, bias, 1, 1));
    return onv_tensor_unify(c, "the length of the bias", &channels, onv_op_in_dim(c, bias, 0));
}

static onv_status infer_conv_as(onv_op_ctx *c, onv_dtype dtype)
{
    uint32_t w = weights_input(c);
    int rank;
    ONV_TRY(conv_rank(c, w, &rank));
    if (rank < 0) return onv_op_set_out(c, 0, dtype, NULL, -1);
    onv_dim group, dims[ONV_MAX_RANK];
    onv_window window;
    ONV_TRY(read_group(c, "group", &group));
    ONV_TRY(onv_window_read(c, rank - 2, &window));
    ONV_TRY(onv_window_weights(c, w, &window));
    onv_dim taken = onv_dim_mul(c->dims, onv_op_in_dim(c, w, 1), group);
    if (onv_dim_always_ne(c->dims, onv_op_in_dim(c, 0, 1), taken))
        return onv_op_fail(c,
                           "input %s does not have the channels that weights %s take (group %lld)",
                           onv_op_in_text(c, 0), onv_op_in_text(c, w), (long long)group.raw);
    dims[0] = onv_op_in_dim(c, 0, 0);
    dims[1] = onv_op_in_dim(c, w, 0);
    if (onv_tensor_never_splits(dims[1], group))
        return onv_op_fail(c, "%lld output channels do not split into %lld groups",
                           (long long)dims[1].raw, (long long)group.raw);
    for (int i = 0; i < window.axes; i++)
        ONV_TRY(onv_window_places(c, &window, i, onv_op_in_dim(c, 0, i + 2), &dims[i + 2]));
    return onv_op_set_out(c, 0, dtype, dims, rank);
}

static onv_status infer_conv(onv_op_ctx *c)
{
    ONV_TRY(infer_conv_as(c, onv_op_in_dtype(c, 0)));
    return check_bias(c, 2, onv_op_in_dim(c, W, 0));
}

static onv_status infer_conv_integer(onv_op_ctx *c)
{
    return infer_conv_as(c, ONV_INT32);
}

static onv_status infer_qlinear_conv(onv_op_ctx *c)
{
    ONV_TRY(infer_conv_as(c, onv_op_in_dtype(c, QLINEAR_ZERO_POINT)));
    return check_bias(c, 8, onv_op_in_dim(c, QLINEAR_W, 0));
}

static onv_status infer_deform_conv(onv_op_ctx *c)
{
    onv_dim groups;
    ONV_TRY(infer_conv_as(c, onv_op_in_dtype(c, 0)));
    ONV_TRY(read_group(c, "offset_group", &groups));
    int rank = onv_op_in_rank(c, 0);
    if (rank < 0) return ONV_OK;
    onv_window window;
    ONV_TRY(onv_window_read(c, rank - 2, &window));
    ONV_TRY(onv_window_weights(c, W, &window));
    ONV_TRY(onv_tensor_need_rank(c, 2, rank, rank));
    onv_dim points = onv_dim_mul(c->dims, onv_op_product(c, window.kernel, window.axes), groups);
    onv_dim offsets = onv_dim_mul(c->dims, points, onv_dim_const(rank - 2));
    onv_dim given = onv_op_in_dim(c, 2, 1);
    ONV_TRY(onv_tensor_unify(c, "the channels of the offsets", &given, offsets));
    return check_bias(c, 3, onv_op_in_dim(c, W, 0));
}

/* Every output element reads Cin / group * kernel inputs: the weights without their first axis. */
static onv_dim macs_conv(onv_op_ctx *c)
{
    onv_dim taps = onv_op_in_product(c, weights_input(c), 1, ONV_MAX_RANK);
    return onv_dim_mul(c->dims, onv_count_out_elems(c), taps);
}

/* --- ConvTranspose ----------------------------------------------------------------------------- */

static onv_status transposed_sizes(onv_op_ctx *c, const onv_window *w, onv_dim *sizes)
{
    int64_t extra[ONV_MAX_RANK];
    uint32_t given;
    const int64_t *shape = onv_op_attr_ints(c, "output_shape", &given);
    ONV_TRY(onv_window_list(c, "output_padding", w->axes, 0, 0, extra));
    /* Some exporters put batch and channels before the spatial axes; runtimes skip them. */
    if (given != 0 && given != (uint32_t)w->axes && given != (uint32_t)w->axes + 2)
        return onv_op_fail(c, "attribute output_shape has %u values for %d spatial axes", given,
                           w->axes);
    for (int i = 0; i < w->axes; i++) {
        if (given == 0) {
            ONV_TRY(onv_window_inverse(c, w, i, onv_op_in_dim(c, 0, i + 2), extra[i], &sizes[i]));
            continue;
        }
        int64_t size = shape[given - (uint32_t)w->axes + (uint32_t)i];
        if (size < 0) return onv_op_fail(c, "output_shape holds %lld", (long long)size);
        sizes[i] = onv_dim_const(size);
    }
    return ONV_OK;
}

static onv_status infer_conv_transpose(onv_op_ctx *c)
{
    int rank;
    ONV_TRY(conv_rank(c, W, &rank));
    onv_op_set_like(c, NULL, -1);
    if (rank < 0) return ONV_OK;
    onv_dim group, channels = onv_op_in_dim(c, 0, 1), dims[ONV_MAX_RANK];
    onv_window window;
    ONV_TRY(read_group(c, "group", &group));
    ONV_TRY(onv_window_read(c, rank - 2, &window));
    ONV_TRY(onv_window_weights(c, W, &window));
    ONV_TRY(onv_tensor_unify(c, "the input channels", &channels, onv_op_in_dim(c, W, 0)));
    if (onv_tensor_never_splits(channels, group))
        return onv_op_fail(c, "%lld input channels do not split into %lld groups",
                           (long long)channels.raw, (long long)group.raw);
    dims[0] = onv_op_in_dim(c, 0, 0);
    dims[1] = onv_dim_mul(c->dims, onv_op_in_dim(c, W, 1), group);
    ONV_TRY(transposed_sizes(c, &window, dims + 2));
    onv_op_set_like(c, dims, rank);
    return check_bias(c, 2, dims[1]);
}

/* Every input element is spread over Cout / group * kernel outputs. */
static onv_dim macs_conv_transpose(onv_op_ctx *c)
{
    onv_dim taps = onv_op_in_product(c, W, 1, ONV_MAX_RANK);
    return onv_dim_mul(c->dims, onv_op_in_elems(c, 0), taps);
}

/* --- Col2Im ------------------------------------------------------------------------------------ */

/* The number of blocks that an image of those sizes has room for. */
static onv_status count_blocks(onv_op_ctx *c, const onv_window *w, onv_dim *blocks)
{
    *blocks = onv_dim_const(1);
    for (int i = 0; i < w->axes; i++) {
        onv_dim places;
        ONV_TRY(onv_window_places(c, w, i, onv_op_in_int(c, 1, (uint32_t)i), &places));
        *blocks = onv_dim_mul(c->dims, *blocks, places);
    }
    return ONV_OK;
}

static onv_status infer_col2im(onv_op_ctx *c)
{
    onv_dim count = onv_op_in_dim(c, 1, 0), blocks, dims[ONV_MAX_RANK];
    onv_op_set_like(c, NULL, -1);
    ONV_TRY(onv_tensor_need_rank(c, 0, 3, 3));
    ONV_TRY(onv_tensor_unify(c, "the number of spatial axes", &count, onv_op_in_dim(c, 2, 0)));
    if (!onv_dim_is_const(count)) return ONV_OK;
    if (count.raw < 1 || count.raw > ONV_MAX_RANK - 2)
        return onv_op_fail(c, "image_shape has %lld values", (long long)count.raw);
    onv_window window;
    ONV_TRY(onv_window_read(c, (int)count.raw, &window));
    for (int i = 0; i < window.axes; i++) {
        ONV_TRY(onv_tensor_size_at(c, 1, (uint32_t)i, &dims[i + 2]));
        ONV_TRY(onv_tensor_size_at(c, 2, (uint32_t)i, &window.kernel[i]));
        if (onv_dim_is(window.kernel[i], 0)) return onv_op_fail(c, "block_shape holds 0");
    }
    ONV_TRY(count_blocks(c, &window, &blocks));
    if (onv_dim_always_ne(c->dims, blocks, onv_op_in_dim(c, 0, 2)))
        return onv_op_fail(c, "the input is %s, but the image holds %s blocks",
                           onv_op_in_text(c, 0), onv_dim_text(c->dims, c->arena, blocks));
    onv_dim block = onv_op_product(c, window.kernel, window.axes);
    if (onv_tensor_never_splits(onv_op_in_dim(c, 0, 1), block))
        return onv_op_fail(c, "%lld rows do not split into blocks of %lld",
                           (long long)onv_op_in_dim(c, 0, 1).raw, (long long)block.raw);
    dims[0] = onv_op_in_dim(c, 0, 0);
    dims[1] = onv_dim_exact_div(c->dims, onv_op_in_dim(c, 0, 1), block);
    if (!onv_dim_is_known(dims[1]))
        dims[1] = onv_dim_floordiv(c->dims, onv_op_in_dim(c, 0, 1), block);
    return onv_op_set_like(c, dims, window.axes + 2);
}

static const onv_op rows[] = {
    ONV_OP("Conv", 1, 2, 3, 1, 1, infer_conv, .macs = macs_conv, .alike = ONV_BITS(3)),
    ONV_OP("ConvTranspose", 1, 2, 3, 1, 1, infer_conv_transpose, .macs = macs_conv_transpose,
           .alike = ONV_BITS(3)),
    /* Every channel alone; what goes into the next call are the last positions. */
    ONV_SAYS(
        "CausalConvWithState", 27, 2, 4, 2, 2,
        "(x[batch, channels, length], w[channels, _, kernel], bias[channels], past[_, _, "
        "state]) where state = kernel - 1: [batch, channels, length], [batch, channels, state]",
        .macs = macs_conv, .traits = {.save_in = ONV_BIT(0) | ONV_BIT(1)}),
    ONV_OP("ConvInteger", 10, 2, 4, 1, 1, infer_conv_integer, .macs = macs_conv),
    ONV_OP("QLinearConv", 10, 8, 9, 1, 1, infer_qlinear_conv, .macs = macs_conv),
    ONV_OP("DeformConv", 19, 3, 5, 1, 1, infer_deform_conv, .macs = macs_conv,
           .traits = {.save_in = ONV_BIT(0) | ONV_BIT(1) | ONV_BIT(2) | ONV_BIT(3) | ONV_BIT(4)}),
    ONV_OP("Col2Im", 18, 3, 3, 1, 1, infer_col2im),
};

const onv_op_family onv_ops_nn_conv = {"", rows, sizeof rows / sizeof rows[0]};

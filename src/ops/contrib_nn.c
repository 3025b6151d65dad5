/* com.microsoft: normalisations with what is fused around them, dropout, convolutions. */
#include "base/fail.h"
#include "ops/contrib.h"
#include "ops/rules.h"

/* --- Dropout ----------------------------------------------------------------------------------- */

static bool drops(onv_op_ctx *c, uint32_t training)
{
    return onv_op_has_in(c, training) && !onv_dim_is(onv_op_in_scalar(c, training), 0);
}

static onv_op_traits dropout_traits(onv_op_ctx *c)
{
    bool biased = c->op->in.max == 5;
    onv_op_traits traits = {.inplace = ONV_BIT(0)};
    if (drops(c, biased ? 4 : 2))
        traits.save_out = ONV_BIT(1);
    else if (!biased)
        traits.view_of = 1;
    return traits;
}

/* --- Convolutions ------------------------------------------------------------------------------ */

/* ConvTransposeWithDynamicPads: X, W, pads, bias. The pads are what ConvTranspose has as an
 * attribute, so the node gets one. */
static onv_status infer_conv_transpose(onv_op_ctx *c)
{
    static const uint8_t map[] = {1, 2, 4};
    const onv_op *row = onv_op_of_onnx("ConvTranspose", 22);
    onv_node node = *c->node;
    onv_borrow b;
    uint32_t count;
    ONV_TRY(onv_borrow_init(c, row, 22, map, 3, &b));
    bool known = onv_op_in_ints(c, 2, &count);
    int64_t *pads = ONV_ARENA_ARRAY(c->arena, int64_t, count);
    node.attrs = ONV_ARENA_ARRAY(c->arena, onv_attr, (size_t)node.n_attrs + 1);
    if (pads == NULL || node.attrs == NULL) return onv_fail_memory(c->err);
    for (uint32_t i = 0; i < count; i++) {
        onv_dim pad = onv_op_in_int(c, 2, i);
        known = known && onv_dim_is_const(pad);
        pads[i] = pad.raw;
    }
    if (onv_op_has_in(c, 2) && !known) {
        int rank = onv_op_in_rank(c, 0);
        if (rank >= 0) onv_op_set_out_rank(c, onv_op_in_dtype(c, 0), rank);
        return ONV_OK;
    }
    /* The first of a name counts. */
    node.attrs[0] = (onv_attr){.name = "pads", .kind = ONV_ATTR_INTS, .count = count, .ints = pads};
    for (uint32_t i = 0; i < node.n_attrs; i++) node.attrs[i + 1] = c->node->attrs[i];
    node.n_attrs++;
    b.c.node = count > 0 ? &node : c->node;
    return row->infer(&b.c);
}

static onv_dim macs_conv_transpose(onv_op_ctx *c)
{
    return onv_op_of_onnx("ConvTranspose", 22)->macs(c);
}

/* CausalConvWithState: input [batch, channels, length], or [batch, length, channels]; each channel
 * alone, and the last positions go into the next call. state_window keeps several such states. */
static onv_status infer_causal_conv(onv_op_ctx *c)
{
    enum { W = 1, PAST = 3 };
    bool last = onv_op_attr_int(c, "channels_last", 0) != 0;
    int64_t window = onv_op_attr_int(c, "state_window", 0);
    onv_infer_same(c);
    if (onv_op_has_in(c, PAST)) return onv_op_set_out_like(c, 1, PAST, onv_op_in_dtype(c, PAST));
    onv_op_set_out(c, 1, onv_op_in_dtype(c, 0), NULL, -1);
    if (onv_op_attr_int(c, "ndim", 1) != 1 || onv_op_in_rank(c, 0) != 3) return ONV_OK;
    onv_dim length = onv_dim_sub(c->dims, onv_op_in_dim(c, W, 2), onv_dim_const(1));
    length = onv_dim_mul(c->dims, length, onv_dim_const(onv_op_attr_int(c, "dilation", 1)));
    onv_dim channels = onv_op_in_dim(c, 0, last ? 2 : 1);
    onv_dim dims[4] = {onv_dim_const(window), onv_op_in_dim(c, 0, 0), last ? length : channels,
                       last ? channels : length};
    return onv_op_set_out(c, 1, onv_op_in_dtype(c, 0), window > 0 ? dims : dims + 1,
                          window > 0 ? 4 : 3);
}

/* Every output element reads the kernel of its channel. */
static onv_dim macs_depthwise(onv_op_ctx *c)
{
    if (onv_op_in_rank(c, 1) < 2) return ONV_DIM_UNKNOWN;
    return onv_dim_mul(c->dims, onv_count_out_elems(c), onv_op_in_product(c, 1, 2, ONV_MAX_RANK));
}

/* --- Rows -------------------------------------------------------------------------------------- */

#define NORM(op, least, most, outs, rule, ...)                                                     \
    ONV_OP(op, 1, least, most, 1, outs, rule, .traits = {__VA_ARGS__})
/* The sum of input and skip is the fourth output, and lives on as the residual. */
#define SKIPPED(op, most, saved)                                                                   \
    ONV_SAYS(op, 1, 3, most, 1, 4,                                                                 \
             "(x[_, ..., n], skip, gamma[n], beta[n], bias[n]): like x, [x.:-1, 1] f32, "          \
             "[x.:-1, 1] f32, like x",                                                             \
             .traits = {.save_in = ONV_BIT(2), .save_out = saved})
/* Channels last by default. */
#define GROUP_NORM                                                                                 \
    "(x[_, _, _, ...], gamma[c], beta[c]) where c = if(attr.channels_last or 1, x.-1, x.1), "      \
    "channels_per_group = exact(c / attr.groups): like x"
#define DROPOUT(op, least, most, line)                                                             \
    ONV_SAYS(op, 1, least, most, 1, 2, line, .traits_fn = dropout_traits, .flags = ONV_OP_RANDOM)
/* One bit per element, in words of 32. */
#define BITMASK "(x): like x, [ceil(x.elems / 32)] u32"
#define CONV(op, least, most, fewest, outs, rule, count)                                           \
    ONV_OP(op, 1, least, most, fewest, outs, rule, .macs = count,                                  \
           .traits = {.save_in = ONV_BIT(0) | ONV_BIT(1)})

static const onv_op rows[] = {
    SKIPPED("SkipLayerNormalization", 5, ONV_BIT(1) | ONV_BIT(2) | ONV_BIT(3)),
    SKIPPED("SkipSimplifiedLayerNormalization", 4, ONV_BIT(2) | ONV_BIT(3)),
    NORM("QOrderedLayerNormalization", 5, 5, 1, onv_infer_same, 0),
    NORM("BranchwiseRMSNorm", 1, 2, 1, onv_infer_same, .save_in = ONV_BIT(0) | ONV_BIT(1)),
    NORM("GatedRMSNorm", 3, 3, 1, onv_infer_same, .save_in = ONV_BIT(0) | ONV_BIT(1) | ONV_BIT(2)),
    ONV_SAYS("GroupNorm", 1, 3, 3, 1, 1, GROUP_NORM,
             .traits = {.save_in = ONV_BIT(0) | ONV_BIT(1)}),
    /* The sum is a result, too. */
    ONV_SAYS("SkipGroupNorm", 1, 4, 5, 1, 2, GROUP_NORM ", like x",
             .traits = {.save_in = ONV_BIT(1), .save_out = ONV_BIT(1)}),
    /* Token ids, then the tables; mask_index and embedding_sum. */
    ONV_SAYS("EmbedLayerNormalization", 1, 7, 9, 1, 3,
             "(ids[b, s], segments, words[_, n]): [b, s, n] like words, [b] i32, [b, s, n] like "
             "words",
             .traits = {.save_in = ONV_BIT(0) | ONV_BIT(1) | ONV_BIT(5), .save_out = ONV_BIT(2)}),
    ONV_SAYS("QEmbedLayerNormalization", 1, 18, 18, 1, 2,
             "(ids[b, s], segments, words[_, n], c, d, e, f, g, scale): [b, s, n] like scale, [b] "
             "i32"),
    DROPOUT("BiasDropout", 2, 5, "(x): like x, like x bool"),
    DROPOUT("BitmaskDropout", 1, 3, BITMASK),
    DROPOUT("BitmaskBiasDropout", 2, 5, BITMASK),
    CONV("ConvTransposeWithDynamicPads", 2, 4, 1, 1, infer_conv_transpose, macs_conv_transpose),
    CONV("CausalConvWithState", 2, 4, 2, 2, infer_causal_conv, macs_depthwise),
    /* The same for packed tokens [tokens, channels]. */
    ONV_SAYS("VarlenCausalConvWithState", 1, 5, 6, 2, 3,
             "(x, w, b, c, state): like x, like state, [state.0, attr.state_update_capacity or 0, "
             "state.1]",
             .macs = macs_depthwise, .traits = {.save_in = ONV_BIT(0) | ONV_BIT(1)}),
};

const onv_op_family onv_ops_contrib_nn = {"com.microsoft", rows, sizeof rows / sizeof rows[0]};

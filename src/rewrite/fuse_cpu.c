/* NchwcTransformer: convolutions on the CPU keep their images in blocks of channels, and a sum of such images is a part of
 * the convolution that makes one of them, which adds to the memory of the other.
 *
 * Read in source (core/optimizer/nchwc_transformer.cc), for blocks of 16 channels (AVX-512; 8 without). That other
 * operators reorder images is not modelled: a copy for each, of the same size. */
#include "rewrite/fuse.h"

enum { BLOCK = 16, ALIGNED = 4, MOST_STEPS = 64 };

static bool is_conv(const onv_edit *e, onv_node_id node)
{
    return onv_fuse_is(e, node, ONV_OP_Conv) ||
           onv_edit_is_of(e, node, ONV_MS_DOMAIN, ONV_OP_FusedConv);
}

/* The convolution with these inputs makes what `last` did. */
static bool replace_conv(onv_edit *e, onv_node_id conv, onv_node_id last,
                         const onv_value_id *inputs, uint32_t n_inputs)
{
    const onv_node *at = onv_edit_node_at(e, conv);
    const onv_node_id nodes[2] = {conv, last};
    return onv_fuse_replace(e, last, nodes, 2,
                            ONV_NEW_NODE(.op_type = "FusedConv", .domain = ONV_MS_DOMAIN,
                                         .version = 1, .inputs = inputs, .n_inputs = n_inputs,
                                         .attrs = at->attrs, .n_attrs = at->n_attrs));
}

/* By the weights of float32 of a convolution of images. */
static bool is_blocked_conv(const onv_edit *e, onv_node_id node)
{
    if (onv_edit_node_at(e, node)->provider != ONV_PROVIDER_CPU || !is_conv(e, node) ||
        !onv_edit_is_constant(e, onv_edit_in(e, node, 1)))
        return false;
    const onv_type *w = &onv_edit_value_at(e, onv_edit_in(e, node, 1))->type;
    if (w->dtype != ONV_FLOAT || w->rank != 4) return false;
    int64_t groups = onv_edit_int(e, node, "group", 1);
    int64_t out = w->dims[0].raw, in = w->dims[1].raw;
    if (groups < 2) return in < BLOCK || in % ALIGNED == 0;
    bool is_depthwise = in == 1 && out == groups;
    return is_depthwise || (in % BLOCK == 0 && out % groups == 0 && out / groups % BLOCK == 0);
}

/* Whether an image lies in blocks: pools and what works element by element leave it there. */
static bool is_blocked(const onv_edit *e, onv_value_id value)
{
    for (int step = 0; step < MOST_STEPS; step++) {
        onv_node_id node = onv_edit_producer(e, value);
        if (!onv_is_node(node)) return false;
        if (is_blocked_conv(e, node)) return true;
        const onv_node *at = onv_edit_node_at(e, node);
        if (at->domain[0] != '\0' ||
            !ONV_IS_ANY(at, ONV_OP_Relu, ONV_OP_Clip, ONV_OP_Sigmoid, ONV_OP_HardSigmoid,
                        ONV_OP_Tanh, ONV_OP_MaxPool, ONV_OP_AveragePool, ONV_OP_Add, ONV_OP_Sum,
                        ONV_OP_Mul, ONV_OP_LeakyRelu))
            return false;
        value = onv_edit_in(e, node, 0);
    }
    return false;
}

static bool is_same_type(const onv_type *a, const onv_type *b)
{
    bool same = a->dtype == b->dtype && a->rank == b->rank && onv_type_has_rank(a);
    for (int i = 0; same && i < a->rank; i++) same = onv_dim_same(a->dims[i], b->dims[i]);
    return same;
}

bool onv_fuse_blocked_sum(onv_edit *e, onv_node_id sum)
{
    onv_value_id ends[2] = {onv_edit_in(e, sum, 0), onv_edit_in(e, sum, 1)};
    if (onv_edit_node_at(e, sum)->n_inputs != 2 || !is_blocked(e, ends[0]) ||
        !is_blocked(e, ends[1]) || ends[0].index == ends[1].index ||
        !is_same_type(onv_edit_seen(e, ends[0]), onv_edit_seen(e, ends[1])))
        return false;
    for (uint32_t k = 0; k < 2; k++) {
        onv_node_id conv = onv_edit_producer(e, ends[k]);
        if (!is_blocked_conv(e, conv) || !onv_fuse_is(e, conv, ONV_OP_Conv) ||
            onv_edit_only_user(e, ends[k]).index != sum.index)
            continue;
        const onv_value_id inputs[4] = {onv_edit_in(e, conv, 0), onv_edit_in(e, conv, 1),
                                        onv_edit_in(e, conv, 2), ends[1 - k]};
        return replace_conv(e, conv, sum, inputs, 4);
    }
    return false;
}

/* Of a sum of blocked images, too. */
bool onv_fuse_conv_activation(onv_edit *e, onv_node_id activation)
{
    onv_value_id in = onv_edit_in(e, activation, 0);
    onv_node_id conv = onv_edit_producer(e, in);
    if (!onv_is_node(conv) || onv_edit_node_at(e, activation)->provider != ONV_PROVIDER_CPU ||
        !onv_fuse_same_provider(e, conv, activation) || !is_conv(e, conv) ||
        onv_edit_only_user(e, in).index != activation.index ||
        onv_edit_value_at(e, in)->type.dtype != ONV_FLOAT)
        return false;
    const onv_node *at = onv_edit_node_at(e, conv);
    if (!onv_fuse_is(e, conv, ONV_OP_Conv) && at->n_inputs < 4) return false; /* it has one */
    for (uint32_t k = 1; k < onv_edit_node_at(e, activation)->n_inputs; k++)
        if (onv_is_value(onv_edit_in(e, activation, k)) &&
            !onv_edit_is_constant(e, onv_edit_in(e, activation, k)))
            return false;
    return replace_conv(e, conv, activation, at->inputs, at->n_inputs);
}

/* NchwcTransformer: convolutions and pools of images on the CPU keep channels in blocks, and so does what follows them where
 * it can. Other nodes read the image in plain order, which ReorderOutput makes; channels are filled up to whole blocks.
 *
 * Read in source (core/optimizer/nchwc_transformer.cc), for blocks of 16 channels (AVX-512; 8 without), and compared with
 * graphs that version 1.31 saves. Between images whose sizes are not known to be equal it reshapes before it adds;
 * a view takes no memory, and the addition alone is here. */
#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "base/quota.h"
#include "rewrite/fuse.h"
#include "rewrite/rules.h"
#include "rewrite/transpose.h"

#define NCHWC_DOMAIN "com.microsoft.nchwc"
#define POOLS        "MaxPool AveragePool GlobalMaxPool GlobalAveragePool"

enum {
    BLOCK = 16,
    ALIGNED = 4,
    RANK = 4,
    SPATIAL = 2,
    MOST_NEW = 4 /* values and nodes, of a node */
};

/* Of a value. An image in blocks stands for another value, the plain one. */
typedef struct image {
    onv_value_id plain;                       /* ONV_NO_VALUE: it is in no blocks */
    onv_value_id reordered, filters[2], bias; /* made of it; ONV_NO_VALUE: not yet */
    uint32_t from[RANK];                      /* the value whose size it has on each axis, */
    uint32_t halved[SPATIAL];                 /* halved so often */
    uint32_t uses;                            /* when it was made; an output of the graph is one */
    int64_t channels;
    bool is_active; /* the convolution that makes it applies a function */
} image;

typedef struct blocking {
    onv_edit *e;
    image *images;        /* by value */
    bool *is_blocked;     /* by node: it reads images in blocks */
    onv_node_id to_plain; /* the last Transpose from channels last that one node reads */
    uint32_t n_done;
} blocking;

static image *image_of(const blocking *b, onv_value_id value)
{
    return onv_is_value(value) && onv_is_value(b->images[value.index].plain)
               ? &b->images[value.index]
               : NULL;
}

static int64_t whole_blocks(int64_t channels)
{
    return (channels + BLOCK - 1) / BLOCK * BLOCK;
}

/* --- Images ------------------------------------------------------------------------------------ */

/* From now on `value`, which the node makes, is read instead of the plain one. */
static image *set_image(blocking *b, onv_node_id node, onv_value_id value, onv_value_id plain,
                        int64_t channels)
{
    onv_edit *e = b->e;
    onv_edit_replace(e, plain, value);
    b->is_blocked[node.index] = true;
    b->n_done++;
    image *made = &b->images[value.index];
    made->plain = plain;
    made->channels = channels;
    made->uses = onv_edit_n_uses(e, value) + onv_edit_is_result(e, plain);
    for (int i = 0; i < RANK; i++) made->from[i] = value.index;
    return made;
}

/* An image of the size of another one; NULL: memory ran out. */
static void keep_sizes(const image *in, image *made)
{
    if (in == NULL || made == NULL) return;
    memcpy(made->from, in->from, sizeof made->from);
    memcpy(made->halved, in->halved, sizeof made->halved);
}

/* The node makes an image in blocks in place of its output. */
static image *make_blocks(blocking *b, onv_node_id node, int64_t channels)
{
    onv_edit *e = b->e;
    onv_value_id plain = onv_edit_out(e, node, 0);
    onv_value_id value = onv_edit_add_value(e, onv_edit_node_at(e, node)->graph, plain, "_blocks");
    onv_edit_take_output(e, node, 0, value);
    onv_edit_retype(e, node);
    return e->status == ONV_OK ? set_image(b, node, value, plain, channels) : NULL;
}

/* A node in place of `node`. Its output is made; NULL: memory ran out. */
static image *replace(blocking *b, onv_node_id node, onv_new_node made, int64_t channels)
{
    onv_edit *e = b->e;
    onv_value_id plain = onv_edit_out(e, node, 0);
    onv_value_id value = onv_edit_add_value(e, onv_edit_node_at(e, node)->graph, plain, "_blocks");
    made.at = node;
    made.domain = NCHWC_DOMAIN;
    made.version = 1;
    made.outputs = &value;
    onv_node_id id = onv_edit_add(e, &made);
    if (e->status != ONV_OK) return NULL;
    onv_edit_remove(e, node);
    return set_image(b, id, value, plain, channels);
}

/* What an earlier image stands for becomes what the node makes, and the node goes. */
static void join(blocking *b, onv_node_id node, onv_value_id value)
{
    onv_edit *e = b->e;
    image *to = &b->images[value.index];
    onv_value_id plain = onv_edit_out(e, node, 0);
    onv_edit_remove(e, node);
    onv_edit_replace(e, plain, value);
    to->plain = plain;
    to->uses = onv_edit_n_uses(e, value) + onv_edit_is_result(e, plain);
    b->n_done++;
}

/* The image in blocks of what a node reads. */
static onv_value_id reorder(blocking *b, onv_node_id node, onv_value_id in, int64_t channels)
{
    onv_edit *e = b->e;
    image *known = &b->images[in.index];
    if (onv_is_value(known->plain)) return in;
    if (onv_is_value(known->reordered)) return known->reordered;
    onv_node_id transpose = onv_edit_producer(e, in);
    bool is_last = onv_is_node(transpose) && transpose.index == b->to_plain.index;
    const onv_attr attrs[] = {onv_fuse_int(e, "channels", whole_blocks(channels)),
                              onv_fuse_int(e, "channels_last", is_last)};
    onv_value_id from = is_last ? onv_edit_in(e, transpose, 0) : in;
    known->reordered = ONV_MAKE(e, node, "ReorderInput", .domain = NCHWC_DOMAIN, .version = 1,
                                ONV_INPUTS(from), .attrs = attrs, .n_attrs = 2);
    if (is_last) onv_edit_remove(e, transpose); /* only the node that is replaced read it */
    if (is_last) b->to_plain = ONV_NO_NODE;
    return known->reordered;
}

/* --- Convolutions ------------------------------------------------------------------------------ */

typedef struct filter {
    onv_value_id id;
    int64_t out, in, groups, made_groups, made_in;
    bool reads_plain,
        is_small; /* the image has less channels than a block; the other order of filters */
} filter;

/* A tensor of float32 of this graph that nobody changes. */
static bool is_static(const onv_edit *e, onv_node_id node, onv_value_id value, int rank)
{
    if (!onv_is_value(value) || !onv_edit_is_constant(e, value)) return false;
    const onv_value *at = onv_edit_value_at(e, value);
    return at->type.dtype == ONV_FLOAT && at->type.rank == rank &&
           at->graph.index == onv_edit_node_at(e, node)->graph.index;
}

static bool describe_filter(const onv_edit *e, onv_node_id node, filter *f)
{
    f->id = onv_edit_in(e, node, 1);
    if (!is_static(e, node, f->id, RANK)) return false;
    const onv_dim *dims = onv_edit_value_at(e, f->id)->type.dims;
    f->out = dims[0].raw;
    f->in = f->made_in = dims[1].raw;
    f->groups = f->made_groups = onv_edit_int(e, node, "group", 1);
    if (f->out < 1 || f->in < 1) return false;
    if (f->groups > 1) {
        f->is_small = f->in == 1 && f->out == f->groups;
        if (f->is_small) f->made_groups = whole_blocks(f->out);
        if (f->out % ALIGNED != 0) return false;
        return f->is_small ||
               (f->in % BLOCK == 0 && f->out % f->groups == 0 && f->out / f->groups % BLOCK == 0);
    }
    f->reads_plain = f->is_small = f->in < BLOCK;
    if (!f->is_small) f->made_in = whole_blocks(f->in);
    return f->is_small || f->in % ALIGNED == 0;
}

/* A weight of these dims for those of `of`; `*made` is kept for other nodes. */
static onv_value_id make_weight(blocking *b, onv_value_id of, const int64_t *dims, int rank,
                                onv_value_id *made)
{
    const onv_value *value = onv_edit_value_at(b->e, of);
    if (!onv_is_value(*made))
        *made = onv_edit_add_weight(b->e, value->graph, value->name, ONV_FLOAT, dims, rank, NULL);
    return *made;
}

/* Sizes that follow from those of the image that is read (ConvPoolShapeInference). */
static void follow_sizes(const onv_node *node, const image *in, const int64_t kernel[SPATIAL],
                         image *out)
{
    const onv_attr *pad = onv_node_attr(node, "auto_pad");
    const char *mode = pad != NULL && pad->kind == ONV_ATTR_STRING ? pad->s : "NOTSET";
    bool is_same = strncmp(mode, "SAME_", 5) == 0, has_pads = strcmp(mode, "NOTSET") == 0;
    out->from[0] = in->from[0];
    for (uint32_t i = 0; i < SPATIAL; i++) {
        int64_t stride = onv_node_int_at(node, "strides", i, 1), pads = 0;
        if (onv_node_int_at(node, "dilations", i, 1) != 1 || stride < 1 || stride > 2) continue;
        if (has_pads)
            pads =
                onv_node_int_at(node, "pads", i, 0) + onv_node_int_at(node, "pads", SPATIAL + i, 0);
        if (pads + 1 != kernel[i] && !is_same) continue;
        out->from[SPATIAL + i] = in->from[SPATIAL + i];
        out->halved[i] = in->halved[i] + (uint32_t)stride - 1;
    }
}

static void block_conv(blocking *b, onv_node_id node, const image *in)
{
    onv_edit *e = b->e;
    filter f = {.groups = 1};
    onv_node at = *onv_edit_node_at(e, node);
    if (at.n_inputs > 3 || !describe_filter(e, node, &f)) return;
    onv_value_id inputs[3] = {onv_edit_in(e, node, 0), f.id, ONV_NO_VALUE};
    if (at.n_inputs > 2) {
        inputs[2] = at.inputs[2];
        if (!is_static(e, node, inputs[2], 1)) return;
    }
    const onv_dim *w = onv_edit_value_at(e, f.id)->type.dims;
    const int64_t out = whole_blocks(f.out), dims[RANK] = {out, f.made_in, w[2].raw, w[3].raw};
    bool is_active = at.domain[0] != '\0';
    inputs[1] = make_weight(b, f.id, dims, RANK, &b->images[f.id.index].filters[f.is_small]);
    if (at.n_inputs > 2 && out != f.out)
        inputs[2] = make_weight(b, inputs[2], dims, 1, &b->images[inputs[2].index].bias);
    if (f.reads_plain && in != NULL) inputs[0] = in->plain;
    if (!f.reads_plain) inputs[0] = reorder(b, node, inputs[0], f.in * f.groups);
    onv_edit_set_attr(e, node, onv_fuse_int(e, "group", f.made_groups));
    image *made = replace(b, node,
                          ONV_NEW_NODE(.op_type = "Conv", .inputs = inputs, .n_inputs = at.n_inputs,
                                       .attrs = onv_edit_node_at(e, node)->attrs,
                                       .n_attrs = onv_edit_node_at(e, node)->n_attrs),
                          f.out);
    if (made == NULL) return;
    made->is_active = is_active;
    if (in != NULL && !f.reads_plain) follow_sizes(&at, in, &dims[SPATIAL], made);
}

/* --- Pools and others of their own kernels ------------------------------------------------------- */

static void block_pool(blocking *b, onv_node_id node, const image *known)
{
    onv_edit *e = b->e;
    onv_node at = *onv_edit_node_at(e, node);
    bool is_global = ONV_IS_ANY(&at, ONV_OP_GlobalAveragePool, ONV_OP_GlobalMaxPool);
    onv_value_id in = onv_edit_in(e, node, 0);
    if (!onv_is_value(in) || (at.n_outputs > 1 && onv_is_value(at.outputs[1]))) return;
    onv_dim channels = known != NULL ? onv_dim_const(known->channels) : onv_fuse_dim(e, in, 1);
    if (onv_edit_dtype(e, in) != ONV_FLOAT || onv_fuse_rank(e, in) != RANK ||
        !onv_dim_is_const(channels) || channels.raw % BLOCK != 0)
        return;
    if (is_global && known == NULL && onv_is_node(onv_edit_producer(e, in))) return;
    in = reorder(b, node, in, channels.raw);
    image *made = replace(b, node,
                          ONV_NEW_NODE(.op_type = at.op_type, ONV_INPUTS(in), .attrs = at.attrs,
                                       .n_attrs = at.n_attrs),
                          channels.raw);
    const int64_t kernel[SPATIAL] = {onv_node_int_at(&at, "kernel_shape", 0, 0),
                                     onv_node_int_at(&at, "kernel_shape", 1, 0)};
    if (made != NULL && known != NULL && !is_global) follow_sizes(&at, known, kernel, made);
}

/* A convolution of each channel with one number. */
static void block_norm(blocking *b, onv_node_id node, const image *in)
{
    onv_edit *e = b->e;
    onv_value_id x = onv_edit_in(e, node, 0), w = ONV_NO_VALUE, bias = ONV_NO_VALUE;
    const onv_node *at = onv_edit_node_at(e, node);
    if ((at->n_outputs > 1 && onv_is_value(at->outputs[1])) ||
        onv_edit_int(e, node, "spatial", 1) != 1 || onv_node_attr(at, "epsilon") == NULL)
        return;
    for (uint32_t k = 1; k <= 4; k++)
        if (!is_static(e, node, onv_edit_in(e, node, k), 1)) return;
    int64_t channels = whole_blocks(in->channels);
    const int64_t dims[RANK] = {channels, 1, 1, 1};
    make_weight(b, onv_edit_in(e, node, 1), dims, RANK, &w);
    make_weight(b, onv_edit_in(e, node, 2), dims, 1, &bias);
    const onv_attr group = onv_fuse_int(e, "group", channels);
    image *made = replace(
        b, node,
        ONV_NEW_NODE(.op_type = "Conv", ONV_INPUTS(x, w, bias), .attrs = &group, .n_attrs = 1),
        in->channels);
    keep_sizes(in, made);
}

static bool is_attr(const onv_node *node, const char *name, const char *text)
{
    const onv_attr *attr = onv_node_attr(node, name);
    return attr != NULL && attr->kind == ONV_ATTR_STRING && strcmp(attr->s, text) == 0;
}

/* Whole factors, of height and width alone. */
static bool find_scales(onv_edit *e, onv_node_id node, int64_t channels, int64_t scales[RANK])
{
    const onv_node *at = onv_edit_node_at(e, node);
    onv_value_id in = onv_edit_in(e, node, 0), sizes = ONV_NO_VALUE;
    onv_value_id by = onv_edit_in(e, node, at->version < 11 ? 1 : 2);
    if (at->version >= 11) sizes = onv_edit_in(e, node, 3);
    bool is_sizes = onv_is_value(sizes);
    if (is_sizes) by = sizes;
    const onv_known *known = onv_is_value(by) ? onv_edit_constant(e, by) : NULL;
    if (known == NULL || known->rank != 1 || known->count != RANK) return false;
    for (int i = 0; i < RANK; i++) {
        onv_dim dim = i == 1 ? onv_dim_const(channels) : onv_fuse_dim(e, in, i);
        if (is_sizes && (!onv_dim_is_const(dim) || dim.raw < 1)) return false;
        double scale =
            is_sizes ? (double)known->elems[i].i.raw / (double)dim.raw : known->elems[i].f;
        if (!(scale >= 1 && scale < INT32_MAX) || scale != floor(scale)) return false;
        scales[i] = (int64_t)scale;
    }
    return scales[0] == 1 && scales[1] == 1;
}

static void block_resize(blocking *b, onv_node_id node, const image *in)
{
    onv_edit *e = b->e;
    const onv_node *at = onv_edit_node_at(e, node);
    int64_t scales[RANK];
    bool is_linear = is_attr(at, "mode", "linear");
    if (!is_linear && onv_node_attr(at, "mode") != NULL && !is_attr(at, "mode", "nearest")) return;
    const char *how = "coordinate_transformation_mode";
    if (at->version >= 11 && !is_attr(at, how, "asymmetric") &&
        !(is_linear && (is_attr(at, how, "align_corners") || is_attr(at, how, "half_pixel"))))
        return;
    if (at->version >= 11 && !is_linear && !is_attr(at, "nearest_mode", "floor")) return;
    if (!find_scales(e, node, in->channels, scales)) return;
    const onv_attr attr = onv_fuse_ints(e, "scales", scales, RANK);
    replace(b, node,
            ONV_NEW_NODE(.op_type = "Upsample", ONV_INPUTS(onv_edit_in(e, node, 0)), .attrs = &attr,
                         .n_attrs = 1),
            in->channels);
}

/* --- Transposes -------------------------------------------------------------------------------- */

/* The image in plain order, before the node that wants channels last, or behind the one that makes it. */
static onv_node_id add_reorder(onv_edit *e, onv_value_id in, int64_t channels, bool is_last,
                               onv_node_id at, onv_value_id out)
{
    const onv_attr attrs[] = {onv_fuse_int(e, "channels", channels),
                              onv_fuse_int(e, "channels_last", is_last)};
    return onv_edit_add(e,
                        &ONV_NEW_NODE(.op_type = "ReorderOutput", .domain = NCHWC_DOMAIN,
                                      .version = 1, .at = at, .is_behind = !is_last, ONV_INPUTS(in),
                                      ONV_OUTPUTS(out), .attrs = attrs, .n_attrs = 2));
}

/* To channels last, a reorder of its own; from there, a part of the one that follows. */
static void block_transpose(blocking *b, onv_node_id node, const image *known)
{
    onv_edit *e = b->e;
    const onv_perm to_last = onv_perm_channels_last(RANK), from_last = onv_perm_inverse(&to_last);
    onv_perm perm;
    onv_value_id in = onv_edit_in(e, node, 0), out = onv_edit_out(e, node, 0);
    if (!onv_perm_of(e, node, &perm)) return;
    if (onv_perm_same(&perm, &from_last) && !onv_edit_is_result(e, out) &&
        onv_edit_n_uses(e, out) == 1)
        b->to_plain = node;
    if (known == NULL || !onv_perm_same(&perm, &to_last)) return;
    onv_node_id made = add_reorder(e, in, known->channels, true, node, out);
    if (e->status != ONV_OK) return;
    b->is_blocked[made.index] = true;
    onv_edit_remove(e, node);
    b->n_done++;
}

/* --- Element by element ------------------------------------------------------------------------ */

static bool is_blocked_conv(const blocking *b, onv_value_id value)
{
    onv_node_id node = onv_edit_producer(b->e, value);
    return onv_edit_is_of(b->e, node, NCHWC_DOMAIN, ONV_OP_Conv);
}

/* A convolution applies functions of its own; others stay nodes, in blocks. */
static void block_activation(blocking *b, onv_node_id node, const image *in)
{
    const onv_node *at = onv_edit_node_at(b->e, node);
    onv_value_id value = onv_edit_in(b->e, node, 0);
    bool joins = !ONV_IS_ANY(at, ONV_OP_Gelu, ONV_OP_QuickGelu);
    if (joins && is_blocked_conv(b, value) && in->uses == 1 && !in->is_active) {
        b->images[value.index].is_active = true;
        join(b, node, value);
        return;
    }
    keep_sizes(in, make_blocks(b, node, in->channels));
}

static bool is_same_size(const blocking *b, onv_value_id x, onv_value_id y)
{
    const image *a = &b->images[x.index], *c = &b->images[y.index];
    for (int i = 0; i < RANK; i++) {
        if (i == 1) continue; /* channels are equal */
        bool is_known = (i < SPATIAL || a->halved[i - SPATIAL] == c->halved[i - SPATIAL]) &&
                        a->from[i] == c->from[i];
        onv_dim one = onv_fuse_dim(b->e, x, i), other = onv_fuse_dim(b->e, y, i);
        if (!is_known && (!onv_dim_is_known(one) || !onv_dim_same(one, other))) return false;
    }
    return true;
}

/* x * HardSigmoid(x) of a convolution that nothing else reads. */
static bool join_hard_swish(blocking *b, onv_node_id node, const onv_value_id in[2])
{
    onv_edit *e = b->e;
    for (int k = 0; k < 2; k++) {
        onv_node_id gate = onv_edit_producer(e, in[k]);
        onv_value_id x = in[1 - k];
        image *of = &b->images[x.index];
        if (!onv_edit_is(e, gate, ONV_OP_HardSigmoid) || onv_edit_in(e, gate, 0).index != x.index ||
            b->images[in[k].index].uses != 1 || !is_blocked_conv(b, x) || of->uses != 2 ||
            of->is_active || fabs(onv_edit_float(e, gate, "alpha", 0.2) * 6 - 1) > 1e-5 ||
            onv_edit_float(e, gate, "beta", 0.5) != 0.5)
            continue;
        of->is_active = true;
        join(b, node, x);
        onv_edit_remove(e, gate);
        return true;
    }
    return false;
}

/* The convolution adds to the memory of the other image. */
static bool join_sum(blocking *b, onv_node_id node, const onv_value_id in[2])
{
    onv_edit *e = b->e;
    for (int k = 0; k < 2; k++) {
        const image *of = &b->images[in[k].index];
        onv_node_id conv = onv_edit_producer(e, in[k]);
        if (!is_blocked_conv(b, in[k]) || of->uses != 1 || of->is_active ||
            onv_edit_node_at(e, conv)->n_inputs > 3)
            continue;
        onv_edit_delay(e, conv, node);
        onv_edit_set_input(e, conv, 3, in[1 - k]);
        join(b, node, in[k]);
        return true;
    }
    return false;
}

static void block_binary(blocking *b, onv_node_id node, const image *first)
{
    onv_edit *e = b->e;
    bool adds = onv_edit_node_at(e, node)->code != ONV_OP_Mul;
    uint32_t n = onv_edit_node_at(e, node)->n_inputs;
    bool is_same = true;
    for (uint32_t k = 0; k < n; k++) {
        const image *in = image_of(b, onv_edit_in(e, node, k));
        if (in == NULL || in->channels != first->channels) return;
        is_same &= is_same_size(b, onv_edit_in(e, node, 0), onv_edit_in(e, node, k));
    }
    if (!is_same && !adds) return;
    const onv_value_id in[2] = {onv_edit_in(e, node, 0), onv_edit_in(e, node, 1)};
    if (is_same && n == 2 && (adds ? join_sum(b, node, in) : join_hard_swish(b, node, in))) return;
    image *made = make_blocks(b, node, first->channels);
    if (is_same) keep_sizes(first, made);
}

/* Of channels that fill whole blocks. */
static void block_concat(blocking *b, onv_node_id node, const image *first)
{
    onv_edit *e = b->e;
    uint32_t n = onv_edit_node_at(e, node)->n_inputs;
    int64_t channels = 0;
    if (onv_edit_int(e, node, "axis", 0) != 1) return;
    for (uint32_t k = 0; k < n; k++) {
        const image *in = image_of(b, onv_edit_in(e, node, k));
        if (in == NULL || in->channels % BLOCK != 0) return;
        channels += in->channels;
    }
    keep_sizes(first, make_blocks(b, node, channels)); /* channels are not compared by them */
}

/* --- All of them ------------------------------------------------------------------------------- */

typedef struct blocker {
    const char *ops;
    bool begins;            /* blocks; others go on with those of their first input */
    bool is_onnx, is_fused; /* of ai.onnx, of com.microsoft */
    void (*block)(blocking *b, onv_node_id node, const image *in);
} blocker;

static const blocker blockers[] = {
    {"Conv", true, true, false, block_conv},
    {"FusedConv", true, false, true, block_conv},
    {POOLS, true, true, false, block_pool},
    {"Transpose", true, true, false, block_transpose},
    {"Relu Sigmoid Tanh HardSigmoid HardSwish", false, true, false, block_activation},
    {"Gelu", false, true, true, block_activation},
    {"QuickGelu", false, false, true, block_activation},
    {"Add Sum Mul", false, true, false, block_binary},
    {"Concat", false, true, false, block_concat},
    {"BatchNormalization", false, true, false, block_norm},
    {"Resize Upsample", false, true, false, block_resize},
};

static void block_node(blocking *b, onv_node_id node)
{
    const onv_node *at = onv_edit_node_at(b->e, node);
    const image *in = image_of(b, onv_edit_in(b->e, node, 0));
    bool is_onnx = at->domain[0] == '\0', is_fused = strcmp(at->domain, ONV_MS_DOMAIN) == 0;
    if (!onv_work(1 + at->n_inputs)) onv_edit_fail(b->e, ONV_ERR_CANCELLED);
    for (size_t i = 0; i < sizeof blockers / sizeof blockers[0]; i++) {
        const blocker *row = &blockers[i];
        if (!onv_rewrite_names(row->ops, at->op_type)) continue;
        if (at->provider == ONV_PROVIDER_CPU && (row->begins || in != NULL) &&
            ((row->is_onnx && is_onnx) || (row->is_fused && is_fused)))
            row->block(b, node, in);
        return;
    }
}

/* The plain order for all that still read it. */
static void restore(blocking *b, onv_value_id value)
{
    onv_edit *e = b->e;
    const image *of = &b->images[value.index];
    uint32_t n_plain = onv_edit_n_uses(e, of->plain);
    if (!onv_work(1 + onv_edit_n_uses(e, value))) onv_edit_fail(e, ONV_ERR_CANCELLED);
    const onv_use *next;
    for (const onv_use *use = onv_edit_first_use(e, value); use != NULL; use = next) {
        const onv_use at = *use;
        next = onv_edit_next_use(e, use);
        if (b->is_blocked[at.node.index]) continue;
        onv_edit_set_input(e, at.node, at.input, of->plain);
        n_plain++;
    }
    if (n_plain == 0 && !onv_edit_is_result(e, of->plain)) return;
    add_reorder(e, value, of->channels, false, onv_edit_producer(e, value), of->plain);
}

static void block_all(blocking *b, onv_graph_id graph)
{
    onv_edit *e = b->e;
    size_t n_before = e->values.count;
    uint32_t n = onv_edit_n_nodes(e, graph);
    onv_node_id *nodes = onv_edit_backward_order(e, graph);
    for (uint32_t i = 0; i < n && e->status == ONV_OK; i++)
        if (onv_edit_is_there(e, nodes[i])) block_node(b, nodes[i]);
    size_t n_values = e->values.count;
    for (size_t i = n_before; i < n_values && e->status == ONV_OK; i++)
        if (onv_is_value(b->images[i].plain)) restore(b, (onv_value_id){(uint32_t)i});
}

uint32_t onv_block_channels(onv_edit *e, onv_graph_id graph)
{
    blocking b = {.e = e, .to_plain = ONV_NO_NODE};
    size_t n_nodes = e->nodes.count, n = e->values.count + MOST_NEW * n_nodes;
    if (!onv_fuse_has_on_cpu(e, graph, "Conv FusedConv " POOLS)) return 0;
    b.images = onv_edit_checked(e, onv_heap_alloc(n * sizeof *b.images + 1));
    b.is_blocked = onv_edit_checked(e, onv_heap_calloc((1 + MOST_NEW) * n_nodes + 1, 1));
    const image none = {.plain = ONV_NO_VALUE,
                        .reordered = ONV_NO_VALUE,
                        .filters = {ONV_NO_VALUE, ONV_NO_VALUE},
                        .bias = ONV_NO_VALUE};
    for (size_t i = 0; b.images != NULL && i < n; i++) b.images[i] = none;
    if (!onv_work(n)) onv_edit_fail(e, ONV_ERR_CANCELLED);
    if (e->status == ONV_OK) block_all(&b, graph);
    onv_heap_free(b.images);
    onv_heap_free(b.is_blocked);
    return b.n_done;
}

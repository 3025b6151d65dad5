/* Operators of ONNX that no provider of ONNX Runtime has a kernel for: nodes are put in their place when providers are
 * assigned (read in source: InlineNodes in graph_partitioner.cc, and the bodies in onnx/defs/nn/defs.cc). */
#include "rewrite/fuse.h"
#include "rewrite/rules.h"

/* One input, or two; of the rest of the operators one list of attributes. */
#define MAKE(f, op, ...) ONV_MAKE((f)->e, (f)->node, op, ONV_INPUTS(__VA_ARGS__))
#define MAKE_WITH(f, op, attr, ...)                                                                \
    ONV_MAKE((f)->e, (f)->node, op, ONV_INPUTS(__VA_ARGS__), ONV_ATTRS(attr))

typedef struct function {
    onv_edit *e;
    onv_node_id node;
    onv_value_id in[3], out;
} function;

static void inline_mish(const function *f)
{
    onv_value_id tanh = MAKE(f, "Tanh", MAKE(f, "Softplus", f->in[0]));
    ONV_MAKE(f->e, f->node, "Mul", ONV_INPUTS(f->in[0], tanh), ONV_OUTPUTS(f->out));
}

static onv_value_id cast(const function *f, onv_value_id in, int64_t dtype)
{
    return MAKE_WITH(f, "Cast", onv_fuse_int(f->e, "to", dtype), in);
}

/* A number of float32, in that type. */
static onv_value_id number(const function *f, int64_t dtype)
{
    const int64_t one = 1;
    onv_graph_id graph = onv_edit_node_at(f->e, f->node)->graph;
    return cast(f, onv_edit_add_weight(f->e, graph, "number", ONV_FLOAT, &one, 1, NULL), dtype);
}

static void inline_swish(const function *f)
{
    onv_value_id alpha = number(f, onv_edit_dtype(f->e, f->in[0]));
    onv_value_id gate = MAKE(f, "Sigmoid", MAKE(f, "Mul", alpha, f->in[0]));
    ONV_MAKE(f->e, f->node, "Mul", ONV_INPUTS(f->in[0], gate), ONV_OUTPUTS(f->out));
}

static void inline_bernoulli(const function *f)
{
    const onv_attr to = onv_fuse_int(
        f->e, "to", onv_edit_int(f->e, f->node, "dtype", onv_edit_dtype(f->e, f->in[0])));
    onv_value_id chosen = MAKE(f, "Greater", MAKE(f, "RandomUniformLike", f->in[0]), f->in[0]);
    ONV_MAKE(f->e, f->node, "Cast", ONV_INPUTS(chosen), ONV_OUTPUTS(f->out), ONV_ATTRS(to));
}

/* Some dims of the input. */
static onv_value_id dims_of(const function *f, int64_t start, int64_t end)
{
    const onv_attr range[] = {onv_fuse_int(f->e, "start", start), onv_fuse_int(f->e, "end", end)};
    return ONV_MAKE(f->e, f->node, "Shape", ONV_INPUTS(f->in[0]), .attrs = range,
                    .n_attrs = end > 0 ? 2 : 1);
}

static onv_value_id ints(const function *f, const int64_t *numbers, uint32_t n)
{
    return onv_edit_add_ints(f->e, f->node, "constant", numbers, n);
}

/* Dims of the axes, or all (ONV_NO_VALUE). */
static onv_value_id dims_along(const function *f, onv_value_id x, onv_value_id axes)
{
    onv_value_id shape = MAKE(f, "Shape", x);
    return onv_is_value(axes) ? MAKE(f, "Gather", shape, axes) : shape;
}

static void inline_center_crop_pad(const function *f)
{
    const onv_attr *attr = onv_node_attr(onv_edit_node_at(f->e, f->node), "axes");
    const int64_t half = 2;
    const onv_value_id two = ints(f, &half, 1), wanted = f->in[1], none = ONV_NO_VALUE;
    const onv_value_id axes = attr != NULL ? ints(f, attr->ints, attr->count) : none;
    onv_value_id shape = dims_along(f, f->in[0], axes);
    onv_value_id pad = MAKE(f, "Sub", MAKE(f, "Max", shape, wanted), shape);
    onv_value_id left = MAKE(f, "Div", pad, two), right = MAKE(f, "Sub", pad, left);
    onv_value_id pads = MAKE_WITH(f, "Concat", onv_fuse_int(f->e, "axis", 0), left, right);
    onv_value_id padded = MAKE(f, "Pad", f->in[0], pads, none, axes);
    onv_value_id rest = MAKE(f, "Sub", dims_along(f, padded, axes), wanted);
    onv_value_id start = MAKE(f, "Div", rest, two), end = MAKE(f, "Add", start, wanted);
    ONV_MAKE(f->e, f->node, "Slice", ONV_INPUTS(padded, start, end, axes), ONV_OUTPUTS(f->out));
}

/* Normalised, [N, groups, the rest]. */
static onv_value_id normalize_groups(const function *f, onv_value_id x, onv_value_id epsilon,
                                     onv_value_id flat)
{
    const int64_t groups = onv_edit_int(f->e, f->node, "num_groups", 1), axis = 2;
    const onv_value_id n_groups = ints(f, &groups, 1), axes = ints(f, &axis, 1);
    onv_value_id size = MAKE(f, "Div", dims_of(f, 1, 2), n_groups);
    onv_value_id batch = dims_of(f, 0, 1), rest = dims_of(f, 2, 0);
    onv_value_id parts =
        MAKE_WITH(f, "Concat", onv_fuse_int(f->e, "axis", 0), batch, n_groups, size, rest);
    onv_value_id x3 = MAKE(f, "Reshape", MAKE(f, "Reshape", x, parts), flat);
    onv_value_id mean = MAKE(f, "ReduceMean", x3, axes);
    onv_value_id squares = MAKE(f, "ReduceMean", MAKE(f, "Mul", x3, x3), axes);
    onv_value_id variance = MAKE(f, "Sub", squares, MAKE(f, "Mul", mean, mean));
    onv_value_id deviation = MAKE(f, "Sqrt", MAKE(f, "Add", variance, epsilon));
    return MAKE(f, "Div", MAKE(f, "Sub", x3, mean), deviation);
}

/* Before opset 21 scale and bias are of groups, and all is of one type. */
static void inline_group_norm(const function *f)
{
    onv_edit *e = f->e;
    const bool is_old = onv_edit_node_at(e, f->node)->version < 21;
    const int64_t stash = onv_edit_int(e, f->node, "stash_type", ONV_FLOAT);
    const int64_t dims[] = {0, 0, -1}, channels[] = {1, -1, 1};
    const int64_t dtype = onv_edit_dtype(e, f->in[0]);
    onv_value_id epsilon = number(f, is_old ? dtype : stash);
    onv_value_id x = is_old ? f->in[0] : cast(f, f->in[0], stash), shape = MAKE(f, "Shape", x);
    onv_value_id flat = ints(f, dims, 3), y = normalize_groups(f, x, epsilon, flat);
    if (!is_old) y = cast(f, MAKE(f, "Reshape", MAKE(f, "Reshape", y, shape), flat), dtype);
    onv_value_id per_channel = ints(f, channels, 3);
    onv_value_id scale = cast(f, f->in[1], dtype), bias = cast(f, f->in[2], dtype);
    scale = MAKE(f, "Reshape", scale, per_channel);
    bias = MAKE(f, "Reshape", bias, per_channel);
    y = MAKE(f, "Add", MAKE(f, "Mul", scale, y), bias);
    ONV_MAKE(e, f->node, "Reshape", ONV_INPUTS(y, shape), ONV_OUTPUTS(f->out));
}

typedef void (*inline_fn)(const function *f);

static inline_fn inline_of(onv_op_name op)
{
    switch (op) {
    case ONV_OP_Mish: return inline_mish;
    case ONV_OP_Swish: return inline_swish;
    case ONV_OP_Bernoulli: return inline_bernoulli;
    case ONV_OP_CenterCropPad: return inline_center_crop_pad;
    case ONV_OP_GroupNormalization: return inline_group_norm;
    default: return NULL;
    }
}

void onv_rewrite_inline(onv_edit *e)
{
    size_t n_nodes = e->nodes.count;
    for (uint32_t i = 0; i < n_nodes && e->status == ONV_OK; i++) {
        function f = {.e = e, .node = {i}};
        const onv_op_name op = (onv_op_name)onv_edit_node_at(e, f.node)->code;
        const inline_fn write = inline_of(op);
        if (write == NULL || !onv_edit_is(e, f.node, op)) continue;
        for (uint32_t k = 0; k < 3; k++) f.in[k] = onv_edit_in(e, f.node, k);
        f.out = onv_edit_out(e, f.node, 0);
        write(&f);
        onv_edit_remove(e, f.node);
    }
}

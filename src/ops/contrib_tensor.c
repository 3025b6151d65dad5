/* com.microsoft: operators that move, cut and transform tensors. */
#include "ops/contrib.h"
#include "ops/rules.h"

/* ExpandDims: an axis of 1 where input 1 says. */
static onv_status infer_expand_dims(onv_op_ctx *c)
{
    int rank = onv_op_in_rank(c, 0), axis;
    onv_dim dims[ONV_MAX_RANK], at = onv_op_in_scalar(c, 1);
    onv_op_set_like(c, NULL, -1);
    if (rank < 0) return ONV_OK;
    ONV_TRY(onv_tensor_check_rank(c, rank + 1));
    onv_op_set_out_rank(c, onv_op_in_dtype(c, 0), rank + 1);
    if (!onv_dim_is_const(at)) return ONV_OK;
    ONV_TRY(onv_op_axis(c, at.raw, rank + 1, &axis));
    for (int i = 0; i <= rank; i++)
        dims[i] = i == axis ? onv_dim_const(1) : onv_op_in_dim(c, 0, i < axis ? i : i - 1);
    return onv_op_set_like(c, dims, rank + 1);
}

/* UnfoldTensor: windows of `size` along an axis, `step` apart, become a new last axis. */
static onv_status infer_unfold(onv_op_ctx *c)
{
    int64_t size = onv_op_attr_int(c, "size", 0), step = onv_op_attr_int(c, "step", 1);
    onv_dim dims[ONV_MAX_RANK + 1];
    int rank = onv_op_in_dims(c, 0, dims), axis;
    onv_op_set_like(c, NULL, -1);
    if (size < 1 || size >= ONV_DIM_INFINITY_RAW)
        return onv_op_fail(c, "attribute size is missing, or is not a size");
    if (step < 1) return onv_op_fail(c, "attribute step is %lld", (long long)step);
    if (rank < 0) return ONV_OK;
    ONV_TRY(onv_tensor_check_rank(c, rank + 1));
    ONV_TRY(onv_op_axis(c, onv_op_attr_int(c, "dim", -1), rank, &axis));
    if (onv_dim_always_lt(c->dims, dims[axis], onv_dim_const(size)))
        return onv_op_fail(c, "size %lld is larger than the axis", (long long)size);
    onv_dim room = onv_dim_sub(c->dims, dims[axis], onv_dim_const(size));
    room = onv_dim_floordiv(c->dims, room, onv_dim_const(step));
    dims[axis] = onv_dim_add(c->dims, room, onv_dim_const(1));
    dims[rank] = onv_dim_const(size);
    return onv_op_set_like(c, dims, rank + 1);
}

/* --- Lookups ----------------------------------------------------------------------------------- */

/* GatherBlockQuantized: data, indices, scales. Bytes hold 8 / bits elements of the last axis each;
 * types of 4 bits are not packed further. */
static onv_status infer_gather_quantized(onv_op_ctx *c)
{
    int64_t bits = onv_op_attr_int(c, "bits", 4);
    if (bits != 2 && bits != 4 && bits != 8)
        return onv_op_fail(c, "attribute bits is %lld", (long long)bits);
    int64_t held = onv_op_in_dtype(c, 0) == ONV_UINT8 ? 8 / bits : 1;
    return onv_tensor_look_up(c, onv_op_attr_int(c, "gather_axis", 0), held, onv_op_in_dtype(c, 2));
}

/* --- Hyper connections: streams [..., branches, width] ----------------------------------------- */

/* HyperConnectionPreMix: the streams become one. With num_branches they come flattened, branches *
 * width in the last axis. */
static onv_status infer_pre_mix(onv_op_ctx *c)
{
    int64_t branches = onv_op_attr_int(c, "num_branches", 0);
    onv_dim dims[ONV_MAX_RANK];
    int rank = onv_op_in_dims(c, 0, dims);
    onv_dim width = onv_op_in_dim(c, 0, -1);
    ONV_TRY(onv_tensor_need_rank(c, 0, 2, ONV_MAX_RANK));
    if (branches > 0) width = onv_dim_exact_div(c->dims, width, onv_dim_const(branches));
    if (branches <= 0 && rank >= 0) rank--;
    if (rank > 0) dims[rank - 1] = width;
    return onv_op_set_like(c, dims, rank);
}

/* --- Rows -------------------------------------------------------------------------------------- */

#define ROW(op, least, most, fewest, outs, rule, ...)                                              \
    ONV_OP(op, 1, least, most, fewest, outs, rule, __VA_ARGS__)

#define SAYS(op, least, most, outs, ...) ONV_SAYS(op, 1, least, most, 1, outs, __VA_ARGS__)

static const onv_op rows[] = {
    ROW("ExpandDims", 2, 2, 1, 1, infer_expand_dims, .traits = {.view_of = 1}),
    ROW("UnfoldTensor", 1, 1, 1, 1, infer_unfold),
    /* One side of the spectrum of the last axis, real and imaginary parts in a new last axis; and the way back, always to
     * an even length. */
    SAYS("Rfft", 1, 1, 1, "(x[..., n]): [x.:-1, if(attr.onesided or 1, n / 2 + 1, n), 2]"),
    SAYS("Irfft", 1, 1, 1, "(x[..., n, 2]): [x.:-2, if(attr.onesided or 1, (n - 1) * 2, n)]"),
    SAYS("CropAndResize", 4, 4, 1,
         "(x[_, c, _, _], rois[n, _], indices, size): [n, c, size[0], size[1]]"),
    /* Values and counts are as many as there are different ones. */
    ONV_SAYS("Unique", 1, 1, 1, 3, 3,
             "(x[n]) where unique = upto(n, unique): [unique], [n] i64, [unique] i64",
             .flags = ONV_OP_DATA_DEPENDENT),
    SAYS("TorchEmbedding", 2, 4, 1, "(w[_, n], ids): [ids.:, n]",
         .traits = {.save_in = ONV_BIT(1)}),
    ROW("GatherBlockQuantized", 3, 4, 1, 1, infer_gather_quantized),
    /* A path through a matrix of costs, one step in either direction or both at a time. */
    SAYS("DynamicTimeWarping", 1, 1, 1, "(x[_, _, ...]): [2, upto(x.-1 + x.-2 - 1, path)] i32",
         .flags = ONV_OP_DATA_DEPENDENT),
    SAYS("NGramRepeatBlock", 2, 2, 1, "(x, scores): like scores"),
    /* A hash per token, head and length of n-gram. */
    SAYS("NGramHashMapping", 3, 7, 2,
         "(ids[b, s]): [b, s, (attr.max_ngram_size - 1) * attr.n_head_per_ngram], "
         "[b, attr.max_ngram_size - 1]"),
    SAYS("VarlenNGramHashMapping", 4, 10, 4,
         "(ids[t], b, c, bounds[n]): [t, (attr.max_ngram_size - 1) * attr.n_head_per_ngram], "
         "[n - 1, attr.max_ngram_size - 1], [n - 1, attr.max_ngram_size - 1] like bounds, "
         "[n - 1, attr.state_update_capacity or 0, attr.max_ngram_size - 1]"),
    /* What packed numbers take is up to the type; their shape and strides are results, too. */
    SAYS("QuantizeBFP", 1, 1, 3, "(x): ?, [x.rank] i64, [x.rank] i64"),
    SAYS("BifurcationDetector", 3, 4, 2,
         "(source[_], current[n], at, predicted[_]): [upto(n + (predicted.0 or 0), tokens)], []",
         .flags = ONV_OP_DATA_DEPENDENT),
    ROW("Inverse", 1, 1, 1, 1, onv_infer_same, .traits = {.save_out = ONV_BIT(0)}),
    SAYS("QuantizeWithOrder", 2, 2, 1, "(x): like x i8"),
    SAYS("DequantizeWithOrder", 2, 2, 1, "(x): like x attr.to or f32"),
    ROW("HyperConnectionPreMix", 2, 2, 1, 1, infer_pre_mix),
    ROW("HyperConnectionPostMix", 3, 4, 1, 1, onv_infer_same),
    SAYS("LinearAttentionGate", 3, 4, 2, "(x, b, c, d): like x, like d"),
    SAYS("EngramGate", 5, 6, 2, "(x): like x, like x"),
};

const onv_op_family onv_ops_contrib_tensor = {"com.microsoft", rows, sizeof rows / sizeof rows[0]};

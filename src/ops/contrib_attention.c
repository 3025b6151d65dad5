/* com.microsoft: attention.
 *
 * Queries, keys and values are [batch, length, heads * head size]; caches (past and present) and
 * keys that come from an encoder are [batch, heads, length, head size]. In packed forms the heads
 * of all three lie in one tensor, or the tokens of all sequences in one axis.
 */
#include "ops/contrib.h"
#include "ops/rules.h"
#include "ops/tensor.h"

/* What a node says, wherever it says it. */
typedef struct attention {
    onv_dim batch, q_length; /* tokens and 1 where they are packed */
    onv_dim kv_length;       /* that queries look at, caches included */
    onv_dim heads, kv_heads;
    onv_dim size, v_size; /* of a head */
} attention;

static onv_dim times(onv_op_ctx *c, onv_dim a, onv_dim b)
{
    return onv_dim_mul(c->dims, a, b);
}

static onv_status read_heads(onv_op_ctx *c, const char *attr, onv_dim *heads)
{
    int64_t count;
    ONV_TRY(onv_contrib_attr(c, attr, &count));
    *heads = onv_dim_const(count);
    return ONV_OK;
}

/* Scores (queries times keys) and their product with the values; masks leave nothing out. */
static onv_dim macs_of_scores(onv_op_ctx *c, const attention *a)
{
    onv_dim sizes = onv_dim_add(c->dims, a->size, a->v_size);
    return ONV_PRODUCT(c, a->batch, a->heads, a->q_length, a->kv_length, sizes);
}

static void set_cache(onv_op_ctx *c, uint32_t out, onv_dtype dtype, const attention *a,
                      onv_dim size)
{
    onv_dim dims[4] = {a->batch, a->kv_heads, a->kv_length, size};
    onv_op_set_out(c, out, dtype, dims, 4);
}

/* --- MultiHeadAttention and its kin ------------------------------------------------------------ */

enum { QUERY, KEY, VALUE };

/* Where the caches stand. */
typedef struct cache_inputs {
    uint8_t past_key, past_value, past_length;
} cache_inputs;

/* Queries, keys and values in one tensor: [batch, length, heads, 3, head size], or side by side in
 * the last axis. */
static onv_status read_packed_qkv(onv_op_ctx *c, attention *a)
{
    bool split = onv_op_in_rank(c, QUERY) >= 4;
    onv_dim parts = times(c, a->heads, onv_dim_const(3));
    a->kv_length = a->q_length;
    if (split)
        a->size = onv_op_in_dim(c, QUERY, -1);
    else
        ONV_TRY(onv_rule_head_size(c, onv_op_in_dim(c, QUERY, -1), parts, &a->size));
    a->v_size = a->size;
    return ONV_OK;
}

/* Keys and values: as wide as the queries; or as an encoder's cache; or both in the key, which then
 * is [batch, length, heads, 2, head size]. */
static onv_status read_keys(onv_op_ctx *c, attention *a)
{
    int rank = onv_op_in_rank(c, KEY), v_rank = onv_op_in_rank(c, VALUE);
    ONV_TRY(onv_rule_head_size(c, onv_op_in_dim(c, QUERY, -1), a->heads, &a->size));
    a->kv_length = onv_op_in_dim(c, KEY, rank == 4 ? 2 : 1);
    if (!onv_op_has_in(c, VALUE)) {
        a->v_size = a->size;
        return ONV_OK;
    }
    a->v_size = ONV_DIM_UNKNOWN;
    if (v_rank == 4) a->v_size = onv_op_in_dim(c, VALUE, 3);
    if (v_rank != 3) return ONV_OK;
    return onv_rule_head_size(c, onv_op_in_dim(c, VALUE, 2), a->heads, &a->v_size);
}

/* `past_length`: input that says how much of a shared buffer is in use; then present is as long as
 * past. */
static onv_status add_past(onv_op_ctx *c, const cache_inputs *in, attention *a)
{
    if (!onv_op_has_in(c, in->past_key)) return ONV_OK;
    ONV_TRY(onv_tensor_need_rank(c, in->past_key, 4, 4));
    onv_dim past = onv_op_in_dim(c, in->past_key, 2);
    bool shared = onv_op_has_in(c, in->past_length);
    a->kv_length = shared ? past : onv_dim_add(c->dims, past, a->kv_length);
    return ONV_OK;
}

static onv_status read_multi_head(onv_op_ctx *c, attention *a)
{
    ONV_TRY(onv_tensor_need_rank(c, QUERY, 3, 5));
    ONV_TRY(read_heads(c, "num_heads", &a->heads));
    a->kv_heads = a->heads;
    a->batch = onv_op_in_dim(c, QUERY, 0);
    a->q_length = onv_op_in_dim(c, QUERY, 1);
    ONV_TRY(onv_op_has_in(c, KEY) ? read_keys(c, a) : read_packed_qkv(c, a));
    return add_past(c, c->op->with, a);
}

static onv_status infer_multi_head(onv_op_ctx *c)
{
    attention a;
    onv_dtype dtype = onv_op_in_dtype(c, QUERY);
    ONV_TRY(read_multi_head(c, &a));
    onv_dim dims[3] = {a.batch, a.q_length, times(c, a.heads, a.v_size)};
    onv_dim scores[4] = {a.batch, a.heads, a.q_length, a.kv_length};
    onv_op_set_out(c, 0, dtype, dims, 3);
    set_cache(c, 1, dtype, &a, a.size);
    set_cache(c, 2, dtype, &a, a.v_size);
    return onv_op_set_out(c, 3, dtype, scores, 4);
}

static onv_dim macs_multi_head(onv_op_ctx *c)
{
    attention a;
    if (read_multi_head(c, &a) != ONV_OK) return ONV_DIM_UNKNOWN;
    return macs_of_scores(c, &a);
}

/* PackedMultiHeadAttention: query [tokens, width] or [tokens, heads, 3, head size], value [tokens,
 * width], token_offset [batch, length]. */
static void packed_widths(onv_op_ctx *c, onv_dim *q_width, onv_dim *v_width)
{
    *q_width = onv_op_has_in(c, KEY) ? onv_op_in_dim(c, QUERY, 1) : ONV_DIM_UNKNOWN;
    if (onv_op_in_rank(c, QUERY) == 4)
        *q_width = times(c, onv_op_in_dim(c, QUERY, 1), onv_op_in_dim(c, QUERY, 3));
    *v_width = onv_op_has_in(c, VALUE) ? onv_op_in_dim(c, VALUE, 1) : *q_width;
}

static onv_status infer_packed_multi_head(onv_op_ctx *c)
{
    onv_dim q_width, dims[2] = {onv_op_in_dim(c, QUERY, 0)};
    ONV_TRY(onv_tensor_need_rank(c, QUERY, 2, 4));
    packed_widths(c, &q_width, &dims[1]);
    return onv_op_set_out(c, 0, onv_op_in_dtype(c, QUERY), dims, 2);
}

static onv_dim macs_packed_multi_head(onv_op_ctx *c)
{
    enum { TOKEN_OFFSET = 4 };
    onv_dim q_width, v_width, length = onv_op_in_dim(c, TOKEN_OFFSET, 1);
    packed_widths(c, &q_width, &v_width);
    onv_dim batch = onv_op_in_dim(c, TOKEN_OFFSET, 0);
    return ONV_PRODUCT(c, batch, length, length, onv_dim_add(c->dims, q_width, v_width));
}

/* --- Fewer heads of keys and values ------------------------------------------------------------ */

/* Query [..., heads * size], or with keys and values behind it in the same axis. */
static onv_status read_grouped(onv_op_ctx *c, attention *a)
{
    ONV_TRY(read_heads(c, "num_heads", &a->heads));
    ONV_TRY(read_heads(c, "kv_num_heads", &a->kv_heads));
    ONV_TRY(onv_rule_share_heads(c, a->heads, a->kv_heads));
    onv_dim parts = a->heads;
    if (!onv_op_has_in(c, KEY))
        parts = onv_dim_add(c->dims, parts, times(c, a->kv_heads, onv_dim_const(2)));
    ONV_TRY(onv_rule_head_size(c, onv_op_in_dim(c, QUERY, -1), parts, &a->size));
    a->v_size = a->size;
    a->batch = onv_op_in_dim(c, QUERY, 0);
    a->q_length = onv_op_in_dim(c, QUERY, 1);
    return ONV_OK;
}

/* GroupQueryAttention, DynamicSparseAttention: the present is as long as the buffer of the past, or
 * as all tokens where that is more. How many there are is the contents of an input; no more than past
 * and new together. */
static onv_status read_group_query(onv_op_ctx *c, attention *a)
{
    enum { PAST_KEY = 3 };
    ONV_TRY(onv_tensor_need_rank(c, QUERY, 3, 3));
    ONV_TRY(onv_tensor_need_rank(c, PAST_KEY, 4, 4));
    ONV_TRY(read_grouped(c, a));
    onv_dim total = onv_op_in_scalar(c, *(const uint32_t *)c->op->with),
            past = onv_op_in_dim(c, PAST_KEY, 2);
    onv_dim added = onv_op_has_in(c, KEY) ? onv_op_in_dim(c, KEY, 1) : a->q_length;
    if (!onv_op_has_in(c, PAST_KEY))
        a->kv_length = added;
    else if (onv_op_attr_int(c, "sliding_window_cache", 0) != 0)
        a->kv_length = past;
    else if (onv_dim_is_known(total))
        a->kv_length = onv_dim_max(c->dims, past, total);
    else
        a->kv_length = onv_dim_fresh(c->dims, "present", onv_dim_add(c->dims, past, added));
    return ONV_OK;
}

static onv_status infer_group_query(onv_op_ctx *c)
{
    enum { PAST_KEY = 3 };
    attention a;
    onv_dtype dtype = onv_op_in_dtype(c, QUERY);
    ONV_TRY(read_group_query(c, &a));
    onv_dim dims[3] = {a.batch, a.q_length, times(c, a.heads, a.size)};
    onv_dim scores[4] = {a.batch, a.heads, a.q_length, a.kv_length};
    onv_op_set_out(c, 0, dtype, dims, 3);
    for (uint32_t k = 0; k < 2; k++) {
        bool cached = onv_op_has_in(c, PAST_KEY + k); /* perhaps quantised, and packed */
        set_cache(c, 1 + k, cached ? onv_op_in_dtype(c, PAST_KEY + k) : dtype, &a,
                  cached ? onv_op_in_dim(c, PAST_KEY + k, 3) : a.size);
    }
    return onv_op_set_out(c, 3, dtype, scores, 4);
}

/* From what infer found, so that no second symbol is made for the length. */
static onv_dim macs_group_query(onv_op_ctx *c)
{
    attention a;
    if (read_grouped(c, &a) != ONV_OK) return ONV_DIM_UNKNOWN;
    const onv_type *present = c->n_out > 1 ? &c->out[1].type : NULL;
    if (onv_type_has_rank(present) && present->rank == 4)
        a.kv_length = present->dims[2];
    else
        a.kv_length = onv_op_has_in(c, 3) ? ONV_DIM_UNKNOWN : a.q_length;
    return macs_of_scores(c, &a);
}

/* LinearAttention: a state of [head size, value size] per head instead of a cache; several of them
 * where state_window says so. */
static onv_status infer_linear(onv_op_ctx *c)
{
    onv_dim q_heads, kv_heads, size, v_size;
    int64_t window = onv_op_attr_int(c, "state_window", 0);
    for (uint32_t k = QUERY; k <= VALUE; k++) ONV_TRY(onv_tensor_need_rank(c, k, 3, 3));
    ONV_TRY(read_heads(c, "q_num_heads", &q_heads));
    ONV_TRY(read_heads(c, "kv_num_heads", &kv_heads));
    ONV_TRY(onv_rule_head_size(c, onv_op_in_dim(c, KEY, 2), kv_heads, &size));
    ONV_TRY(onv_rule_head_size(c, onv_op_in_dim(c, VALUE, 2), kv_heads, &v_size));
    onv_contrib_last(c, 0, onv_op_in_dtype(c, QUERY),
                     times(c, onv_dim_max(c->dims, q_heads, kv_heads), v_size));
    onv_dim state[5] = {onv_dim_const(window), onv_op_in_dim(c, QUERY, 0), kv_heads, size, v_size};
    return onv_op_set_out(c, 1, onv_op_in_dtype(c, onv_op_has_in(c, 3) ? 3 : QUERY),
                          window > 0 ? state : state + 1, window > 0 ? 5 : 4);
}

/* --- Rows -------------------------------------------------------------------------------------- */

#define QKV (ONV_BIT(QUERY) | ONV_BIT(KEY) | ONV_BIT(VALUE))
#define ATTENTION(op, least, most, outs, rule, count, saved, ...)                                  \
    ONV_OP(op, 1, least, most, 1, outs, rule, .macs = count,                                       \
           .traits = {.save_in = saved, .save_out = ONV_BIT(0)}, __VA_ARGS__)
/* Where inputs stand. */
#define CACHES(...)                                                                                \
    .with = &(const cache_inputs)                                                                  \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define TOTAL(input)                                                                               \
    .with = &(const uint32_t)                                                                      \
    {                                                                                              \
        input                                                                                      \
    }

/* Of queries and keys, and of values. */
#define Q_WIDTH "attr.qkv_hidden_sizes.0 or exact(w.1 / 3)"
#define V_WIDTH "attr.qkv_hidden_sizes.2 or exact(w.1 / 3)"
/* Queries, keys and values are made of the input. The cache has both: [2, batch, heads, length, head size]; a buffer that past
 * and present share has its final length from the start. */
#define PRESENT_LENGTH "if(attr.past_present_share_buffer or 0, past.3 or s, s + (past.3 or 0))"
#define PROJECTED(inputs, q, v, dtype)                                                             \
    "(x[b, s, k], " inputs ", past[_, _, _, _, _]): "                                              \
    "[b, s, attr.num_heads * exact((" v ") / attr.num_heads)]" dtype                               \
    ", [2, b, attr.num_heads, " PRESENT_LENGTH ", exact((" q ") / attr.num_heads)]" dtype          \
    "; b * s * k * (2 * (" q ") + (" v ")) + b * s * (" PRESENT_LENGTH ") * ((" q ") + (" v "))"
/* Each token looks at `window` tokens to either side, and a few look at (and are seen by) all, with projections of their
 * own; those are too few to count. */
#define LONGFORMER "(x): like x; x.elems * (6 * x.-1 + 4 * attr.window + 2)"
/* Flags decide whether the cache grows (self-attention) or is the encoder's. */
#define DECODER_CACHE                                                                              \
    "[b, attr.num_heads, if(fixed[0], if(grows[0], cache.2, key.0), if(grows[0], s + cache.2, "    \
    "s)), exact(n / attr.num_heads)]"

/* Queries may have keys and values behind them in the same axis. */
#define HEAD_SIZE                                                                                  \
    "exact(q.-1 / if(key.rank or 0, attr.num_heads, attr.num_heads + 2 * attr.kv_num_heads))"
/* Tokens in one axis, caches in blocks, as much as if all of the table were full. A latent cache holds keys and values as
 * one, of which the values take v_head_size. */
#define PAGED                                                                                      \
    "(q[_, _], key, v, past, values, a, b, table): [q.0, attr.num_heads * "                        \
    "if(max(attr.v_head_size or 0, 0), attr.v_head_size or 0, " HEAD_SIZE                          \
    ")], like past, like values; q.0 * attr.num_heads * table.1 * past.1 * 2 * " HEAD_SIZE
/* Without a state or bounds all tokens are one sequence, or queries have a batch of their own. */
#define DELTA_BATCH "state.0 or ((bounds.0 or if(q.rank - 3, q.0 + 1, 2)) - 1)"
#define INDICES     "(attr.index_topk or ((attr.token_budget or 0) + attr.compress_ratio - 1))"

static const onv_op rows[] = {
    ONV_SAYS("Attention", 1, 2, 7, 1, 2, PROJECTED("w[k, _], bias, mask", Q_WIDTH, V_WIDTH, ""),
             .traits = {.save_in = ONV_BIT(0) | ONV_BIT(1), .save_out = ONV_BIT(0)}),
    ONV_SAYS("DecoderMaskedSelfAttention", 1, 7, 9, 1, 2,
             PROJECTED("w[k, _], bias, mask", Q_WIDTH, V_WIDTH, ""),
             .traits = {.save_out = ONV_BIT(0)}),
    ONV_SAYS("QAttention", 1, 5, 9, 1, 2,
             PROJECTED("w[k, _], bias, scale, w_scale, mask, zero, w_zero", Q_WIDTH, V_WIDTH,
                       " like scale"),
             .traits = {.save_out = ONV_BIT(0)}),
    ONV_SAYS("QOrderedAttention", 1, 17, 20, 1, 1,
             PROJECTED("a, c, d, e, w[k, n], w_k, w_v[_, m], f, g, h, i, j, l, o, p, q, r", "n",
                       "m", ""),
             .traits = {.save_out = ONV_BIT(0)}),
    /* How long the sequences are is in the data: as much as if none was padded. */
    ONV_SAYS("PackedAttention", 1, 5, 6, 1, 1,
             "(x[_, k], w[k, _], bias, offsets[b, s]): [x.0, " V_WIDTH "]; "
             "x.elems * (2 * (" Q_WIDTH ") + (" V_WIDTH ")) + b * s * s * ((" Q_WIDTH
             ") + (" V_WIDTH "))",
             .traits = {.save_out = ONV_BIT(0)}),
    ONV_SAYS("LongformerAttention", 1, 7, 7, 1, 1, LONGFORMER,
             .traits = {.save_in = ONV_BIT(0), .save_out = ONV_BIT(0)}),
    ONV_SAYS("QOrderedLongformerAttention", 1, 14, 14, 1, 1, LONGFORMER,
             .traits = {.save_out = ONV_BIT(0)}),
    ATTENTION("MultiHeadAttention", 1, 10, 4, infer_multi_head, macs_multi_head, QKV,
              CACHES(6, 7, 8)),
    ATTENTION("DecoderMaskedMultiHeadAttention", 1, 11, 4, infer_multi_head, macs_multi_head, 0,
              CACHES(5, 6, 7)),
    ATTENTION("PackedMultiHeadAttention", 6, 7, 1, infer_packed_multi_head, macs_packed_multi_head,
              QKV),
    ATTENTION("GroupQueryAttention", 7, 16, 4, infer_group_query, macs_group_query, QKV, TOTAL(6)),
    /* Caches stay as they are, updated in place. Which blocks take part is in the data: as much as if all did. */
    ONV_SAYS("SparseAttention", 1, 9, 11, 1, 3,
             "(q, key, v, past, values): [q.:-1, attr.num_heads * " HEAD_SIZE
             "], like past, like values; q.0 * q.1 * attr.num_heads * past.2 * 2 * " HEAD_SIZE,
             .traits = {.save_out = ONV_BIT(0)}),
    ATTENTION("DynamicSparseAttention", 11, 17, 3, infer_group_query, macs_group_query, 0,
              TOTAL(10)),
    ONV_SAYS("PagedAttention", 1, 8, 17, 1, 3, PAGED, .traits = {.save_out = ONV_BIT(0)}),
    ONV_SAYS("SparsePagedAttention", 1, 11, 22, 1, 3, PAGED, .traits = {.save_out = ONV_BIT(0)}),
    ONV_SAYS("DecoderAttention", 1, 12, 12, 1, 3,
             "(q[s, b, n], key, c, d, e, f, cache, g, fixed, grows): like q, " DECODER_CACHE
             ", " DECODER_CACHE),
    /* Packed: queries [tokens, heads, size] and as much of keys and values, or all in one axis; then the state says heads
     * and sizes [batch, heads of values, size of values, size of keys]. */
    ONV_SAYS("GatedDeltaNet", 1, 1, 11, 1, 3,
             "(q, k, v, bounds, decay, beta, state): "
             "[q.0, v.1:-2, v.-2 or state.1, v.-1 or state.2], "
             "[" DELTA_BATCH ", v.-2 or state.1, v.-1 or state.2, k.-1 or state.3] like state, "
             "[" DELTA_BATCH ", (attr.state_update_capacity or 0) * (v.-2 + k.-2 * k.-1 + v.-2 * "
             "v.-1)] like state",
             .traits = {.save_in = QKV | ONV_BIT(4) | ONV_BIT(5)}),
    /* How many entries are added is up to what is buffered. */
    ONV_SAYS(
        "SparseAttentionIndexer", 1, 8, 14, 2, 3,
        "(q[b, s, _], k, g, h, cos, sin, mask, past[_, p, n], gate, bias, weights, at, "
        "valid, buffer): [b, s, " INDICES "] i32, "
        "[b, if(valid.elems or 0, p, if(attr.index_topk or 0, upto(p + (s + (buffer.2 or 0)) / "
        "attr.compress_ratio, entries), p + s)), n], "
        "[2, b, upto(2 * attr.compress_ratio - 1, buffered), buffer.3]"),
    ONV_SAYS("PackedSparseAttentionIndexer", 1, 16, 18, 6, 7,
             "(q[t, _], k, g, h, cos, sin, bounds, past, gate, bias, weights, at, keys[b, _, n], "
             "kept, gates, lengths): [t, " INDICES "] i32, [t] i32, like keys, like kept, like "
             "gates, like lengths, [b, attr.state_update_capacity or 0, n]"),
    ONV_OP("LinearAttention", 1, 3, 6, 2, 2, infer_linear,
           .traits = {.save_in = QKV | ONV_BIT(4) | ONV_BIT(5)}),
};

const onv_op_family onv_ops_contrib_attention = {"com.microsoft", rows,
                                                 sizeof rows / sizeof rows[0]};

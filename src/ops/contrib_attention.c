/* com.microsoft: attention, and what stands around it: positions, padding.
 *
 * Queries, keys and values are [batch, length, heads * head size]; caches (past and present) and
 * keys that come from an encoder are [batch, heads, length, head size]. In packed forms the heads
 * of all three lie in one tensor, or the tokens of all sequences in one axis.
 */
#include "ops/contrib.h"
#include "ops/rules.h"

enum { QUERY, KEY, VALUE };

/* --- Rows -------------------------------------------------------------------------------------- */

#define QKV (ONV_BIT(QUERY) | ONV_BIT(KEY) | ONV_BIT(VALUE))
#define ATTENTION(op, least, most, outs, saved, line)                                              \
    ONV_SAYS(op, 1, least, most, 1, outs, line,                                                    \
             .traits = {.save_in = saved, .save_out = ONV_BIT(0)})
/* Keys and values are as wide as the queries; or as an encoder's cache, [batch, heads, length, head size]; or both in the key,
 * [batch, length, heads, 2, head size]; or all three in the query, side by side or [batch, length, heads, 3, head size]. With
 * the length of the past in use its buffer is shared, and as long as the present. */
#define MULTI_HEAD(between)                                                                        \
    "(q[batch, length, width] or [batch, length, _, size] or [batch, length, _, _, size], "        \
    "key[_, keys, _] or [_, _, keys, _] or [_, keys, _, _, _], "                                   \
    "value[_, _, attr.num_heads * v_size] or [_, _, _, v_size], " between                          \
    ", past[_, _, _, _], past_value, in_use) where "                                               \
    "size = exact(width / (attr.num_heads * if(given(key), 1, 3))), "                              \
    "v_size = if(given(value), v_size, size), new = if(given(key), keys, length), "                \
    "all = if(given(past), if(given(in_use), past.2, past.2 + new), new): "                        \
    "[batch, length, attr.num_heads * v_size], [batch, attr.num_heads, all, size], "               \
    "[batch, attr.num_heads, all, v_size], [batch, attr.num_heads, length, all]; "                 \
    "batch * attr.num_heads * length * all * (size + v_size)"
/* Packed: as if no sequence was padded. */
#define PACKED_HEADS                                                                               \
    "(q[tokens, given] or [tokens, heads, _, size], key, value[_, other], d, offset[batch, "       \
    "length]) where width = if(given(key), given, heads * size), "                                 \
    "v_width = if(given(value), other, width): [tokens, v_width]; "                                \
    "batch * length * length * (width + v_width)"
/* Queries may have keys and values behind them in the same axis. The present is as long as the buffer of the past, or as all
 * tokens where that is more; how many there are is in the data, no more than past and new together. Caches may be quantised,
 * and packed. */
#define GROUPED(between)                                                                           \
    "(q[batch, length, width], key, value, past[_, _, _, _], past_value, " between ", total) "     \
    "where heads = attr.num_heads, kv_heads = attr.kv_num_heads, "                                 \
    "query_heads_per_head = exact(heads / kv_heads), "                                             \
    "size = exact(width / if(given(key), heads, heads + 2 * kv_heads)), "                          \
    "new = if(given(key), key.1, length), all = if(given(past), if(attr.sliding_window_cache or "  \
    "0, past.2, if(known(total[0]), max(past.2, total[0]), upto(past.2 + new, present))), new): "  \
    "[batch, length, heads * size], [batch, kv_heads, all, past.3 or size] like past or q, "       \
    "[batch, kv_heads, all, past_value.3 or size] like past_value or q, "                          \
    "[batch, heads, length, all]; batch * heads * length * all * 2 * size"

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

#define ROTARY(op)                                                                                 \
    ONV_OP(op, 1, 4, 4, 1, 1, onv_infer_same, .traits = {.save_in = ONV_BIT(2) | ONV_BIT(3)})

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
    ATTENTION("MultiHeadAttention", 1, 10, 4, QKV, MULTI_HEAD("d, e, f")),
    ATTENTION("DecoderMaskedMultiHeadAttention", 1, 11, 4, 0, MULTI_HEAD("d, e")),
    ATTENTION("PackedMultiHeadAttention", 6, 7, 1, QKV, PACKED_HEADS),
    ATTENTION("GroupQueryAttention", 7, 16, 4, QKV, GROUPED("f")),
    /* Caches stay as they are, updated in place. Which blocks take part is in the data: as much as if all did. */
    ONV_SAYS("SparseAttention", 1, 9, 11, 1, 3,
             "(q, key, v, past, values): [q.:-1, attr.num_heads * " HEAD_SIZE
             "], like past, like values; q.0 * q.1 * attr.num_heads * past.2 * 2 * " HEAD_SIZE,
             .traits = {.save_out = ONV_BIT(0)}),
    ATTENTION("DynamicSparseAttention", 11, 17, 3, 0, GROUPED("f, g, h, i, j")),
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
    /* A state per head instead of a cache; several of them where state_window says so. */
    ONV_SAYS("LinearAttention", 1, 3, 6, 2, 2,
             "(q[batch, length, _], k[_, _, attr.kv_num_heads * size], v[_, _, attr.kv_num_heads * "
             "v_size], state): [batch, length, max(attr.q_num_heads, attr.kv_num_heads) * v_size], "
             "[max(attr.state_window or 0, 0)?, batch, attr.kv_num_heads, size, v_size] like state "
             "or q",
             .traits = {.save_in = QKV | ONV_BIT(4) | ONV_BIT(5)}),
    ROTARY("RotaryEmbedding"),
    ROTARY("MRotaryEmbedding"),
    ONV_SAYS("GemmaRotaryEmbedding", 1, 5, 5, 2, 2, "(x, q): like q, like q",
             .traits = {.save_in = ONV_BIT(0)}),
    ONV_SAYS("RelativePositionBias", 1, 3, 3, 1, 1,
             "(table[_, heads], queries, keys): [1, heads, queries[0], keys[0]]"),
    /* Where tokens are packed, the offsets say batch and length. */
    ONV_SAYS("GatedRelativePositionBias", 1, 6, 7, 1, 1,
             "(x[_, _, ...], b, c, d, e, f, offsets[_, _]): "
             "[offsets.0 or x.0, attr.num_heads, offsets.1 or x.1, offsets.1 or x.1]"),
    ONV_SAYS("RemovePadding", 1, 2, 2, 4, 4,
             "(x[b, s, n]): [upto(b * s, tokens), n], [b, s] i32, [b + 1] i32, [1] i32",
             .flags = ONV_OP_DATA_DEPENDENT),
    ONV_SAYS("RestorePadding", 1, 2, 2, 1, 1, "(x[_, n], offsets[b, s]): [b, s, n]"),
};

const onv_op_family onv_ops_contrib_attention = {"com.microsoft", rows,
                                                 sizeof rows / sizeof rows[0]};

/* Attention and RotaryEmbedding of opset 23, LinearAttention of opset 27; FlexAttention of
 * ai.onnx.preview.
 *
 * Queries, keys and values are [batch, heads, length, head size], or [batch, length, heads * head
 * size] with the heads as attributes. Several query heads may share one head of keys and values.
 * Cached keys and values (past, always 4-D) stand before the new ones; both together are present.
 */
#include "ops/controlflow.h"
#include "ops/op_shapes.h"

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, NONPAD };     /* inputs */
enum { Y, PRESENT_KEY, PRESENT_VALUE, QK_MATMUL_OUTPUT }; /* outputs */

/* Which inputs go together is no matter of their shapes. */
static onv_status infer_attention(onv_op_ctx *c)
{
    if (onv_op_has_in(c, PAST_KEY) != onv_op_has_in(c, PAST_VALUE))
        return onv_op_fail(c, "past_key and past_value must be given together");
    if (onv_op_has_in(c, NONPAD) && onv_op_has_in(c, PAST_KEY))
        return onv_op_fail(c, "nonpad_kv_seqlen and past_key exclude each other");
    return onv_op_shapes_infer(c);
}

/* Fused attention keeps what it read, past included, and its output. */
static onv_op_traits attention_traits(onv_op_ctx *c)
{
    onv_op_traits traits = {.save_in = ONV_BIT(Q) | ONV_BIT(MASK), .save_out = ONV_BIT(Y)};
    if (onv_op_has_in(c, PAST_KEY))
        traits.save_out |= ONV_BIT(PRESENT_KEY) | ONV_BIT(PRESENT_VALUE);
    else
        traits.save_in |= ONV_BIT(K) | ONV_BIT(V);
    return traits;
}

/* --- FlexAttention ----------------------------------------------------------------------------- */

/* The subgraph of `attr`, if there is one, changes scores or probabilities in place of a mask. */
static onv_status run_modifier(onv_op_ctx *c, const char *attr, const onv_dim *scores)
{
    onv_graph_id body;
    uint32_t n_in, n_out;
    if (onv_op_attr(c, attr) == NULL) return ONV_OK;
    ONV_TRY(onv_op_body(c, attr, &body, &n_in, &n_out));
    if (n_in != 1 || n_out != 1)
        return onv_op_fail(c, "'%s' takes %u inputs and gives %u outputs, not one", attr, n_in,
                           n_out);
    bool wide = onv_op_in_dtype(c, Q) == ONV_DOUBLE;
    onv_dtype dtype = onv_op_attr_dtype(c, "softmax_precision", wide ? ONV_DOUBLE : ONV_FLOAT);
    onv_op_value in = {.type = onv_type_tensor(c, dtype, scores, 4)}, out;
    return c->run_subgraph(c, body, &in, 1, &out, 1);
}

static onv_status infer_flex_attention(onv_op_ctx *c)
{
    onv_dim scores[4] = {onv_op_in_dim(c, Q, 0), onv_op_in_dim(c, Q, 1), onv_op_in_dim(c, Q, 2),
                         onv_op_in_dim(c, K, 2)};
    ONV_TRY(onv_op_shapes_infer(c));
    ONV_TRY(run_modifier(c, "score_mod", scores));
    return run_modifier(c, "prob_mod", scores);
}

/* --- Rows -------------------------------------------------------------------------------------- */

/* Scores (queries times keys) and their product with the values; masks leave nothing out. */
#define ATTENTION                                                                                  \
    "(q[batch, length, attr.q_num_heads * size] or [batch, _, length, size], "                     \
    "k[batch, keys, attr.kv_num_heads * size] or [batch, kv_heads, keys, size], "                  \
    "v[batch, keys, attr.kv_num_heads * v_size] or [batch, kv_heads, keys, v_size], mask, "        \
    "past_key[batch, kv_heads, past, size], past_value[batch, kv_heads, past, v_size]) "           \
    "where heads = if(q.rank - 3, q.1, attr.q_num_heads or 0), "                                   \
    "kv_heads = if(k.rank - 3, kv_heads, attr.kv_num_heads or 0), "                                \
    "query_heads_per_head = exact(heads / kv_heads), all = keys + (past_key.2 or 0): "             \
    "[batch, length, heads * v_size] or [batch, heads, length, v_size], "                          \
    "[batch, kv_heads, all, size] like k, [batch, kv_heads, all, v_size] like v, "                 \
    "[batch, heads, length, all]; batch * heads * length * all * (size + v_size)"
#define FLEX                                                                                       \
    "(q[batch, heads, length, size], k[batch, kv_heads, keys, size], v[batch, kv_heads, keys, "    \
    "v_size]) where query_heads_per_head = exact(heads / kv_heads): "                              \
    "[batch, heads, length, v_size]; batch * heads * length * keys * (size + v_size)"
/* Instead of all past keys and values, each head keeps one state, which every step reads and updates: a product with it for
 * each query head, an outer product for each head of keys, and one more product there where the rule corrects what it holds. */
#define LINEAR                                                                                     \
    "(q[batch, length, attr.q_num_heads * size], k[batch, length, attr.kv_num_heads * size], "     \
    "v[batch, length, attr.kv_num_heads * v_size], state[batch, heads, size, v_size]) "            \
    "where heads = attr.kv_num_heads, query_heads_per_head = exact(attr.q_num_heads / "            \
    "heads): [batch, length, attr.q_num_heads * v_size], [batch, heads, size, v_size] like state " \
    "or q; batch * length * size * v_size * (attr.q_num_heads + heads * "                          \
    "(2 - attr.update_rule in (gated_delta, delta, linear, gated) / 2))"
/* Without position ids the caches have a row per token. */
#define ROTARY                                                                                     \
    "(x[_, _, attr.num_heads * size] or [_, _, _, size], cos, sin, ids[_, _]) "                    \
    "where axes = 3 - given(ids), axes = cos.rank, axes = sin.rank, "                              \
    "left_by_rotary_embedding_dim = size - (attr.rotary_embedding_dim or 0), "                     \
    "pairs = exact(if(attr.rotary_embedding_dim or 0, 2, size) / 2): like x"
#define KEPT (ONV_BIT(Q) | ONV_BIT(K) | ONV_BIT(V))

static const onv_op rows[] = {
    ONV_OP("Attention", 23, 3, 6, 1, 4, infer_attention, .says = true, .with = ATTENTION,
           .macs = onv_op_shapes_macs, .traits_fn = attention_traits),
    ONV_OP("Attention", 24, 3, 7, 1, 4, infer_attention, .says = true, .with = ATTENTION,
           .macs = onv_op_shapes_macs, .traits_fn = attention_traits),
    ONV_SAYS("LinearAttention", 27, 3, 6, 2, 2, LINEAR,
             .traits = {.save_in = KEPT | ONV_BIT(4) | ONV_BIT(5)}),
    ONV_SAYS("RotaryEmbedding", 23, 3, 4, 1, 1, ROTARY,
             .traits = {.save_in = ONV_BIT(1) | ONV_BIT(2)}),
};

const onv_op_family onv_ops_attention = {"", rows, sizeof rows / sizeof rows[0]};

static const onv_op preview_rows[] = {
    ONV_OP("FlexAttention", 1, 3, 3, 1, 1, infer_flex_attention, .says = true, .with = FLEX,
           .macs = onv_op_shapes_macs, .traits = {.save_in = KEPT, .save_out = ONV_BIT(Y)},
           .flags = ONV_OP_SUBGRAPH),
};

const onv_op_family onv_ops_attention_preview = {"ai.onnx.preview", preview_rows,
                                                 sizeof preview_rows / sizeof preview_rows[0]};

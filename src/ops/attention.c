/* Attention and RotaryEmbedding of opset 23, LinearAttention of opset 27; FlexAttention of
 * ai.onnx.preview.
 *
 * Queries, keys and values are [batch, heads, length, head size], or [batch, length, heads * head
 * size] with the heads as attributes. Several query heads may share one head of keys and values.
 * Cached keys and values (past, always 4-D) stand before the new ones; both together are present.
 */
#include <string.h>

#include "ops/controlflow.h"
#include "ops/rules.h"
#include "ops/tensor.h"

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, NONPAD };     /* inputs */
enum { Y, PRESENT_KEY, PRESENT_VALUE, QK_MATMUL_OUTPUT }; /* outputs */

typedef struct heads {
    onv_dim batch, count, length, size;
} heads;

static onv_status read_heads(onv_op_ctx *c, uint32_t k, const char *count_attr, heads *h)
{
    int64_t count = onv_op_attr_int(c, count_attr, 0);
    int rank = onv_op_in_rank(c, k);
    ONV_TRY(onv_tensor_need_rank(c, k, 3, 4));
    if (count < 0 || (count == 0 && rank == 3))
        return onv_op_fail(c, "attribute %s is missing or not positive", count_attr);
    h->count = count > 0 ? onv_dim_const(count) : ONV_DIM_UNKNOWN;
    h->batch = onv_op_in_dim(c, k, 0);
    h->length = onv_op_in_dim(c, k, rank == 3 ? 1 : 2);
    if (rank == 3) return onv_rule_head_size(c, onv_op_in_dim(c, k, 2), h->count, &h->size);
    h->size = onv_op_in_dim(c, k, 3);
    if (rank == 4) h->count = onv_op_in_dim(c, k, 1);
    return ONV_OK;
}

/* Puts the cached part before the new one; `h` then describes what is present. */
static onv_status add_past(onv_op_ctx *c, uint32_t k, heads *h)
{
    if (!onv_op_has_in(c, k)) return ONV_OK;
    ONV_TRY(onv_tensor_need_rank(c, k, 4, 4));
    ONV_TRY(onv_tensor_unify(c, "the batch of new and past", &h->batch, onv_op_in_dim(c, k, 0)));
    ONV_TRY(onv_tensor_unify(c, "the heads of new and past", &h->count, onv_op_in_dim(c, k, 1)));
    ONV_TRY(onv_tensor_unify(c, "the head size of new and past", &h->size, onv_op_in_dim(c, k, 3)));
    h->length = onv_dim_add(c->dims, onv_op_in_dim(c, k, 2), h->length);
    return ONV_OK;
}

static onv_status read_attention(onv_op_ctx *c, heads *q, heads *k, heads *v)
{
    if (onv_op_has_in(c, PAST_KEY) != onv_op_has_in(c, PAST_VALUE))
        return onv_op_fail(c, "past_key and past_value must be given together");
    if (onv_op_has_in(c, NONPAD) && onv_op_has_in(c, PAST_KEY))
        return onv_op_fail(c, "nonpad_kv_seqlen and past_key exclude each other");
    ONV_TRY(read_heads(c, Q, "q_num_heads", q));
    ONV_TRY(read_heads(c, K, "kv_num_heads", k));
    ONV_TRY(read_heads(c, V, "kv_num_heads", v));
    ONV_TRY(add_past(c, PAST_KEY, k));
    ONV_TRY(add_past(c, PAST_VALUE, v));
    ONV_TRY(onv_tensor_unify(c, "the batch of keys and values", &k->batch, v->batch));
    ONV_TRY(onv_tensor_unify(c, "the batch of queries and keys", &q->batch, k->batch));
    ONV_TRY(onv_tensor_unify(c, "the heads of keys and values", &k->count, v->count));
    ONV_TRY(onv_tensor_unify(c, "the length of keys and values", &k->length, v->length));
    ONV_TRY(onv_tensor_unify(c, "the head size of queries and keys", &q->size, k->size));
    k->size = q->size;
    v->count = k->count;
    v->length = k->length;
    k->batch = v->batch = q->batch;
    return onv_rule_share_heads(c, q->count, k->count);
}

static void set_present(onv_op_ctx *c, uint32_t out, uint32_t in, const heads *h)
{
    onv_dim dims[4] = {h->batch, h->count, h->length, h->size};
    onv_op_set_out(c, out, onv_op_in_dtype(c, in), dims, 4);
}

static onv_status infer_attention(onv_op_ctx *c)
{
    heads q, k, v;
    onv_dtype dtype = onv_op_in_dtype(c, Q);
    int rank = onv_op_in_rank(c, Q);
    ONV_TRY(read_attention(c, &q, &k, &v));
    onv_dim wide[3] = {q.batch, q.length, onv_dim_mul(c->dims, q.count, v.size)};
    onv_dim split[4] = {q.batch, q.count, q.length, v.size};
    onv_op_set_out(c, Y, dtype, rank == 3 ? wide : split, rank);
    set_present(c, PRESENT_KEY, K, &k);
    set_present(c, PRESENT_VALUE, V, &v);
    onv_dim scores[4] = {q.batch, q.count, q.length, k.length};
    return onv_op_set_out(c, QK_MATMUL_OUTPUT, dtype, scores, 4);
}

/* Scores (queries times keys) and their product with the values; masks leave nothing out. */
static onv_dim macs_attention(onv_op_ctx *c)
{
    heads q, k, v;
    if (read_attention(c, &q, &k, &v) != ONV_OK) return ONV_DIM_UNKNOWN;
    return ONV_PRODUCT(c, q.batch, q.count, q.length, k.length,
                       onv_dim_add(c->dims, k.size, v.size));
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
    heads q, k, v;
    for (uint32_t i = Q; i <= V; i++) ONV_TRY(onv_tensor_need_rank(c, i, 4, 4));
    ONV_TRY(read_attention(c, &q, &k, &v));
    onv_dim scores[4] = {q.batch, q.count, q.length, k.length};
    ONV_TRY(run_modifier(c, "score_mod", scores));
    ONV_TRY(run_modifier(c, "prob_mod", scores));
    onv_dim dims[4] = {q.batch, q.count, q.length, v.size};
    return onv_op_set_out(c, Y, onv_op_in_dtype(c, Q), dims, 4);
}

/* --- LinearAttention --------------------------------------------------------------------------- */

enum { STATE = 3, DECAY, BETA }; /* inputs */

/* Instead of all past keys and values, each head keeps one state of [head size, value size], which
 * every step reads and updates. */
static onv_status read_linear(onv_op_ctx *c, heads *q, heads *k, heads *v)
{
    for (uint32_t i = Q; i <= V; i++) ONV_TRY(onv_tensor_need_rank(c, i, 3, 3));
    ONV_TRY(onv_tensor_need_rank(c, STATE, 4, 4));
    if (onv_op_attr_int(c, "q_num_heads", 0) < 1 || onv_op_attr_int(c, "kv_num_heads", 0) < 1)
        return onv_op_fail(c, "q_num_heads or kv_num_heads is missing or not positive");
    ONV_TRY(read_heads(c, Q, "q_num_heads", q));
    ONV_TRY(read_heads(c, K, "kv_num_heads", k));
    ONV_TRY(read_heads(c, V, "kv_num_heads", v));
    ONV_TRY(onv_rule_share_heads(c, q->count, k->count));
    ONV_TRY(onv_tensor_unify(c, "the batch of queries and keys", &q->batch, k->batch));
    ONV_TRY(onv_tensor_unify(c, "the batch of keys and values", &q->batch, v->batch));
    ONV_TRY(onv_tensor_unify(c, "the length of queries and keys", &q->length, k->length));
    ONV_TRY(onv_tensor_unify(c, "the length of keys and values", &q->length, v->length));
    ONV_TRY(onv_tensor_unify(c, "the head size of queries and keys", &q->size, k->size));
    k->size = q->size;
    ONV_TRY(onv_tensor_unify(c, "the batch of the state", &q->batch, onv_op_in_dim(c, STATE, 0)));
    ONV_TRY(onv_tensor_unify(c, "the heads of the state", &k->count, onv_op_in_dim(c, STATE, 1)));
    ONV_TRY(
        onv_tensor_unify(c, "the head size of the state", &k->size, onv_op_in_dim(c, STATE, 2)));
    return onv_tensor_unify(c, "the value size of the state", &v->size, onv_op_in_dim(c, STATE, 3));
}

static onv_status infer_linear_attention(onv_op_ctx *c)
{
    heads q, k, v;
    ONV_TRY(read_linear(c, &q, &k, &v));
    onv_dim wide[3] = {q.batch, q.length, onv_dim_mul(c->dims, q.count, v.size)};
    onv_dim state[4] = {q.batch, k.count, k.size, v.size};
    onv_op_set_out(c, 0, onv_op_in_dtype(c, Q), wide, 3);
    return onv_op_set_out(c, 1, onv_op_in_dtype(c, onv_op_has_in(c, STATE) ? STATE : Q), state, 4);
}

/* Per step: a product with the state for each query head, an outer product for each head of keys,
 * and one more product there where the rule corrects what the state holds ("delta"). */
static onv_dim macs_linear_attention(onv_op_ctx *c)
{
    heads q, k, v;
    if (read_linear(c, &q, &k, &v) != ONV_OK) return ONV_DIM_UNKNOWN;
    bool delta = strstr(onv_op_attr_string(c, "update_rule", "gated_delta"), "delta") != NULL;
    onv_dim products = onv_dim_mul(c->dims, k.count, onv_dim_const(delta ? 2 : 1));
    products = onv_dim_add(c->dims, products, q.count);
    return ONV_PRODUCT(c, q.batch, q.length, products, k.size, v.size);
}

/* --- RotaryEmbedding --------------------------------------------------------------------------- */

/* RotaryEmbedding: X, cos_cache, sin_cache, position_ids. */
static onv_status infer_rotary_embedding(onv_op_ctx *c)
{
    heads h;
    int64_t rotated = onv_op_attr_int(c, "rotary_embedding_dim", 0);
    onv_op_set_out_like(c, 0, 0, onv_op_in_dtype(c, 0));
    ONV_TRY(read_heads(c, 0, "num_heads", &h));
    if (onv_dim_is_const(h.size) && rotated == 0 && h.size.raw % 2 != 0)
        return onv_op_fail(c, "a head size of %lld is odd", (long long)h.size.raw);
    if (rotated < 0 || onv_dim_always_lt(c->dims, h.size, onv_dim_const(rotated)))
        return onv_op_fail(c, "rotary_embedding_dim is %lld", (long long)rotated);
    for (uint32_t k = 1; k <= 2; k++)
        ONV_TRY(
            onv_tensor_need_rank(c, k, onv_op_has_in(c, 3) ? 2 : 3, onv_op_has_in(c, 3) ? 2 : 3));
    return onv_tensor_need_rank(c, 3, 2, 2);
}

static const onv_op rows[] = {
    ONV_OP("Attention", 23, 3, 6, 1, 4, infer_attention, .macs = macs_attention,
           .traits_fn = attention_traits),
    ONV_OP("Attention", 24, 3, 7, 1, 4, infer_attention, .macs = macs_attention,
           .traits_fn = attention_traits),
    ONV_OP("LinearAttention", 27, 3, 6, 2, 2, infer_linear_attention, .macs = macs_linear_attention,
           .traits = {.save_in =
                          ONV_BIT(Q) | ONV_BIT(K) | ONV_BIT(V) | ONV_BIT(DECAY) | ONV_BIT(BETA)}),
    ONV_OP("RotaryEmbedding", 23, 3, 4, 1, 1, infer_rotary_embedding,
           .traits = {.save_in = ONV_BIT(1) | ONV_BIT(2)}),
};

const onv_op_family onv_ops_attention = {"", rows, sizeof rows / sizeof rows[0]};

static const onv_op preview_rows[] = {
    ONV_OP("FlexAttention", 1, 3, 3, 1, 1, infer_flex_attention, .macs = macs_attention,
           .traits = {.save_in = ONV_BIT(Q) | ONV_BIT(K) | ONV_BIT(V), .save_out = ONV_BIT(Y)},
           .flags = ONV_OP_SUBGRAPH),
};

const onv_op_family onv_ops_attention_preview = {"ai.onnx.preview", preview_rows,
                                                 sizeof preview_rows / sizeof preview_rows[0]};

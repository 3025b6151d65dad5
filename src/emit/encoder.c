#include "emit/encoder.h"

#include "eager/pytorch.h"
#include "emit/attention.h"
#include "emit/layers.h"
#include "emit/product.h"

/* nn.TransformerEncoderLayer looks for one of two kernels: otherwise it computes in another way, which is not modelled. */
bool onv_emit_takes_fast_path(const onv_emitter *e)
{
    const onv_lower_options *options = e->options;
    return options->inference && !options->no_fast_path && !options->graph_module &&
           !options->as_exported && options->amp == ONV_UNDEFINED &&
           options->attention != ONV_ATTENTION_MATH &&
           !onv_before_pytorch(options, ONV_PYTORCH_RELEASE(2, 0));
}

static uint32_t product(onv_emitter *e, uint32_t x, const onv_encoder_matrix *p)
{
    uint32_t w = p->weight;
    if (onv_tensor_at(e, w).rank != 2) return ONV_NO_TENSOR;
    if (p->is_turned) w = onv_emit_swapped(e, w);
    e->has_bias = true; /* one of zeros is dropped by the exporter */
    uint32_t out = onv_emit_linear(e, x, w, p->bias);
    e->has_bias = false;
    return out;
}

static uint32_t norm(onv_emitter *e, uint32_t x, const onv_encoder_call *layer, uint32_t which)
{
    return onv_emit_layer_norm(e, x, layer->norm_weight[which], layer->norm_bias[which], -1, true);
}

/* A third of the packed projection, as the kernels take it: [batch, heads, rows, values]. */
static uint32_t head_view(onv_emitter *e, uint32_t qkv, int64_t heads)
{
    onv_eager_tensor t = onv_tensor_at(e, qkv);
    int64_t wide = t.dims[2] / 3, row = t.strides[1], value = t.strides[2];
    const int64_t dims[] = {t.dims[0], heads, t.dims[1], wide / heads};
    const int64_t strides[] = {t.strides[0], value * (wide / heads), row, value};
    return onv_emit_view(e, "chunk", qkv, 4, dims, strides, ONV_GRAD_PART);
}

/* [batch x heads, rows, values] of the nth part of three. */
static uint32_t part_of(onv_emitter *e, uint32_t all, const onv_eager_tensor *q)
{
    const int64_t dims[] = {q->dims[0] * q->dims[1], q->dims[2], q->dims[3]};
    const int64_t strides[] = {q->dims[2] * q->dims[3], q->dims[3], 1};
    return onv_emit_view(e, "chunk", all, 3, dims, strides, ONV_GRAD_PART);
}

/* Of attention, as booleans. */
static uint32_t mask_of(onv_emitter *e, const onv_encoder_call *layer, const onv_eager_tensor *q)
{
    const int64_t dims[] = {q->dims[0], q->dims[1], q->dims[2], q->dims[2]};
    onv_eager_tensor m = {.rank = 4, .dims = dims};
    if (!layer->has_hidden_mask) m = onv_tensor_at(e, layer->mask);
    if (m.dtype == ONV_BOOL) return layer->mask;
    return onv_emit_one(e, "to", layer->has_hidden_mask ? ONV_NO_TENSOR : layer->mask,
                        ONV_GRAD_NONE, onv_tensor_new(e, ONV_BOOL, m.rank, m.dims, NULL));
}

static uint32_t soften(onv_emitter *e, uint32_t scores, uint32_t mask)
{
    onv_eager_tensor s = onv_tensor_at(e, scores);
    onv_emit_begin(e, "masked_softmax");
    onv_emit_in(e, scores, ONV_GRAD_NONE);
    if (mask != ONV_NO_TENSOR) onv_emit_in(e, mask, ONV_GRAD_NONE);
    uint32_t weights = onv_emit_out(e, onv_tensor_new(e, s.dtype, s.rank, s.dims, NULL));
    onv_emit_end(e);
    return weights;
}

static uint32_t weights_of(onv_emitter *e, uint32_t soft, const onv_eager_tensor *q, bool of_each)
{
    const int64_t dims[] = {q->dims[0], q->dims[1], q->dims[2], q->dims[2]};
    const int64_t mean[] = {q->dims[0], q->dims[2], q->dims[2]};
    if (of_each) return onv_emit_reshape(e, soft, 4, dims);
    uint32_t weights = onv_emit_of(e, "sum", soft, ONV_GRAD_NONE, 3, mean, NULL);
    onv_emit_release(e, soft);
    return weights;
}

/* Heads of 32 bits in rows of 16 bytes; those of 16 bits are padded. */
static bool has_kernel(const onv_emitter *e, uint32_t x, int64_t heads)
{
    onv_eager_tensor t = onv_tensor_at(e, x);
    return onv_dtype_bits((onv_dtype)t.dtype) == 16 || t.dims[2] / heads % 4 == 0;
}

/* Where no fused kernel runs: with a mask, for weights, or by the width of heads (native_multi_head_attention_cuda()). Queries,
 * keys and values with their biases are a new tensor, in which the result of attention takes the place of the queries; the mask is
 * copied as booleans; softmax makes a new tensor, which is there until its mean is taken at the end. */
static uint32_t attend_in_parts(onv_emitter *e, uint32_t x, const onv_encoder_call *layer,
                                bool has_mask, uint32_t *weights)
{
    onv_encoder_matrix unbiased = layer->products[0];
    unbiased.bias = ONV_NO_TENSOR;
    uint32_t raw = product(e, x, &unbiased);
    onv_eager_tensor t = onv_tensor_at(e, raw);
    if (raw == ONV_NO_TENSOR || t.rank != 3) return ONV_NO_TENSOR;
    onv_eager_tensor q = onv_tensor_at(e, head_view(e, raw, layer->heads));
    uint32_t qkv =
        onv_emit_of(e, "transform_bias_rescale_qkv", raw, ONV_GRAD_NONE, 3, t.dims, NULL);
    uint32_t query = part_of(e, qkv, &q);
    if (query == ONV_NO_TENSOR) return ONV_NO_TENSOR;
    uint32_t scores = onv_emit_matmul(e, query, onv_emit_swapped(e, query));
    uint32_t soft = soften(e, scores, has_mask ? mask_of(e, layer, &q) : ONV_NO_TENSOR);
    if (!layer->gives_weights) onv_emit_release(e, soft);
    const int64_t flat[] = {t.dims[0], t.dims[1], t.dims[2] / 3};
    uint32_t y = onv_emit_of(e, "transform_0213", qkv, ONV_GRAD_NONE, 3, flat, NULL);
    uint32_t out = product(e, y, &layer->products[1]);
    if (layer->gives_weights) *weights = weights_of(e, soft, &q, layer->gives_each);
    onv_emit_release(e, qkv);
    return out;
}

static uint32_t attend(onv_emitter *e, uint32_t x, const onv_encoder_call *layer, uint32_t *weights)
{
    bool has_mask = layer->mask != ONV_NO_TENSOR || layer->has_hidden_mask;
    if (has_mask || layer->gives_weights || !has_kernel(e, x, layer->heads))
        return attend_in_parts(e, x, layer, has_mask, weights);
    uint32_t qkv = product(e, x, &layer->products[0]);
    onv_eager_tensor t = onv_tensor_at(e, qkv);
    if (qkv == ONV_NO_TENSOR || t.rank != 3) return ONV_NO_TENSOR;
    uint32_t query = head_view(e, qkv, layer->heads);
    onv_eager_tensor q = onv_tensor_at(e, query);
    if (query == ONV_NO_TENSOR) return ONV_NO_TENSOR;
    onv_shape shape = {.rank = 4};
    for (uint32_t i = 0; i < 4; i++) shape.dims[i] = q.dims[i];
    uint32_t y = onv_emit_attention(e, query, query, query, ONV_NO_TENSOR, &shape);
    if (y == ONV_NO_TENSOR) return y;
    y = onv_emit_permuted(e, "transpose", y, (const uint32_t[]){0, 2, 1, 3});
    const int64_t flat[] = {t.dims[0], t.dims[1], t.dims[2] / 3};
    uint32_t out = product(e, onv_emit_reshape(e, y, 3, flat), &layer->products[1]);
    onv_emit_release(e, qkv); /* the function has a name for the projection until it returns */
    return out;
}

uint32_t onv_emit_encoder(onv_emitter *e, uint32_t src, const onv_encoder_call *layer,
                          uint32_t *weights)
{
    if (src == ONV_NO_TENSOR || layer->heads < 1 || onv_tensor_at(e, src).rank != 3)
        return ONV_NO_TENSOR;
    if (layer->is_attention) return attend(e, src, layer, weights);
    uint32_t in = layer->norm_first ? norm(e, src, layer, 0) : src;
    uint32_t x = attend(e, in, layer, weights);
    onv_emit_release(e, in);
    x = onv_emit_add_to(e, x, src, ONV_GRAD_ALIAS);
    if (!layer->norm_first) x = norm(e, x, layer, 0);
    /* The product computes the activation, too. */
    in = layer->norm_first ? norm(e, x, layer, 1) : x;
    uint32_t y = product(e, in, &layer->products[2]);
    if (e->status != ONV_OK || y == ONV_NO_TENSOR) return ONV_NO_TENSOR;
    y = product(e, y, &layer->products[3]);
    onv_emit_release(e, in);
    y = onv_emit_add_to(e, y, x, ONV_GRAD_ALIAS);
    return layer->norm_first ? y : norm(e, y, layer, 1);
}

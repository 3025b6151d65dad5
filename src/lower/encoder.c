/* torch._transformer_encoder_layer_fwd and torch._native_multi_head_attention: what their C++ holds while it runs. */
#include "lower/lowering.h"

static uint32_t product(onv_lowering *l, uint32_t x, const onv_encoder_product *p)
{
    uint32_t w = onv_value_tensor(l, p->weight);
    onv_eager_tensor t = onv_tensor_at(&l->emit, w);
    if (w == ONV_NO_TENSOR || t.rank != 2) return ONV_NO_TENSOR;
    const int64_t dims[] = {t.dims[1], t.dims[0]}, strides[] = {t.strides[1], t.strides[0]};
    if (p->is_turned) w = onv_emit_view(&l->emit, "t", w, 2, dims, strides, ONV_GRAD_ALIAS);
    l->emit.has_bias = true; /* one of zeros is dropped by the exporter */
    uint32_t out = onv_emit_linear(&l->emit, x, w, onv_value_tensor(l, p->bias));
    l->emit.has_bias = false;
    return out;
}

static uint32_t norm(onv_lowering *l, uint32_t x, const onv_encoder_layer *layer, uint32_t which)
{
    return onv_emit_layer_norm(&l->emit, x, onv_value_tensor(l, layer->norm_weight[which]),
                               onv_value_tensor(l, layer->norm_bias[which]), -1, true);
}

/* A third of the packed projection, as the kernels take it: [batch, heads, rows, values]. */
static uint32_t head_view(onv_lowering *l, uint32_t qkv, int64_t heads)
{
    onv_eager_tensor t = onv_tensor_at(&l->emit, qkv);
    int64_t wide = t.dims[2] / 3, row = t.strides[1], value = t.strides[2];
    const int64_t dims[] = {t.dims[0], heads, t.dims[1], wide / heads};
    const int64_t strides[] = {t.strides[0], value * (wide / heads), row, value};
    return onv_emit_view(&l->emit, "chunk", qkv, 4, dims, strides, ONV_GRAD_PART);
}

static uint32_t attend(onv_lowering *l, uint32_t x, const onv_encoder_layer *layer)
{
    uint32_t qkv = product(l, x, &layer->products[0]);
    onv_eager_tensor t = onv_tensor_at(&l->emit, qkv);
    if (qkv == ONV_NO_TENSOR || t.rank != 3) return ONV_NO_TENSOR;
    uint32_t query = head_view(l, qkv, layer->heads);
    onv_eager_tensor q = onv_tensor_at(&l->emit, query);
    if (query == ONV_NO_TENSOR) return ONV_NO_TENSOR;
    onv_shape shape = {.rank = 4};
    for (uint32_t i = 0; i < 4; i++) shape.dims[i] = q.dims[i];
    uint32_t y = onv_emit_attention(&l->emit, query, query, query, ONV_NO_TENSOR, &shape);
    const onv_eager_tensor a = onv_tensor_at(&l->emit, y);
    if (y == ONV_NO_TENSOR) return y;
    const int64_t dims[] = {a.dims[0], a.dims[2], a.dims[1], a.dims[3]};
    const int64_t strides[] = {a.strides[0], a.strides[2], a.strides[1], a.strides[3]};
    y = onv_emit_view(&l->emit, "transpose", y, 4, dims, strides, ONV_GRAD_ALIAS);
    const int64_t flat[] = {t.dims[0], t.dims[1], t.dims[2] / 3};
    uint32_t out = product(l, onv_emit_reshape(&l->emit, y, 3, flat), &layer->products[1]);
    /* The function has a name for the projection until it returns. */
    onv_emit_begin(&l->emit, "release");
    onv_emit_in(&l->emit, qkv, ONV_GRAD_NONE);
    onv_emit_end(&l->emit);
    return out;
}

void onv_lower_encoder_layer(onv_lowering *l, const onv_fusion *f)
{
    const onv_encoder_layer *layer = f->layer;
    uint32_t src = onv_value_tensor(l, f->x);
    if (src == ONV_NO_TENSOR || onv_tensor_at(&l->emit, src).rank != 3) return;
    if (layer->is_attention) {
        onv_value_set(l, f->out, attend(l, src, layer));
        return;
    }
    uint32_t x = attend(l, layer->norm_first ? norm(l, src, layer, 0) : src, layer);
    x = onv_emit_add_to(&l->emit, x, src, ONV_GRAD_ALIAS);
    if (!layer->norm_first) x = norm(l, x, layer, 0);
    /* The product computes the activation, too. */
    uint32_t y = product(l, layer->norm_first ? norm(l, x, layer, 1) : x, &layer->products[2]);
    if (l->emit.status != ONV_OK || y == ONV_NO_TENSOR) return;
    y = onv_emit_add_to(&l->emit, product(l, y, &layer->products[3]), x, ONV_GRAD_ALIAS);
    onv_value_set(l, f->out, layer->norm_first ? y : norm(l, y, layer, 1));
}

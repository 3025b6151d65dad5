/* Layers of nn.TransformerEncoder, and nn.MultiheadAttention alone, by the fast path. */
#include "emit/encoder.h"

#include "lower/lowering.h"

uint32_t onv_lower_encoder_layer(onv_lowering *l, const onv_fusion *f)
{
    const onv_encoder_layer *layer = f->layer;
    onv_encoder_call call = {.norm_first = layer->norm_first,
                             .mask = ONV_NO_TENSOR,
                             .is_attention = layer->is_attention,
                             .heads = layer->heads};
    uint32_t src = onv_value_tensor(l, f->x);
    for (uint32_t i = 0; i < (layer->is_attention ? 2 : ONV_ENCODER_PRODUCTS); i++)
        call.products[i] =
            (onv_encoder_matrix){.weight = onv_value_tensor(l, layer->products[i].weight),
                                 .bias = onv_value_tensor(l, layer->products[i].bias),
                                 .is_turned = layer->products[i].is_turned};
    for (uint32_t i = 0; i < 2 && !layer->is_attention; i++) {
        call.norm_weight[i] = onv_value_tensor(l, layer->norm_weight[i]);
        call.norm_bias[i] = onv_value_tensor(l, layer->norm_bias[i]);
    }
    return onv_emit_encoder(&l->emit, src, &call, NULL);
}

/* torch._transformer_encoder_layer_fwd and torch._native_multi_head_attention: the fast path of nn.TransformerEncoderLayer and
 * nn.MultiheadAttention, without gradients. */
#ifndef ONV_EMIT_ENCODER_H
#define ONV_EMIT_ENCODER_H

#include "emit/emit.h"

/* A weight [out, in] as a linear layer has it (`is_turned`), or [in, out]. */
typedef struct onv_encoder_matrix {
    uint32_t weight, bias;
    bool is_turned;
} onv_encoder_matrix;

typedef struct onv_encoder_call {
    onv_encoder_matrix products
        [4]; /* packed queries, keys and values; result of attention; both of the feed-forward */
    uint32_t norm_weight[2], norm_bias[2];
    bool norm_first;
    bool is_attention;    /* and nothing else: two products, no norm */
    uint32_t mask;        /* of attention, [batch, heads, rows, rows]; ONV_NO_TENSOR: none */
    bool has_hidden_mask; /* of floats, which no call shows */
    bool gives_weights;   /* of attention alone: these, too */
    bool gives_each;      /* those of each head, not their mean */
    int64_t heads;
} onv_encoder_call;

/* False: the options, or the release, have another path. */
bool onv_emit_takes_fast_path(const onv_emitter *e);
/* Of [batch, rows, values]; ONV_NO_TENSOR where src is none. *weights, where they are given: [batch, rows, rows], of each head
 * [batch, heads, rows, rows]. */
uint32_t onv_emit_encoder(onv_emitter *e, uint32_t src, const onv_encoder_call *layer,
                          uint32_t *weights);

#endif

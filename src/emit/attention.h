/* Attention in a kernel of its own, which never writes the scores down. */
#ifndef ONV_EMIT_ATTENTION_H
#define ONV_EMIT_ATTENTION_H

#include "emit/emit.h"

/* The kernel alone; its result has the shape. */
uint32_t onv_emit_attention(onv_emitter *e, uint32_t query, uint32_t key, uint32_t value,
                            uint32_t mask, const onv_shape *shape);
/* Whether the dispatcher takes the memory-efficient kernel for them. */
/* Attention by parts, its last product. What has 16 bits, `dtype`, runs in float32 (2.5 on) and is cast back; before the
 * product the probabilities are, a second result that nobody takes. `query`, scaled, goes with the call; ONV_NO_TENSOR: none. */
uint32_t onv_emit_attended(onv_emitter *e, uint8_t dtype, uint32_t query, uint32_t probabilities,
                           uint32_t values);
bool onv_attention_is_efficient(const onv_emitter *e, uint32_t query, uint32_t mask);
/* What scaled_dot_product_attention's softmax looks for: a byte for each score that is -inf, one for
 * each row of them, and a zero. */
uint64_t onv_safe_softmax_bytes(const onv_emitter *e, uint32_t scores);

#endif

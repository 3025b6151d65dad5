/* Attention: as one kernel, or in parts. */
#ifndef ONV_LOWER_ATTENTION_H
#define ONV_LOWER_ATTENTION_H

#include "fuse/fuse.h"
#include "lower/weight.h"

/* Operand k of the node, if it is a part of attention, which takes low precision and computes in
 * float32; ONV_ATTENTION_NONE: as it comes. */
uint32_t onv_amp_attention(onv_lowering *l, const onv_node *node, uint32_t k);
/* Where the query is scaled: the values are cast, too, before anything is computed. */
void onv_widen_attended(onv_lowering *l, const onv_node *node);
/* Of the call that the node is a part of: what the user says, else what its note does; below 0: nobody. */
double onv_dropout_of_attention(const onv_emitter *e, const onv_node *node);
onv_attention_part onv_node_attention(const onv_lowering *l, const onv_node *node);
void onv_lower_attention(onv_lowering *l, const onv_fusion *fusion);

#endif

/* Shape rules that many operators share. Each stands once. */
#ifndef ONV_OPS_RULES_H
#define ONV_OPS_RULES_H

#include "ops/op.h"

/* Multidirectional broadcasting of two dims: 1 yields to the other; equal stay; a number wins over
 * a symbol (which must then be 1 or that number); two different expressions give their maximum,
 * which is right for every binding under which the model runs. Fails on two numbers that differ. */
onv_status onv_rule_broadcast_dim(onv_op_ctx *c, onv_dim a, onv_dim b, onv_dim *out);

/* Fails where input k cannot broadcast to these dims as they are; `what` names it in the message. */
onv_status onv_rule_check_fits(onv_op_ctx *c, const char *what, uint32_t k, const onv_dim *dims,
                               int rank);

/* The dtype that inputs [first, first + count) share: the first one that is known. */
onv_dtype onv_rule_dtype(const onv_op_ctx *c, uint32_t first, uint32_t count);

/* Whole rules. */
onv_status onv_rule_broadcast_as(onv_op_ctx *c, onv_dtype dtype); /* all inputs broadcast */
onv_status onv_infer_same(onv_op_ctx *c);                         /* output 0 like input 0 */
onv_status onv_infer_identity(onv_op_ctx *c);                     /* the same, of any type */
onv_status onv_fold_identity(onv_op_ctx *c);
onv_status onv_infer_broadcast(onv_op_ctx *c); /* the same, with the inputs' dtype */
onv_status onv_infer_compare(onv_op_ctx *c);   /* all inputs broadcast, bool */

/* Elements of output 0: the element operations of a pointwise operator. */
onv_dim onv_count_out_elems(onv_op_ctx *c);

/* Index arithmetic for folds on constant shapes: the element of `known` that broadcasts to position
 * `index` of an output of `dims`. */
uint32_t onv_broadcast_index(const onv_known *known, const int64_t *dims, int rank, uint32_t index);

#endif

/* What the families of pointwise operators share: shapes that must agree, and which inputs have the
 * output's shape. */
#ifndef ONV_OPS_MATH_H
#define ONV_OPS_MATH_H

#include "ops/fold.h"
#include "ops/tensor.h"

/* Broadcasting before opset 7. */
onv_status onv_infer_legacy(onv_op_ctx *c);         /* with the inputs' dtype */
onv_status onv_infer_legacy_compare(onv_op_ctx *c); /* bool */

/* The row's traits, `inplace` reduced to the inputs that have the shape of the broadcast result. */
onv_op_traits onv_math_broadcast_traits(onv_op_ctx *c);

/* Matrix products as numpy.matmul: the shape of inputs a and b multiplied, into output 0, and their
 * multiply-accumulates. */
onv_status onv_math_matmul_as(onv_op_ctx *c, uint32_t a, uint32_t b, onv_dtype dtype);
onv_dim onv_math_matmul_macs(onv_op_ctx *c, uint32_t a, uint32_t b);

/* fold_<name>: the fold of a pointwise operator whose element is `expression` of the elements `in`,
 * their dtype `t` and the pool. */
#define ONV_FOLD(name, expression)                                                                 \
    static onv_scalar name##_of(onv_op_ctx *c, onv_dtype t, const onv_scalar *in, uint32_t n)      \
    {                                                                                              \
        onv_dims *pool = c->dims;                                                                  \
        (void)pool, (void)t, (void)n;                                                              \
        return expression;                                                                         \
    }                                                                                              \
    static onv_status fold_##name(onv_op_ctx *c)                                                   \
    {                                                                                              \
        return onv_fold_elementwise(c, name##_of);                                                 \
    }

#endif

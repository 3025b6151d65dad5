/* Folding: the contents of small outputs from the contents of the inputs, element by element.
 *
 * An element is an onv_scalar: an integer expression, or f * i in float types (see ir/type.h).
 * Elements may be unknown one by one; an operation on them is unknown unless the result is certain
 * whatever they are. Arithmetic on numbers is that of the element type: integers wrap, floats
 * round. On expressions it is exact, and unknown where the type's range could be left.
 *
 * Functions here take scalars in canonical form, as onv_scalar_canonical makes them: f is 1 in
 * integer types, and a float whose i is a number has i = 1.
 */
#ifndef ONV_OPS_FOLD_H
#define ONV_OPS_FOLD_H

#include "ops/op.h"

/* --- Elements --------------------------------------------------------------------------------- */

onv_scalar onv_scalar_canonical(onv_dtype dtype, onv_scalar s);

/* A number in the form of the type. */
onv_scalar onv_scalar_number(onv_dtype dtype, int value);

/* A result put into the range of its type. Integers wrap; unknown where that cannot be told. */
onv_scalar onv_scalar_fit(onv_dims *pool, onv_dtype dtype, onv_scalar s);

onv_scalar onv_scalar_add(onv_dims *pool, onv_dtype dtype, onv_scalar a, onv_scalar b);
onv_scalar onv_scalar_sub(onv_dims *pool, onv_dtype dtype, onv_scalar a, onv_scalar b);
onv_scalar onv_scalar_mul(onv_dims *pool, onv_dtype dtype, onv_scalar a, onv_scalar b);
/* Integers truncate, as ONNX's Div. */
onv_scalar onv_scalar_div(onv_dims *pool, onv_dtype dtype, onv_scalar a, onv_scalar b);
/* The sign of the result is that of `b`, or where truncated (fmod) of `a`. */
onv_scalar onv_scalar_mod(onv_dims *pool, onv_dtype dtype, onv_scalar a, onv_scalar b,
                          bool truncated);
onv_scalar onv_scalar_pow(onv_dims *pool, onv_dtype dtype, onv_scalar a, onv_scalar b);
onv_scalar onv_scalar_min(onv_dims *pool, onv_dtype dtype, onv_scalar a, onv_scalar b);
onv_scalar onv_scalar_max(onv_dims *pool, onv_dtype dtype, onv_scalar a, onv_scalar b);
onv_scalar onv_scalar_neg(onv_dims *pool, onv_dtype dtype, onv_scalar a);
onv_scalar onv_scalar_abs(onv_dims *pool, onv_dtype dtype, onv_scalar a);
onv_scalar onv_scalar_sign(onv_dims *pool, onv_dtype dtype, onv_scalar a);
onv_scalar onv_scalar_floor(onv_dims *pool, onv_dtype dtype, onv_scalar a);
onv_scalar onv_scalar_ceil(onv_dims *pool, onv_dtype dtype, onv_scalar a);
onv_scalar onv_scalar_round(onv_dims *pool, onv_dtype dtype, onv_scalar a);

/* Certain for all values of the symbols, either way? */
typedef enum onv_truth { ONV_MAYBE = -1, ONV_NEVER = 0, ONV_ALWAYS = 1 } onv_truth;

onv_truth onv_scalar_equal(onv_dims *pool, onv_dtype dtype, onv_scalar a, onv_scalar b);
onv_truth onv_scalar_less(onv_dims *pool, onv_dtype dtype, onv_scalar a, onv_scalar b);
onv_truth onv_scalar_less_equal(onv_dims *pool, onv_dtype dtype, onv_scalar a, onv_scalar b);

/* --- Tensors ---------------------------------------------------------------------------------- */

/* One element of the result from the elements of the inputs that broadcast to it; `dtype` is that
 * of the first input whose dtype is known, `n` the number of inputs (absent ones are unknown). */
typedef onv_scalar (*onv_fold_fn)(onv_op_ctx *c, onv_dtype dtype, const onv_scalar *in, uint32_t n);

/* The contents of output 0, whose type must be set, by `fn` on each element. Inputs broadcast as
 * since opset 7; before, as the attributes `broadcast` and `axis` say. */
onv_status onv_fold_elementwise(onv_op_ctx *c, onv_fold_fn fn);

/* The contents of output 0 (keepdims or not does not matter here) from those of input 0: over each
 * group of elements that differ only in the axes of `mask`, `step` takes the accumulator and the
 * next element; the first of a group starts it. `finish` (may be NULL) gets the group's size. An
 * empty group gives `empty`. */
typedef onv_scalar (*onv_fold_step)(onv_dims *pool, onv_dtype dtype, onv_scalar sum,
                                    onv_scalar next);
typedef onv_scalar (*onv_fold_finish)(onv_dims *pool, onv_dtype dtype, onv_scalar sum,
                                      uint32_t count);
onv_status onv_fold_reduce(onv_op_ctx *c, uint32_t mask, onv_fold_step step, onv_fold_finish finish,
                           onv_scalar empty);

/* Whether output 0 is small enough for its contents to be worth asking the inputs for theirs. */
bool onv_fold_wanted(const onv_op_ctx *c);

#endif

/* What the tensor families share: dims that must agree, lists of axes, and moves.
 *
 * Most operators here compute nothing: each element of the output is an element of an input, or a
 * filler. Their folds differ only in where an element comes from, which they tell onv_fold_move.
 */
#ifndef ONV_OPS_TENSOR_H
#define ONV_OPS_TENSOR_H

#include "ops/op.h"

/* Two dims that the operator requires to be equal: *dim becomes the one that says more. Fails on two numbers
 * that differ; `what` names the dim in the message. */
onv_status onv_tensor_unify(onv_op_ctx *c, const char *what, onv_dim *dim, onv_dim other);

/* Whether a size is known not to split into that many equal parts. */
bool onv_tensor_never_splits(onv_dim size, onv_dim parts);

/* Axes in the order of a list attribute, each once, or where it is absent all: into axes[ONV_MAX_RANK]. */
onv_status onv_tensor_axis_list(onv_op_ctx *c, const char *attr, int rank, int *axes, int *n_axes);

/* The sizes that an axis of `size` is split into: fails where one is negative, or their sum is another number. */
onv_status onv_tensor_check_parts(onv_op_ctx *c, onv_dim size, const onv_dim *parts,
                                  uint32_t count);

/* Fails where an output would have more dims than ONV_MAX_RANK. */
onv_status onv_tensor_check_rank(onv_op_ctx *c, int64_t rank);

/* Fails where input k has a known rank outside of [least, most]. */
onv_status onv_tensor_need_rank(onv_op_ctx *c, uint32_t k, int least, int most);

/* Axes from an attribute or input k, for a tensor of that rank, as a mask. *known is false (and the
 * mask empty) where some axis is not known; *count is their number then too, or -1. Fails on an
 * axis out of range or given twice. */
onv_status onv_tensor_axes(onv_op_ctx *c, const char *attr, int k, int rank, uint32_t *mask,
                           int *count, bool *known);

/* An element that indexes an axis of `size`: made non-negative, -1 where it is not known. Fails
 * where it lies outside. */
onv_status onv_tensor_index(onv_op_ctx *c, onv_dim element, int64_t size, int64_t *index);

/* Output 0: the shape of input 1 in place of axis `axis` of input 0, where each element of the last axis holds `packed`. */
onv_status onv_tensor_look_up(onv_op_ctx *c, int64_t axis, int64_t packed, onv_dtype dtype);

/* Element i of an input that holds sizes; unknown where not known. Fails where it can be no size. */
onv_status onv_tensor_size_at(onv_op_ctx *c, uint32_t k, uint32_t i, onv_dim *size);

/* A one-element input of any number type, truncated to an integer; unknown where not known. */
onv_dim onv_tensor_scalar_int(onv_op_ctx *c, uint32_t k);

/* The zero of a type. */
onv_scalar onv_scalar_zero(onv_dtype dtype);

/* An element converted to another type, as Cast does; unknown where the result is not certain. */
onv_scalar onv_scalar_cast(onv_dims *dims, onv_dtype from, onv_dtype to, onv_scalar s);

/* The contents of input k where output 0 is small enough for its own to be tracked, else NULL: a
 * weight that leads to nothing is not read. */
const onv_known *onv_fold_source(onv_op_ctx *c, uint32_t k);

/* Row-major strides of a constant shape. */
void onv_tensor_strides(const int64_t *dims, int rank, int64_t *strides);

/* Where element i of an output, at position `at`, comes from: an index into the source, or -1. */
typedef int64_t (*onv_place)(const void *how, uint32_t i, const int64_t *at);

/* Sets the contents of output k, whose type must be set, from `source`; -1 becomes `filler`. Does
 * nothing where `source` is NULL or the output cannot be tracked. Gives ONV_OK, with which a fold ends. */
onv_status onv_fold_move(onv_op_ctx *c, uint32_t k, const onv_known *source, onv_place place,
                         const void *how, onv_scalar filler);

/* Output 0: the elements of input 0 in the same order, under another shape. */
onv_status onv_fold_same(onv_op_ctx *c);

/* What element offset + sum of at[axis] * strides[axis] of `source` is; not known where there is none. */
typedef struct onv_strided {
    int64_t offset;
    int64_t strides[ONV_MAX_RANK];
    int rank;
} onv_strided;

onv_status onv_fold_strided(onv_op_ctx *c, uint32_t k, const onv_known *source,
                            const onv_strided *how);

#endif

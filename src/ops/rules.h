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

/* What the tensor families share: dims that must agree, lists of axes, and moves.
 *
 * Most operators here compute nothing: each element of the output is an element of an input, or a
 * filler. Their folds differ only in where an element comes from, which they tell onv_fold_move.
 */

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

/* Axes from attribute `axes` or input k, for a tensor of that rank, as a mask. *known is false (and the
 * mask empty) where some axis is not known; *count is their number then too, or -1. Fails on an
 * axis out of range or given twice. */
onv_status onv_tensor_axes(onv_op_ctx *c, int k, int rank, uint32_t *mask, int *count, bool *known);

/* An element that indexes an axis of `size`: made non-negative, -1 where it is not known. Fails
 * where it lies outside. */
onv_status onv_tensor_index(onv_op_ctx *c, onv_dim element, int64_t size, int64_t *index);

/* Output 0: the shape of input 1 in place of axis `axis` of input 0, where each element of the last axis holds `packed`. */
onv_status onv_tensor_look_up(onv_op_ctx *c, int64_t axis, int64_t packed, onv_dtype dtype);

/* Element i of an input that holds sizes; unknown where not known. Fails where it can be no size. */
onv_status onv_tensor_size_at(onv_op_ctx *c, uint32_t k, uint32_t i, onv_dim *size);

/* A one-element input of any number type, truncated to an integer; unknown where not known. */
onv_dim onv_tensor_scalar_int(onv_op_ctx *c, uint32_t k);

/* An element converted to another type, as Cast does; unknown where the result is not certain. */
onv_scalar onv_scalar_cast(onv_dims *dims, onv_dtype from, onv_dtype to, onv_scalar s);

/* The contents of input k where output 0 is small enough for its own to be tracked, else NULL: a
 * weight that leads to nothing is not read. */
const onv_known *onv_fold_source(onv_op_ctx *c, uint32_t k);

/* Row-major strides of a constant shape. */
void onv_tensor_strides(const int64_t *dims, int rank, int64_t *strides);

/* Where element i of an output, at position `at`, comes from: an index into the source, or -1. */
typedef int64_t (*onv_place)(const void *how, uint32_t i, const int64_t *at);

/* Sets the contents of output 0, whose type must be set, from `source`; -1 becomes `filler`. Does
 * nothing where `source` is NULL or the output cannot be tracked. Gives ONV_OK, with which a fold ends. */
onv_status onv_fold_move(onv_op_ctx *c, const onv_known *source, onv_place place, const void *how,
                         onv_scalar filler);

/* Output 0: the elements of input 0 in the same order, under another shape. */
onv_status onv_fold_same(onv_op_ctx *c);

/* Which elements of a source a result has: positions along each axis of the source, in the order of the result's axes. A result that
 * is longer begins anew. */
typedef struct onv_picks {
    int rank;
    int order[ONV_MAX_RANK];    /* by axis of the result: that of the source */
    int64_t dims[ONV_MAX_RANK]; /* by axis of the source, as what follows: how many positions */
    const int64_t *list[ONV_MAX_RANK]; /* NULL: all as they are; -1 in it: the filler */
} onv_picks;

/* All of them. */
onv_picks onv_pick_all(const onv_known *source);
/* Room for `n` other positions along an axis; NULL where memory is short. */
int64_t *onv_pick_along(onv_op_ctx *c, onv_picks *picks, int axis, int64_t n);

onv_status onv_fold_picks(onv_op_ctx *c, uint32_t k, const onv_known *source,
                          const onv_picks *picks, onv_scalar filler);

/* The sliding window of convolutions and poolings: its attributes, and how many places it takes.
 *
 * Along an axis of size h, a window of k elements that stand `dilation` apart covers
 * extent = (k - 1) * dilation + 1 elements. It moves by `stride` over the padded axis:
 *
 *     |<-- pad_begin -->|<------------ h ------------>|<-- pad_end -->|
 *     |<--- extent --->|
 *     |<- stride ->|<--- extent --->|
 *
 * Sizes may be symbolic; attributes are numbers.
 */

typedef enum onv_pad_mode {
    ONV_PAD_EXPLICIT,
    ONV_PAD_SAME, /* as many places as fit when the axis is padded to a multiple of the stride */
    ONV_PAD_VALID,
} onv_pad_mode;

typedef struct onv_window {
    int axes; /* spatial ones */
    onv_pad_mode mode;
    bool ceil_mode;
    onv_dim kernel[ONV_MAX_RANK]; /* unknown where neither attribute nor weights tell */
    int64_t stride[ONV_MAX_RANK];
    int64_t dilation[ONV_MAX_RANK];
    int64_t pad_begin[ONV_MAX_RANK], pad_end[ONV_MAX_RANK];
} onv_window;

/* A list attribute of `count` numbers in [least, INT32_MAX]; all `fallback` where it is absent. */
onv_status onv_window_list(onv_op_ctx *c, const char *name, int count, int64_t least,
                           int64_t fallback, int64_t *list);

/* Everything from the attributes kernel_shape, strides, dilations, pads, auto_pad and ceil_mode. */
onv_status onv_window_read(onv_op_ctx *c, int axes, onv_window *w);

/* The kernel that the last dims of a weight tensor give; fails where kernel_shape contradicts. */
onv_status onv_window_weights(onv_op_ctx *c, uint32_t input, onv_window *w);

/* The places the window takes along an axis of size `in`. */
onv_status onv_window_places(onv_op_ctx *c, const onv_window *w, int axis, onv_dim in,
                             onv_dim *places);

/* The size from which the window would come to `in` places: transposed convolution, unpooling. */
onv_status onv_window_inverse(onv_op_ctx *c, const onv_window *w, int axis, onv_dim in,
                              int64_t output_padding, onv_dim *size);

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

/* --- Elements --------------------------------------------------------------------------------- */

onv_scalar onv_scalar_canonical(onv_dtype dtype, onv_scalar s);

/* A number in the form of the type. */
onv_scalar onv_scalar_number(onv_dtype dtype, int value);

/* The range of an integer type; of unsigned 64 bits as far as 63 hold it. */
void onv_scalar_range(onv_dtype dtype, int64_t *low, int64_t *high);

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

/* What the families of pointwise operators share: shapes that must agree, and which inputs have the
 * output's shape. */

/* Broadcasting before opset 7, to bool. */
onv_status onv_infer_legacy_compare(onv_op_ctx *c);

/* The row's traits, `inplace` reduced to the inputs that have the shape of the broadcast result. */
onv_op_traits onv_math_broadcast_traits(onv_op_ctx *c);

/* Matrix products as numpy.matmul: the shape of inputs 0 and b multiplied, into output 0, and their
 * multiply-accumulates. */
onv_status onv_math_matmul_as(onv_op_ctx *c, uint32_t b, onv_dtype dtype);
onv_dim onv_math_matmul_macs(onv_op_ctx *c, uint32_t b);

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

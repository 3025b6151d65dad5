/* Emits operations, one at a time:
 *
 *     onv_emit_begin(e, "conv");
 *     onv_emit_in(e, x, ONV_GRAD_NEW);
 *     onv_emit_save(e, x);
 *     y = onv_emit_out(e, onv_tensor_new(e, dtype, rank, dims, NULL));
 *     onv_emit_end(e);
 *
 * ONV_NO_TENSOR is a legal operand everywhere: a scalar or a shape on the host, which costs no
 * device memory, needs no gradient and is never saved. Failures are sticky in `e->status`, so that
 * emitters read like the operators they describe; the driver looks after every node.
 */
#ifndef ONV_EMIT_EMIT_H
#define ONV_EMIT_EMIT_H

#include "eager/eager.h"
#include "emit/said.h"
#include "kernels/cudnn.h"

/* Room for a shape on the stack. */
typedef struct onv_shape {
    uint32_t rank;
    int64_t dims[ONV_MAX_RANK];
} onv_shape;

/* What backward alone reads. */
typedef struct onv_extra {
    uint64_t bytes;
    const char *label;
} onv_extra;

/* The layers so far of the recurrent module that is being emitted. */
typedef struct onv_rnn_state {
    onv_rnn_problem module;
    size_t op;           /* the last one */
    uint64_t mask_bytes; /* of the dropout before the next one */
    bool has_dropout;    /* between layers */
    uint64_t temps;      /* what its backward makes for states and weights */
} onv_rnn_state;

/* A name of an operation, and its row. */
typedef struct onv_named_op {
    const char *name;
    uint16_t aten; /* onv_aten_id */
} onv_named_op;

/* Which views of parameters the network makes itself: autocast keeps no casts of them. */
typedef enum onv_views {
    ONV_VIEWS_OF_GRAPH,   /* unknown: an exporter swaps and reshapes weights of layers */
    ONV_VIEWS_OF_KERNELS, /* all but swapped matrices, which F.linear makes after the cast */
    ONV_VIEWS_OF_CALLS,   /* all */
} onv_views;

enum { ONV_KNOWN_OPS = 128 }; /* a power of 2 */

typedef struct onv_emitter onv_emitter;

/* The operation that is being built, and what those before have done to storages. It knows neither
 * the graph nor the program that operations come from: whoever makes the tape sets what it needs. */
struct onv_emitter {
    onv_model *model;
    const onv_lower_options *options;
    onv_eager *eager;
    onv_status status;
    onv_error *err;

    /* What is lowered now. */
    onv_node_id node;
    const char *part; /* of the node; see onv_eager_op */
    bool has_no_grad; /* nothing of it has one */
    bool is_linear;   /* products take the weight as a view with its dims swapped */
    bool has_bias;    /* products have one, even if there is no tensor of it */
    bool drops_bias;  /* the same, but for those whose bias is added apart */
    bool adds_bias;   /* which is being done */
    uint32_t region;  /* of the tape, the innermost around it; ONV_NO_REGION: none */
    double dropout;   /* of attention; 0 or below: none */
    /* Whether the tensor, which the operation overwrites, is a view for autograd; NULL: none is. */
    bool (*is_written_view)(onv_emitter *e, uint32_t tensor);
    /* An operation is complete; NULL: nothing follows. */
    void (*ended)(onv_emitter *e);

    onv_eager_op op;
    ONV_VEC(onv_eager_arg) in;
    ONV_VEC(uint32_t) out;
    ONV_VEC(uint32_t) keep; /* storages */
    ONV_VEC(onv_extra) extra;
    bool is_building;                  /* between onv_emit_begin() and onv_emit_end() */
    onv_named_op known[ONV_KNOWN_OPS]; /* names that were looked up, by their address */
    onv_rnn_state recurrent;
    onv_conv_answers convolutions;
    ONV_VEC(bool) saved;     /* by storage: an operation so far keeps it */
    bool *freeze_used;       /* by pattern: those of `freeze`, then those of `train_only` */
    uint64_t benchmark_high; /* the most that cudnn.benchmark may choose for one convolution */
    onv_dtype amp;           /* what autocast casts to; ONV_UNDEFINED: it is off */
    onv_views views;
    ONV_VEC(uint32_t) low_precision;   /* by storage of a parameter: its cast under autocast */
    ONV_VEC(uint32_t) cast_parameters; /* storages that have one */
    onv_saying said[ONV_N_SAID];
};

void onv_emitter_cleanup(onv_emitter *e);

/* --- emit.c ------------------------------------------------------------------------------------ */

void onv_emit_fail_memory(onv_emitter *e);
/* Zeros in the model's arena; without memory NULL, and the status is set. */
void *onv_emit_checked(onv_emitter *e, void *array);
#define ONV_EMIT_ARRAY(e, type, count)                                                             \
    ((type *)onv_emit_checked(e, ONV_ARENA_ARRAY(&(e)->model->arena, type, count)))

onv_eager_tensor onv_tensor_at(const onv_emitter *e, uint32_t tensor);
/* The storage that it is on; the tensor is one. */
static inline onv_eager_storage *onv_storage_of(const onv_emitter *e, uint32_t tensor)
{
    return &e->eager->storages.at[e->eager->tensors.at[tensor].storage];
}
/* The last operation, if there are more than `before` now; else NULL. */
static inline onv_eager_op *onv_emit_made_since(const onv_emitter *e, size_t before)
{
    size_t n = e->eager->ops.count;
    return e->status == ONV_OK && n > before ? &e->eager->ops.at[n - 1] : NULL;
}
/* False for ONV_NO_TENSOR. */
bool onv_tensor_has_dims(const onv_emitter *e, uint32_t tensor, uint32_t rank, const int64_t *dims);
uint32_t onv_storage_new(onv_emitter *e, uint64_t bytes, onv_storage_kind kind, const char *label);
/* A tensor on a storage of its own. Strides NULL: contiguous. */
uint32_t onv_tensor_new(onv_emitter *e, uint8_t dtype, uint32_t rank, const int64_t *dims,
                        const int64_t *strides);
/* A tensor on a given storage. */
uint32_t onv_tensor_on(onv_emitter *e, uint32_t storage, uint8_t dtype, uint32_t rank,
                       const int64_t *dims, const int64_t *strides);
bool onv_tensor_is_contiguous(const onv_eager_tensor *t);
/* As PyTorch tells them: of one channel, or of one place, both orders are the same, and are told for the usual one. */
bool onv_tensor_is_channels_last(const onv_eager_tensor *t);
/* The memory order in which PyTorch makes a tensor like `in`, or of `in` and of an operand of the same dims with strides `second`. */
void onv_strides_like(const onv_eager_tensor *in, int64_t *strides);
void onv_strides_of_two(const onv_eager_tensor *in, const int64_t *second, int64_t *strides);
/* Of an image of those dims, in `room`, whose channels come last where those of `like` do; NULL: it is contiguous. */
const int64_t *onv_image_strides(const onv_eager_tensor *like, uint32_t rank, const int64_t *dims,
                                 int64_t *room);
bool onv_tensor_needs_grad(const onv_emitter *e, uint32_t tensor);
bool onv_tensor_is_float(const onv_emitter *e, uint32_t tensor);

/* By its name, which is that of a row of the table where there is one; static. */
void onv_emit_begin(onv_emitter *e, const char *name);
/* The same, by the row's number. */
void onv_emit_begin_op(onv_emitter *e, onv_aten_id op);
void onv_emit_in(onv_emitter *e, uint32_t tensor, onv_grad grad);
/* x += y; `grad` is how y gets its gradient. */
uint32_t onv_emit_add_to(onv_emitter *e, uint32_t x, uint32_t y, onv_grad grad);
void onv_emit_save(onv_emitter *e, uint32_t tensor);
/* An operand that backward reads, too. */
void onv_emit_in_saved(onv_emitter *e, uint32_t tensor, onv_grad grad);
/* What backward alone reads and no tensor of the graph is. */
void onv_emit_extra(onv_emitter *e, uint64_t count, uint64_t bytes_each, const char *label);
/* The extra storages so far are allocated before the results, later ones behind them. */
void onv_emit_extras_come_first(onv_emitter *e);
uint32_t onv_emit_out(onv_emitter *e, uint32_t tensor);
/* Beside what PyTorch's formula for the operation makes, which is in its row. */
void onv_emit_temps(onv_emitter *e, uint64_t forward_bytes, uint64_t backward_bytes);
/* The tensors that the backward of an operation makes; of UINT64_MAX bytes: they do not fit, which fails. */
void onv_emit_backward_temps(onv_emitter *e, onv_eager_op *op, const onv_backward_temp *temps,
                             uint32_t n);
/* What a library takes for the operation, and for the gradient of its operand `in`, if there is one. */
void onv_emit_workspace(onv_emitter *e, onv_eager_workspace workspace);
void onv_emit_grad_workspace(onv_emitter *e, uint32_t in, onv_eager_workspace workspace);
/* Of the sum that makes the gradient of `in`, the operand that was added last, which was repeated along the leading dims of `out`. */
void onv_emit_sum_workspace(onv_emitter *e, uint32_t in, uint32_t out);
/* The same for the bias of images: their pixels are added up, which takes memory where channels come last. */
void onv_emit_bias_workspace(onv_emitter *e, uint32_t bias, uint32_t out);
/* What the kernel takes that reduces the dims of `in` in the bits of `reduced` to `out` (0: those that `out` lacks),
 * where what stays lies side by side. */
void onv_emit_reduction(onv_emitter *e, uint32_t in, uint32_t out, uint32_t reduced,
                        uint32_t part_bytes);
void onv_emit_end(onv_emitter *e);

/* An operation of one tensor (ONV_NO_TENSOR: of none), into `out`, which is given. */
uint32_t onv_emit_one(onv_emitter *e, const char *name, uint32_t x, onv_grad grad, uint32_t out);
/* The same, whose result is a new tensor in the dtype of x; without `strides` it is dense. */
uint32_t onv_emit_of(onv_emitter *e, const char *name, uint32_t x, onv_grad grad, uint32_t rank,
                     const int64_t *dims, const int64_t *strides);
/* One kernel of those that an operator runs, of one operand or two (ONV_NO_TENSOR: there is no second one). */
enum { ONV_SAVE_A = 1, ONV_SAVE_B = 2, ONV_SAVE_OUT = 4 };
uint32_t onv_emit_step(onv_emitter *e, onv_aten_id id, uint32_t a, uint32_t b, unsigned saves,
                       const onv_shape *shape);
/* Branches and bodies: from here on operations are of a region, which is given, until it ends. */
uint32_t onv_emit_enter(onv_emitter *e, onv_region_kind kind, const char *label);
void onv_emit_leave(onv_emitter *e, uint32_t region);
/* Made inside: on an activation's storage, not one of those before `first_storage`. */
bool onv_emit_is_made_inside(const onv_emitter *e, uint32_t tensor, uint32_t first_storage);
/* If so, it stays to the end of the region, which is here. */
void onv_emit_keep_to_end(onv_emitter *e, uint32_t tensor, uint32_t first_storage);
/* `out` of the operation being built, of what two branches give for it: as large as either, which becomes it. */
uint32_t onv_emit_join(onv_emitter *e, uint32_t out, const uint32_t given[2],
                       uint32_t first_storage);
/* Views and copies; each emits what PyTorch would run and returns the result. */
uint32_t onv_emit_view(onv_emitter *e, const char *name, uint32_t x, uint32_t rank,
                       const int64_t *dims, const int64_t *strides, onv_grad grad);
/* Dim i of the view is dim order[i] of x. */
uint32_t onv_emit_permuted(onv_emitter *e, const char *name, uint32_t x, const uint32_t *order);
/* Likewise, whose elements are of another dtype: view_as_real(), view(dtype). */
uint32_t onv_emit_view_as(onv_emitter *e, const char *name, uint32_t x, uint8_t dtype,
                          uint32_t rank, const int64_t *dims, const int64_t *strides,
                          onv_grad grad);
/* The strides with which `t` can be seen as `dims` without moving anything; false: it cannot. */
bool onv_view_strides(const onv_eager_tensor *t, uint32_t rank, const int64_t *dims,
                      int64_t *strides);
uint32_t onv_emit_reshape(onv_emitter *e, uint32_t x, uint32_t rank, const int64_t *dims);
uint32_t onv_emit_contiguous(onv_emitter *e, uint32_t x);
uint32_t onv_emit_clone(onv_emitter *e, uint32_t x); /* in any case */
/* Until here a function of PyTorch has a name for it. */
void onv_emit_release(onv_emitter *e, uint32_t x);
uint32_t onv_emit_expand(onv_emitter *e, uint32_t x, uint32_t rank, const int64_t *dims);
uint32_t onv_emit_cast(onv_emitter *e, uint32_t x, uint8_t dtype);

/* --- said.c ------------------------------------------------------------------------------------ */

/* One more that a row of said.def speaks of; the first one's node and name (either may be NULL) may stand in its text. */
void onv_say(onv_emitter *e, onv_said row, const char *name, uint64_t bytes, const onv_node *node);
/* Prints the rows up to that one that were counted, and forgets them. */
void onv_say_up_to(onv_emitter *e, onv_said last);

/* --- autocast.c -------------------------------------------------------------------------------- */

/* Autocast is over: what it had cached of parameters lives as long as what reads it, and is cast again. */
void onv_amp_end(onv_emitter *e);
/* What autocast gives an operation: x in low precision (parameters once), or in float32. */
uint32_t onv_amp_low(onv_emitter *e, uint32_t x);
/* The arguments of a call, from the last to the first: as PyTorch's wrappers evaluate them (autocast_mode.h, compiled by
 * GCC for x86-64). */
void onv_amp_low_all(onv_emitter *e, uint32_t *tensors, size_t count);
uint32_t onv_amp_fp32(onv_emitter *e, uint32_t x);

/* --- Of all operations, when they are there ------------------------------------------------------ */

/* Copies of gradients that are not contiguous. */
void onv_copies_add(onv_emitter *e);
/* Which operations backward comes to, and which parameters have a gradient. */
void onv_reach_find(onv_emitter *e);

/* --- derivative.c ------------------------------------------------------------------------------ */

/* What the formulas of the operation being built make on the way to its gradients, where its row says. */
void onv_emit_derivative(onv_emitter *e);
/* Bytes, the most that its forward holds beside its operands and results, as its row says. */
uint64_t onv_forward_temps(const onv_emitter *e);
/* The result that its row hides. */
void onv_emit_hidden_result(onv_emitter *e);

#endif

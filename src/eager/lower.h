/* The inside of lowering: what its files share.
 *
 * An emitter builds one operation at a time:
 *
 *     onv_emit_begin(l, "conv");
 *     onv_emit_in(l, x, ONV_GRAD_NEW);
 *     onv_emit_save(l, x);
 *     y = onv_emit_out(l, onv_tensor_new(l, dtype, rank, dims, NULL));
 *     onv_emit_end(l);
 *
 * ONV_NO_TENSOR is a legal operand everywhere: a scalar or a shape on the host, which costs no
 * device memory, needs no gradient and is never saved. Failures are sticky in `status`, so that
 * emitters read like the operators they describe; the driver looks after every node.
 */
#ifndef ONV_EAGER_LOWER_H
#define ONV_EAGER_LOWER_H

#include "eager/eager.h"
#include "eager/folded_terms.h"
#include "eager/fuse.h"
#include "eager/gaps.h"
#include "eager/unread.h"
#include "eager/weight.h"
#include "ir/origin.h"
#include "kernels/cudnn.h"
#include "load/ptr_map.h"

typedef struct onv_extra {
    uint64_t bytes;
    const char *label;
} onv_extra;

/* What a merged call gave, for all that name it; `next`: 1 + another of the value, 0: none. */
typedef struct onv_named_call {
    const char *call; /* NULL: the file's */
    uint32_t tensor, next;
} onv_named_call;

/* Frames that a convolution's module keeps in a list of the module `owner`. */
typedef struct onv_cached_clone {
    const char *scope, *owner;
    uint32_t storage;
} onv_cached_clone;

/* A call that the exporter merged: it ran after this node, and before the next reader. */
typedef struct onv_merged {
    uint32_t after, next;
} onv_merged;

/* A batch norm and what follows it. */
enum { ONV_MAX_AFTER_NORM = 3 };

/* A norm that ran again for its reader; see merged_norms.c. */
typedef struct onv_merged_norm {
    onv_node_id reader;
    onv_value_id value; /* that the reader takes */
    size_t listed; /* the norm's weight among the listed names; SIZE_MAX: none is missing there */
} onv_merged_norm;

/* Whether residual blocks overwrite the result of their branch, in an export without notes. */
typedef enum onv_updates {
    ONV_UPDATES_UNKNOWN,
    ONV_UPDATES_NO,
    ONV_UPDATES_YES,
} onv_updates;

struct onv_lowering {
    onv_model *model;
    const onv_lower_options *options;
    const onv_live *live;
    const bool *is_host;
    onv_eager *eager;
    onv_fusions fusions;
    uint32_t *tensor_of;      /* by value; ONV_NO_TENSOR: none yet, or on the host */
    bool *tensor_known;       /* by value: tensor_of is set */
    uint8_t residual_updates; /* onv_updates */
    uint32_t *widened;        /* by value: 1 + its cast to float32 for attention, 0: none */
    bool *one_reader;         /* by value: known to have one, and what it is a view of, too */
    bool has_notes;           /* the export notes parameters, modules and operations */
    const char **listed;      /* names of all parameters, sorted; see signature.c */
    bool *explained, *waits;  /* of them: the file has its tensor; a bias that was dropped */
    uint64_t *file_elems;     /* of them, those of the tensor of that name; 0: there is none */
    size_t n_listed;
    const char **
        lacking; /* buffers that are listed and that the file has no tensor of, but statistics of norms */
    size_t n_lacking;
    bool
        lacks_buffers; /* some are listed that the file has no tensor of: constants may be parts of them */
    onv_ptr_map
        in_file; /* by name of layers: of one of them the file has that parameter as it is */
    onv_folded_plan **plans; /* by value: of what it was computed; NULL: not told */
    onv_shape *leaves;       /* by listed name: of parameters that constants were computed of */
    onv_ptr_map
        leaf_values;       /* by name of a parameter or a buffer: the value that has its elements */
    onv_ptr_map names;     /* of values, and of calls that were merged; see gaps.c */
    bool has_names;        /* it has them */
    onv_ptr_map constants; /* by name: values that have notes */
    onv_ptr_map buffer_names; /* that are listed */
    onv_ptr_map folded_calls; /* by name: what calls gave that the exporter replaced by constants */
    uint32_t folded_behind;   /* constants that are made for others now */
    ONV_VEC(onv_weight_read) reads; /* sorted by value and owner */
    uint32_t *first_read;           /* by value: 1 + the first of `reads`, 0: none */
    uint8_t *sharing;               /* by value: whether it has several owners, where known */
    const char **scopes;            /* of all nodes, sorted */
    size_t n_scopes;
    onv_ptr_map no_grad;             /* by name: graphs inside of which nothing has a gradient */
    bool has_no_grad;                /* what is lowered now has none */
    onv_ptr_map layers;              /* by name of what a layer trains, interned: its tensor */
    bool *inplace_used;              /* by pattern of `inplace` */
    bool *freeze_used;               /* by pattern: those of `freeze`, then those of `train_only` */
    bool *is_statistic;              /* by value: running statistics */
    bool *is_member;                 /* by node: it makes what a module keeps; see members.c */
    bool *is_in_member;              /* by value: nothing but such nodes reads it */
    ONV_VEC(bool) saved;             /* by storage: an operation so far keeps it */
    ONV_VEC(uint32_t) low_precision; /* by storage of a parameter: its cast under autocast */
    ONV_VEC(uint32_t) mark;          /* by storage: the last owner of a region that listed it */
    uint32_t n_marks;
    uint32_t region;        /* around what is lowered now; ONV_NO_REGION: none */
    uint32_t first_storage; /* those before were made outside of the region */
    uint64_t *fused_macs;   /* by fusion */
    onv_node_id node;
    bool has_bias; /* products have one, even if the file has none */
    bool
        adds_bias; /* what the product's layer adds to it comes after it: beyond two dims, in no usual order */
    const char *part; /* of it; see onv_eager_op */
    /* The operation of the node that does its work; SIZE_MAX: its last one that is no view. */
    size_t working_op;
    onv_eager_op op; /* being built */
    ONV_VEC(onv_eager_arg) in;
    ONV_VEC(uint32_t) out;
    ONV_VEC(uint32_t) keep; /* storages */
    ONV_VEC(onv_extra) extra;
    bool is_building;               /* between onv_emit_begin() and onv_emit_end() */
    ONV_VEC(onv_value_id) to_clone; /* its results that PyTorch clones: once it is complete */
    /* By value; see merged.c: readers without a copy, the last node and the last reader so far, 1 + the
     * next copy. */
    uint32_t *n_readers, *last_read, *last_reader, *first_copy;
    const char **made_in;    /* by value: the module that computed it last, of what it was given */
    bool *is_read_inside;    /* by value: by that module itself */
    const char **stands_for; /* by value: the call whose copy it is; NULL: the file's */
    uint32_t n_buffer_views; /* constants that were looked for among buffers */
    uint32_t *first_named;   /* by value: 1 + the first of `named`, 0: none */
    ONV_VEC(onv_named_call) named;
    bool *has_gaps;                   /* by node: numbers of its kind of call are missing */
    ONV_VEC(onv_call_name) calls;     /* of all nodes, by kind and number */
    bool counts_batches;              /* numbers of additions are missing for that */
    ONV_VEC(onv_cached_clone) cached; /* that caches of the network hold now */
    const char *cached_scope;         /* the module that was entered last meanwhile */
    const onv_node *first_cached;
    uint32_t n_cached; /* of all calls */
    uint64_t cached_bytes;
    uint32_t
        *first_state; /* by value: 1 + what stood for it in the first round of a loop; 0: none */
    ONV_VEC(onv_merged) copies;
    ONV_VEC(onv_merged_norm) merged_norms; /* in the order of readers */
    size_t next_merged_norm;
    uint32_t repeated_norms;    /* of them */
    ONV_VEC(onv_unread) unread; /* in the order of `after` */
    ONV_VEC(onv_unread_value) unread_values;
    size_t next_unread;
    uint32_t unread_calls;                      /* of them: counted */
    const onv_merged_norm *merged_for;          /* for the node before; NULL: none */
    uint32_t merged_before[ONV_MAX_AFTER_NORM]; /* the tensors that other readers have */
    uint32_t merged;                            /* calls that are counted again */
    uint32_t missing;                           /* others that the numbers lack */
    const char *missing_kind;                   /* one of them */
    ONV_VEC(onv_value_id) views;                /* weights that are views, one of each shape */
    ONV_VEC(onv_buffer_part) buffer_parts;      /* of those that are equal the first */
    ONV_VEC(onv_given) given; /* what modules are given as views, which the export computed */
    uint32_t maxima;          /* reductions to a maximum that may be those with indices */
    uint64_t maxima_bytes;    /* what they keep more than these */
    uint32_t gates;           /* x * sigmoid(x) that may be two operations */
    uint64_t gate_bytes;      /* what these keep more than one */
    uint32_t quotients;       /* 1 / x that may be reciprocals of x alone */
    uint64_t quotient_bytes;  /* what these keep less */
    const onv_node *asks_for_gradient; /* of the network's input; NULL: none does */
    uint64_t input_gradient_bytes;     /* of that */
    uint32_t built_in_place;           /* activations that their library has in place */
    uint32_t activations;              /* that would keep less if they overwrote their input */
    uint64_t activation_bytes;         /* that */
    uint64_t benchmark_high; /* the most that cudnn.benchmark may choose for one convolution */
    uint32_t tables;         /* parameters that are computed once and never trained */
    uint64_t table_bytes;
    bool has_positions;       /* a table that is projected was counted */
    const char *table;        /* one of them */
    uint32_t *pad_of;         /* by value: 1 + the node that pads it, 0: none */
    uint32_t *padded;         /* by value: 1 + the tensor that a convolution padded last, 0: none */
    const char **padded_name; /* by value: of that, as its note tells; NULL: not told */
    uint8_t *cloned_for;      /* by value: onv_cloned_for */
    uint32_t *detached; /* by value: 1 + the tensor that readers of it detached have, 0: none yet */
    uint32_t *neutral_for;  /* by value: 1 + a reader whose call added 0 to it, 0: none */
    uint32_t *neutral_of;   /* by value: 1 + the tensor that this gave, 0: none yet */
    uint32_t neutral_first; /* 1 + the first value whose module has not returned, 0: none */
    uint32_t *neutral_next; /* by value: likewise, the next one */
    uint32_t *clone_of;     /* by value: 1 + the tensor that readers of a clone have, 0: none yet */
    uint32_t loops;         /* that exports alone run; see exported.c */
    uint64_t loop_bytes;    /* what is kept of them */
    const char *first_loop;
    uint32_t unreached;          /* trained parameters that no gradient reaches */
    uint64_t unreached_bytes;    /* of them */
    const char *first_unreached; /* one of them */
    ONV_VEC(uint32_t)
    looked_up;              /* tables of which the file has the rows that were looked up: tensors */
    uint64_t lacking_bytes; /* of parameters that the file lacks: counted */
    uint64_t grown_rows;    /* that were added to one of them */
    const char *grown;      /* its name */
    uint64_t counted_elems; /* of parameters, where they are more than was told; 0: not */
    uint32_t unused;        /* parameters without a tensor that have others' sizes */
    uint64_t unused_bytes;  /* of them */
    const char *first_unused;                /* one of them */
    uint32_t unread_norms;                   /* batch norms that ran, without a reader */
    const char *first_unread_norm;           /* the running mean of one of them */
    const struct onv_assumed_shape *assumed; /* by listed name; NULL: none is held; see assumed.h */
    uint64_t assumed_bytes[8];               /* by onv_assumption */
    uint64_t lost_dropout_bytes;             /* what dropout inside attention would keep */
    onv_origin recurrent;                    /* the module of the last recurrent layer */
    const char *recurrent_call;              /* the call, as noted; or NULL */
    onv_rnn_problem recurrent_module;        /* its layers so far */
    size_t recurrent_op;                     /* the last one */
    uint32_t recurrent_weights;              /* the first of its inputs that is a weight */
    uint64_t recurrent_mask;                 /* bytes of the dropout before the next one */
    bool recurrent_drops;                    /* the module has such dropout */
    uint32_t deep_calls;                     /* of nn.RNN with layers between which it may be */
    uint64_t deep_bytes;                     /* of the masks */
    onv_status status;
    onv_error *err;
};

/* Readers of which PyTorch's calls had a clone, of contiguous(), say. */
typedef enum onv_cloned_for {
    ONV_CLONED_FOR_NONE,
    ONV_CLONED_FOR_SOME,
    ONV_CLONED_FOR_ALL,
} onv_cloned_for;

/* --- emit.c ------------------------------------------------------------------------------------ */

onv_eager_tensor onv_tensor_at(const onv_lowering *l, uint32_t tensor);
uint32_t onv_storage_new(onv_lowering *l, uint64_t bytes, onv_storage_kind kind, const char *label);
/* A tensor on a storage of its own. Strides NULL: contiguous. */
uint32_t onv_tensor_new(onv_lowering *l, uint8_t dtype, uint32_t rank, const int64_t *dims,
                        const int64_t *strides);
/* A tensor on a given storage. */
uint32_t onv_tensor_on(onv_lowering *l, uint32_t storage, uint8_t dtype, uint32_t rank,
                       const int64_t *dims, const int64_t *strides);
bool onv_tensor_is_contiguous(const onv_eager_tensor *t);
/* As PyTorch tells them: of one channel, or of one place, both orders are the same, and are told for the usual one. */
bool onv_tensor_is_channels_last(const onv_eager_tensor *t);
bool onv_tensor_needs_grad(const onv_lowering *l, uint32_t tensor);
bool onv_tensor_is_float(const onv_lowering *l, uint32_t tensor);

void onv_emit_begin(onv_lowering *l, const char *name);
void onv_emit_in(onv_lowering *l, uint32_t tensor, onv_grad grad);
/* x += y; `grad` is how y gets its gradient. */
uint32_t onv_emit_add_to(onv_lowering *l, uint32_t x, uint32_t y, onv_grad grad);
void onv_emit_save(onv_lowering *l, uint32_t tensor);
/* What backward alone reads and no tensor of the graph is. */
void onv_emit_extra(onv_lowering *l, uint64_t count, uint64_t bytes_each, const char *label);
uint32_t onv_emit_out(onv_lowering *l, uint32_t tensor);
/* Beside what PyTorch's formula for the operation makes, which onv_emit_end looks up by its name. */
void onv_emit_temps(onv_lowering *l, uint64_t forward_bytes, uint64_t backward_bytes);
/* What a library takes for the operation, and for the gradient of its operand `in`, if there is one. */
void onv_emit_workspace(onv_lowering *l, onv_eager_workspace workspace);
void onv_emit_grad_workspace(onv_lowering *l, uint32_t in, onv_eager_workspace workspace);
/* Of the sum that makes the gradient of `in`, which was repeated along the leading dims of `out`. */
void onv_emit_sum_workspace(onv_lowering *l, uint32_t in, uint32_t out);
/* What the kernel takes that adds up the pixels of each channel, where channels come last. */
void onv_emit_pixel_sum(onv_lowering *l, uint32_t in, uint32_t out);
void onv_emit_end(onv_lowering *l);

/* Views and copies; each emits what PyTorch would run and returns the result. */
uint32_t onv_emit_view(onv_lowering *l, const char *name, uint32_t x, uint32_t rank,
                       const int64_t *dims, const int64_t *strides, onv_grad grad);
/* The strides with which `t` can be seen as `dims` without moving anything; false: it cannot. */
bool onv_view_strides(const onv_eager_tensor *t, uint32_t rank, const int64_t *dims,
                      int64_t *strides);
uint32_t onv_emit_reshape(onv_lowering *l, uint32_t x, uint32_t rank, const int64_t *dims);
uint32_t onv_emit_contiguous(onv_lowering *l, uint32_t x);
uint32_t onv_emit_clone(onv_lowering *l, uint32_t x); /* in any case */
uint32_t onv_emit_expand(onv_lowering *l, uint32_t x, uint32_t rank, const int64_t *dims);
uint32_t onv_emit_cast(onv_lowering *l, uint32_t x, uint8_t dtype);

/* What autocast gives an operation: x in low precision (parameters once), or in float32. */
uint32_t onv_amp_low(onv_lowering *l, uint32_t x);
uint32_t onv_amp_fp32(onv_lowering *l, uint32_t x);

/* --- derivative.c ------------------------------------------------------------------------------ */

/* Of the operation being built: the most that its backward holds beside the incoming gradient, what it
 * saved and the gradients that it makes. */
uint64_t onv_derivative_temps(const onv_lowering *l);

/* --- lower_attention.c ------------------------------------------------------------------------- */

/* Operand k of the node, if it is a part of attention, which takes low precision and computes in
 * float32; ONV_ATTENTION_NONE: as it comes. */
uint32_t onv_amp_attention(onv_lowering *l, const onv_node *node, uint32_t k);
/* Where the query is scaled: the values are cast, too, before anything is computed. */
void onv_widen_attended(onv_lowering *l, const onv_node *node);
/* The product of probabilities and values as the caller gets it, who gave values of the type. */
uint32_t onv_emit_attention_result(onv_lowering *l, uint8_t dtype, uint32_t probabilities,
                                   uint32_t out);
/* Of the call that the node is a part of: what the user says, else what its note does; below 0: nobody. */
double onv_dropout_of_attention(const onv_lowering *l, const onv_node *node);
onv_attention_part onv_node_attention(const onv_lowering *l, const onv_node *node);
void onv_lower_attention(onv_lowering *l, const onv_fusion *fusion);

enum { ONV_MAX_ATTENTION = 32 }; /* nodes */

/* Where no kernel takes the operands of that attention: its nodes, in order, which are of no fusion any more, or of one
 * that is smaller. Returns how many, 0: it stays as it is. */
uint32_t onv_attention_apart(onv_lowering *l, uint32_t fusion, onv_node_id *nodes);
void onv_attention_report(const onv_lowering *l);
bool onv_takes_fast_path(const onv_lowering *l);
/* The kernel alone; its result has the shape. */
uint32_t onv_emit_attention(onv_lowering *l, uint32_t query, uint32_t key, uint32_t value,
                            uint32_t mask, const onv_shape *shape);
/* What scaled_dot_product_attention's softmax looks for: a byte for each score that is -inf, one for
 * each row of them, and a zero. */
uint64_t onv_safe_softmax_bytes(const onv_lowering *l, uint32_t scores);

/* --- members.c --------------------------------------------------------------------------------- */

onv_status onv_members_find(onv_lowering *l);
void onv_lower_member(onv_lowering *l, const onv_node *node);
/* Once all nodes are lowered. */
void onv_members_hold_weights(onv_lowering *l);

/* --- no_grad.c --------------------------------------------------------------------------------- */

onv_status onv_no_grad_find(onv_lowering *l);
bool onv_is_under_no_grad(const onv_lowering *l, const onv_node *node);
void onv_no_grad_report(onv_lowering *l);

/* --- exported.c -------------------------------------------------------------------------------- */

void onv_exported_report(onv_lowering *l);

/* --- parts.c ----------------------------------------------------------------------------------- */

void onv_parts_report(onv_lowering *l);

/* --- lower_value.c ----------------------------------------------------------------------------------- */

/* False where there is no such value, or status is set. */
bool onv_value_shape(onv_lowering *l, onv_value_id id, onv_shape *shape);
uint32_t onv_value_tensor(onv_lowering *l, onv_value_id id);
/* What is there from the start: parameters of all owners, buffers and constants. */
void onv_lower_weight(onv_lowering *l, onv_value_id id);
/* A vector that the network trains although the graph has it no more: "bn1" and "weight". */
uint32_t onv_lost_parameter(onv_lowering *l, uint8_t dtype, int64_t size, const char *module,
                            const char *name);
/* Another that the file lacks. */
uint32_t onv_parameter_new(onv_lowering *l, uint8_t dtype, const onv_shape *shape,
                           const char *name);
uint32_t onv_node_in(onv_lowering *l, const onv_node *node, uint32_t k);
void onv_node_set(onv_lowering *l, const onv_node *node, uint32_t k, uint32_t tensor);
void onv_value_set(onv_lowering *l, onv_value_id id, uint32_t tensor);
/* Those results of the last operation that PyTorch clones. */
void onv_clone_results(onv_lowering *l);
/* A new tensor with the shape of output k, in `dtype` (ONV_UNDEFINED: that of the graph). */
uint32_t onv_node_new(onv_lowering *l, const onv_node *node, uint32_t k, uint8_t dtype);
/* The same for any value; dtype as it comes. */
uint32_t onv_value_new(onv_lowering *l, onv_value_id id, uint8_t dtype);
/* Nodes in their order, those of a subgraph too. */
void onv_lower_nodes(onv_lowering *l, const onv_node_id *nodes, uint32_t count);
/* The node, or all of the fusion that it is of, whatever its place. */
void onv_lower_once(onv_lowering *l, onv_node_id id);
bool onv_node_fills(const onv_node *node);
/* The same for output 0, in the memory order of a tensor of its rank. */
uint32_t onv_node_new_like(onv_lowering *l, const onv_node *node, uint8_t dtype,
                           const onv_eager_tensor *in);
/* The same for output 0 of a pointwise operation, in the memory order of its operands. */
uint32_t onv_node_new_pointwise(onv_lowering *l, const onv_node *node, uint8_t dtype);
/* The same for output 0 of an operation of images, whose channels come last where those of `like` do. */
uint32_t onv_node_new_image(onv_lowering *l, const onv_node *node, const onv_eager_tensor *like,
                            uint8_t dtype);
/* The memory order in which PyTorch makes a tensor like `in`. */
void onv_strides_like(const onv_eager_tensor *in, int64_t *strides);
/* The dtype that float operands of a pointwise operation are promoted to. */
uint8_t onv_promoted(onv_lowering *l, const onv_node *node);
bool onv_node_scalar(onv_lowering *l, const onv_node *node, uint32_t k, double *number);
/* Element i of a constant integer operand; `fallback` where it is not known. */
int64_t onv_node_operand(onv_lowering *l, const onv_node *node, uint32_t k, uint32_t i,
                         int64_t fallback);
uint32_t onv_node_operands(onv_lowering *l, const onv_node *node, uint32_t k); /* how many */

/* --- merged.c ---------------------------------------------------------------------------------- */

/* Which results are those of several calls. Requires the fusions. */
onv_status onv_merged_find(onv_lowering *l);
/* Does the node, which reads the value now, read what another call gave? Asked in the order of reads. */
/* Calls of that kind are missed by their numbers. */
bool onv_merged_counts(const char *call);
bool onv_merged_starts(onv_lowering *l, onv_value_id id, uint32_t node);

/* Which results could be those of calls in several modules. */
onv_status onv_merged_mark_modules(onv_lowering *l);
/* Does the node read what another module of its class computed in a call that its own has, too? */
bool onv_merged_is_other_module(const onv_lowering *l, onv_value_id id, const onv_node *node);
/* Or that the node names as the result of a call that the exporter merged with the one that is there. */
bool onv_merged_is_named(onv_lowering *l, onv_value_id id, const onv_node *node);

/* What stands for the value is the call that this node names, where that was made before. */
void onv_merged_select(onv_lowering *l, onv_value_id id, const onv_node *node);
/* Operations behind each other, up to what the modules were given. */
enum { ONV_MAX_REPEATED = 48 };
/* The reader's module made it, or one around that. */
bool onv_merged_is_own_module(const onv_lowering *l, onv_value_id id, const onv_node *node);
/* What runs again for the reader, from the value on; returns how many. In the module's own loop that is the call alone. */
uint32_t onv_merged_again(onv_lowering *l, onv_value_id id, const onv_node *node,
                          onv_value_id *chain);

/* --- merged_norms.c ---------------------------------------------------------------------------- */

/* Which listed norms without a tensor ran for which node. Requires the fusions. */
onv_status onv_merged_norms_find(onv_lowering *l);
/* Before the node that is lowered now. */
void onv_merged_norms_repeat(onv_lowering *l);
/* Is the value, for the node that is lowered now, that of a norm that ran again? */
bool onv_merged_norm_gave(const onv_lowering *l, onv_value_id id);

/* --- lower_flow.c ------------------------------------------------------------------------------ */

/* Nodes with subgraphs. */
bool onv_node_has_graphs(const onv_node *node);
void onv_lower_flow(onv_lowering *l, const onv_node *node);

/* --- lower_sequence.c -------------------------------------------------------------------------- */

/* False: the node has nothing to do with a list of tensors. */
bool onv_lower_sequence(onv_lowering *l, const onv_node *node);

/* --- the families: by operator name; NULL: the rule by traits ---------------------------------- */

typedef void (*onv_lower_fn)(onv_lowering *l, const onv_node *node);
onv_lower_fn onv_lower_view(const char *op_type);
onv_lower_fn onv_lower_math(const char *op_type);
onv_lower_fn onv_lower_nn(const char *op_type);

/* --- lower_product.c ---------------------------------------------------------------------------- */

void onv_lower_matmul(onv_lowering *l, const onv_node *node);
void onv_lower_gemm(onv_lowering *l, const onv_node *node);
void onv_lower_add_matmul(onv_lowering *l, const onv_fusion *f);

/* --- lower_conv.c ------------------------------------------------------------------------------- */

void onv_lower_conv(onv_lowering *l, const onv_node *node);
bool onv_is_computed_conv(const onv_lowering *l, onv_value_id id);

/* What causal convolutions keep for the next part of a video (lower_cached.c): before the convolution of x runs, before a node
 * is lowered, and after the last one. */
void onv_cached_keep(onv_lowering *l, const onv_node *conv, uint32_t x);
void onv_cached_leave(onv_lowering *l, const onv_node *node);
void onv_cached_finish(onv_lowering *l);

void onv_lower_by_traits(onv_lowering *l, const onv_node *node);
/* A batch norm that the exporter put into a convolution or a product, as its notes say. True where it
 * did: the bias may become the norm's. */
bool onv_node_unfolds(onv_lowering *l, const onv_node *node, uint32_t *bias, uint32_t *norm_bias);
uint32_t onv_emit_unfolded_norm(onv_lowering *l, const onv_node *node, uint32_t x, uint32_t bias);
/* What CUDA's dropout makes of x: a new tensor and a mask of bytes. */
uint32_t onv_emit_dropout(onv_lowering *l, uint32_t x);
uint32_t onv_emit_layer_norm(onv_lowering *l, uint32_t x, uint32_t w, uint32_t b);
void onv_lower_encoder_layer(onv_lowering *l, const onv_fusion *f);
void onv_lower_reciprocal(onv_lowering *l, const onv_node *node);
void onv_lower_quotient_of_number(onv_lowering *l, const onv_node *node);
void onv_lower_cosine(onv_lowering *l, const onv_fusion *f);
void onv_lower_add_product(onv_lowering *l, const onv_fusion *f);
void onv_lower_block_diag(onv_lowering *l, const onv_fusion *f);
void onv_lower_diagonal(onv_lowering *l, const onv_fusion *f);
void onv_lower_cdist(onv_lowering *l, const onv_fusion *f);
void onv_lower_unfold(onv_lowering *l, const onv_fusion *f);
void onv_lower_adaptive_pool(onv_lowering *l, const onv_fusion *f);
/* Of a module of PyTorch Geometric. */
bool onv_node_is_geometric(const onv_node *node);
void onv_lower_scatter_nd(onv_lowering *l, const onv_node *node);
void onv_lower_scatter_elements(onv_lowering *l, const onv_node *node);
void onv_lower_scatter_fusion(onv_lowering *l, const onv_fusion *f);
void onv_lower_write(onv_lowering *l, const onv_fusion *f);
/* What a convolution is given: x, or its copy with a padding that the convolution itself cannot do. */
uint32_t onv_emit_padded(onv_lowering *l, const onv_node *node, uint32_t x);
void onv_lower_pad(onv_lowering *l, const onv_node *node);
/* Every storage may be overwritten whose only reader is the node, and that nothing keeps. */
bool onv_may_overwrite(onv_lowering *l, const onv_node *node, uint32_t k);
/* Inference: is the node's module one that works in place, and may the operation that reads `value`
 * `n_reads` times overwrite it? */
bool onv_overwrites(onv_lowering *l, const onv_node *node, onv_value_id value, uint32_t n_reads);
void onv_lower_recurrent(onv_lowering *l, const onv_node *node);
/* Zeros, ones and the like that are made, and were read before. */
bool onv_value_is_fill(onv_lowering *l, onv_value_id id);
/* Makes zeros and the like once more, for a reader that has its own. */
void onv_fill_again(onv_lowering *l, onv_value_id id);
/* What the node scatters into, or begins with, is its own. */
void onv_repeat_base(onv_lowering *l, const onv_node *node);
/* Before the node: calls of which it reads a result that the exporter merged with another's. */
void onv_repeat_merged(onv_lowering *l, const onv_node *node);
/* Runs what made the value once more, for the node that is lowered now. */
void onv_repeat_value(onv_lowering *l, onv_value_id id);
/* Sums with 0 and products with 1, which the exporter removed: which values have one, and after a node, those of its results. */
void onv_neutral_mark(onv_lowering *l);
void onv_neutral_make(onv_lowering *l, const onv_node *node);
/* What the first round of a loop made of zeros and parameters, for the constant that the file has in its place;
 * ONV_NO_TENSOR: it is none. */
uint32_t onv_first_round(onv_lowering *l, onv_value_id id);
/* Of all operations, when they are there. */
void onv_copies_add(onv_lowering *l);
void onv_reach_find(onv_lowering *l);
void onv_lowering_report(onv_lowering *l); /* diagnostics of what was hidden, and how it was read */
void onv_lower_cell(onv_lowering *l, const onv_fusion *fusion);
/* A call of nn.RNN that the exporter wrote step by step; `out`: the sequence that it gives. */
void onv_lower_unrolled(onv_lowering *l, const onv_recurrence *call, onv_value_id out);
void onv_cells_report(onv_lowering *l); /* of those that stay in parts, after lowering */
/* Dropout between the layers of a recurrent module, which cuDNN runs inside: false where it is none. */
bool onv_recurrent_dropout(onv_lowering *l, const onv_node *node);
void onv_lower_fusion(onv_lowering *l, const onv_fusion *fusion);
void onv_lower_loss(onv_lowering *l, const onv_value_id *outputs, uint32_t n_outputs);

/* linear(x, w, bias) and x @ w as PyTorch decides; w may be a view of a parameter. */
uint32_t onv_emit_matmul(onv_lowering *l, uint32_t a, uint32_t b);
uint32_t onv_emit_bmm(onv_lowering *l, uint32_t a, uint32_t b);
void onv_lower_einsum(onv_lowering *l, const onv_node *node);
uint32_t onv_emit_linear(onv_lowering *l, uint32_t x, uint32_t w, uint32_t bias);

#endif

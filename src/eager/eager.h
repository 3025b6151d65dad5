/* The eager program: what PyTorch's Python code executes where an ONNX graph was exported from it.
 *
 *   graph ──lower──▶ tape of operations on tensors, tensors are views of storages
 *
 * A storage is one block of device memory. A tensor is a view of it: dtype, dims and strides, for
 * whether a reshape copies depends on strides. An operation reads tensors, makes tensors, keeps
 * storages for its backward, and says what its backward makes for each input. Autograd's graph is
 * the tape read backwards: an operation is a node, and the highest one that is ready comes next.
 *
 * Sizes must be numbers: a model with free dims cannot be lowered. Everything lives in the model's
 * arena.
 */
#ifndef ONV_EAGER_EAGER_H
#define ONV_EAGER_EAGER_H

#include "aten/aten.h"
#include "graph/liveness.h"
#include "ir/model.h"
#include "ir/weight_format.h"
#include "kernels/device.h"
#include "timeline/timeline.h"

typedef enum onv_storage_kind {
    ONV_STORAGE_INPUT,      /* the batch and its targets */
    ONV_STORAGE_PARAMETER,  /* trained or frozen */
    ONV_STORAGE_BUFFER,     /* float initializers that are never trained: running statistics */
    ONV_STORAGE_CONSTANT,   /* tables and masks of the export */
    ONV_STORAGE_ACTIVATION, /* made by an operation */
    ONV_STORAGE_EXTRA, /* made by an operation for its backward alone: masks, indices, statistics */
} onv_storage_kind;

typedef struct onv_eager_storage {
    uint64_t bytes;
    uint64_t elems; /* PARAMETER */
    uint8_t kind;   /* onv_storage_kind */
    bool trained;   /* PARAMETER: it gets a gradient */
    bool gets_grad; /* PARAMETER: some operation gives it one */
    bool on_host;   /* scalars and shapes: no device memory */
    bool is_output; /* the caller holds it: the network's outputs, the loss */
    bool is_cached; /* autocast holds it until it ends: after the loss */
    bool is_bound;  /* `bytes` is an upper bound */
    /* The operation until which a cache of the network, or, in what was recorded, a name has it; 0: none has. */
    uint32_t held_until;
    bool is_assumed;   /* PARAMETER: its size is not told */
    bool is_given;     /* the call around those that read it has a name for it */
    bool is_attribute; /* its module has it, until the next pass gives it another one */
    /* What a branch or a body gives: it is there until the operation before this one is over (0: until
     * its last use), and then is the memory of another storage (UINT32_MAX: of none). */
    uint32_t stays_until, becomes;
    onv_value_id value; /* the first one that it is of; ONV_NO_VALUE: of none */
    const char *label;
    const int64_t *dims; /* PARAMETER: factored optimizers look at the shape */
    uint32_t rank;
} onv_eager_storage;

typedef struct onv_eager_tensor {
    uint32_t storage;
    uint8_t dtype;
    bool needs_grad;
    bool is_leaf;     /* a trained parameter: its gradient stays */
    bool copies_grad; /* likewise: its gradient comes in another order of memory */
    uint32_t rank;
    const int64_t *dims, *strides;
    uint64_t elems, bytes; /* of the tensor, whatever its storage holds */
} onv_eager_tensor;

#define ONV_NO_TENSOR UINT32_MAX

typedef enum onv_grad {
    ONV_GRAD_NONE,
    ONV_GRAD_NEW,   /* a tensor like the input */
    ONV_GRAD_ALIAS, /* the gradient of the output itself, or a dense view of it */
    ONV_GRAD_PART,  /* a view of it that covers a part, or repeats elements */
    ONV_GRAD_KEPT,  /* what forward made and kept for it: the extra storages, in their order */
} onv_grad;

/* What a library takes while a kernel runs, after what the kernel makes was allocated. */
typedef struct onv_eager_workspace {
    const char *library; /* static */
    uint64_t bytes;
    uint64_t low_bytes, high_bytes; /* what else it may be (kernels/cudnn.h); both 0: nothing */
    uint64_t beside_bytes;          /* of a second block, made after it and gone before it */
    uint64_t
        state_bytes; /* of random numbers, made before all in the first pass of all, and kept */
    uint64_t first_bytes; /* in the first pass of all, where that tries kernels; else 0 */
    bool stands_long;     /* what backward alone reads is made beside it */
    bool stands_within;   /* what forward makes on its way is made before it, and goes after it */
    uint64_t
        kept_bytes; /* by the thread's handle of cuBLAS from its first use on, beside the others */
} onv_eager_workspace;

/* The backward of a recurrent module: a kernel for the gradients of what comes in, which always runs, and one for those of the
 * weights. Each copies what it reads and is not contiguous, and both take the same workspace (aten/src/ATen/native/cudnn/RNN.cpp). */
typedef struct onv_rnn_backward {
    uint64_t workspace_bytes;
    uint64_t input_copy; /* bytes; 0: it is contiguous */
    uint64_t
        input_grad; /* of an input that needs no gradient, which is made all the same; else 0 */
    uint32_t first_weight; /* of the operation's inputs */
    bool copies_grad;      /* the gradient of the output */
    bool copies_zeros;     /* what stands for that where there is none */
} onv_rnn_backward;

/* At most so many tensors are listed of a backward. */
enum { ONV_BACKWARD_TEMPS = 40 };

/* A tensor that a backward allocates; lists are in the order of allocation. */
typedef struct onv_backward_temp {
    uint64_t bytes;
    uint32_t until;   /* freed before the tensor with this index is allocated, or at the end */
    uint32_t grad_of; /* 1 + the input whose gradient it is, which is not freed; 0: a temporary */
} onv_backward_temp;

/* The most bytes of a list at once, without all of its gradients; UINT64_MAX: they do not fit. */
uint64_t onv_backward_temps_most(const onv_backward_temp *temps, uint32_t n);

typedef struct onv_eager_arg {
    uint32_t tensor;
    uint8_t grad;   /* onv_grad */
    bool is_turned; /* as a linear layer has its weight: the gradient is a view */
    bool is_joined; /* its gradient is a part of one tensor, as those of the others that are so */
    uint64_t grad_bytes; /* of its storage, where that is larger than the tensor; else 0 */
    onv_eager_workspace workspace; /* of the kernel that makes this gradient */
} onv_eager_arg;

/* How long autograd's node of an operation stays, and what it keeps. */
typedef enum onv_life {
    ONV_LIFE_FORWARD, /* no loss and no output is computed from it: to the end of the forward pass */
    ONV_LIFE_OUTPUT,  /* an output without a loss is: as long as the caller holds that */
    ONV_LIFE_BACKWARD, /* its backward runs */
} onv_life;

typedef struct onv_eager_op {
    const char *name; /* PyTorch's, static */
    uint16_t aten;    /* onv_aten_id; ONV_ATEN_NONE: an operation without a row */
    onv_node_id node; /* ONV_NO_NODE for the loss */
    const char
        *part; /* the module of what the export folded into the node; NULL: the node itself */
    onv_eager_arg *in;
    uint32_t *out;   /* tensors */
    uint32_t *saved; /* storages, those of parameters too; an extra one stands here alone */
    uint32_t n_in, n_out, n_saved;
    uint32_t first_temp, n_temps; /* the list of its backward, in `temps` */
    uint32_t rnn; /* 1 + its place among `rnns`, where its backward is that of a module; else 0 */
    onv_eager_workspace workspace; /* of its forward */
    uint64_t forward_temp_bytes;   /* while it runs */
    uint64_t
        backward_temp_bytes; /* most at once while its backward runs, beside its gradients and `temps` */
    uint64_t
        grad_copy_bytes; /* of its result's gradient, which backward copies before all else and has to its end */
    bool has_backward; /* it is a node of autograd's graph */
    bool zeroes_grads; /* a backward that fills missing gradients of outputs with zeros */
    bool in_place;     /* its output overwrites its first input */
    uint8_t life;      /* onv_life */
    bool swaps_grads;  /* its backward makes the gradient of its second input before its first's */
    uint8_t extras_first; /* of what backward alone reads, so many come before its results */
    bool copies_first;    /* its temporaries are copies of what comes in: made first, gone last */
    uint64_t macs;        /* multiply-accumulates of its forward; unknown ones count as 0 */
} onv_eager_op;

/* Segments begin and end between nodes, or between a node and what was folded into it. */
static inline bool onv_eager_same_node(const onv_eager_op *a, const onv_eager_op *b)
{
    return a->node.index == b->node.index && a->part == b->part;
}

/* A checkpoint: a range of the tape, both ends included, in the forward part (before the loss). */
typedef struct onv_tape_segment {
    uint32_t first_op, last_op;
} onv_tape_segment;

/* Storages of parameters, buffers and constants: as they come to the device, and as an optimizer has them. */
typedef struct onv_parameter_order {
    uint32_t *moved, *listed;
    uint32_t count;
} onv_parameter_order;

/* The result of a Relu that overwrites its input, which nothing tells. */
typedef struct onv_inplace_relu {
    uint32_t tensor;
    onv_value_id value;
} onv_inplace_relu;

typedef struct onv_eager {
    onv_arena arena; /* dims of tensors, lists of operations: they go with the tape */
    ONV_VEC(onv_eager_storage) storages;
    ONV_VEC(onv_eager_tensor) tensors;
    ONV_VEC(onv_eager_op) ops;
    ONV_VEC(onv_rnn_backward) rnns;
    ONV_VEC(onv_backward_temp) temps;
    uint32_t first_loss_op;    /* ops from here on are the loss */
    uint32_t loss;             /* tensor, ONV_NO_TENSOR: backward starts at the outputs */
    const char *loss_name;     /* "cross-entropy", "mse", "none" */
    ONV_VEC(uint32_t) outputs; /* with a gradient; backward starts at them without a loss */
    ONV_VEC(onv_tape_segment)
    checkpoints;                 /* the network's own, in order: where no plan has others */
    ONV_VEC(onv_region) regions; /* branches and bodies, in operations; inference alone has them */
    uint32_t folded_norms;       /* convolutions that look as if a batch norm had been folded in */
    uint32_t restored_norms;     /* that the export folded, but says so */
    const onv_node *first_restored;
    uint64_t restored_bytes;      /* of their results */
    bool uses_cublas, uses_cudnn; /* handles: beside the allocator */
    bool has_open_workspaces;     /* some have a range */
    uint32_t slow_attentions;     /* calls that run as separate operations, where a kernel could */
    uint32_t recurrent;           /* layers that cuDNN keeps more for than tensors of the graph */
    uint64_t reserve_bytes;       /* that: an estimate */
    uint32_t untold_relus;        /* taken to overwrite their input, which nothing tells */
    uint32_t open_activations;    /* taken not to, likewise */
    bool has_inner_graphs;        /* of an export: whether torch.no_grad() made them is not told */
    bool was_recorded;            /* `held_until` is all that names and calls of modules hold */
    uint32_t opaque; /* nodes of unknown operators, of which only the results are seen */
    ONV_VEC(onv_inplace_relu) inplace_relus; /* of inference, in the order of their tensors */
    /* Lowering asked for what `least` or, likewise, `locals` decides: with these the tape is another. */
    bool differs_least, differs_most;
    bool differs_checkpoints; /* likewise, what `checkpoints` decides */
    /* Once it is complete; calls of a recording: NULL. */
    onv_parameter_order order;
    const struct onv_calls *calls;
} onv_eager;

/* The most bytes of a backward at once, without its gradients; UINT64_MAX: they do not fit. */
uint64_t onv_eager_backward_temps(const onv_eager *eager, const onv_eager_op *op);

typedef enum onv_loss {
    ONV_LOSS_AUTO,
    ONV_LOSS_CROSS_ENTROPY,
    ONV_LOSS_FUSED, /* cross-entropy and the linear layer before it in one, which makes gradients */
    ONV_LOSS_CHUNKED, /* both, one part of the rows after another */
    ONV_LOSS_MSE,
    ONV_LOSS_NONE
} onv_loss;

/* One item of a list "NAME" or "OUTPUT=NAME,..."; a name may have a count: "NAME=N". */
typedef struct onv_loss_item {
    const char *output, *text; /* a pattern; what stands for the loss; in the list */
    size_t output_length, length;
    onv_loss loss;  /* ONV_LOSS_AUTO: there is no such loss */
    uint32_t count; /* parts of ONV_LOSS_CHUNKED */
} onv_loss_item;

/* Parts of a chunked loss without a count, and the most. */
enum { ONV_LOSS_CHUNKS = 8, ONV_LOSS_MAX_CHUNKS = 4096 };

/* Takes the next one off the list. */
bool onv_loss_next(const char **list, onv_loss_item *item);

/* How PyTorch computes attention. */
typedef enum onv_attention_kernel {
    ONV_ATTENTION_MATH,      /* one operation after the other */
    ONV_ATTENTION_FLASH,     /* FlashAttention where it can: 16 bits, no mask; else the next */
    ONV_ATTENTION_EFFICIENT, /* memory-efficient attention */
    ONV_ATTENTION_AUTO,      /* as flash, but calls of scaled_dot_product_attention alone */
} onv_attention_kernel;

typedef struct onv_lower_options {
    bool inference; /* eval() under no_grad(): nothing is trained, dropped or kept; no loss */
    const onv_weight_format *weights; /* inference: of linear layers; NULL: as they are */
    onv_loss loss;                    /* of outputs that `losses` does not name */
    uint32_t loss_chunks;             /* of ONV_LOSS_CHUNKED there */
    const char *losses;               /* "OUTPUT=NAME,...", or NULL */
    onv_attention_kernel attention;
    bool locals; /* calls of modules hold what they can (eager/calls.h) */
    bool least;  /* inference: nothing is held after its last use, and equal parameters are one */
    bool graph_module;   /* there are no calls of modules, and nothing of this kind is held */
    bool as_exported;    /* no pattern is recognised */
    bool folded_norms;   /* batch norms that the export folded stay folded */
    bool no_fast_path;   /* inference: layers of nn.TransformerEncoder run as exported */
    bool is_traced;      /* by torch.compile: what Python asks of values is not known */
    bool relu_makes_new; /* where nothing tells that it overwrites its input: --inplace=none */
    bool inner_no_grad;  /* graphs inside the network's have no gradient */
    bool no_inplace;     /* activations make new tensors; otherwise Relu overwrites where it may */
    /* Segments run twice: what autograd copies of its operands ends the second run. */
    bool checkpoints;
    bool on_cpu;               /* what PyTorch keeps on the CPU: dropout masks of floats */
    onv_dtype amp;             /* ONV_FLOAT16 or ONV_BFLOAT16: under autocast */
    const char *const *freeze; /* globs on names of parameters and modules */
    size_t n_freeze;
    const char *const *train_only; /* likewise: all others are frozen */
    size_t n_train_only;
    const char *const *inplace; /* globs on modules whose activations overwrite; "*": all */
    size_t n_inplace;
    double attention_dropout;       /* below 0: not told */
    onv_cuda_library_settings cuda; /* whose workspaces; all 0: tensors alone */
    uint64_t parameters;            /* elements of those of the network; 0: not told */
    uint64_t buffers;               /* bytes of those of the network; 0: not told */
    uint32_t pytorch_version; /* whose rules (eager/pytorch.h); 0: those of the newest release */
    bool reports;             /* adds diagnostics of what the export hides to the model */
} onv_lower_options;

void onv_eager_init(onv_eager *eager);
/* It is complete: gives back room that was for more, and orders its parameters. On failure it is empty. */
onv_status onv_eager_complete(onv_eager *eager, const onv_model *model, onv_error *err);
void onv_eager_cleanup(onv_eager *eager);

/* The same tape where those Relus make tensors of their own (relu_makes_new): of inference, without regions. It shares all
 * but storages and tensors with `tape`; ended by onv_eager_end_new_relus, also after a failure. */
onv_status onv_eager_with_new_relus(const onv_eager *tape, onv_eager *copy, onv_error *err);
void onv_eager_end_new_relus(onv_eager *copy);

/* The saved set: bytes that stay allocated between forward and backward beyond parameters and
 * buffers, each distinct storage once. `is_saved`, where not NULL, is set by storage. */
onv_status onv_eager_saved(onv_model *model, const onv_eager *eager, uint64_t *bytes,
                           bool **is_saved, onv_error *err);

/* What handles of libraries take from the driver, beside the allocator: on one thread. */
uint64_t onv_eager_handle_bytes(const onv_eager *eager, const onv_lower_options *options);

onv_status onv_eager_check(const onv_eager *eager, onv_error *err);

#endif

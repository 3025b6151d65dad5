/* The inside of the tape's making: what its files share.
 *
 * A value of the program is a Python object. A call in place gives the object that it wrote under another
 * name; a view has an object of its own, and a base. What is written through a view changes the base for
 * autograd, and all other views of it are views of the new one from then on: they are made again where
 * they are read.
 */
#ifndef ONV_TAPE_STATE_H
#define ONV_TAPE_STATE_H

#include "aten/aten.h"
#include "emit/emit.h"
#include "program/program.h"

/* Of a value: what eager PyTorch does in place of the mask that it is. */
typedef enum onv_exported_mask {
    ONV_MASK_RUNS = 0, /* it is computed, if it is one */
    ONV_MASK_ALL,      /* nothing: it would mask nothing */
    ONV_MASK_CAUSAL,   /* the kernel masks causally */
    ONV_MASK_PART,     /* a mask that does not run was computed of it */
} onv_exported_mask;

typedef struct onv_tape_value {
    uint32_t tensor;  /* ONV_NO_TENSOR: not made, or on the host */
    uint32_t object;  /* the value whose object it is: its own index, mostly */
    uint32_t base;    /* of an object that is a view; ONV_NO_PROGRAM_VALUE: it is none */
    uint32_t version; /* of a view: how often its base was written when it was made */
    uint32_t writes;  /* of an object that is no view: through it, or a view of it */
    uint32_t n_uses;  /* as an argument, and by the caller */
    uint8_t mask;     /* onv_exported_mask */
} onv_tape_value;

/* A tensor argument of the call that is emitted. */
typedef struct onv_tape_operand {
    uint32_t value, tensor;
    uint32_t letter; /* its place among the row's arguments */
} onv_tape_operand;

/* Calls in a row inside a module that were looked at: none before `next` begins another path. */
typedef struct onv_tape_run {
    uint32_t first, next, end;
} onv_tape_run;

/* Of a value: the last autograd.Function whose calls read it, and how often those read it that are in the one that made it. */
typedef struct onv_function_use {
    uint32_t function, inside;
} onv_function_use;

enum { ONV_MOST_INPUTS = 4 };

typedef struct onv_tape {
    onv_emitter emit; /* first: its callbacks find the rest by it */
    const onv_program *program;
    onv_tape_value *values; /* by value of the program */
    /* In `values`, of each one what it is a view of, where an operator made that inside; 0: they are not there. */
    uint32_t first_inside;
    const onv_aten_op **ops; /* by call; NULL: no row */
    bool *in_place;          /* by call */
    bool *left_out;          /* by call: the archive has it, eager PyTorch does not run it */
    uint32_t *last_op;       /* by call: operations when it was over */
    onv_tape_run *runs;      /* by module */
    uint32_t
        *storages; /* of a recording, by value: its storage, as a number below that of values */
    uint32_t *given_to; /* likewise, by such a number: the last call that was given it, and 1 */
    /* Of the call that is emitted. */
    const onv_aten_op *row;
    bool overwrites; /* its first argument, whose name ends with "_" */
    ONV_VEC(onv_tape_operand) operands;
    uint32_t in[ONV_MOST_INPUTS]; /* of a reader: the first of each letter, or ONV_NO_TENSOR */
    bool
        is_recovered; /* calls come one by one, of a graph, and know neither strides nor what autocast made */
    bool knows_grads;     /* a recording of training that tells which results have gradients */
    uint32_t *segment_of; /* by call: 1 + the network's own checkpoint around it; 0: none is */
    uint32_t n_segments;
    uint32_t *function_of; /* by call: 1 + the autograd.Function that its lines show; NULL: none */
    onv_function_use *function_uses; /* by value, likewise */
    uint64_t
        bytes_of_masks; /* that run in the archive alone: of all in training, else of the largest */
} onv_tape;

/* --- value.c: values and their tensors ----------------------------------------------------------- */

/* A number of the program under the bindings; false: it is none, and status is set. */
bool onv_tape_number(onv_tape *t, onv_dim dim, int64_t *number);
/* Sizes of a value, and its strides where they are known (`strides` may be NULL). */
bool onv_tape_shape(onv_tape *t, uint32_t value, onv_shape *shape);
bool onv_tape_strides(onv_tape *t, uint32_t value, int64_t *strides);
/* What stands for it now; ONV_NO_TENSOR for ONV_NO_PROGRAM_VALUE too. */
uint32_t onv_tape_tensor(onv_tape *t, uint32_t value);
void onv_tape_set(onv_tape *t, uint32_t value, uint32_t tensor);
/* `value` is a view of `base`, for autograd. */
void onv_tape_set_view(onv_tape *t, uint32_t value, uint32_t base, uint32_t tensor);
/* `value` is a view of that tensor, all of which it shows: what an operator makes inside, and gives in other sizes. */
void onv_tape_set_view_inside(onv_tape *t, uint32_t value, uint32_t tensor);
/* `value` is another name of the object `of`, which now has that tensor; or, of a view, its base has one. */
void onv_tape_set_written(onv_tape *t, uint32_t value, uint32_t of, uint32_t tensor);
void onv_tape_set_base_written(onv_tape *t, uint32_t value, uint32_t of, uint32_t base_tensor);
/* A new tensor for it, in that dtype (ONV_UNDEFINED: the program's), in the program's strides. */
uint32_t onv_tape_new(onv_tape *t, uint32_t value, uint8_t dtype);
/* The dtype of a result: the program's, or under autocast that of its float operands. */
uint8_t onv_tape_dtype(onv_tape *t, uint32_t value, uint8_t promoted);

/* --- call.c: arguments -------------------------------------------------------------------------- */

uint32_t onv_call_tensor(onv_tape *t, const onv_program_call *call, const char *name);
/* The value of an argument; ONV_NO_PROGRAM_VALUE: there is none. */
uint32_t onv_call_value(const onv_program_call *call, const char *name);
int64_t onv_call_int(onv_tape *t, const onv_program_call *call, const char *name, int64_t fallback);
/* The ith of a list; a single number stands for all. */
int64_t onv_call_int_at(onv_tape *t, const onv_program_call *call, const char *name, uint32_t i,
                        int64_t fallback);
double onv_call_real(const onv_program_call *call, const char *name, double fallback);
/* The dims of `rank` that a reduction names, as bits; 0 where it names none. */
uint32_t onv_call_dims(onv_tape *t, const onv_program_call *call, uint32_t rank);
bool onv_call_flag(const onv_program_call *call, const char *name, bool fallback);
const char *onv_call_text(const onv_program_call *call, const char *name);
/* The call that gives it; NULL: none does. */
const onv_program_call *onv_tape_maker(const onv_tape *t, uint32_t value);
/* Of that operator, any overload. */
bool onv_tape_is(const onv_tape *t, const onv_program_call *call, onv_aten_id id);
/* Its first result, or ONV_NO_PROGRAM_VALUE. */
static inline uint32_t onv_call_result(const onv_program_call *call, uint32_t k)
{
    return k < call->n_results ? call->results[k] : ONV_NO_PROGRAM_VALUE;
}

/* --- generic.c: what rows describe ---------------------------------------------------------------- */

void onv_tape_by_row(onv_tape *t, const onv_program_call *call);
/* The same, and its operation; NULL: it made none. */
/* The row that `t` has, as the operation `id`, on tensors alone; `out` is ONV_NO_TENSOR where it overwrites the first. */
uint32_t onv_tape_step(onv_tape *t, onv_aten_id id, const uint32_t *tensors, uint32_t n,
                       uint32_t out);
onv_eager_op *onv_tape_op_by_row(onv_tape *t, const onv_program_call *call);
/* The tensor arguments of the call, by the row's names, into `operands`. */
void onv_tape_operands(onv_tape *t, const onv_program_call *call, const onv_aten_op *op);
/* Those of the call's row, whatever overloads call them, and `in`. */
void onv_tape_inputs(onv_tape *t, const onv_program_call *call);
/* What autocast gives a kernel for `tensor`. Recorded kernels are parts of calls that expand their arguments to `value`: the
 * cast is of what was expanded. */
uint32_t onv_tape_low(onv_tape *t, uint32_t value, uint32_t tensor);
/* For the result: on the storage of `target`, where that is overwritten, or new. */
uint32_t onv_tape_result(onv_tape *t, const onv_program_call *call, uint32_t target, uint8_t dtype);
/* The result, or what `target` is now. */
void onv_tape_give_result(onv_tape *t, const onv_program_call *call, uint32_t target,
                          uint32_t tensor);
/* The program's strides of the value, where they are known, are those of the tensor that stands for it. */
bool onv_tape_is_as_told(onv_tape *t, uint32_t value, uint32_t tensor);
/* A new image of the value's sizes, whose channels come last where those of `like` do. */
uint32_t onv_tape_new_image(onv_tape *t, uint32_t value, const onv_eager_tensor *like);
/* The row of a norm of that order. */
onv_aten_id onv_tape_norm(double order);
/* A view of its argument `self`, in the program's strides, where those of `self` are. */
void onv_tape_view(onv_tape *t, const onv_program_call *call);
/* The call gives what it is given. */
void onv_tape_same(onv_tape *t, const onv_program_call *call, uint32_t value);
void onv_tape_give(onv_tape *t, const onv_program_call *call, uint32_t k, uint32_t tensor);

/* --- composite.c -------------------------------------------------------------------------------- */

/* The shape of both, with dims of size 1 repeated. */
onv_shape onv_tape_broadcast(const onv_tape *t, uint32_t a, uint32_t b);
/* The call as the text of that row, which reads `in` of the tape. */
uint32_t onv_tape_composite_of(onv_tape *t, const onv_program_call *c, onv_aten_id id);

/* --- Rules of operators ------------------------------------------------------------------------- */

/* Of the call whose row and form the tape has. A reader gives the tensor of the first result; ONV_NO_TENSOR: it is set, or there is
 * none. */
typedef void (*onv_tape_rule)(onv_tape *t, const onv_program_call *call);
typedef uint32_t (*onv_tape_reader)(onv_tape *t, const onv_program_call *call);
#define ATEN_RULE(name, function) void onv_tape_##function(onv_tape *t, const onv_program_call *c);
#define ATEN_READER(name, function, needs)                                                         \
    uint32_t onv_tape_##function(onv_tape *t, const onv_program_call *c);
#include "aten/rules.def"

/* exported_masks.c */
void onv_tape_find_exported_masks(onv_tape *t); /* sets `mask` of values, and `left_out` */
onv_exported_mask onv_tape_exported_mask(const onv_tape *t, const onv_program_call *call,
                                         const char *name);
/* Bytes of a mask that a call is not given, and of the numbers that it would make of it. */
void onv_tape_count_mask(onv_tape *t, uint64_t bytes);
void onv_tape_report_masks(onv_tape *t);
/* More than 0.5 % of what is there at the peak at least: parameters, and in training what is kept for backward. */
bool onv_tape_matters(onv_tape *t, uint64_t part);

/* encoder.c */
/* Where calls from `first` on are a module that takes another path without gradients: emits that, and gives the call behind it;
 * else gives `first`. */
uint32_t onv_tape_fast_path(onv_tape *t, uint32_t first, uint32_t end);

/* view.c */
void onv_tape_find_typed(onv_tape *t);

/* temps.c */
/* What backward of a lookup of more than `few` places takes on its way. */
void onv_tape_add_lookups(onv_tape *t, onv_eager_op *op, uint64_t few);

/* graphs.c */
/* Training, and the call has a graph that runs as often as data say, or none knows how: the status is set. */
bool onv_tape_refuses(onv_tape *t, const onv_program_call *c);

/* --- functions.c: autograd.Functions in an archive ----------------------------------------------- */

void onv_tape_find_functions(onv_tape *t);
bool onv_tape_in_function(const onv_tape *t, uint32_t call);
/* Behind the last of its calls: the node of autograd. */
void onv_tape_end_function(onv_tape *t, uint32_t call);

/* --- recorded.c --------------------------------------------------------------------------------- */

/* Numbers the storages of a recording. */
onv_status onv_tape_number_storages(onv_tape *t);
/* Of a recording: until when storages are held, and whether it says the same of storages and of what is kept. */
void onv_tape_lifetimes(onv_tape *t);
/* Recordings of older versions do not tell which results have gradients. */
bool onv_tape_knows_grads(const onv_program *program);
/* A recorded call of the training pass that makes new tensors, none with a gradient: under no_grad, or of constants. */
bool onv_tape_ran_without_grad(onv_tape *t, const onv_program_call *call);

/* --- checkpoints.c ------------------------------------------------------------------------------ */

/* The module whose forward() has the line of the call's trace at `line`; or, `below`, the one that it calls. UINT32_MAX: none. */
uint32_t onv_tape_module_of(const onv_tape *t, const onv_program_call *call, const char *line,
                            bool below);
/* Of training: sets `segment_of`, and, once all operations are there, the tape's checkpoints. */
onv_status onv_tape_find_checkpoints(onv_tape *t);
void onv_tape_add_checkpoints(onv_tape *t);
/* Warns of calls inside a checkpoint whose runs are not told apart. */
void onv_tape_report_checkpoints(onv_tape *t);

/* --- mode.c ------------------------------------------------------------------------------------- */

/* Of an archive in inference: what evaluation may do otherwise, as it was traced in training mode. */
void onv_tape_of_training(onv_tape *t);
/* Of an archive: weights that hooks of torch.nn.utils make and set before each call of a module, which has them until the next one:
 * weight_norm() of NAME_v and NAME_g, spectral_norm() and prune of NAME_orig. (Parametrizations compute them where they are read.) */
void onv_tape_of_hooks(onv_tape *t);
/* Of training: says what an archive of evaluation lacks. */
void onv_tape_of_evaluation(onv_tape *t);

/* --- tape.c ------------------------------------------------------------------------------------- */

/* One call: by a rule, by its row, or, where that is NULL, by its results alone. */
void onv_tape_emit(onv_tape *t, const onv_program_call *call, const onv_aten_op *op, bool in_place);
/* The calls of a graph, in order. */
void onv_tape_calls(onv_tape *t, const onv_program_graph *graph);

#endif

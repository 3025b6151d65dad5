/* The inside of building a training program: what its files share.
 *
 *     program.c            iterations, the optimizer
 *     place.c              what is always there
 *     rows.c               steps and rows, of a timeline or as sums alone
 *     pricing.c            many plans of one tape, in sums alone
 *     inference.c          forward alone
 *     forward.c            one operation forward: first time, or once more
 *     backward.c           autograd
 *     checkpoint_region.c  checkpoints
 *     prune.c              what of a checkpoint runs again
 *     offload.c            what is kept on the host
 *
 * A row is a buffer of the program, counted by those who hold it; with the last one its life ends.
 *
 * A checkpoint region is a segment at work, as in torch.utils.checkpoint(use_reentrant=False). Its operations
 * keep nothing in forward; the region holds the tensors that come in from outside. When backward first
 * asks for something that one of them would have kept, the segment runs again from its inputs, now
 * keeping, and stops right after the last thing to keep. A region inside another one has its inputs
 * from there: it makes the outer one run again first, which in turn checkpoints the inner ones as
 * forward did. The state of random generators, which makes dropout drop the same again, is on the
 * host.
 */
#ifndef ONV_EAGER_SIMULATION_H
#define ONV_EAGER_SIMULATION_H

#include "alloc/requests.h"
#include "eager/calls.h"
#include "eager/program.h"

#define ONV_NO_ROW         UINT32_MAX
#define ONV_HOST_ROW       (UINT32_MAX - 1) /* held on the host: no row of the device */
#define ONV_NO_CKPT_REGION UINT32_MAX
#define ONV_NO_OP          UINT32_MAX

typedef struct onv_pending_grad {
    uint32_t row;
    bool dense;   /* covers its buffer: may be added to in place, may become a .grad */
    bool of_view; /* a view, which holds what it is a view of: never added to in place */
    bool
        is_joined; /* a part of a tensor that others are parts of: may become a .grad all the same */
} onv_pending_grad;

typedef struct onv_ckpt_region {
    uint32_t first_op, last_op;
    uint32_t parent;      /* ONV_NO_CKPT_REGION: none */
    uint32_t first_save;  /* the first operation inside, inner regions too, that keeps something */
    uint32_t stop;        /* the last operation looked at when it runs again; ONV_NO_OP: never */
    bool runs_stop;       /* it also runs: what it keeps last is its result */
    uint32_t *inputs;     /* storages that come from outside and end some time */
    uint32_t *input_rows; /* held from the time the segment begins in forward, or ONV_NO_ROW */
    uint32_t n_inputs;
    bool
        *runs; /* by operation from the first one: it runs again; NULL: as torch.utils.checkpoint */
    bool again; /* it ran again in this pass */
} onv_ckpt_region;

/* Rows that an iteration makes where there are none yet, and that stay. */
typedef enum onv_lasting {
    ONV_LASTING_HANDLE, /* what cuBLAS keeps: of the forward thread */
    ONV_LASTING_BACKWARD_HANDLE,
    ONV_LASTING_RANDOM, /* what cuDNN's dropout draws from */
    ONV_N_LASTING
} onv_lasting;

/* Who holds storages longer than operations read them: calls and names. */
typedef struct onv_holds {
    /* by storage */
    uint32_t *until; /* the last forward operation at which it is held; NULL: not asked */
    uint32_t *row;   /* what is held so, or ONV_NO_ROW */
    uint32_t *next;  /* 1 + the next one that the same operation ends the hold of; 0: none */
    uint32_t *first; /* by operation: 1 + the first storage whose hold ends with it; 0: none */
} onv_holds;

struct onv_sharding;

/* What stands together, in place of a timeline: of tensors, and with the workspaces of libraries. */
typedef struct onv_metered {
    uint64_t bytes;
    bool is_workspace;
} onv_metered;

enum { ONV_METER_TENSORS, ONV_METER_ALL };

typedef struct onv_meter {
    ONV_VEC(onv_metered) rows;
    uint64_t there[2]; /* in this step */
    uint64_t going[2]; /* of it, what ends with the step */
    uint64_t most[2];  /* of the steps that count */
    uint64_t limit;    /* of the tensors' most: beyond it the simulation is stopped; 0: none */
    bool is_stopped;
    uint64_t all;             /* that was ever allocated */
    bool overflows;           /* that sum */
    bool counts;              /* this step does */
    ONV_VEC(uint32_t) ending; /* rows that end with the step, while requests are recorded */
} onv_meter;

/* An iteration in which nothing is kept for backward, as requests. That of a plan has all of them: activations that the plan
 * holds are freed later, and second runs stand between the backwards of operations. Rows have the same numbers in all plans. */
typedef struct onv_plain_iteration {
    onv_requests requests;
    uint64_t all;    /* that is allocated */
    uint32_t n_rows; /* those that it finds, too */
    const onv_metered *rows;
    uint32_t *refs;               /* by row: how many hold it without a plan before it is freed */
    uint32_t *row_of, *row_after; /* by storage: in forward, and behind it */
    /* Requests up to: the end of an operation's forward; in its backward where its activations go, and the end (0: backward does
     * not come to it); the first gradients. */
    size_t *forward, *turn, *backward, seeded;
} onv_plain_iteration;

typedef struct onv_simulation {
    onv_model *model;
    onv_arena arena;      /* everything but the program */
    onv_arena plan_arena; /* of that, what depends on segments and kept results */
    const onv_eager *eager;
    const onv_train_options *options;
    onv_train_program *program;
    onv_timeline *timeline; /* the program's; NULL: `meter` */
    onv_meter *meter;
    /* What is asked of an allocator is recorded there, by numbers of rows: of a timeline the sizes of workspaces alone, each
     * of which is a buffer then, also where the likely one is none. NULL: it is not. */
    onv_requests *requests;
    ONV_VEC(uint32_t) refs; /* by row: how many hold it */
    onv_plain_iteration
        *notes; /* this iteration is: nothing is kept for backward; NULL: it is not */
    const onv_plain_iteration
        *plain;    /* is played, with what the plan adds; NULL: all is simulated */
    size_t played; /* of its requests */
    uint32_t n_steps;
    uint32_t work;   /* since the last step */
    onv_phase phase; /* of the last one */
    uint32_t world;
    uint32_t iteration, pass;
    uint32_t counted;     /* the iteration of whose first pass the program has the work */
    uint32_t backward_at; /* the operation whose backward comes next */
    bool in_backward;     /* on autograd's thread, which has handles of its own */
    uint32_t lasting_row[ONV_N_LASTING];
    unsigned
        asked; /* bits: lasting rows that requests need not ask for; ONV_N_LASTING: the optimizer's state */
    uint32_t states
        [2]; /* the optimizer's, where the first step makes them: the first row, and behind the last one */
    uint32_t loop_row; /* what the loop of checkpoint_sequential holds */
    bool failed;       /* memory */
    /* by storage */
    uint32_t *row_of;     /* its row, while it is in somebody's hands */
    uint32_t *made_row;   /* the last one that was made for it */
    uint32_t *output_row; /* what the caller or a module still holds of the last iteration */
    uint32_t *made_by;    /* the first operation that makes it */
    uint32_t *last_use;   /* the last forward operation that touches it */
    uint32_t *again_use; /* the same within a region that runs again; ONV_NO_OP: stays to its end */
    uint32_t *grad_row;  /* of a parameter: its .grad */
    uint32_t *master_rows; /* in a step: the gradient of its float32 copy */
    /* by tensor */
    onv_pending_grad *grad;
    uint32_t *senders; /* leaves: gradients that backward sends it */
    uint32_t *senders_left;
    /* by operation */
    bool *makes_extras;     /* it saves what it makes for that alone */
    uint32_t *first_saved;  /* where the rows that it keeps stand in saved_row */
    uint32_t *region_of;    /* the innermost region around it */
    uint32_t *saved_row;    /* by operation and place: held for its backward, or ONV_NO_ROW */
    onv_pending_grad *made; /* room for the gradients of one operation */
    bool *
        is_direct; /* by operation in a pruned region: backward has what it saves without a second run; NULL: none */
    bool *is_kept;      /* by operation: its results stay for a second run; NULL: none's */
    uint32_t *kept_row; /* by storage: of such a result, or ONV_NO_ROW */
    uint32_t
        *first_ended; /* by operation: 1 + the first one that leads nowhere whose node goes then */
    uint32_t *next_ended;             /* by such an operation: 1 + the next one; 0: none */
    onv_holds held, noted;            /* what is told, and what may be beside it */
    const onv_tape_segment *segments; /* of the options, or else the network's own */
    onv_ckpt_region *regions;         /* as these */
    uint32_t n_regions;
    struct onv_sharding *sharding; /* NULL: no library shares training out */
    uint64_t *quantized_rows; /* by storage: of a quantized matrix, 0: it is none; NULL: none is */
    uint32_t offload_end;     /* of the operations whose backward has what it needs on the host */
    bool *is_offloaded;       /* by tensor: the host has it in this pass; NULL: the host has none */
    uint32_t *written;        /* by storage: the tensor that was last written there */
    ONV_VEC(uint32_t) in_hand; /* rows that the reentrant segment at work holds beside its inputs */
    ONV_VEC(uint32_t) lingering; /* rows that go with the loss of the last pass */
    uint32_t n_lingering;        /* of them of the passes before this one */
} onv_simulation;

/* --- rows.c ------------------------------------------------------------------------------------ */

void onv_sim_step(onv_simulation *s, onv_phase phase, onv_node_id node, const char *label);
/* Of a meter: the last one, where no other follows. */
void onv_sim_end_step(onv_simulation *s);
/* Of a plain iteration: its requests up to here, where no step goes on; and those up to `end` are played. */
void onv_plain_note(onv_simulation *s, size_t *end);
void onv_plain_play(onv_simulation *s, size_t end);
/* Whether this is the pass that the program tells of. */
static inline bool onv_sim_is_counted(const onv_simulation *s)
{
    return !s->failed && s->iteration == s->counted && s->pass == 0;
}

/* The last step runs operation `index` forward. */
void onv_sim_work(onv_simulation *s, uint32_t index, bool recompute);
/* It runs its backward; two gradients of so many bytes are added. */
void onv_sim_count_backward(onv_simulation *s, uint32_t index);
void onv_sim_count_sum(onv_simulation *s, uint64_t bytes);
uint32_t onv_sim_alloc(onv_simulation *s, uint64_t bytes, onv_buffer_kind kind, const char *label);
static inline void onv_sim_hold(onv_simulation *s, uint32_t row)
{
    if (row < ONV_HOST_ROW) s->refs.at[row]++;
}
/* Nobody holds it any more. */
void onv_sim_end_row(onv_simulation *s, uint32_t row);
static inline void onv_sim_release(onv_simulation *s, uint32_t row)
{
    if (row < ONV_HOST_ROW && --s->refs.at[row] == 0) onv_sim_end_row(s, row);
}
/* The same, and it is in nobody's hands then. */
static inline void onv_sim_drop(onv_simulation *s, uint32_t *row)
{
    onv_sim_release(s, *row);
    *row = ONV_NO_ROW;
}
static inline void onv_sim_temporary(onv_simulation *s, uint64_t bytes, const char *label)
{
    if (bytes > 0) onv_sim_release(s, onv_sim_alloc(s, bytes, ONV_BUFFER_TEMPORARY, label));
}
/* Of an operation, to be released before it ends; ONV_NO_ROW: of no bytes. */
static inline uint32_t onv_sim_copy(onv_simulation *s, const onv_eager_op *op, uint64_t bytes)
{
    return bytes > 0 ? onv_sim_alloc(s, bytes, ONV_BUFFER_TEMPORARY, op->name) : ONV_NO_ROW;
}
/* Such a row, if there is none yet. */
void onv_sim_last(onv_simulation *s, onv_lasting which, uint64_t bytes, const char *label);
/* An iteration asks for it, or for the optimizer's state: the first time is recorded where pricing.c looks for it. */
void onv_sim_note_ask(onv_simulation *s, unsigned which);
/* What the thread's handle of cuBLAS keeps, if it has not got it. */
void onv_sim_handle(onv_simulation *s, const onv_eager_workspace *workspace);
/* That, and the rest, allocated now and freed before anything else is allocated. */
void onv_sim_use(onv_simulation *s, const onv_eager_workspace *workspace);
static inline void onv_sim_workspace(onv_simulation *s, const onv_eager_workspace *workspace)
{
    if (workspace->library != NULL) onv_sim_use(s, workspace);
}
/* Of a row that was made. */
uint64_t onv_sim_bytes(const onv_simulation *s, uint32_t row);

/* --- program.c --------------------------------------------------------------------------------- */

/* A simulation that is to be closed, if this succeeds. It has neither timeline nor meter yet. */
onv_status onv_sim_open(onv_simulation *s, onv_model *model, const onv_eager *eager,
                        const onv_train_options *options, onv_train_program *program,
                        onv_error *err);
void onv_sim_close(onv_simulation *s);
/* Whether the caller wants no more. */
onv_status onv_sim_ask(const onv_train_options *options, onv_error *err);
/* Bytes of a tensor of which each device has its part from this stage of ZeRO on. */
uint64_t onv_sim_shard(const onv_simulation *s, uint64_t bytes, uint32_t stage);
/* Memory for the tables, and what the tape says of storages and operations. */
onv_status onv_sim_prepare(onv_simulation *s, onv_error *err);
/* By storage: the last operation at which a call of a module or a name has it (onv_calls_hold); 0: none. */
onv_status onv_sim_find_holds(onv_simulation *s, onv_held_end end, uint32_t **until,
                              onv_error *err);
/* The same of the options' segments, kept results and what goes to the host. */
onv_status onv_sim_prepare_plan(onv_simulation *s, onv_error *err);
/* All that is there before the first iteration; then one. */
onv_status onv_sim_begin(onv_simulation *s, onv_error *err);
void onv_sim_iterate(onv_simulation *s);
/* In sums alone: whether the next pass finds what the last one found. `found`: that, and now what the next one does. */
enum { ONV_N_SUMS = 5 };
bool onv_sim_repeats(const onv_simulation *s, uint64_t found[ONV_N_SUMS]);
/* Sets what the program says is kept between forward and backward with them. */
onv_status onv_sim_find_saved(onv_simulation *s, onv_error *err);
/* All preparations of a whole program, up to what is there before the first iteration; then so many of them. */
onv_status onv_sim_start(onv_simulation *s, onv_error *err);
onv_status onv_sim_train(onv_simulation *s, uint32_t iterations, onv_error *err);
/* The rows of what is there all the time: the network, then the batch. */
void onv_sim_place_permanent(onv_simulation *s);
/* There before and after every iteration. */
static inline bool onv_sim_is_permanent(const onv_simulation *s, uint32_t storage)
{
    return s->eager->storages.at[storage].kind <= ONV_STORAGE_CONSTANT;
}

/* An operation makes it for its backward alone. */
static inline bool onv_sim_is_extra(const onv_simulation *s, uint32_t storage)
{
    return s->eager->storages.at[storage].kind == ONV_STORAGE_EXTRA;
}

static inline bool onv_sim_is_direct(const onv_simulation *s, uint32_t op)
{
    return s->is_direct != NULL && s->is_direct[op];
}

static inline bool onv_sim_is_kept(const onv_simulation *s, uint32_t op)
{
    return s->is_kept != NULL && s->is_kept[op];
}

/* Whether regions hold a storage: it ends some time, and no cache of autocast's makes it. */
static inline bool onv_ckpt_counts(const onv_simulation *s, uint32_t storage)
{
    return !onv_sim_is_permanent(s, storage) && !s->eager->storages.at[storage].is_cached;
}

/* Whether an operation of the region runs again. */
static inline bool onv_ckpt_runs(const onv_ckpt_region *region, uint32_t op)
{
    if (region->runs != NULL) return region->runs[op - region->first_op];
    bool is_before = op < region->stop || (op == region->stop && region->runs_stop);
    return region->stop != ONV_NO_OP && is_before;
}

static inline uint32_t onv_sim_storage(const onv_simulation *s, uint32_t tensor)
{
    return s->eager->tensors.at[tensor].storage;
}

/* --- forward.c --------------------------------------------------------------------------------- */

typedef enum onv_run {
    ONV_RUN_KEEPING,   /* forward; what it saves is kept */
    ONV_RUN_FORGETTING /* forward inside a checkpoint */
} onv_run;

/* Parameters that are shared out are gathered for the operation that reads them. */
void onv_sim_gather(onv_simulation *s, const onv_eager_op *op);
/* Runs operation `index`. `last_use` is s->last_use, or s->again_use in a region that runs again. */
void onv_sim_run(onv_simulation *s, uint32_t index, onv_run run, const uint32_t *last_use);
/* What autocast had cached of parameters, and an operation reads, is cast again. */
void onv_sim_cast_again(onv_simulation *s, const onv_eager_op *op);
/* Operation `index` is over: names go that it is the last one to use, and what it made for its backward alone, if nobody keeps it. */
void onv_sim_end_op(onv_simulation *s, uint32_t index, const uint32_t *last_use);
/* Holds what operation `index` saves. */
void onv_sim_save(onv_simulation *s, uint32_t index);
/* Lets go of it: now, or with the next pass's loss. */
void onv_sim_forget(onv_simulation *s, uint32_t index, bool lingers);
/* A quantized matrix of the operation in the type of its other operand. */
void onv_sim_dequantize(onv_simulation *s, const onv_eager_op *op, bool backward);
void onv_sim_forward(onv_simulation *s);

/* --- checkpoint_region.c ----------------------------------------------------------------------------------- */

/* Checks the segments and makes a region of each. Linear in operations and in what segments cover,
 * that of nested ones once for each. */
onv_status onv_ckpt_regions_make(onv_simulation *s, onv_error *err);
/* By storage, while regions are made. */
typedef struct onv_ckpt_tables {
    uint32_t *needed_by; /* 1 + the last region that needs it from outside */
    uint32_t *listed;    /* room */
} onv_ckpt_tables;

/* Sets the inputs of a region: what it needs. */
onv_status onv_ckpt_region_list(onv_simulation *s, uint32_t self, const onv_ckpt_tables *tables,
                                onv_error *err);
/* All regions as before a forward pass. */
void onv_ckpt_regions_reset(onv_simulation *s);
/* Holds the inputs of a region, at its first operation. */
void onv_ckpt_region_enter(onv_simulation *s, onv_ckpt_region *region);
/* Makes sure that what operation `index` saves is there. */
void onv_ckpt_region_restore(onv_simulation *s, uint32_t index);
/* The backward of operation `index` is over: regions whose first saver it was let go. */
void onv_ckpt_region_leave(onv_simulation *s, uint32_t index);

/* --- prune.c ----------------------------------------------------------------------------------- */

/* With options->prunes or options->selects: what of each region runs again, and what it needs from outside for that. Linear in what
 * segments cover. */
onv_status onv_ckpt_regions_prune(onv_simulation *s, const onv_ckpt_tables *tables, onv_error *err);
/* Holds the results of operation `index`, which just ran in forward and are to stay. */
void onv_keep_results(onv_simulation *s, uint32_t index);
/* Lets those of the region's own operations go; ONV_NO_CKPT_REGION: of inner regions too. */
void onv_drop_results(onv_simulation *s, const onv_ckpt_region *region, uint32_t self);
/* An operation that does not run again: what it saves is there, or is kept. `own`: it keeps it now. */
void onv_pass_by(onv_simulation *s, uint32_t index, bool own);

/* --- offload.c --------------------------------------------------------------------------------- */

onv_status onv_offload_prepare(onv_simulation *s, onv_error *err);
/* Whether a storage that is kept there goes to the host. */
bool onv_offload_moves(const onv_simulation *s, uint32_t storage);
/* Forward begins. */
void onv_offload_begin(onv_simulation *s);
/* Operation `index` ran in forward: which tensors stand in the storages that it wrote. */
void onv_offload_note(onv_simulation *s, uint32_t index);
/* What a forward outside of checkpoints keeps for operation `index`. */
void onv_offload_saved(onv_simulation *s, uint32_t index);
/* A copy of a storage, that a region holds, goes to the host: what is in its place then. */
uint32_t onv_offload_row(onv_simulation *s, uint32_t storage, uint32_t row);
/* A region's forward is over: its inputs go. */
void onv_offload_region(onv_simulation *s, onv_ckpt_region *region);
/* Before the second run of a region: its inputs, and what was kept, come back. */
void onv_offload_return_region(onv_simulation *s, onv_ckpt_region *region);
/* The backward of operation `index` begins: what it saved comes back. */
void onv_offload_return_saved(onv_simulation *s, uint32_t index);
/* What operation `index`, or a region that begins with it, keeps goes to the host. */
static inline bool onv_offload_takes(const onv_simulation *s, uint32_t index)
{
    return index < s->offload_end;
}

/* --- sharding.c -------------------------------------------------------------------------------- */

/* Units and tables of what the options ask for. */
onv_status onv_shard_prepare(onv_simulation *s, onv_error *err);
/* One device's part of `bytes` of a parameter; with ZeRO from this stage on. */
uint64_t onv_shard_of(const onv_simulation *s, const onv_eager_storage *storage, uint64_t bytes,
                      uint32_t stage);
/* Of a whole parameter as the optimizer has it. */
uint64_t onv_sim_optimized_bytes(const onv_simulation *s, const onv_eager_storage *storage);
void onv_shard_begin_pass(onv_simulation *s);
/* Where s->sharding is not NULL: */
void onv_shard_before(onv_simulation *s, uint32_t op);
void onv_shard_after(onv_simulation *s, uint32_t op);
void onv_shard_before_backward(onv_simulation *s, uint32_t op);
void onv_shard_after_backward(onv_simulation *s, uint32_t op);
void onv_shard_end_backward(onv_simulation *s);
/* The gradient of this parameter stands in grad_row. */
void onv_shard_take_grad(onv_simulation *s, uint32_t storage);
void onv_shard_zero_grad(onv_simulation *s);

/* --- backward.c -------------------------------------------------------------------------------- */

void onv_sim_backward(onv_simulation *s);

#endif

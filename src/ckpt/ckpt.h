/* Checkpointing plans: which stretches of the forward pass are run again in backward, instead of
 * keeping what they save.
 *
 * A plan is a list of segments of the eager tape (eager/program.h). The training program is simulated
 * with them like any other (eager/pricing.h), so a plan's peak is measured, not estimated. Its price is the
 * multiply-accumulates that run again; the overhead relates them to a forward and a backward, and a
 * backward counts as two forwards. Some plans also keep tensors on the host (eager/offload.c): bytes that are
 * moved are a part of the price.
 *
 * Each kind of plan is a strategy in a file of its own; the list names them all.
 */
#ifndef ONV_CKPT_CKPT_H
#define ONV_CKPT_CKPT_H

#include "ckpt/compile.h"
#include "ckpt/places.h"
#include "ckpt/units.h"
#include "eager/pricing.h"

typedef struct onv_ckpt_plan {
    const char *name; /* "sqrt", "every=4" */
    uint32_t item;    /* of the list that asked for it */
    const onv_tape_segment *segments;
    uint32_t n_segments;
    bool prunes, is_reentrant; /* as eager/program.h */
    const char
        *save; /* kinds of kept_ops with "+" between, where that is the plan (asked.c); else NULL */
    const uint32_t *kept_ops; /* likewise */
    uint32_t n_kept_ops;
    uint32_t sequential;      /* the count for checkpoint_sequential, which applies it; else 0 */
    uint32_t loop_from;       /* then as eager/program.h */
    bool saves_on_cpu;        /* likewise */
    uint32_t offload_until;   /* likewise */
    bool compiles;            /* torch.compile with memory_budget, in place of all that */
    double memory_budget;     /* from 0 to 1 */
    uint64_t peak_bytes;      /* measured on the program: tensors, sizes as asked for */
    uint64_t requested_bytes; /* the same with the workspaces of libraries */
    uint64_t recomputed_macs; /* measured too; of one forward and backward */
    uint64_t moved_bytes;     /* measured: between device and host, both ways */
} onv_ckpt_plan;

typedef struct onv_ckpt_plans {
    ONV_VEC(onv_ckpt_plan) at;
    ONV_VEC(onv_ckpt_plan)
    spare; /* of fronts, which are left out of the list as they stand between others */
} onv_ckpt_plans;

/* What every strategy gets. Results live in the model's arena. */
typedef struct onv_ckpt_problem {
    onv_model *model;
    const onv_eager *eager;
    const onv_ckpt_units *units;
    onv_places *places;
    const onv_train_options *options; /* its segments are not looked at */
    onv_pricing *pricing;             /* with these options */
    const onv_ckpt_plans *others;     /* NULL, or plans that the list asks for besides */
    const onv_ckpt_plans *compiled;   /* likewise, of torch.compile: for fronts */
    /* Plans that one of these betters are not measured to the end; NULL: all are. */
    const onv_ckpt_plans *rivals;
    bool prunes;          /* all plans, where the export tells of the code */
    const char *argument; /* of the item, as it was given; NULL: it has none */
    uint32_t count;       /* the same as a number from 1; without one the root of the units */
} onv_ckpt_problem;

typedef struct onv_ckpt_plan_kind {
    const char *name;     /* as --checkpoint takes it, without what follows "=" */
    const char *summary;  /* one line */
    const char *argument; /* what follows: "K", a count from 1, or another text; NULL: nothing */
    bool in_all;          /* "all" has it */
    bool is_front;        /* made last: no other plan of the list is to be better than its plans */
    /* Appends one plan (optimal: a front of them, dearest last) through onv_ckpt_plans_add. */
    onv_status (*make)(const onv_ckpt_problem *problem, onv_ckpt_plans *plans, onv_error *err);
} onv_ckpt_plan_kind;

extern const onv_ckpt_plan_kind onv_ckpt_none, onv_ckpt_sqrt, onv_ckpt_every, onv_ckpt_segments,
    onv_ckpt_blocks, onv_ckpt_optimal, onv_ckpt_offload, onv_ckpt_joint, onv_ckpt_modules,
    onv_ckpt_save, onv_ckpt_reentrant;
extern const onv_ckpt_plan_kind *const onv_ckpt_plan_kinds[];
extern const size_t onv_n_ckpt_plan_kinds;

/* A list of plans: names with commas, those that take something as NAME=K (K from 1) or NAME=TEXT. "all" stands for
 * none, sqrt, segments with the square root of the units as K, blocks, and optimal. What follows a "@" is the caller's. */
enum { ONV_CKPT_MAX_ITEMS = 32 };
onv_status onv_ckpt_check_list(const char *list, onv_error *err);

/* One price of what runs again and what is moved: a byte between device and host takes about as long as
 * so many multiply-accumulates (an A100's in TF32 beside its PCIe 4.0). */
enum { ONV_CKPT_MACS_PER_BYTE = 1024 };
uint64_t onv_ckpt_price(uint64_t recomputed_macs, uint64_t moved_bytes);

/* What is to be made: a list ("": none), and behind it a plan that was read (plan_names.h; NULL: none). */
typedef struct onv_ckpt_wanted {
    const char *list;
    const struct onv_plan_text *text;
    bool spares; /* what fronts leave out of the list, too */
} onv_ckpt_wanted;

/* Makes the plans of a list, in its order, items counted from 0. Requires no units: they are found
 * here. `pricing`: with these options. `compiling` (NULL: none): fronts have plans of torch.compile, too. On failure there is nothing to clean up. */
onv_status onv_ckpt_make(onv_model *model, const onv_eager *eager, onv_pricing *pricing,
                         onv_compiling *compiling, const onv_train_options *options,
                         onv_ckpt_wanted wanted, onv_ckpt_plans *plans, onv_error *err);

/* Sets what is measured of the plan. `is_kept_used`: by kept result, as eager/program.h; NULL: not asked for. */
onv_status onv_ckpt_measure(const onv_ckpt_problem *problem, onv_ckpt_plan *plan,
                            bool *is_kept_used, onv_error *err);

/* The plan's part of the options of a program. */
void onv_ckpt_apply(const onv_ckpt_plan *plan, onv_train_options *options);
/* Plans of torch.compile at budgets from 1 to 0: compiled_plans.c. */
onv_status onv_ckpt_compile(const onv_ckpt_problem *problem, onv_compiling *compiling,
                            onv_ckpt_plans *plans, onv_error *err);
/* Copies the lists of a plan that was measured into the model's arena: of results those alone that were used. */
onv_status onv_ckpt_keep(const onv_ckpt_problem *problem, const bool *is_kept_used,
                         onv_ckpt_plan *plan, onv_error *err);
/* Measures the plan, and appends it with lists in the model's arena. */
onv_status onv_ckpt_plans_take(const onv_ckpt_problem *problem, const onv_ckpt_plan *from,
                               onv_ckpt_plans *plans, onv_error *err);
/* The same for segments alone. Where they are rows of whole modules they run again as
 * torch.utils.checkpoint does, else pruned. */
onv_status onv_ckpt_plans_add(const onv_ckpt_problem *problem, const char *name,
                              const onv_tape_segment *segments, uint32_t n_segments,
                              onv_ckpt_plans *plans, onv_error *err);
/* The same of a plan with `save`, whose kept results are found here, and of one for use_reentrant=True. ONV_ERR_USAGE where that
 * cannot be. */
onv_status onv_ckpt_take_saving(const onv_ckpt_problem *problem, onv_ckpt_plan *plan,
                                onv_ckpt_plans *plans, onv_error *err);
onv_status onv_ckpt_take_reentrant(const onv_ckpt_problem *problem, onv_ckpt_plan *plan,
                                   onv_ckpt_plans *plans, onv_error *err);
void onv_ckpt_plans_cleanup(onv_ckpt_plans *plans);

#endif

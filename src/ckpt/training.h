/* Training: what one device would hold to train the model in eager PyTorch, with checkpointing plans
 * or without.
 *
 * Each program (eager/program.h) is a timeline: its peak is measured, and the model of PyTorch's
 * allocator serves it.
 */
#ifndef ONV_CKPT_TRAINING_H
#define ONV_CKPT_TRAINING_H

#include "alloc/requests.h"
#include "ckpt/ckpt.h"
#include "ckpt/compile.h"
#include "ckpt/plan_names.h"
#include "ckpt/unit_list.h"
#include "eager/program.h"
#include "graph/liveness.h"
#include "speed/speed.h"

/* What was measured of one program. */
typedef struct onv_training_figures {
    uint64_t trained_elems;   /* of the parameters that have a gradient */
    uint64_t parameter_bytes; /* frozen ones too */
    uint64_t gradient_bytes;  /* the .grad of all trained parameters */
    uint64_t optimizer_bytes; /* state */
    uint64_t buffer_bytes;    /* running statistics, constants */
    uint64_t input_bytes;     /* the batch and its targets */
    uint64_t
        saved_activation_bytes; /* between forward and backward; the batch too where it is kept */
    uint64_t peak_bytes; /* tensors alone, sizes as asked for, in the second iteration or later */
    uint64_t requested_peak_bytes; /* the same with the workspaces of libraries */
    uint64_t workspace_bytes;      /* of them, at that peak */
    const char *workspace_library;
    onv_node_id requested_peak_node;
    const char *requested_peak_label;
    uint64_t
        first_peak_bytes;  /* with workspaces, where the first iteration tries kernels; else 0 */
    uint64_t driver_bytes; /* handles of libraries, beside the allocator */
    uint64_t phase_peak_bytes[ONV_N_PHASES];
    onv_phase peak_phase;
    onv_node_id peak_node;                              /* ONV_NO_NODE: the loss, the optimizer */
    const char *peak_label;                             /* PyTorch's name of the operation */
    uint64_t allocated_peak_bytes, reserved_peak_bytes; /* as torch.cuda counts */
    onv_release release;                                /* within onv_training_options.room_bytes */
    /* Likewise by the least and the most that cuDNN may take: of the figures of the result, and of plans that a budget may
     * choose. The release is that of the end that holds most, where it suffices at each one. Else 0. */
    uint64_t allocated_ends[2], held_ends[2]; /* held: reserved, or in the first iteration */
    uint64_t offloaded_bytes, returned_bytes, pinned_bytes; /* as eager/program.h */
    uint64_t forward_macs;                                  /* of one forward pass */
    onv_train_parts parts;
    onv_time time; /* of a step, on onv_training_options.speed */
} onv_training_figures;

/* A checkpointing plan and what comes of it. Its overhead is does.recomputed_macs in relation to
 * pass_macs, where the backward counts as two forwards. */
typedef struct onv_training_plan {
    onv_ckpt_plan does;
    const char *id; /* of what it does, the same at every size: eight hexadecimal digits */
    onv_plan_form form;
    const onv_segment_names *names; /* of the segments */
    const char *const *kept;        /* what names kept_ops (borders.h) */
    const char *until;  /* where offload_until is (names.h); NULL: nothing waits on the host */
    uint32_t n_by_hand; /* segments that nothing places in the code */
    bool is_missing;    /* known, of another tape, and this one has no such places: not measured */
    uint64_t pass_macs; /* of a forward and a backward */
    onv_training_figures figures;
    uint64_t total_bytes; /* where a budget is given: with context and workspaces, upper ends */
    /* The largest size at which it fits; 0: none, or not asked for. The second one as in onv_fit_of. */
    int64_t max_batch, max_batch_by_release;
} onv_training_plan;

/* Of a search: the largest size at which any plan fits, and the plan that is chosen there. 0: none, or not asked for. */
typedef struct onv_largest_size {
    int64_t size;
    const char *name, *id;
    uint64_t recomputed_macs, pass_macs;
    uint32_t n_segments;
} onv_largest_size;

typedef struct onv_training {
    const onv_model *model; /* that PyTorch runs, whose nodes and values all of this names */
    const onv_optimizer *optimizer;
    const char *loss;         /* "cross-entropy", "mse", "none" */
    uint32_t folded_norms;    /* convolutions into which the export folded a batch norm */
    uint32_t restored_norms;  /* folded by the export, counted as its notes say */
    uint32_t slow_attentions; /* in separate operations where a kernel would keep less */
    uint32_t recurrent;       /* layers for which cuDNN keeps a reserve */
    uint64_t reserve_bytes;   /* of all of them: an estimate */
    bool is_unlisted; /* nothing tells of parameters that no operation reads: not in the figures */
    uint32_t opaque;  /* nodes of which only the results are counted */
    unsigned world, zero_stage; /* devices, of which figures are of one; 0: one alone, no ZeRO */
    uint32_t n_units;           /* that FSDP gathers one by one, beside the root */
    uint32_t n_plan_ops;        /* of the tape that the plans are of */
    onv_training_figures figures;
    /* Without a plan: where activations overwrite their input, or inner graphs have no gradient, and where names of Python hold what they
     * can and activations do not. */
    onv_training_figures least, most;
    onv_training_figures new_relus; /* where the ReLUs that nothing tells of make new tensors */
    /* Of the figures alone: names of Python and other choices of cuDNN aside. */
    onv_release release;
    onv_training_plan *plans; /* that were asked for, in the model's arena */
    uint32_t n_plans;
    uint32_t chosen; /* the plan that the figures above are of; ONV_NO_PLAN: without checkpoints */
    bool plan_fits;  /* a budget chose it, and it fits */
    onv_largest_size largest;
    const onv_compiled *compiled; /* under torch.compile; NULL: not asked for */
    const onv_unit_list *units;   /* NULL: not asked for */
    /* Of the program that the figures are of, if it is to be kept; the owner cleans it up. */
    onv_timeline timeline;
} onv_training;

#define ONV_NO_PLAN UINT32_MAX

/* Plans of the same network with other sizes, which are measured instead of making those of the list, and
 * instead of training without plans. */
typedef struct onv_known_plans {
    const onv_ckpt_plan *at;
    const onv_plan_text
        *texts; /* the same plans: on a tape with other operations they are found by names */
    uint32_t count, n_ops; /* of their tape */
} onv_known_plans;

typedef struct onv_training_options {
    onv_train_options train;
    onv_alloc_options alloc;
    onv_speed speed;     /* of whose seconds are estimated */
    uint64_t room_bytes; /* of a device, for the allocator and handles of libraries; 0: no limit */
    const char *checkpoint;    /* plans, see ckpt/ckpt.h; NULL: none */
    const onv_plan_text *plan; /* behind these a plan that was read; NULL: none */
    /* Which one of the plans is to be looked at, alone. All have figures, names and ids. NULL: all are. */
    onv_status (*select)(void *context, const onv_training *all, uint32_t *plan, onv_error *err);
    void *select_context;
    const onv_known_plans
        *known; /* NULL: none are. Such plans get no names and no lines of Python */
    bool keeps_timeline;
    bool is_probe;    /* plans are what is asked for: figures are of the most that cuDNN may take */
    bool lists_units; /* with plans: what they are made of */
    bool compiles;    /* under torch.compile, too */
    double compile_budget; /* its memory budget, from 0 to 1 */
    const char *units;     /* FSDP's, see ckpt/shard_units.h */
    /* Shown the timeline of every program, as PyTorch's allocator placed it, with the name of its
     * plan (NULL: none). All live until the call returns, the text of labels as long as the model.
     * NULL: nobody asks, and the tape goes as soon as it can. */
    onv_status (*take)(void *context, const onv_timeline *t, const onv_placement *placement,
                       const char *plan, onv_error *err);
    void *take_context;
    uint32_t
        *taken_plan; /* set before a plan is shown: its place among the plans. NULL: nobody asks */
    /* Of plans that were measured one by one: whether the figures are to be of this one, rather than of those before it.
     * NULL: of one that is alone. */
    onv_status (*prefer)(void *context, onv_training *result, uint32_t plan, bool *is_preferred,
                         onv_error *err);
    void *prefer_context;
} onv_training_options;

/* Requires inference and lifetimes, all sizes numbers (ONV_ERR_USAGE otherwise). What makes the
 * result less than exact goes on the model's list of diagnostics. */
onv_status onv_training_compute(onv_model *model, const onv_live *live,
                                const onv_training_options *options, onv_training *result,
                                onv_error *err);

/* As onv_ckpt_price. */
uint64_t onv_training_plan_price(const onv_training_plan *plan);

/* Of several plans the one to take where no budget chooses: by what is reserved and what that costs it is the furthest below
 * the line from the cheapest plan to the smallest one, so that from there on a byte less costs more. ONV_NO_PLAN: there are
 * not several. */
uint32_t onv_training_knee(const onv_training *t);

#endif

/* Runtimes: what each would hold on the device to run the model.
 *
 * A runtime is a strategy (a row of onv_runtimes): it makes the timeline of what it executes, and
 * names who serves it. The figures, and the placement that a device can be asked to live through,
 * follow from these two for all runtimes alike. They are exact under the runtime's rules; what no
 * graph tells (the CUDA context) is a range with its reason.
 */
#ifndef ONV_RUNTIME_RUNTIME_H
#define ONV_RUNTIME_RUNTIME_H

#include "alloc/alloc.h"
#include "ckpt/training.h"
#include "graph/liveness.h"
#include "graph/storage.h"
#include "ort/ort.h"
#include "plan/plan.h"
#include "rewrite/rewrite.h"

typedef struct onv_range {
    uint64_t low, high;
} onv_range;

typedef struct onv_runtime onv_runtime;

typedef struct onv_runtime_result {
    const onv_runtime *runtime;
    bool is_judged;              /* verdicts and the largest batch are of it; the caller sets it */
    uint64_t weight_bytes;       /* as the runtime stores them */
    uint64_t activation_bytes;   /* the most that is held beyond the weights */
    uint64_t held_bytes;         /* weights and activations together, as taken from the device */
    uint64_t driver_bytes;       /* handles of libraries, beside the allocator */
    uint64_t driver_least_bytes; /* ort: of the branches that need least; others: the same */
    onv_range context_bytes;     /* of the driver and its kernels; an estimate */
    onv_range total_bytes;       /* held + driver + context */
    onv_release release; /* torch, train: of high_bytes, within onv_runtime_options.room_bytes */

    /* torch, async, ort: as the allocator's own statistics count */
    uint64_t allocated_peak_bytes, reserved_peak_bytes;
    uint64_t tensor_peak_bytes; /* torch, async: sizes as asked for, without workspaces */
    /* Where the most is live: a node of the model that ran, and the runtime's name for what it runs. */
    const onv_model *model;
    onv_node_id peak_node;
    const char *peak_label;
    onv_phase peak_phase;
    /* torch: ends of the allocated peak, and of that of tensors, between which the figures above are: nothing
     * is held after its last use; names of modules hold what they can. Others: 0. */
    onv_range allocated_ends, tensor_ends;
    /* arena */
    uint64_t lower_bound_bytes;
    uint64_t alignment; /* of offsets; 0: 1 */
    bool optimal;
    /* ort: of the order of initializers that needs most; with another order as little as low_bytes may
     * be reserved (others: as much). */
    uint64_t first_run_bytes, steady_bytes;
    bool has_open_workspaces; /* torch, train: the ends have those of cuDNN, too */
    /* torch: reserved, at the same ends as allocated_ends. */
    uint64_t low_bytes, high_bytes;
    onv_ort_settings ort;   /* as it was configured */
    bool out_of_memory;     /* its gpu_mem_limit is not enough; the figures are those it reached */
    uint64_t oom_bytes;     /* what found no memory */
    uint64_t reused_values; /* that took over a buffer instead of a new one */
    const onv_rewritten *rewritten; /* the graph that ran; NULL: the file's */
    onv_time time;                  /* torch: of a forward pass, on onv_runtime_options.speed */
} onv_runtime_result;

typedef struct onv_runtime_options {
    onv_alloc_options alloc;        /* settings of the allocators */
    uint64_t room_bytes;            /* onv_runtime_room(); 0: no limit */
    onv_lower_options lower;        /* how eager PyTorch runs the model */
    onv_speed speed;                /* of whose seconds are estimated */
    const onv_ort_settings *ort;    /* NULL: onv_ort_settings_default */
    uint64_t plan_effort;           /* of the offset planner; 0: its default */
    uint64_t plan_alignment;        /* likewise */
    uint64_t contexts;              /* tensorrt: of one engine; 0: 1 */
    uint64_t workspace_bytes;       /* tensorrt: the most that each of them may take for tactics */
    const onv_rewritten *rewritten; /* whose model the runtime is given; NULL: the file's */
    const onv_eager *tape;          /* torch, async: of that model; NULL: it is lowered */
    bool (*cancelled)(void *context); /* ends the search for a plan, with a failure; may be NULL */
    void *cancel_context;
} onv_runtime_options;

/* What a runtime executes, and, once served, where it lies. */
typedef struct onv_execution {
    onv_timeline timeline;
    onv_placement placement;
    onv_plan plan;               /* arena */
    uint64_t reused_values;      /* ort */
    uint64_t driver_bytes;       /* torch, async, ort */
    uint64_t driver_least_bytes; /* ort; 0: as many */
    onv_time time;               /* torch */
    uint64_t spare_bytes;        /* tensorrt: what the lower end does without */
    uint64_t least_bytes; /* ort: what is reserved where initializers come in the best order */
} onv_execution;

void onv_execution_cleanup(onv_execution *e);

typedef enum onv_runtime_consumer {
    ONV_CONSUMER_SWEEP, /* the sum of what is live */
    ONV_CONSUMER_PLANNER,
    ONV_CONSUMER_ALLOCATOR,
} onv_runtime_consumer;

struct onv_runtime {
    const char *name;    /* as --runtime takes it */
    const char *summary; /* one line */
    const char *order;   /* the order of execution it insists on, NULL: the user's */
    uint8_t
        provider; /* onv_provider: it runs a graph that it made of the model (src/rewrite), in that order; 0: the
                           model's own */
    bool is_engine;     /* it fuses in 16 bits what ONNX Runtime's CPU provider fuses in 32 */
    bool is_by_name;    /* left out where no runtime is named */
    bool has_context;   /* total counts a CUDA context */
    bool is_usual;      /* judged where no runtime is named */
    const char *holder; /* what decides how much is held: "PyTorch's caching allocator" */
    uint8_t consumer;   /* onv_runtime_consumer */
    /* A replay: what it is called, and the model of src/alloc that places buffers, NULL: a plan. */
    const char *mode, *allocator;
    /* Fills the timeline of an execution of zeros, which the caller cleans up. */
    onv_status (*produce)(onv_model *model, const onv_live *live,
                          const onv_runtime_options *options, onv_execution *made, onv_error *err);
};

extern const onv_runtime *const onv_runtimes[];
extern const size_t onv_n_runtimes;

/* By name; NULL if there is none. */
const onv_runtime *onv_runtime_find(const char *name);

/* Requires that every value is sized (live->unknown == 0): a missing size would be counted as
 * nothing. `live` is in the runtime's order. */
onv_status onv_runtime_compute(const onv_runtime *runtime, onv_model *model, const onv_live *live,
                               const onv_runtime_options *options, onv_runtime_result *result,
                               onv_error *err);

/* The same, and what it was computed from: a timeline of one run, and its placement. `made` is of zeros, or what another
 * runtime that executes the same made, without its placement. The caller cleans up after a success. */
onv_status onv_runtime_execute(const onv_runtime *runtime, onv_model *model, const onv_live *live,
                               const onv_runtime_options *options, onv_runtime_result *result,
                               onv_execution *made, onv_error *err);

/* Passes of inference come again until one leaves memory as it found it: the second, mostly. */
onv_alloc_options onv_runtime_allocator(const onv_runtime *runtime,
                                        const onv_runtime_options *options);

/* Any timeline as that runtime's allocator, plan or device would place it, once. The timeline becomes that
 * of one run. Nothing is cleaned up. */
onv_status onv_runtime_place(const onv_runtime *runtime, const onv_runtime_options *options,
                             onv_execution *made, onv_error *err);

/* Of what `arena` made: where each buffer of the lifetimes it was made from lies, above the weights. NULL
 * without memory. */
const uint64_t *onv_runtime_offsets(const onv_execution *made, const onv_live *live,
                                    onv_arena *arena);

/* What a replay of the placement must hold at most, as the result has it. */
uint64_t onv_runtime_figure(const onv_runtime_result *result, const onv_placement *placement);

/* Of that much of a device, what is left beside the context: for allocators and handles of libraries. 0: nothing. */
uint64_t onv_runtime_room(uint64_t usable_bytes);

/* Whether it runs what eager PyTorch does: `torch`, `async`. */
bool onv_runtime_is_eager(const onv_runtime *runtime);
/* The tape that `torch` and `async` run, for options.tape. The caller cleans up after a success. */
onv_status onv_runtime_lower(onv_model *model, const onv_live *live,
                             const onv_runtime_options *options, onv_eager *tape, onv_error *err);

/* The session that the runtime `ort` plans for. */
onv_ort_session onv_ort_session_of(const onv_runtime_options *options);

/* Adds the estimates to what is held. */
onv_status onv_runtime_add_up(onv_runtime_result *r, onv_error *err);

/* The result's figures as both ends; then each end that was computed widens them, until add_up. */
void onv_runtime_begin_ends(onv_runtime_result *r);
void onv_runtime_add_end(const onv_runtime_result *end, onv_runtime_result *r);

/* Training as one more runtime, so that tables and budgets apply to it. */
onv_status onv_runtime_of_training(const onv_training_figures *t, onv_runtime_result *result,
                                   onv_error *err);
/* Of eager training without a plan: from its lower end to its upper one. */
onv_status onv_runtime_add_training_ends(const onv_training *t, onv_runtime_result *result,
                                         onv_error *err);

/* For producers: the steps of `runs` runs; a weight, which is there through all of them (the context
 * is the execution), and one that stands in an attribute; buffers of the first run. */
onv_status onv_execution_begin(onv_execution *made, const onv_live *live, uint32_t runs,
                               onv_error *err);
onv_status onv_execution_add_weight(void *made, const onv_value *value, onv_error *err);
onv_status onv_execution_add_weight_bytes(onv_execution *made, uint64_t bytes, const char *name,
                                          onv_error *err);
onv_status onv_execution_add(onv_execution *made, const onv_buffer *buffers, size_t count,
                             onv_error *err);

/* A producer: the weights, those in attributes too, and every value, one run of them. */
onv_status onv_runtime_values(onv_model *model, const onv_live *live,
                              const onv_runtime_options *options, onv_execution *made,
                              onv_error *err);

/* For producers, at their end: inputs that outputs continue (model->shared). The application holds such an
 * input as long as the output; where the output fills the input's memory further, both are one allocation,
 * in each run. */
onv_status onv_execution_share_outputs(const onv_model *model, onv_execution *made, onv_error *err);

/* Bytes of the weights that the device holds (initializers and constants that are no mere shape
 * arithmetic), each handed to `add`. */
typedef onv_status (*onv_weight_fn)(void *context, const onv_value *value, onv_error *err);
onv_status onv_each_device_weight(const onv_model *model, onv_weight_fn add, void *context,
                                  onv_error *err);

#endif

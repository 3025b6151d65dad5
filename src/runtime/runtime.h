/* Runtimes: what each would hold on the device to run the model.
 *
 * A runtime is a strategy (a row of onv_runtimes): it decides which values share memory, in which
 * order nodes run, which allocator serves them, and how weights are stored. What it computes is
 * exact under its rules; what no graph tells (workspaces of libraries, the CUDA context) is a range
 * with its reason.
 */
#ifndef ONV_RUNTIME_RUNTIME_H
#define ONV_RUNTIME_RUNTIME_H

#include "alloc/alloc.h"
#include "ckpt/training.h"
#include "device/script.h"
#include "graph/liveness.h"
#include "graph/storage.h"

typedef struct onv_range {
    uint64_t low, high;
} onv_range;

typedef struct onv_runtime onv_runtime;

typedef struct onv_runtime_result {
    const onv_runtime *runtime;
    uint64_t weight_bytes;     /* as the runtime stores them */
    uint64_t activation_bytes; /* the most that is held beyond the weights */
    uint64_t held_bytes;       /* weights and activations together, as taken from the device */
    onv_range workspace_bytes; /* of libraries; an estimate */
    onv_range context_bytes;   /* of the driver and its kernels; an estimate */
    onv_range total_bytes;     /* held + workspace + context */

    /* torch, async, ort: as the allocator's own statistics count */
    uint64_t allocated_peak_bytes, reserved_peak_bytes;
    /* arena */
    uint64_t lower_bound_bytes;
    bool optimal;
    /* ort */
    uint64_t first_run_bytes, steady_bytes;
    uint64_t reused_values; /* that took over a buffer instead of a new one */
} onv_runtime_result;

typedef struct onv_runtime_options {
    onv_alloc_options alloc;          /* settings of the allocators */
    onv_lower_options lower;          /* how eager PyTorch runs the model */
    uint64_t plan_effort;             /* of the offset planner; 0: its default */
    bool (*cancelled)(void *context); /* ends the search for a plan, with a failure; may be NULL */
    void *cancel_context;
} onv_runtime_options;

struct onv_runtime {
    const char *name;    /* as --runtime takes it */
    const char *summary; /* one line */
    const char *order;   /* the order of execution it insists on, NULL: the user's */
    bool has_context;    /* total counts a CUDA context and workspaces */
    onv_status (*compute)(onv_model *model, const onv_live *live,
                          const onv_runtime_options *options, onv_runtime_result *result,
                          onv_error *err);
    /* What a device is told to do to prove the figures, in that mode; NULL: nothing can be tried. */
    const char *mode;
    onv_status (*script)(const char *mode, onv_model *model, const onv_live *live,
                         const onv_runtime_options *options, onv_script *script, onv_error *err);
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

/* The script that proves `result`, which was computed from the same. `script` is initialised; the
 * caller cleans it up after a success. */
onv_status onv_runtime_script(const onv_runtime_result *result, onv_model *model,
                              const onv_live *live, const onv_runtime_options *options,
                              onv_script *script, onv_error *err);

/* Training as one more runtime, so that tables and budgets apply to it. */
onv_status onv_runtime_of_training(onv_model *model, const onv_live *live,
                                   const onv_training_figures *t, onv_runtime_result *result,
                                   onv_error *err);

/* Rows for a script: a weight is there through all steps. */
onv_buffer onv_weight_row(const onv_value *value, uint32_t n_steps);

/* Bytes of the weights that the device holds (initializers and constants that are no mere shape
 * arithmetic), each handed to `add`. */
typedef onv_status (*onv_weight_fn)(void *context, const onv_value *value, onv_error *err);
onv_status onv_each_device_weight(const onv_model *model, onv_weight_fn add, void *context,
                                  onv_error *err);

#endif

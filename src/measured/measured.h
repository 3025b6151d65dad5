/* What was measured, beside what is predicted: a memory snapshot of PyTorch against what eager PyTorch executes, and what
 * the device as a whole was seen to hold.
 *
 * Allocations are compared in their order: those of the predicted iteration with those of the history, from where their
 * first ones are alike. What is paired has the tensor, the node and the module of the prediction; where the two part is
 * told by the first allocation without a partner. What was there before the history, and has no place in an order, is
 * compared by sizes.
 */
#ifndef ONV_MEASURED_MEASURED_H
#define ONV_MEASURED_MEASURED_H

#include "answer/answer.h"
#include "runtime/executions.h"
#include "snapshot/snapshot.h"

typedef enum onv_measured_kind {
    ONV_MEASURED_PARAMETERS, /* and buffers */
    ONV_MEASURED_GRADIENTS,
    ONV_MEASURED_OPTIMIZER,
    ONV_MEASURED_INPUTS,
    ONV_MEASURED_ACTIVATIONS, /* and what operations make on their way */
    ONV_MEASURED_WORKSPACES,
    ONV_MEASURED_OTHER, /* of the measurement, and nothing tells what it is */
    ONV_N_MEASURED_KINDS
} onv_measured_kind;

const char *onv_measured_kind_name(onv_measured_kind kind);

typedef struct onv_measured_pair {
    uint64_t predicted_bytes, measured_bytes;
} onv_measured_pair;

typedef struct onv_measured_module {
    const char *path; /* "": of no module */
    onv_measured_pair bytes;
} onv_measured_module;

/* What is on one side alone, at the peak. */
typedef struct onv_measured_single {
    uint64_t bytes;
    const char *what;  /* the tensor, or the kind */
    const char *where; /* "function file:line", or the node */
} onv_measured_single;

/* Where the order of allocations differs first. */
typedef struct onv_measured_parting {
    bool found;
    bool is_lifetime; /* the same allocation, but freed at another place */
    uint32_t step;    /* of the prediction */
    const char *phase, *operation, *node, *module;
    onv_measured_pair bytes; /* 0: there is none on that side */
    const char *where;       /* of the measurement */
    const char *predicted_until,
        *measured_until; /* is_lifetime: before which operation it is freed */
} onv_measured_parting;

/* A figure and its range; `is_outside` by more than ONV_MEASURED_TOLERANCE. */
typedef struct onv_measured_figure {
    const char *what;
    onv_range predicted;
    uint64_t measured_bytes;
    bool is_outside;
} onv_measured_figure;

enum { ONV_MEASURED_TOLERANCE = 50, ONV_MEASURED_FIGURES = 3 }; /* one part of so many: 2 % */

typedef struct onv_measured {
    const char *snapshot; /* its file; NULL: none */
    uint64_t total_bytes; /* of the device; 0: not told */
    bool is_outside;
    const onv_answer_row *row; /* what it is compared with */
    onv_measured_figure figures[ONV_MEASURED_FIGURES];
    uint32_t n_figures;
    /* Of a snapshot: */
    uint32_t device, devices, allocations;
    bool has_history;
    bool makes_optimizer_state; /* as the first iteration does: the prediction is of a later one */
    onv_measured_pair kinds[ONV_N_MEASURED_KINDS];
    onv_measured_pair rounding; /* of blocks, beyond what was asked for */
    onv_measured_pair cached;   /* reserved beyond what is allocated at most */
    uint32_t predicted_allocations, paired_allocations; /* of the iteration */
    onv_measured_parting parting;
    ONV_VEC(onv_measured_module) modules;                       /* the largest difference first */
    ONV_VEC(onv_measured_single) only_predicted, only_measured; /* the largest first */
    const char *predicted_peak, *measured_peak;
} onv_measured;

/* What is asked for: a snapshot's file, and bytes of the device. The result's text is in the arena. */
typedef struct onv_measured_request {
    const char *snapshot; /* NULL: none */
    size_t most_bytes;    /* that the file may have */
    uint64_t total_bytes; /* 0: none */
    const onv_answer *answer;
    const onv_runtime_result *results;   /* that the answer's rows are of */
    const onv_kept_execution *execution; /* of PyTorch */
    onv_arena *arena;
} onv_measured_request;

/* The caller cleans up, also after a failure. */
onv_status onv_measured_make(const onv_measured_request *request, onv_measured *measured,
                             onv_error *err);
void onv_measured_cleanup(onv_measured *measured);

#endif

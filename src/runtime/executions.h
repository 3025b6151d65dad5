/* Executions that were kept, for reports that draw them: what each runtime ran, where it lay, and
 * training with each checkpointing plan.
 */
#ifndef ONV_RUNTIME_EXECUTIONS_H
#define ONV_RUNTIME_EXECUTIONS_H

#include "runtime/runtime.h"

typedef struct onv_kept_execution {
    const char *runtime;    /* a name of onv_runtimes, or "train" */
    uint32_t plan;          /* of the training's plans; ONV_NO_PLAN: none */
    const onv_model *model; /* whose nodes and values the timeline names */
    onv_execution made;
} onv_kept_execution;

typedef struct onv_executions {
    ONV_VEC(onv_kept_execution) list;
    uint64_t rows; /* steps and buffers of training, which have a limit */
} onv_executions;

/* A front of plans may have hundreds, each as long as training: what a page can still show. */
enum { ONV_EXECUTIONS_MOST_ROWS = 200000 };

void onv_executions_cleanup(onv_executions *kept);

/* Takes `made` over, also in case of failure. */
onv_status onv_executions_take(onv_executions *kept, const char *runtime, uint32_t plan,
                               const onv_model *model, onv_execution *made, onv_error *err);

/* A program of training, served by PyTorch's allocator. Without a plan (ONV_NO_PLAN) it is always kept,
 * with one while there is room. */
onv_status onv_executions_take_training(onv_executions *kept, uint32_t plan, const onv_model *model,
                                        const onv_timeline *t, const onv_alloc_options *alloc,
                                        onv_error *err);

/* What runs in a step: the operator, or PyTorch's name. */
const char *onv_kept_op(const onv_kept_execution *kept, const onv_step *step);

/* The node's name, or its first result's where it has none; "" without a node. */
const char *onv_kept_node(const onv_kept_execution *kept, const onv_step *step);

#endif

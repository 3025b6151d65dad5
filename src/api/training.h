/* What the public functions do for training. */
#ifndef ONV_API_TRAINING_H
#define ONV_API_TRAINING_H

#include "ckpt/training.h"
#include "onnxvram/onnxvram.h"
#include "runtime/fit.h"

/* What can be said of the options before a model is read. */
onv_status onv_training_check_options(const onv_options *options, onv_error *err);

/* Reads the options that have names; fails with ONV_ERR_USAGE where there is no such name. */
onv_status onv_training_read_options(const onv_options *options, onv_training_options *how,
                                     onv_error *err);

/* Of the plans so far. Starts with the budget alone. */
typedef struct onv_plan_choice {
    uint64_t usable_bytes; /* 0: there is no budget */
    bool has_best;
    uint32_t best;
    int rank; /* whether that one fits */
} onv_plan_choice;

/* onv_training_options.prefer, with an onv_plan_choice: the plan that a budget chooses. Of those that fit the one with
 * the least to recompute, else of those that fit once cached memory is returned, else the smallest one. Without a
 * budget only a single plan is chosen. */
onv_status onv_training_prefer(void *context, onv_training *training, uint32_t index,
                               bool *is_preferred, onv_error *err);

#endif

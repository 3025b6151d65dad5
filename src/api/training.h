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

/* Which one of the plans of a list is taken: "optimal@5%", "all@12GiB", "optimal@1f2e3d4c", "1f2e3d4c". Of those that cost at
 * most 5 % the one that reserves the least, of those that fit into 12 GiB the cheapest, or the one of that id. */
typedef struct onv_plan_pick {
    const char *text; /* NULL: all are */
    const char *list; /* of names; "all" where an id stands alone */
    const char *id;   /* NULL: by what follows */
    bool is_percent;
    double percent;
    uint64_t bytes;
} onv_plan_pick;

onv_status onv_plan_pick_read(const char *checkpoint, onv_plan_pick *pick, onv_error *err);

/* onv_training_options.select, with an onv_plan_pick. */
onv_status onv_plan_pick_find(void *context, const onv_training *all, uint32_t *plan,
                              onv_error *err);

/* onv_training_options.prefer, with an onv_plan_choice: the plan that a budget chooses. Of those that fit the one with
 * the least to recompute, else of those that fit once cached memory is returned, else the smallest one. Without a
 * budget only a single plan is chosen. */
onv_status onv_training_prefer(void *context, onv_training *training, uint32_t index,
                               bool *is_preferred, onv_error *err);

#endif

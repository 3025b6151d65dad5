/* Replays as part of an analysis. */
#ifndef ONV_API_REPLAY_H
#define ONV_API_REPLAY_H

#include "ckpt/training.h"
#include "device/replays.h"

/* Names the device; ONV_ERR_USAGE where there is none of that name. NULL: nothing is asked for. */
onv_status onv_replay_choose(onv_replays *replays, const char *name, onv_error *err);

/* The scripts of training: one for every mode of the list of runtimes (NULL: PyTorch's). The
 * context of onv_training_options.take_rows. */
typedef struct onv_replay_training {
    onv_replays *replays;
    const char *runtimes;
    const onv_alloc_options *alloc;
    uint64_t plan_effort;
} onv_replay_training;

onv_status onv_replay_take_rows(void *context, const onv_training_rows *rows, onv_error *err);

/* Opens the device, runs the scripts, looks for the walls if `at` is not NULL, closes. */
onv_status onv_replay_all(onv_replays *replays, const onv_options *options, onv_replays_at at,
                          void *context, onv_error *err);

#endif

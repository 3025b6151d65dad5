/* Replays as part of an analysis. */
#ifndef ONV_API_REPLAY_H
#define ONV_API_REPLAY_H

#include "device/replay.h"
#include "onnxvram/options.h"
#include "runtime/runtime.h"

/* Names the device; ONV_ERR_USAGE where there is none of that name. NULL: nothing is asked for. */
onv_status onv_replay_choose(onv_replays *replays, const char *name, onv_error *err);

/* What a runtime executes, and where it lies: taken over, also in case of failure. `plan` is that of
 * checkpoints, or NULL. */
onv_status onv_replay_take(onv_replays *replays, const onv_runtime *mode, const char *runtime,
                           const char *plan, uint64_t figure, onv_execution *made, onv_error *err);

/* The replays of training: one for every mode of the list of runtimes (NULL: PyTorch's). The
 * context of onv_training_options.take. */
typedef struct onv_replay_training {
    onv_replays *replays;
    const char *runtimes;
    onv_runtime_options options;
} onv_replay_training;

onv_status onv_replay_take_training(void *context, const onv_timeline *t,
                                    const onv_placement *placement, const char *plan,
                                    onv_error *err);

/* Opens the device, runs the replays, looks for the maximum batches if `at` is not NULL, closes. */
onv_status onv_replay_all(onv_replays *replays, const onv_options *options, onv_replays_at at,
                          void *context, onv_error *err);

#endif

/* All replays of one analysis, the device they ran on, what each found, and the largest batch where that
 * was asked for. */
#ifndef ONV_DEVICE_REPLAYS_H
#define ONV_DEVICE_REPLAYS_H

#include "device/replay.h"

/* The maximum batch of one replay: the largest batch that the prediction and the device allow. */
typedef struct onv_replay_max_batch {
    const char *mode, *runtime, *plan; /* as in the replay */
    int64_t predicted, measured;       /* 0: not even one */
    bool predicted_is_least;           /* a pool may remap what lies in pieces */
    bool agrees;                       /* the same, or apart by less than the tolerance */
} onv_replay_max_batch;

typedef struct onv_replays {
    const onv_device_kind *kind; /* NULL: nothing was asked for */
    onv_device_info device;
    ONV_VEC(onv_replay) list;
    ONV_VEC(onv_replay_result) results;        /* of the list, in its order */
    ONV_VEC(onv_replay_max_batch) max_batches; /* none: not asked for */
    bool agrees;                               /* every result and every maximum batch does */
    bool out_of_memory;                        /* some replay did not fit */
} onv_replays;

void onv_replays_cleanup(onv_replays *r);

/* Takes the replay over, also in case of failure. */
onv_status onv_replays_add(onv_replays *r, onv_replay *replay, onv_error *err);

/* Runs all of them, one after the other. */
onv_status onv_replays_run(onv_replays *r, onv_device *device, const onv_replay_options *options,
                           onv_error *err);

/* The largest of what was predicted, and what was measured of that one. Bytes. */
void onv_replays_largest(const onv_replays *r, uint64_t *predicted, uint64_t *measured);

/* Replays at another batch, into `r`, which is empty; ONV_ERR_OVERFLOW and ONV_ERR_LIMIT count as
 * more than any device. */
typedef onv_status (*onv_replays_at)(void *context, int64_t batch, onv_replays *r, onv_error *err);

/* Finds the maximum batch of every replay by doubling and halving; nothing is filled. */
onv_status onv_replays_find_max_batches(onv_replays *r, onv_device *device, onv_replays_at at,
                                        void *context, const onv_replay_options *options,
                                        onv_error *err);

#endif

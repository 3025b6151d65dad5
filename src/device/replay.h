/* Replay: a timeline and its placement run on a device, and what that shows.
 *
 * What is executed are the events of the placement, at its places. What should be there is computed
 * from the buffers of the timeline alone, so a placement that lost or bent something contradicts the
 * timeline when it is replayed.
 *
 * Every buffer but containers is filled when it is allocated and checked before it is freed, so two
 * live buffers on the same bytes, memory used after it was freed, or a write that never arrived are
 * found and named. Memory that no buffer covers is written too: all that is claimed is touched.
 *
 * Held memory is measured around each allocation: what the device's free memory dropped by belongs
 * to the replay, what it changes between two allocations to somebody else. A pool says itself what
 * it has in use. An allocation may take up to one granule more than was asked for, so the tolerance
 * is the granularity times the most allocations that there are at a time.
 *
 * Whatever happens (no memory left, a device that fails, a request to stop), all memory goes back.
 */
#ifndef ONV_DEVICE_REPLAY_H
#define ONV_DEVICE_REPLAY_H

#include "device/device.h"
#include "timeline/timeline.h"

/* What is tried. */
typedef struct onv_replay {
    const char *mode; /* what the placement stands for: "arena", "torch", "ort", "async", "raw" */
    const char *runtime; /* whose figure is tried: "torch", "train" ... */
    const char *plan;    /* of checkpoints; NULL: none */
    onv_timeline timeline;
    onv_placement placement;
    uint64_t figure; /* what the runtime said is held at most; 0: nothing to compare */
} onv_replay;

void onv_replay_cleanup(onv_replay *replay);

/* Labels and the plan are text of a model; this drops them, so that the replay can outlive it. */
void onv_replay_forget_labels(onv_replay *replay);

/* What a device must have free for it. */
uint64_t onv_replay_needs(const onv_replay *replay);

typedef struct onv_replay_options {
    bool allocate_only;               /* no patterns: does the memory suffice? */
    bool (*cancelled)(void *context); /* asked between events; may be NULL */
    void *cancel_context;
} onv_replay_options;

typedef enum onv_fault_kind {
    ONV_FAULT_OVERLAP,      /* a live buffer holds bytes of another one */
    ONV_FAULT_LOST,         /* it holds what nobody wrote there */
    ONV_FAULT_OUTSIDE,      /* it reaches beyond its segment */
    ONV_FAULT_NO_SEGMENT,   /* it is born in memory that is not there */
    ONV_FAULT_BORN_TWICE,   /* also: born again after its death */
    ONV_FAULT_USE_BEFORE,   /* freed before it was born */
    ONV_FAULT_FREED_TWICE,  /* a buffer, or a segment that is not there */
    ONV_FAULT_PULLED_AWAY,  /* its segment is freed while it lives */
    ONV_FAULT_NEVER_FREED,  /* a buffer or a segment */
    ONV_FAULT_UNKNOWN,      /* an event about a buffer or a step that there is not */
    ONV_FAULT_LIVE_DIFFERS, /* the buffers of a step are not those of the timeline */
    ONV_FAULT_HELD_DIFFERS, /* the device holds more or less than the prediction and the tolerance */
    ONV_FAULT_FIGURE,       /* the placement is not what the runtime's figure says */
    ONV_FAULT_NOT_BACK,     /* memory that was freed did not come back */
    ONV_FAULT_NO_MEMORY,    /* the device has no memory where it should */
    ONV_N_FAULTS
} onv_fault_kind;

typedef struct onv_fault {
    onv_fault_kind kind;
    uint32_t step;
    uint32_t buffer, other; /* of the timeline; UINT32_MAX: none */
    uint64_t offset;        /* in the buffer */
    char text[320];         /* one line, for people; names come from the model */
} onv_fault;

enum { ONV_REPLAY_MAX_FAULTS = 20 }; /* more are only counted */

typedef struct onv_replay_result {
    const char *mode, *runtime, *plan; /* as in the replay */
    bool agrees;
    bool allocate_only;
    uint64_t predicted_bytes, measured_bytes;           /* peaks of what is held */
    uint64_t predicted_live_bytes, measured_live_bytes; /* peaks of the buffers in it */
    uint64_t tolerance_bytes, granularity_bytes;
    uint32_t most_allocations; /* at a time */
    bool has_pool;
    struct {
        uint64_t used_peak_bytes, reserved_peak_bytes, predicted_reserved_peak_bytes;
    } pool;
    struct {
        uint64_t before, least, after;
    } device_free;
    uint64_t total;         /* of the device */
    uint64_t foreign_bytes; /* sum of changes that were not ours: other processes */
    uint64_t buffers, checked_buffers;
    bool out_of_memory;
    struct {
        uint64_t bytes, free_bytes; /* asked for, while so much was free */
        uint32_t step;
    } oom;
    uint32_t n_steps; /* the timeline: most while the step runs */
    uint64_t *predicted_held_at, *measured_held_at, *predicted_live_at, *measured_live_at;
    uint64_t n_faults;
    onv_fault faults[ONV_REPLAY_MAX_FAULTS];
} onv_replay_result;

/* The timeline was checked (onv_timeline_check); the placement may be wrong. Errors are those of the
 * device, and ONV_ERR_CANCELLED; what the replay finds is in the result. Cleanup in either case. */
onv_status onv_replay_run(const onv_replay *replay, onv_device *device,
                          const onv_replay_options *options, onv_replay_result *result,
                          onv_error *err);
void onv_replay_result_cleanup(onv_replay_result *result);

const char *onv_fault_name(onv_fault_kind kind);

/* --- All replays of one analysis, the device they ran on, what each found, and the largest batch  */

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

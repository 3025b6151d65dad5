/* A script: what a device is told to do so that it lives through a prediction.
 *
 *   segments   memory that is asked of the device, one allocation each
 *   buffers    what the model needs: bytes at an offset in a segment. One is born (filled with a
 *              pattern of its own), read for the last time (the pattern is looked for) and dies.
 *   events     all of that in order, each in a step
 *   expected   by step, the most that is held by segments and by buffers while it runs
 *
 * A step runs with everything in place that it reads and writes: births come first, then reads,
 * then deaths. What the buffers should hold is taken from the rows of the prediction, not from the
 * events, so a script that lost or bent an event contradicts itself when it is replayed.
 *
 * A script may be wrong (tests make such ones): who replays it looks at every index and bound.
 */
#ifndef ONV_DEVICE_SCRIPT_H
#define ONV_DEVICE_SCRIPT_H

#include "alloc/alloc.h"
#include "timeline/timeline.h"

typedef enum onv_script_act {
    ONV_SCRIPT_SEGMENT_ALLOC, /* index: a segment */
    ONV_SCRIPT_SEGMENT_FREE,
    ONV_SCRIPT_BIRTH, /* index: a buffer */
    ONV_SCRIPT_READ,
    ONV_SCRIPT_DEATH,
} onv_script_act;

typedef struct onv_script_event {
    uint32_t index;
    uint32_t step;
    uint8_t act; /* onv_script_act */
} onv_script_event;

typedef struct onv_script_segment {
    uint64_t bytes;   /* asked of the device */
    uint64_t counted; /* what the prediction counts it as: rounded for pools */
    bool pooled;      /* from the device's stream-ordered pool */
    bool is_whole;    /* one buffer fills all of it */
} onv_script_segment;

typedef struct onv_script_buffer {
    uint64_t offset, bytes; /* bytes: as needed, without any rounding; more than 0 */
    uint32_t segment;
    uint8_t kind; /* onv_buffer_kind */
    const char *label;
} onv_script_buffer;

typedef struct onv_script {
    const char *mode;    /* a name of onv_replay_modes */
    const char *runtime; /* whose figure is tried: "torch", "train" ... */
    const char *plan;    /* of checkpoints; NULL: none */
    ONV_VEC(onv_script_event) events;
    ONV_VEC(onv_script_segment) segments;
    ONV_VEC(onv_script_buffer) buffers;
    uint32_t n_steps;
    uint64_t *held; /* expected of the segments, by step */
    uint64_t *live; /* expected of the buffers, by step */
    uint64_t held_peak, live_peak;
    uint64_t pool_reserved; /* expected of the pool; 0: there is none */
    uint64_t figure;        /* what the runtime said held_peak is; 0: nothing to compare */
    uint32_t most_segments; /* at a time */
    uint64_t now;           /* while it is made: held by segments, and how many there are */
    uint32_t n_now;
} onv_script;

/* `n_steps` more than 0. Cleanup also after a failure. */
onv_status onv_script_init(onv_script *script, const char *mode, uint32_t n_steps, onv_error *err);
void onv_script_cleanup(onv_script *script);

/* Appending. Steps must not fall. */
onv_status onv_script_segment_alloc(onv_script *script, uint32_t step, onv_script_segment segment,
                                    uint32_t *index, onv_error *err);
onv_status onv_script_segment_free(onv_script *script, uint32_t step, uint32_t index,
                                   onv_error *err);
onv_status onv_script_birth(onv_script *script, uint32_t step, onv_script_buffer buffer,
                            uint32_t *index, onv_error *err);

/* Labels and the plan are text of whoever made the rows; this drops them, so that the script can outlive it. */
void onv_script_forget_labels(onv_script *script);

/* The last read, and the death after it. */
onv_status onv_script_end(onv_script *script, uint32_t step, uint32_t index, onv_error *err);

/* Adds the rows to what is expected of the buffers; their steps count from `first_step`. */
onv_status onv_script_expect(onv_script *script, const onv_buffer *rows, size_t count,
                             uint32_t first_step, onv_error *err);

/* Every event refers to what there is, in its time: a segment's buffers lie inside it, each is born,
 * read and dead once, all memory goes back. Whether buffers overlap is for the replay to find. */
onv_status onv_script_check(const onv_script *script, onv_error *err);

/* --- Scripts of rows --------------------------------------------------------------------------- */

/* A mode serves any rows: those of a runtime's inference, of a training program, of a checkpointing
 * plan. Rows of kind WEIGHT are there from the first to the last step. */
typedef struct onv_replay_mode {
    const char *name;
    const char *runtime; /* of inference: the one whose figure it proves */
    const char *summary;
    onv_status (*build)(onv_script *script, const onv_buffer *rows, uint32_t count,
                        const onv_alloc_options *options, uint64_t plan_effort, onv_error *err);
} onv_replay_mode;

extern const onv_replay_mode *const onv_replay_modes[];
extern const size_t onv_n_replay_modes;

/* By its name or its runtime's; NULL if there is none. */
const onv_replay_mode *onv_replay_mode_find(const char *name);

/* Initialises and builds; cleans up after a failure. */
onv_status onv_script_of_rows(onv_script *script, const onv_replay_mode *mode,
                              const onv_buffer *rows, uint32_t count, uint32_t n_steps,
                              const onv_alloc_options *options, uint64_t plan_effort,
                              onv_error *err);

#endif

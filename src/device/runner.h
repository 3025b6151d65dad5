/* The state of a replay, shared by its parts: run.c walks the events, judge.c says what went wrong
 * and compares the whole with the prediction. */
#ifndef ONV_DEVICE_RUNNER_H
#define ONV_DEVICE_RUNNER_H

#include "device/replay.h"

typedef enum onv_runner_life { ONV_LIFE_NONE, ONV_LIFE_THERE, ONV_LIFE_OVER } onv_runner_life;

typedef struct onv_runner_segment {
    onv_device_address address;
    uint32_t n_live; /* buffers in it */
    uint8_t life;    /* onv_runner_life */
} onv_runner_segment;

typedef struct onv_runner_buffer {
    uint32_t born;    /* step */
    uint8_t life;     /* onv_runner_life */
    bool has_content; /* it was filled: its memory was there */
} onv_runner_buffer;

typedef struct onv_runner {
    const onv_timeline *timeline;
    const onv_placement *placement;
    onv_device *device;
    const onv_replay_options *options;
    onv_replay_result *result;
    onv_runner_segment *segments;
    onv_runner_buffer *buffers;
    uint32_t *taken, *returned; /* segments, in the order of these events */
    uint32_t n_taken, n_returned;
    uint32_t step;
    uint64_t held;        /* plain allocations, as the device's free memory shows them */
    uint64_t pool_used;   /* as the pool says */
    uint64_t live;        /* bytes of the buffers that are there */
    uint32_t allocations; /* at this time */
    uint64_t free_seen;   /* when the last call of ours was over */
} onv_runner;

/* The name of a buffer, for messages. */
static inline const char *onv_runner_label(const onv_runner *r, uint32_t buffer)
{
    const char *label = r->timeline->buffers.at[buffer].label;
    return label != NULL ? label : "";
}

/* Counts a fault, and keeps it while there is room. */
void onv_runner_fault(onv_runner *r, onv_fault_kind kind, uint32_t buffer, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A pattern is broken at `offset` of the buffer: finds out whose bytes are there. */
onv_status onv_runner_blame(onv_runner *r, uint32_t buffer, uint64_t offset, onv_error *err);

/* The verdict, once all events are over (`complete`) or memory ran out. */
void onv_runner_judge(onv_runner *r, uint64_t figure, bool complete);

#endif

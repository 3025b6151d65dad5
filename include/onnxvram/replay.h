/* What a replay of the allocations on a device found. */
#ifndef ONNXVRAM_REPLAY_H
#define ONNXVRAM_REPLAY_H

#include "analysis.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the replay found: all allocations that were predicted were made on the device, every buffer was
 * written and read again. Of several runtimes the largest. */
typedef struct onv_replay_info {
    const char *device; /* what ran: a GPU's name, "host memory (no GPU)" */
    bool is_gpu;
    bool agrees;        /* everything was as predicted */
    bool out_of_memory; /* the device was too small for some of it */
    uint64_t predicted_bytes, measured_bytes;
    uint64_t faults;     /* "replay" of the JSON report has the first ones of each mode */
    const char *backend; /* of onv_replay_device_name() */
    uint64_t device_total_bytes;
    uint64_t context_bytes;  /* that creating the context took; ONV_SIZE_UNKNOWN: not measured */
    uint32_t driver_version; /* 12040: 12.4; 0: there is none */
    const char *filled_by;   /* what wrote and read the memory */
} onv_replay_info;

/* False where no replay was asked for. */
ONV_API bool onv_analysis_replay_get(const onv_analysis *analysis, onv_replay_info *info,
                                     size_t size);

static inline bool onv_analysis_replay(const onv_analysis *analysis, onv_replay_info *info)
{
    return onv_analysis_replay_get(analysis, info, sizeof *info);
}

/* The devices that replays know; NULL beyond the last one. */
ONV_API const char *onv_replay_device_name(size_t index, const char **summary);

#ifdef __cplusplus
}
#endif

#endif

/* Sessions of ONNX Runtime. */
#ifndef ONNXVRAM_SESSIONS_H
#define ONNXVRAM_SESSIONS_H

#include "analysis.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sessions of ONNX Runtime in one process on one device: each has an arena and handles of its own, the
 * context is there once. */
typedef struct onv_together_info {
    uint64_t sessions;
    uint64_t arenas_low, arenas_high;
    uint64_t shared_arena; /* what one arena for all of them grows to, one run at a time */
    uint64_t driver_bytes;
    uint64_t context_low, context_high;
    uint64_t total_low, total_high; /* with an arena each */
} onv_together_info;

/* Each analysis `instances[i]` times. ONV_ERR_USAGE where one has no figure for the runtime ort. */
ONV_API onv_status onv_together_get(onv_analysis *const *analyses, const unsigned *instances,
                                    size_t count, onv_together_info *info, size_t size,
                                    onv_error *error);

static inline onv_status onv_together(onv_analysis *const *analyses, const unsigned *instances,
                                      size_t count, onv_together_info *info, onv_error *error)
{
    return onv_together_get(analyses, instances, count, info, sizeof *info, error);
}

#ifdef __cplusplus
}
#endif

#endif

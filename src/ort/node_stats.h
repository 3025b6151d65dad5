/* The statistics by node that session.collect_node_memory_stats_to_file writes, and that
 * session.resource_cuda_partitioning_settings reads to decide which nodes go to the device.
 *
 * ONNX Runtime counts each value once, where it meets it first in the order of execution: at the node
 * that allocates it, rounded up to 256 bytes, or, where it took over memory or was there before, at the
 * first node that reads it. A node is named after itself and a hash of its inputs and outputs. */
#ifndef ONV_ORT_NODE_STATS_H
#define ONV_ORT_NODE_STATS_H

#include "ort/ort.h"

typedef struct onv_ort_node_stat {
    const char *name;
    uint64_t hash;
    uint64_t input_bytes, dynamic_bytes, temporary_bytes;
} onv_ort_node_stat;

typedef struct onv_ort_node_stats {
    onv_ort_node_stat *rows; /* in order of execution */
    uint32_t count;
} onv_ort_node_stats;

/* Of the main graph, `session` with any provider; bodies are counted with their owner. In the model's arena. */
onv_status onv_ort_node_stats_compute(onv_model *model, const onv_live *live,
                                      const onv_ort_session *session, onv_ort_node_stats *stats,
                                      onv_error *err);

#endif

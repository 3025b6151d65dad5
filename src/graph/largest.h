/* The largest single buffer of a model: some APIs bind no more than a limit at once, whatever the device holds. */
#ifndef ONV_GRAPH_LARGEST_H
#define ONV_GRAPH_LARGEST_H

#include "graph/liveness.h"

/* What WebGPU promises of a storage buffer (maxStorageBufferBindingSize), unless more is asked for, and the
 * elements that a tensor of TensorRT may have. */
#define ONV_WEBGPU_BINDING_BYTES ((uint64_t)128 << 20)
#define ONV_TENSORRT_ELEMS       (((uint64_t)1 << 31) - 1)

typedef struct onv_largest_row {
    onv_value_id value; /* ONV_NO_VALUE: the model has none of known size */
    uint64_t bytes, elems;
} onv_largest_row;

/* Values and weights that a run holds, known sizes alone. */
typedef struct onv_largest {
    onv_largest_row by_bytes, by_elems;
    uint64_t n_over_binding, n_over_elems; /* how many are beyond the two limits */
} onv_largest;

onv_largest onv_largest_find(onv_model *model, const onv_live *live);

/* Notes where one of the limits is passed: largest-binding, largest-volume. */
void onv_largest_note(onv_model *model, const onv_largest *most);

#endif

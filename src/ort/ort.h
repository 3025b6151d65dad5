/* ONNX Runtime's allocation plan: which values share a buffer, decided before anything runs.
 *
 * Read in source (onnxruntime/core/framework/allocation_planner.cc). For each node output, in
 * execution order, the first that applies:
 *   1. an output of its graph has a buffer of its own;
 *   2. a kernel that aliases shares its input's buffer;
 *   3. a kernel that may work in place takes over an input that nobody else will read, of the same
 *      shape and element size;
 *   4. the buffer freed last that was made for the same shape and element size is used again;
 *   5. a new buffer.
 * A buffer is freed after the node that reads it last; what nobody reads may be used again, but is not
 * freed before the run is over.
 * Graphs are planned one by one: a subgraph takes nothing over from the graph around it.
 *
 * Which kernels share depends on the provider (ort_plan.c has the table). Two shapes are only equal
 * where ONNX Runtime knows both, which is less often than here: where a model computes the shapes of
 * its Reshapes, hardly anything is used again (ort_shapes.c).
 */
#ifndef ONV_ORT_ORT_H
#define ONV_ORT_ORT_H

#include "alloc/alloc.h"
#include "graph/liveness.h"

typedef enum onv_ort_provider {
    ONV_ORT_CUDA, /* shape arithmetic and small integers stay on the host; inputs are copied in */
    ONV_ORT_CPU,  /* everything is in the memory that is counted, the caller's inputs are not */
} onv_ort_provider;

typedef struct onv_ort_plan {
    onv_buffer *buffers; /* in order of `first`; INPUT and OUTPUT are those of the main graph */
    bool *is_fetched;    /* by buffer: an output of a graph, which no pattern holds */
    uint32_t count;
    uint32_t *of_value; /* by value; UINT32_MAX: on the host, the caller's, or in a weight */
    uint64_t reused;    /* values that took over a buffer by the rules 2 to 4 */
} onv_ort_plan;

/* Requires that every value is sized and `live` is in the order `ort`. In the model's arena. Cost:
 * linear in the uses, times the buffers that are free at a time. */
onv_status onv_ort_plan_compute(onv_model *model, const onv_live *live, onv_ort_provider provider,
                                onv_ort_plan *plan, onv_error *err);

/* Whether ONNX Runtime's own shape inference knows the shape of each value (by index); in the
 * model's arena. See ort_shapes.c. */
onv_status onv_ort_known_shapes(onv_model *model, const onv_live *live, bool **is_known,
                                onv_error *err);

/* Appends what runs of `n_steps` steps each ask of the arena, the first one from step 0 on; the steps
 * are there already. From the second run on the temporaries lie in one container, which comes after
 * the inputs, packed as the first run traced them. Inputs and fetched outputs are given back when
 * their run is over. */
onv_status onv_ort_add_runs(const onv_ort_plan *plan, uint32_t n_steps, uint32_t n_runs,
                            const onv_alloc_options *options, onv_timeline *t, onv_error *err);

#endif

/* ONNX Runtime with its CUDA provider, sequential execution, default arena and pattern. The graph is
 * taken as it stands: what the optimizer folds and fuses before a session runs is not followed.
 *
 * Initializers lie in one buffer (each rounded up to 256 bytes) that is reserved beside the arena.
 * In the first run of a shape every buffer of the plan (ort.h) is an arena allocation. From the
 * second run on, the temporaries are one allocation, packed as the first run traced them; graph
 * outputs and inputs are apart. Arenas never shrink, so the second run may add to what the first one
 * took. The workspaces of kernels are no part of this: they come out of the same arena for the time
 * of a node and are estimated apart.
 */
#include "ort/ort.h"

#include "runtime/runtime.h"

enum { N_RUNS = 3 };

static onv_status produce_session(onv_model *model, const onv_live *live,
                                  const onv_runtime_options *options, onv_execution *made,
                                  onv_error *err)
{
    onv_ort_plan plan;
    ONV_TRY(onv_ort_plan_compute(model, live, ONV_ORT_CUDA, &plan, err));
    made->reused_values = plan.reused;
    ONV_TRY(onv_execution_begin(made, live, N_RUNS, err));
    ONV_TRY(onv_each_device_weight(model, onv_execution_add_weight, made, err));
    return onv_ort_add_runs(&plan, N_RUNS, &options->alloc, &made->timeline, err);
}

const onv_runtime onv_runtime_ort = {
    .name = "ort",
    .summary = "ONNX Runtime's CUDA provider: buffer reuse, memory pattern, BFC arena",
    .order = "ort",
    .rewrites = true,
    .has_context = true,
    .consumer = ONV_SERVED_BY_ALLOCATOR,
    .mode = "ort",
    .allocator = "bfc",
    .pack_bytes = 256, /* ONNX Runtime's alignment of packed initializers */
    .produce = produce_session,
};

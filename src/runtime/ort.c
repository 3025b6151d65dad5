/* A session of ONNX Runtime with its CUDA provider, sequential execution.
 *
 * When the session is created, each initializer is taken from the arena, in an order that no file
 * tells (ort/orders.h), or from the device beside the arena where
 * session.use_device_allocator_for_initializers is set. In the first run of a shape every buffer of
 * the plan (ort.h) is an arena allocation. From the second run on, the temporaries are one
 * allocation, packed as the first run traced them; graph outputs and inputs are apart. Kernels take
 * what they need for themselves from the same arena while they run. Arenas never shrink, so the
 * second run may add to what the first one took.
 */
#include "ort/ort.h"

#include "kernels/cublas.h"
#include "kernels/cudnn.h"
#include "ort/orders.h"
#include "runtime/runtime.h"

enum { N_RUNS = 3 };

/* Measured over a substitute for the CUDA driver: a session of ONNX Runtime 1.31 makes two handles of
 * cuBLAS 13.4 and of cuDNN 9.26, beside its arena. */
static uint64_t handle_bytes(const onv_cuda_library_settings *settings)
{
    return 2 * (onv_cublas_handle_bytes(settings) + onv_cudnn_handle_bytes(settings));
}

static onv_status add_weights(const onv_model *model, bool beside_arena, onv_execution *made,
                              onv_error *err)
{
    ONV_TRY(onv_each_device_weight(model, onv_execution_add_weight, made, err));
    for (size_t i = 0; i < made->timeline.buffers.count; i++)
        made->timeline.buffers.at[i].bypasses_pool = beside_arena;
    return ONV_OK;
}

static onv_status produce_session(onv_model *model, const onv_live *live,
                                  const onv_runtime_options *options, onv_execution *made,
                                  onv_error *err)
{
    onv_ort_plan plan;
    ONV_TRY(onv_ort_plan_compute(model, live, ONV_ORT_CUDA, options->ort, &plan, err));
    made->reused_values = plan.reused;
    onv_cuda_library_settings settings = onv_cuda_library_defaults();
    made->driver_bytes = handle_bytes(&settings);
    ONV_TRY(onv_execution_begin(made, live, N_RUNS, err));
    bool beside_arena = plan.settings->use_device_allocator_for_initializers != 0;
    ONV_TRY(add_weights(model, beside_arena, made, err));
    size_t n_weights = made->timeline.buffers.count;
    ONV_TRY(onv_ort_add_runs(&plan, N_RUNS, &options->alloc, &made->timeline, err));
    if (beside_arena || n_weights == 0) return ONV_OK;
    onv_ort_spread spread;
    ONV_TRY(onv_ort_spread_weights(&made->timeline, (uint32_t)n_weights, &options->alloc, &spread,
                                   err));
    made->least_bytes = spread.low;
    return ONV_OK;
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
    .produce = produce_session,
};

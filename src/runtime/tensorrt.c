/* TensorRT, an estimate: no engine was built or measured.
 *
 * By NVIDIA ("How TensorRT Works", Memory): an engine holds the weights, once for all its contexts; each context has the
 * memory of its activations, planned when the engine is built at the largest shapes of the profile, and workspace up to a
 * limit; inputs and outputs are the application's. The graph is the one that ONNX Runtime fuses for the CPU, where activations
 * and sums are parts of convolutions as they are in TensorRT; which tactics are chosen, and so how much of the workspace
 * is needed and how tensors are padded, only a build tells. */
#include "base/checked.h"
#include "base/fail.h"
#include "runtime/runtime.h"

/* What each context has; weights are there once. */
static bool multiply(onv_timeline *t, uint64_t contexts, uint32_t last)
{
    bool fits = true;
    for (size_t i = 0; i < t->buffers.count; i++) {
        onv_buffer *b = &t->buffers.at[i];
        if (b->kind == ONV_BUFFER_WEIGHT) continue;
        fits &= onv_u64_mul(b->bytes, contexts, &b->bytes);
        if (b->kind != ONV_BUFFER_INPUT && b->kind != ONV_BUFFER_OUTPUT) continue;
        /* What a branch makes becomes an output when it is done: that begins there. */
        if (b->kind == ONV_BUFFER_INPUT || t->regions.count == 0) b->first = 0;
        b->last = last;
    }
    return fits;
}

static onv_status produce_engine(onv_model *model, const onv_live *live,
                                 const onv_runtime_options *options, onv_execution *made,
                                 onv_error *err)
{
    uint64_t contexts = options->contexts > 0 ? options->contexts : 1;
    onv_timeline *t = &made->timeline;
    ONV_TRY(onv_runtime_values(model, live, options, made, err));
    uint32_t last = (uint32_t)t->steps.count - 1;
    bool fits = multiply(t, contexts, last) &&
                onv_u64_mul(options->workspace_bytes, contexts, &made->spare_bytes);
    if (!fits) return onv_fail(err, ONV_ERR_OVERFLOW, "the total does not fit 64 bits");
    onv_buffer workspace =
        onv_buffer_new(ONV_BUFFER_WORKSPACE, made->spare_bytes, 0, last, "workspace");
    return made->spare_bytes > 0 ? onv_execution_add(made, &workspace, 1, err) : ONV_OK;
}

const onv_runtime onv_runtime_tensorrt = {
    .name = "tensorrt",
    .summary =
        "an estimate of TensorRT: weights, and planned activations of each context; only if named",
    .holder = "an estimate of TensorRT's plan",
    .order = "ort",
    .provider = ONV_PROVIDER_CPU,
    .is_engine = true,
    .is_by_name = true,
    .has_context = true,
    .consumer = ONV_CONSUMER_PLANNER,
    .mode = "tensorrt",
    .produce = produce_engine,
};

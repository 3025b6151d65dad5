/* Eager PyTorch: one forward pass of the tape that training runs, too (eager/inference.h). `torch` serves
 * the requests as PyTorch's caching allocator does, `async` as the device's stream-ordered pool
 * (PyTorch's backend:cudaMallocAsync). */
#include "eager/inference.h"
#include "graph/storage.h"
#include "lower/lower.h"
#include "runtime/runtime.h"

static onv_lower_options of_inference(const onv_runtime_options *options)
{
    onv_lower_options lower = options->lower;
    lower.inference = true;
    lower.n_freeze = lower.n_train_only = 0;
    return lower;
}

onv_status onv_runtime_lower(onv_model *model, const onv_live *live,
                             const onv_runtime_options *options, onv_eager *tape, onv_error *err)
{
    bool *is_host;
    const onv_lower_options lower = of_inference(options);
    ONV_TRY(onv_mark_host_values(model, live, &is_host, err));
    ONV_TRY(onv_eager_lower(model, live, is_host, &lower, tape, err));
    onv_status status = onv_eager_check(tape, err);
    if (status != ONV_OK) onv_eager_cleanup(tape);
    return status;
}

static onv_status produce_eager(onv_model *model, const onv_live *live,
                                const onv_runtime_options *options, onv_execution *made,
                                onv_error *err)
{
    onv_eager own = {.first_loss_op = 0};
    const onv_eager *tape = options->tape != NULL ? options->tape : &own;
    const onv_lower_options lower = of_inference(options);
    if (tape == &own) ONV_TRY(onv_runtime_lower(model, live, options, &own, err));
    onv_status status = onv_inference_build(model, tape, &lower, &made->timeline, NULL, err);
    made->driver_bytes = onv_eager_handle_bytes(tape, &lower);
    if (status == ONV_OK && options->speed.gpu != NULL)
        made->time = onv_speed_of_pass(&options->speed, tape, &lower);
    if (tape == &own) onv_eager_cleanup(&own);
    if (status == ONV_OK) status = onv_execution_share_outputs(model, made, err);
    return status;
}

bool onv_runtime_is_eager(const onv_runtime *runtime)
{
    return runtime->produce == produce_eager;
}

const onv_runtime onv_runtime_torch = {
    .name = "torch",
    .summary = "eager PyTorch with its caching allocator",
    .holder = "PyTorch's caching allocator",
    .has_context = true,
    .is_usual = true,
    .consumer = ONV_CONSUMER_ALLOCATOR,
    .mode = "torch",
    .allocator = "torch",
    .produce = produce_eager,
};

const onv_runtime onv_runtime_async = {
    .name = "async",
    .summary = "eager execution on the device's stream-ordered pool (cudaMallocAsync)",
    .holder = "the device's memory pool",
    .has_context = true,
    .consumer = ONV_CONSUMER_ALLOCATOR,
    .mode = "async",
    .allocator = "async",
    .produce = produce_eager,
};

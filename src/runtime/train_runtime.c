/* Training as one more runtime, so that tables and budgets apply to it. */
#include "base/checked.h"
#include "runtime/runtime.h"

/* What is held comes from the training program; the estimates are those of every runtime. */
static onv_status compute_nothing(onv_model *model, const onv_live *live,
                                  const onv_runtime_options *options, onv_runtime_result *result,
                                  onv_error *err)
{
    (void)model;
    (void)live;
    (void)options;
    (void)result;
    (void)err;
    return ONV_OK;
}

static const onv_runtime train_runtime = {
    .name = "train",
    .summary = "training in eager PyTorch",
    .has_context = true,
    .compute = compute_nothing,
};

onv_status onv_runtime_of_training(onv_model *model, const onv_live *live,
                                   const onv_training_figures *t, onv_runtime_result *result,
                                   onv_error *err)
{
    ONV_TRY(onv_runtime_compute(&train_runtime, model, live, NULL, result, err));
    uint64_t fixed = t->parameter_bytes + t->buffer_bytes; /* a part of what was simulated */
    result->weight_bytes = fixed;
    result->activation_bytes = t->reserved_peak_bytes > fixed ? t->reserved_peak_bytes - fixed : 0;
    result->held_bytes = t->reserved_peak_bytes;
    result->allocated_peak_bytes = t->allocated_peak_bytes;
    result->reserved_peak_bytes = t->reserved_peak_bytes;
    if (!onv_u64_add(result->total_bytes.low, result->held_bytes, &result->total_bytes.low) ||
        !onv_u64_add(result->total_bytes.high, result->held_bytes, &result->total_bytes.high))
        return onv_fail(err, ONV_ERR_OVERFLOW, "the total does not fit 64 bits");
    return ONV_OK;
}

/* Training as one more runtime, so that tables and budgets apply to it. */
#include "runtime/runtime.h"

/* What is held comes from the training program; the estimates are those of every runtime. */
static const onv_runtime train_runtime = {.name = "train",
                                          .summary = "training in eager PyTorch",
                                          .holder = "PyTorch's caching allocator",
                                          .has_context = true};

onv_status onv_runtime_of_training(const onv_training_figures *t, onv_runtime_result *result,
                                   onv_error *err)
{
    uint64_t fixed = t->parameter_bytes + t->buffer_bytes; /* a part of what was simulated */
    uint64_t held =
        t->reserved_peak_bytes > t->first_peak_bytes ? t->reserved_peak_bytes : t->first_peak_bytes;
    bool has_ends = t->held_ends[1] > 0;
    *result = (onv_runtime_result){.runtime = &train_runtime,
                                   .weight_bytes = fixed,
                                   .activation_bytes = held > fixed ? held - fixed : 0,
                                   .held_bytes = held,
                                   .low_bytes = has_ends ? t->held_ends[0] : held,
                                   .high_bytes = has_ends ? t->held_ends[1] : held,
                                   .allocated_peak_bytes = t->allocated_peak_bytes,
                                   .reserved_peak_bytes = t->reserved_peak_bytes,
                                   .tensor_peak_bytes = t->peak_bytes,
                                   .peak_node = t->peak_node,
                                   .peak_label = t->peak_label,
                                   .peak_phase = t->peak_phase,
                                   .is_judged = true,
                                   .driver_bytes = t->driver_bytes,
                                   .driver_least_bytes = t->driver_bytes,
                                   .has_open_workspaces = t->held_ends[0] != t->held_ends[1],
                                   .release = t->release};
    return onv_runtime_add_up(result, err);
}

/* Of plans those of workspaces alone: names of Python hold nothing at their peaks that matters. */
onv_status onv_runtime_add_training_ends(const onv_training *t, onv_runtime_result *result,
                                         onv_error *err)
{
    const onv_training_figures *const ends[] = {&t->least, &t->most, &t->new_relus};
    const uint64_t *allocated = t->figures.allocated_ends;
    bool has_plan = t->chosen != ONV_NO_PLAN;
    if (t->compiled != NULL || (has_plan && allocated[1] == 0)) return ONV_OK;
    onv_runtime_begin_ends(result);
    if (allocated[1] > 0) result->allocated_ends = (onv_range){allocated[0], allocated[1]};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0] && !has_plan; i++) {
        onv_runtime_result end;
        ONV_TRY(onv_runtime_of_training(ends[i], &end, err));
        onv_runtime_add_end(&end, result);
    }
    return onv_runtime_add_up(result, err);
}

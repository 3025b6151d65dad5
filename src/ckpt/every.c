/* Segments of equal numbers of units: every=K has K units in each; segments=K is the arithmetic of
 * torch.utils.checkpoint.checkpoint_sequential, where the size is n / K rounded down and the last
 * segment takes the rest. In both the last one keeps everything. */
#include <inttypes.h>

#include "base/heap.h"
#include "ckpt/ckpt.h"

static onv_status add(const onv_ckpt_problem *problem, const char *name, uint32_t count,
                      uint32_t size, uint32_t n, onv_ckpt_plans *plans, onv_error *err)
{
    const onv_ckpt_units *units = problem->units;
    onv_tape_segment *segments = onv_heap_calloc(n, sizeof *segments);
    name = onv_arena_printf(&problem->model->arena, "%s=%" PRIu32, name, count);
    if (segments == NULL || name == NULL) {
        onv_heap_free(segments);
        return onv_fail_memory(err);
    }
    for (uint32_t i = 0; i < n; i++) {
        size_t first = (size_t)i * size, last = first + size - 1;
        segments[i] = (onv_tape_segment){units->at[first].first_op, units->at[last].last_op};
    }
    onv_status status = onv_ckpt_plans_add(problem, name, segments, n, plans, err);
    onv_heap_free(segments);
    return status;
}

static onv_status make_every(const onv_ckpt_problem *problem, uint32_t count, onv_ckpt_plans *plans,
                             onv_error *err)
{
    uint32_t n = problem->units->count;
    return add(problem, "every", count, count, n == 0 ? 0 : (n - 1) / count, plans, err);
}

static onv_status make_segments(const onv_ckpt_problem *problem, uint32_t count,
                                onv_ckpt_plans *plans, onv_error *err)
{
    if (count > problem->units->count)
        return onv_fail(err, ONV_ERR_USAGE,
                        "segments=%" PRIu32 ": the model has %" PRIu32 " units to make them of",
                        count, problem->units->count);
    return add(problem, "segments", count, problem->units->count / count, count - 1, plans, err);
}

const onv_ckpt_plan_kind onv_ckpt_every = {.name = "every",
                                           .summary = "K units each, the last ones kept",
                                           .takes_count = true,
                                           .make = make_every};
const onv_ckpt_plan_kind onv_ckpt_segments = {
    .name = "segments",
    .summary = "K segments, as PyTorch's checkpoint_sequential cuts them",
    .takes_count = true,
    .in_all = true,
    .make = make_segments};

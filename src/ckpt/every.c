/* Segments of equal numbers of units: every=K has K units in each; segments=K is the arithmetic of
 * torch.utils.checkpoint.checkpoint_sequential, where the size is n / K rounded down and the last
 * segment takes the rest. In both the last one keeps everything. Where the network is an nn.Sequential,
 * it is that function: it counts modules instead of units, and its loop holds what it holds. */
#include <inttypes.h>

#include "base/fail.h"
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

static onv_status make_every(const onv_ckpt_problem *problem, onv_ckpt_plans *plans, onv_error *err)
{
    uint32_t n = problem->units->count, count = problem->count;
    return add(problem, "every", count, count, n == 0 ? 0 : (n - 1) / count, plans, err);
}

/* The place in an nn.Sequential that the whole network is: "3.conv1.weight" is of the fourth module.
 * UINT32_MAX: it is none. */
static uint32_t place_of(const char *path)
{
    uint32_t place = 0;
    if (path == NULL || *path < '0' || *path > '9') return UINT32_MAX;
    for (; *path >= '0' && *path <= '9'; path++) {
        if (place > 100000) return UINT32_MAX;
        place = place * 10 + (uint32_t)(*path - '0');
    }
    return *path == '\0' || *path == '.' ? place : UINT32_MAX;
}

/* How many modules a network has that is an nn.Sequential; 0: it is none. */
static uint32_t count_modules(const onv_ckpt_problem *problem)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < problem->eager->first_loss_op; i++) {
        uint32_t place = place_of(problem->places->scopes.path_of[i]);
        if (place == UINT32_MAX || place + 1 < n) return 0;
        n = place + 1;
    }
    return n;
}

/* torch.utils.checkpoint.checkpoint_sequential(list(model), count, x, use_reentrant=False). */
static onv_status add_sequential(const onv_ckpt_problem *problem, const char *name, uint32_t count,
                                 uint32_t n_modules, onv_ckpt_plans *plans, onv_error *err)
{
    const char *const *path_of = problem->places->scopes.path_of;
    uint32_t n_ops = problem->eager->first_loss_op, size = n_modules / count, op = 0;
    onv_tape_segment *segments = onv_heap_calloc(count, sizeof *segments);
    if (segments == NULL) return onv_fail_memory(err);
    onv_ckpt_plan plan = {.name = name, .segments = segments, .sequential = count};
    for (uint32_t k = 1; k < count; k++) {
        uint32_t first = op;
        while (op < n_ops && place_of(path_of[op]) < k * size) op++;
        if (op > first) segments[plan.n_segments++] = (onv_tape_segment){first, op - 1};
    }
    plan.loop_from = op;
    onv_status status = onv_ckpt_plans_take(problem, &plan, plans, err);
    onv_heap_free(segments);
    return status;
}

static onv_status make_segments(const onv_ckpt_problem *problem, onv_ckpt_plans *plans,
                                onv_error *err)
{
    uint32_t count = problem->count, n_modules = problem->prunes ? 0 : count_modules(problem);
    uint32_t most = n_modules > 0 ? n_modules : problem->units->count;
    if (count > most)
        return onv_fail(err, ONV_ERR_USAGE,
                        "segments=%" PRIu32 ": the model has %" PRIu32 " %s to make them of", count,
                        most, n_modules > 0 ? "modules" : "units");
    if (n_modules == 0)
        return add(problem, "segments", count, problem->units->count / count, count - 1, plans,
                   err);
    const char *name = onv_arena_printf(&problem->model->arena, "segments=%" PRIu32, count);
    if (name == NULL) return onv_fail_memory(err);
    return add_sequential(problem, name, count, n_modules, plans, err);
}

const onv_ckpt_plan_kind onv_ckpt_every = {.name = "every",
                                           .summary = "K units each, the last ones kept",
                                           .argument = "K",
                                           .make = make_every};
const onv_ckpt_plan_kind onv_ckpt_segments = {
    .name = "segments",
    .summary = "K segments, as PyTorch's checkpoint_sequential cuts them",
    .argument = "K",
    .in_all = true,
    .make = make_segments};

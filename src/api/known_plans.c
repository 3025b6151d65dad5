#include "api/known_plans.h"

#include "base/fail.h"

static bool keep(const onv_training_plan *plan, const char *name, onv_arena *arena,
                 onv_ckpt_plan *to)
{
    *to = (onv_ckpt_plan){.name = name,
                          .n_segments = plan->n_segments,
                          .prunes = plan->prunes,
                          .n_kept_ops = plan->n_kept_ops,
                          .sequential = plan->sequential,
                          .loop_from = plan->loop_from,
                          .saves_on_cpu = plan->saves_on_cpu,
                          .offload_until = plan->offload_until,
                          .compiles = plan->compiles,
                          .memory_budget = plan->memory_budget,
                          .recomputed_macs = plan->recomputed_macs};
    to->segments = onv_arena_copy(arena, plan->segments, plan->n_segments * sizeof *to->segments);
    to->kept_ops = onv_arena_copy(arena, plan->kept_ops, plan->n_kept_ops * sizeof *to->kept_ops);
    return to->segments != NULL && to->kept_ops != NULL;
}

static bool is_near(uint64_t bytes, uint64_t least)
{
    enum { PARTS = 16 };
    return bytes - least <= least / PARTS;
}

static bool is_among(const onv_training_plan *plan, uint32_t item, uint64_t total,
                     uint64_t allocated)
{
    return plan->item == item && (is_near(plan->total_bytes, total) ||
                                  is_near(plan->figures.allocated_peak_bytes, allocated));
}

onv_status onv_know_plans(const onv_training *training, uint32_t item, const char *name,
                          onv_arena *arena, onv_known_plans *known, onv_error *err)
{
    uint64_t total = UINT64_MAX, allocated = UINT64_MAX;
    onv_arena_reset(arena);
    onv_ckpt_plan *at = ONV_ARENA_ARRAY(arena, onv_ckpt_plan, training->n_plans);
    *known = (onv_known_plans){.at = at, .n_ops = training->n_plan_ops};
    if (at == NULL) return onv_fail_memory(err);
    for (uint32_t i = 0; i < training->n_plans; i++) {
        const onv_training_plan *plan = &training->plans[i];
        if (plan->item != item) continue;
        if (plan->total_bytes < total) total = plan->total_bytes;
        if (plan->figures.allocated_peak_bytes < allocated)
            allocated = plan->figures.allocated_peak_bytes;
    }
    for (uint32_t i = 0; i < training->n_plans; i++)
        if (is_among(&training->plans[i], item, total, allocated) &&
            !keep(&training->plans[i], name, arena, &at[known->count++]))
            return onv_fail_memory(err);
    return ONV_OK;
}

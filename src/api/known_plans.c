#include "api/known_plans.h"

#include <string.h>

bool onv_know_plan(const onv_training_plan *plan, onv_arena *arena, onv_ckpt_plan *to)
{
    *to = (onv_ckpt_plan){.name = onv_arena_strndup(arena, plan->name, strlen(plan->name)),
                          .n_segments = plan->n_segments,
                          .prunes = plan->prunes,
                          .is_reentrant = plan->is_reentrant,
                          .n_kept_ops = plan->n_kept_ops,
                          .sequential = plan->sequential,
                          .loop_from = plan->loop_from,
                          .saves_on_cpu = plan->saves_on_cpu,
                          .offload_until = plan->offload_until,
                          .compiles = plan->compiles,
                          .memory_budget = plan->memory_budget,
                          .recomputed_macs = plan->recomputed_macs};
    if (plan->save != NULL) to->save = onv_arena_strndup(arena, plan->save, strlen(plan->save));
    to->segments = onv_arena_copy(arena, plan->segments, plan->n_segments * sizeof *to->segments);
    to->kept_ops = onv_arena_copy(arena, plan->kept_ops, plan->n_kept_ops * sizeof *to->kept_ops);
    return to->name != NULL && to->segments != NULL && to->kept_ops != NULL &&
           (plan->save == NULL || to->save != NULL);
}

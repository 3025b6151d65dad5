#include "api/known_plans.h"

#include <string.h>

static const char *copy(const char *text, onv_arena *arena)
{
    return text != NULL ? onv_arena_strndup(arena, text, strlen(text)) : NULL;
}

static void copy_text(const onv_training_plan *plan, onv_arena *arena, onv_plan_text *to)
{
    uint32_t n = plan->does.n_segments;
    const char **modules = ONV_ARENA_ARRAY(arena, const char *, n);
    const char *(*segments)[2] = onv_arena_calloc(arena, n, sizeof *segments, _Alignof(char *));
    const char **kept = ONV_ARENA_ARRAY(arena, const char *, plan->does.n_kept_ops);
    if (arena->failed) return;
    for (uint32_t i = 0; i < n; i++) {
        modules[i] = copy(plan->names[i].modules, arena);
        segments[i][0] = copy(plan->names[i].begin, arena);
        segments[i][1] = copy(plan->names[i].end, arena);
    }
    for (uint32_t i = 0; i < plan->does.n_kept_ops; i++) kept[i] = copy(plan->kept[i], arena);
    *to = (onv_plan_text){.name = copy(plan->does.name, arena),
                          .form = plan->form,
                          .modules = modules,
                          .segments = (const char *const(*)[2])segments,
                          .kept = kept,
                          .n_modules = n,
                          .n_segments = n,
                          .n_kept = plan->does.n_kept_ops,
                          .save = copy(plan->does.save, arena),
                          .is_reentrant = plan->does.is_reentrant,
                          .until = copy(plan->until, arena),
                          .count = plan->does.sequential,
                          .memory_budget = plan->does.memory_budget};
}

bool onv_know_plan(const onv_training_plan *plan, uint32_t n_ops, onv_arena *arena,
                   onv_known_plan *to)
{
    const onv_ckpt_plan *from = &plan->does;
    *to = (onv_known_plan){.plan = *from,
                           .id = copy(plan->id, arena),
                           .pass_macs = plan->pass_macs,
                           .n_ops = n_ops,
                           .figures = plan->figures};
    copy_text(plan, arena, &to->text);
    to->plan.name = to->text.name;
    to->plan.save = to->text.save;
    to->plan.segments =
        onv_arena_copy(arena, from->segments, from->n_segments * sizeof *from->segments);
    to->plan.kept_ops =
        onv_arena_copy(arena, from->kept_ops, from->n_kept_ops * sizeof *from->kept_ops);
    return !arena->failed;
}

#include "ckpt/ckpt.h"

#include <string.h>

const onv_ckpt_plan_kind *const onv_ckpt_plan_kinds[] = {
    &onv_ckpt_none, &onv_ckpt_sqrt, &onv_ckpt_every, &onv_ckpt_segments, &onv_ckpt_blocks,
};
const size_t onv_n_ckpt_plan_kinds = sizeof onv_ckpt_plan_kinds / sizeof onv_ckpt_plan_kinds[0];

const onv_ckpt_plan_kind *onv_ckpt_plan_kind_find(const char *name)
{
    for (size_t i = 0; i < onv_n_ckpt_plan_kinds; i++)
        if (strcmp(onv_ckpt_plan_kinds[i]->name, name) == 0) return onv_ckpt_plan_kinds[i];
    return NULL;
}

onv_status onv_ckpt_measure(const onv_ckpt_problem *problem, const onv_tape_segment *segments,
                            uint32_t n_segments, onv_ckpt_plan *plan, onv_error *err)
{
    onv_train_options options = *problem->options;
    onv_train_program program;
    onv_train_peaks peaks;
    options.segments = segments;
    options.n_segments = n_segments;
    options.iterations = 2; /* the second is like all that follow */
    ONV_TRY(onv_train_program_build(problem->model, problem->eager, &options, &program, err));
    onv_status status = onv_train_program_peaks(&program, &peaks, err);
    plan->peak_bytes = peaks.bytes;
    plan->recomputed_macs = program.recomputed_macs;
    onv_train_program_cleanup(&program);
    return status;
}

onv_status onv_ckpt_plans_add(const onv_ckpt_problem *problem, const char *name,
                              const onv_tape_segment *segments, uint32_t n_segments,
                              onv_ckpt_plans *plans, onv_error *err)
{
    onv_ckpt_plan plan = {.name = name, .n_segments = n_segments};
    plan.segments = onv_arena_copy(&problem->model->arena, segments, n_segments * sizeof *segments);
    if (plan.segments == NULL) return onv_fail_memory(err);
    ONV_TRY(onv_ckpt_measure(problem, plan.segments, n_segments, &plan, err));
    return onv_vec_push(&plans->at, plan) ? ONV_OK : onv_fail_memory(err);
}

void onv_ckpt_plans_cleanup(onv_ckpt_plans *plans)
{
    onv_vec_cleanup(&plans->at);
}

/* torch.compile as plans of a front: one for each of some memory budgets. Of large tapes there are fewer. */
#include "ckpt/ckpt.h"

#include "base/fail.h"

enum { MOST_STEPS = 20, LEAST_STEPS = 4, MAX_OPS = 60000 };

/* Measured as onv_ckpt_measure does: the second iteration is like all that follow. */
static onv_status measure(const onv_ckpt_problem *problem, onv_compiling *compiling,
                          onv_ckpt_plan *plan, onv_error *err)
{
    onv_train_options options = *problem->options;
    onv_train_program program;
    const onv_compiled *result;
    onv_peak peak;
    options.iterations = 2;
    ONV_TRY(onv_compiling_build(compiling, plan->memory_budget, &options, &program, &result, err));
    onv_status status = onv_timeline_peak(&program.timeline, &peak, NULL, err);
    plan->requested_bytes = peak.bytes;
    plan->peak_bytes = result->peak_bytes;
    plan->recomputed_macs = result->recomputed_macs;
    onv_train_program_cleanup(&program);
    return status;
}

onv_status onv_ckpt_compile(const onv_ckpt_problem *problem, onv_compiling *compiling,
                            onv_ckpt_plans *plans, onv_error *err)
{
    size_t n_steps = MAX_OPS / (problem->eager->ops.count + 1);
    if (n_steps < LEAST_STEPS) n_steps = LEAST_STEPS;
    if (n_steps > MOST_STEPS) n_steps = MOST_STEPS;
    for (size_t i = 0; i <= n_steps; i++) {
        onv_ckpt_plan plan = {.compiles = true,
                              .memory_budget = (double)(n_steps - i) / (double)n_steps};
        ONV_TRY(measure(problem, compiling, &plan, err));
        if (!onv_vec_push(&plans->at, plan)) return onv_fail_memory(err);
    }
    return ONV_OK;
}

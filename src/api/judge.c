/* Whether a model fits: one device, or several, each by the figures of its own libraries. */
#include "api/analysis.h"
#include "base/fail.h"

static onv_status judge(const onv_request *from, const onv_options *options, onv_analysis *analysis,
                        onv_error *err)
{
    analysis->fit.budget_bytes = options->budget;
    analysis->fit.margin_percent = options->margin_percent;
    onv_fit_judge(&analysis->fit, analysis->runtimes, analysis->n_runtimes);
    if (analysis->n_runtimes == 0) return onv_fail_unsized(analysis, "check the budget", err);
    if (options->max_batch) return onv_analysis_find_batch(from, options, analysis, err);
    if (options->kv_cache == NULL) return ONV_OK;
    return onv_analysis_find_context(from, options, analysis, err);
}

static void take(onv_device_fit *device, const onv_analysis *analysis)
{
    device->fit = analysis->fit;
    for (size_t i = 0; i < analysis->n_runtimes; i++)
        device->totals[i] = analysis->runtimes[i].total_bytes;
}

/* The same model with the libraries of another device. */
static onv_status judge_other(const onv_request *from, onv_options options,
                              const onv_budget *budget, onv_device_fit *device, onv_error *err)
{
    onv_analysis *other;
    options.budget = budget->bytes;
    options.compute_capability = budget->compute_capability;
    options.replay = NULL;
    options.timelines = false;
    ONV_TRY(onv_analysis_create(from, &options, &other, err));
    onv_status status = judge(from, &options, other, err);
    if (status == ONV_OK) take(device, other);
    onv_analysis_destroy(other);
    return status;
}

onv_status onv_analysis_judge(const onv_request *from, const onv_options *options,
                              onv_analysis *analysis, onv_error *err)
{
    onv_arena *arena = &analysis->model.arena;
    if (options->budget == 0) return ONV_OK;
    ONV_TRY(judge(from, options, analysis, err));
    if (options->max_dim != NULL) {
        /* Reports may come when the caller's text is gone. */
        analysis->fit.max_dim = onv_arena_printf(arena, "%s", options->max_dim);
        if (analysis->fit.max_dim == NULL) return onv_fail_memory(err);
    }
    onv_device_fit *devices = ONV_ARENA_ARRAY(arena, onv_device_fit, options->n_budgets);
    if (devices == NULL) return onv_fail_memory(err);
    for (size_t i = 0; i < options->n_budgets; i++) {
        onv_budget budget = options->budgets[i];
        if (budget.name != NULL) {
            devices[i].name = onv_arena_printf(arena, "%s", budget.name);
            if (devices[i].name == NULL) return onv_fail_memory(err);
        }
        if (budget.compute_capability > 0) devices[i].gpu = devices[i].name;
        if (budget.compute_capability == 0) budget.compute_capability = options->compute_capability;
        if (i == 0)
            take(&devices[i], analysis);
        else
            ONV_TRY(judge_other(from, *options, &budget, &devices[i], err));
        devices[i].fit.max_dim = analysis->fit.max_dim;
    }
    analysis->devices = devices;
    analysis->n_devices = options->n_budgets;
    return ONV_OK;
}

/* Whether a model fits: one device, or several, each by the figures of its own libraries. */
#include "api/analysis.h"
#include "base/fail.h"
#include "speed/gpu.h"

void onv_take_gpu(onv_options *options, const onv_budget *budget)
{
    if (budget->compute_capability == 0) return;
    options->compute_capability = budget->compute_capability;
    options->gpu = budget->name;
}

static onv_status judge(const onv_request *from, const onv_options *options, onv_analysis *analysis,
                        onv_error *err)
{
    analysis->fit.budget_bytes = options->budget;
    analysis->fit.margin_percent = options->margin_percent;
    onv_fit_judge(&analysis->fit, analysis->runtimes, analysis->n_runtimes);
    if (analysis->n_runtimes == 0) return onv_fail_unsized(analysis, "check the budget", err);
    if (options->max_batch) ONV_TRY(onv_analysis_find_batch(from, options, analysis, err));
    if (options->objective != NULL && options->max_dim == NULL)
        return onv_analysis_find_best(from, options, analysis, err);
    if (options->max_batch || options->kv_cache == NULL) return ONV_OK;
    return onv_analysis_find_context(from, options, analysis, err);
}

/* The rows of an answer are the results that are judged, in their order. */
static void take(onv_answer_device *device, const onv_analysis *analysis)
{
    size_t n = 0;
    device->fit = analysis->fit;
    for (size_t i = 0; i < analysis->n_runtimes; i++)
        if (analysis->runtimes[i].is_judged)
            device->totals[n++] = analysis->runtimes[i].total_bytes;
}

/* The same model with the libraries of another device. */
static onv_status judge_other(const onv_request *from, const onv_options *given,
                              const onv_budget *budget, onv_answer_device *device, onv_error *err)
{
    onv_analysis *other;
    onv_options options = onv_options_again(given);
    options.budget = budget->bytes;
    onv_take_gpu(&options, budget);
    onv_request request = *from;
    request.figures_alone = true;
    ONV_TRY(onv_analysis_create(&request, &options, &other, err));
    onv_status status = judge(&request, &options, other, err);
    if (status == ONV_OK) take(device, other);
    onv_analysis_destroy(other);
    return status;
}

/* GPUs of different memory and libraries, which a page shows where none was asked for. */
static const char *const usual_gpus[] = {"T4", "RTX 4090", "A100 40GB", "H100", "H200"};
enum { N_USUAL_GPUS = sizeof usual_gpus / sizeof usual_gpus[0] };

onv_status onv_analysis_judge_usual(const onv_request *from, const onv_options *options,
                                    onv_analysis *analysis, onv_error *err)
{
    bool is_drawn = options->timelines && options->budget == 0 && options->checkpoint == NULL;
    if (!is_drawn || analysis->n_runtimes == 0 || !onv_watch_has_room(from->watch)) return ONV_OK;
    onv_answer_device *devices =
        ONV_ARENA_ARRAY(&analysis->model.arena, onv_answer_device, N_USUAL_GPUS);
    if (devices == NULL) return onv_fail_memory(err);
    for (size_t i = 0; i < N_USUAL_GPUS; i++) {
        const onv_gpu *gpu = onv_gpu_find(usual_gpus[i]);
        onv_budget budget = {gpu->name, onv_gpu_bytes(gpu), 10u * gpu->cc_major + gpu->cc_minor};
        ONV_TRY(judge_other(from, options, &budget, &devices[i], err));
        devices[i].name = devices[i].gpu = gpu->name;
    }
    analysis->answer.devices = devices;
    analysis->answer.n_usual = N_USUAL_GPUS;
    return ONV_OK;
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
    size_t n = options->n_budgets > 0 ? options->n_budgets : 1;
    onv_answer_device *devices = ONV_ARENA_ARRAY(arena, onv_answer_device, n);
    if (devices == NULL) return onv_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        onv_budget budget = {NULL, options->budget, 0};
        if (options->n_budgets > 0) budget = options->budgets[i];
        if (budget.name != NULL) {
            devices[i].name = onv_arena_printf(arena, "%s", budget.name);
            if (devices[i].name == NULL) return onv_fail_memory(err);
        }
        if (budget.compute_capability > 0) devices[i].gpu = devices[i].name;
        if (i == 0)
            take(&devices[i], analysis);
        else
            ONV_TRY(judge_other(from, options, &budget, &devices[i], err));
        devices[i].fit.max_dim = analysis->fit.max_dim;
    }
    analysis->answer.devices = devices;
    analysis->answer.n_devices = (uint32_t)n;
    return ONV_OK;
}

#include "runtime/fit.h"

static void judge_runtime(const onv_runtime_result *result, uint64_t usable_bytes, onv_fit_of *of)
{
    of->fits = result->total_bytes.high <= usable_bytes && !result->out_of_memory;
    of->fits_by_release = !of->fits && result->release.suffices;
}

void onv_fit_judge(onv_fit *fit, const onv_runtime_result *results, size_t count)
{
    bool by_release = count > 0;
    fit->usable_bytes = onv_budget_usable(fit->budget_bytes, fit->margin_percent);
    fit->all.fits = count > 0; /* some runtime is judged */
    for (size_t i = 0; i < count && i < ONV_MAX_RUNTIMES; i++) {
        judge_runtime(&results[i], fit->usable_bytes, &fit->of[i]);
        if (!results[i].is_judged) continue;
        fit->all.fits &= fit->of[i].fits;
        by_release &= fit->of[i].fits || fit->of[i].fits_by_release;
    }
    fit->all.fits_by_release = by_release && !fit->all.fits;
}

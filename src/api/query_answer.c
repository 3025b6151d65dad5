/* What can be asked of the answer. */
#include "api/analysis.h"
#include "api/sized.h"

bool onv_analysis_answer_get(const onv_analysis *analysis, onv_answer_info *info, size_t size)
{
    const onv_answer *a = &analysis->answer;
    const onv_replays *replays = &analysis->replays;
    onv_answer_info full = {.gpu = a->gpu,
                            .gpu_assumed = a->is_assumed,
                            .has_verdict = a->verdict != ONV_VERDICT_NONE,
                            .fits = a->verdict == ONV_VERDICT_FITS,
                            .fits_some = a->fits_some,
                            .fits_by_release = a->verdict == ONV_VERDICT_FITS_BY_RELEASE,
                            .runtimes = a->n_rows,
                            .devices = a->n_devices,
                            .usual_devices = a->n_usual,
                            .warnings = a->n_warnings,
                            .is_contradicted = analysis->measured.is_outside,
                            .out_of_memory = replays->kind != NULL && replays->out_of_memory};
    full.is_contradicted |= replays->kind != NULL && !replays->agrees;
    for (size_t i = 0; i < a->n_rows; i++) full.out_of_memory |= a->rows[i].out_of_memory;
    if (a->n_rows > 0) {
        const onv_answer_row *row = &a->rows[a->largest];
        full.runtime = row->runtime;
        full.low_bytes = row->total.low;
        full.high_bytes = row->total.high;
        full.set_by = row->set_by;
    }
    return onv_give(info, size, &full, sizeof full);
}

bool onv_analysis_answer_runtime_get(const onv_analysis *analysis, size_t index,
                                     onv_answer_runtime_info *info, size_t size)
{
    if (index >= analysis->answer.n_rows) return false;
    const onv_answer_row *row = &analysis->answer.rows[index];
    onv_answer_runtime_info full = {.name = row->runtime,
                                    .low_bytes = row->total.low,
                                    .high_bytes = row->total.high,
                                    .weight_bytes = row->weight_bytes,
                                    .live_low = row->live.low,
                                    .live_high = row->live.high,
                                    .reserved_low = row->reserved.low,
                                    .reserved_high = row->reserved.high,
                                    .library_bytes = row->library_bytes,
                                    .context_low = row->context.low,
                                    .context_high = row->context.high,
                                    .set_by = row->set_by,
                                    .out_of_memory = row->out_of_memory};
    return onv_give(info, size, &full, sizeof full);
}

static onv_fit_info fit_of(const onv_fit *fit)
{
    return (onv_fit_info){.budget = fit->budget_bytes,
                          .usable = fit->usable_bytes,
                          .fits = fit->all.fits,
                          .fits_by_release = fit->all.fits_by_release,
                          .max_batch = fit->all.max_batch,
                          .max_batch_by_release = fit->all.max_batch_by_release,
                          .has_max_batch = fit->has_max_batch,
                          .max_dim = fit->max_dim,
                          .margin_percent = fit->margin_percent};
}

bool onv_analysis_answer_device_get(const onv_analysis *analysis, size_t index,
                                    onv_answer_device_info *info, size_t size)
{
    const onv_answer *a = &analysis->answer;
    if (index >= a->n_devices + a->n_usual) return false;
    const onv_answer_device *device = &a->devices[index];
    onv_answer_device_info full = {.name = device->name,
                                   .gpu = device->gpu,
                                   .gpu_assumed = device->is_assumed,
                                   .runtime = a->rows[device->largest].runtime,
                                   .low_bytes = device->totals[device->largest].low,
                                   .high_bytes = device->totals[device->largest].high,
                                   .fit = fit_of(device->fit)};
    return onv_give(info, size, &full, sizeof full);
}

bool onv_analysis_growth_get(const onv_analysis *analysis, size_t index, onv_growth_info *info,
                             size_t size)
{
    if (index >= analysis->gate.n_rows) return false;
    const onv_gate_row *row = &analysis->gate.rows[index];
    onv_growth_info full = {row->what, row->before_bytes, row->after_bytes, row->exceeds};
    return onv_give(info, size, &full, sizeof full);
}

/* What can be asked of the answer. */
#include "api/ask.h"

bool onv_analysis_answer_get(const onv_analysis *analysis, onv_answer_info *info, size_t size)
{
    const onv_answer *a = &analysis->answer;
    onv_answer_info full = {.gpu = a->gpu,
                            .gpu_assumed = a->is_assumed,
                            .has_verdict = a->verdict != ONV_VERDICT_NONE,
                            .fits = a->verdict == ONV_VERDICT_FITS,
                            .fits_some = a->fits_some,
                            .fits_by_release = a->verdict == ONV_VERDICT_FITS_BY_RELEASE,
                            .runtimes = a->n_rows,
                            .devices = a->n_devices,
                            .usual_devices = a->n_usual,
                            .warnings = a->n_warnings};
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
                                   .fit = onv_ask_fit(device->fit)};
    return onv_give(info, size, &full, sizeof full);
}

bool onv_analysis_measured_get(const onv_analysis *analysis, onv_measured_info *info, size_t size)
{
    const onv_measured *m = &analysis->measured;
    if (m->n_figures == 0) return false;
    const onv_measured_figure *figure = &m->figures[m->n_figures - 1];
    for (uint32_t i = m->n_figures; i-- > 0;)
        if (m->figures[i].is_outside) figure = &m->figures[i];
    onv_measured_info full = {.is_outside = m->is_outside,
                              .what = figure->what,
                              .low_bytes = figure->predicted.low,
                              .high_bytes = figure->predicted.high,
                              .measured_bytes = figure->measured};
    return onv_give(info, size, &full, sizeof full);
}

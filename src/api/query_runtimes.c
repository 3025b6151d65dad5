/* What can be asked of runtimes: figures, settings, and what fits. */
#include <string.h>

#include "api/ask.h"
#include "program/view.h"

size_t onv_analysis_runtime_count(const onv_analysis *analysis)
{
    return analysis->n_runtimes;
}

static bool is_ort(const onv_runtime_result *r)
{
    return strcmp(r->runtime->name, "ort") == 0;
}

static void add_figures(onv_runtime_info *info, const onv_runtime_result *r)
{
    bool is_arena = strcmp(r->runtime->name, "arena") == 0;
    bool is_ideal = strcmp(r->runtime->name, "ideal") == 0;
    if (is_arena) {
        info->lower_bound_bytes = r->lower_bound_bytes;
        info->alignment = r->alignment > 1 ? r->alignment : 1;
        info->optimal = r->optimal;
    } else if (is_ort(r)) {
        info->first_run_bytes = r->first_run_bytes;
        info->steady_bytes = r->steady_bytes;
        info->low_bytes = r->low_bytes;
    } else if (!is_ideal) {
        info->allocated_peak_bytes = r->allocated_peak_bytes;
        info->reserved_peak_bytes = r->reserved_peak_bytes;
        info->tensor_peak_bytes = r->tensor_peak_bytes;
        info->locals_peak_bytes = r->locals_peak_bytes;
        info->inplace_peak_bytes = r->inplace_peak_bytes;
    }
}

bool onv_analysis_runtime_get(const onv_analysis *analysis, size_t index, onv_runtime_info *info,
                              size_t size)
{
    if (index >= analysis->n_runtimes) return false;
    const onv_runtime_result *r = &analysis->runtimes[index];
    onv_runtime_info full = {
        .name = r->runtime->name,
        .summary = r->runtime->summary,
        .weight_bytes = r->weight_bytes,
        .activation_bytes = r->activation_bytes,
        .held_bytes = r->held_bytes,
        .driver_bytes = r->driver_bytes,
        .context_low = r->context_bytes.low,
        .context_high = r->context_bytes.high,
        .total_low = r->total_bytes.low,
        .total_high = r->total_bytes.high,
        .out_of_memory = r->out_of_memory,
        .oom_bytes = r->out_of_memory ? r->oom_bytes : 0,
        .is_judged = r->is_judged,
    };
    if (strcmp(full.name, "torch") == 0) full.evidence = onv_program_evidence(r->model);
    add_figures(&full, r);
    if (r->rewritten != NULL) {
        full.nodes = r->rewritten->model.nodes.count;
        full.nodes_on_cpu = r->rewritten->n_nodes_on_cpu;
        full.copies = r->rewritten->n_copies;
    }
    if (analysis->fit.budget_bytes > 0) {
        full.fits = analysis->fit.of[index].fits;
        full.fits_by_release = analysis->fit.of[index].fits_by_release;
        full.released_bytes = full.fits_by_release ? r->release.returned_bytes : 0;
        full.max_batch = analysis->fit.of[index].max_batch;
        full.max_batch_by_release = analysis->fit.of[index].max_batch_by_release;
    }
    return onv_give(info, size, &full, sizeof full);
}

bool onv_analysis_runtime_rewrite_get(const onv_analysis *analysis, size_t runtime, size_t index,
                                      onv_rewrite_info *info, size_t size)
{
    if (runtime >= analysis->n_runtimes) return false;
    const onv_rewritten *rewritten = analysis->runtimes[runtime].rewritten;
    if (rewritten == NULL || index >= rewritten->n_counts) return false;
    const onv_rewrite_count *count = &rewritten->counts[index];
    onv_rewrite_info full = {count->name, count->count, count->is_not_modelled};
    return onv_give(info, size, &full, sizeof full);
}

/* The name and the value of a setting of ONNX Runtime. */
static bool give_setting(const onv_analysis *analysis, const onv_ort_settings *settings,
                         size_t index, onv_setting_info *info, size_t size)
{
    char number[24];
    onv_setting_info full = {.name = onv_ort_setting_name(index, NULL)};
    if (full.name == NULL) return false;
    full.value =
        onv_ask_keep(analysis, onv_ort_setting_value(settings, index, number, sizeof number));
    return full.value != NULL && onv_give(info, size, &full, sizeof full);
}

bool onv_analysis_runtime_setting_get(const onv_analysis *analysis, size_t runtime, size_t index,
                                      onv_setting_info *info, size_t size)
{
    if (runtime >= analysis->n_runtimes || !is_ort(&analysis->runtimes[runtime])) return false;
    return give_setting(analysis, &analysis->runtimes[runtime].ort, index, info, size);
}

/* --- What fits --------------------------------------------------------------------------------- */

onv_fit_info onv_ask_fit(const onv_fit *fit)
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

bool onv_analysis_fit_get(const onv_analysis *analysis, onv_fit_info *info, size_t size)
{
    if (analysis->fit.budget_bytes == 0 || analysis->n_runtimes == 0) return false;
    onv_fit_info full = onv_ask_fit(&analysis->fit);
    return onv_give(info, size, &full, sizeof full);
}

size_t onv_analysis_device_count(const onv_analysis *analysis)
{
    return analysis->n_devices;
}

bool onv_analysis_device_get(const onv_analysis *analysis, size_t index, const char **name,
                             onv_fit_info *info, size_t size)
{
    if (index >= analysis->n_devices) return false;
    if (name != NULL) *name = analysis->devices[index].name;
    onv_fit_info full = onv_ask_fit(&analysis->devices[index].fit);
    return onv_give(info, size, &full, sizeof full);
}

bool onv_analysis_device_runtime_get(const onv_analysis *analysis, size_t device, size_t runtime,
                                     onv_device_runtime_info *info, size_t size)
{
    if (device >= analysis->n_devices || runtime >= analysis->n_runtimes) return false;
    const onv_device_fit *of = &analysis->devices[device];
    const onv_fit_of *fit = &of->fit.of[runtime];
    onv_device_runtime_info full = {.total_high = of->totals[runtime].high,
                                    .fits = fit->fits,
                                    .max_batch = fit->max_batch,
                                    .fits_by_release = fit->fits_by_release,
                                    .max_batch_by_release = fit->max_batch_by_release};
    return onv_give(info, size, &full, sizeof full);
}

/* --- Growth ------------------------------------------------------------------------------------ */

bool onv_analysis_growth_verdict_get(const onv_analysis *analysis, onv_growth_verdict *info,
                                     size_t size)
{
    const onv_gate *gate = &analysis->gate;
    if (gate->baseline == NULL) return false;
    onv_growth_verdict full = {.baseline = gate->baseline,
                               .other_bindings = gate->other_bindings,
                               .exceeds = gate->exceeds,
                               .has_max_growth = gate->has_most,
                               .max_growth_basis_points = gate->most_basis_points};
    return onv_give(info, size, &full, sizeof full);
}

size_t onv_analysis_growth_count(const onv_analysis *analysis)
{
    return analysis->gate.n_rows;
}

bool onv_analysis_growth_get(const onv_analysis *analysis, size_t index, onv_growth_info *info,
                             size_t size)
{
    if (index >= analysis->gate.n_rows) return false;
    const onv_gate_row *row = &analysis->gate.rows[index];
    onv_growth_info full = {row->what, row->before, row->after, row->exceeds};
    return onv_give(info, size, &full, sizeof full);
}

/* --- Sessions of ONNX Runtime ------------------------------------------------------------------ */

size_t onv_analysis_advice_count(const onv_analysis *analysis)
{
    return analysis->advice.count;
}

bool onv_analysis_advice_get(const onv_analysis *analysis, size_t index, onv_advice_info *info,
                             size_t size)
{
    if (index >= analysis->advice.count) return false;
    const onv_ort_advice_row *row = &analysis->advice.rows[index];
    onv_advice_info full = {.first_run_bytes = row->first_run_bytes,
                            .steady_bytes = row->steady_bytes,
                            .low_bytes = row->low_bytes,
                            .in_use_bytes = row->peak_bytes,
                            .least_limit_bytes = row->least_limit,
                            .is_given = index == analysis->advice.given};
    return onv_give(info, size, &full, sizeof full);
}

bool onv_analysis_advice_setting_get(const onv_analysis *analysis, size_t row, size_t index,
                                     onv_setting_info *info, size_t size)
{
    if (row >= analysis->advice.count) return false;
    return give_setting(analysis, &analysis->advice.rows[row].settings, index, info, size);
}

bool onv_analysis_shape_trace_get(const onv_analysis *analysis, onv_shape_trace_info *info,
                                  size_t size)
{
    const onv_shape_requests *r = &analysis->requests;
    if (r->n_requests == 0) return false;
    onv_shape_trace_info full = {
        .requests = r->n_requests, .dims = r->n_names, .orders = r->result.n_orders};
    return onv_give(info, size, &full, sizeof full);
}

size_t onv_analysis_policy_count(const onv_analysis *analysis)
{
    return analysis->requests.n_requests > 0 ? ONV_ORT_MOST_POLICIES : 0;
}

bool onv_analysis_policy_get(const onv_analysis *analysis, size_t index, onv_policy_info *info,
                             size_t size)
{
    const onv_ort_shape_result *r = &analysis->requests.result;
    if (index >= onv_analysis_policy_count(analysis)) return false;
    onv_policy_info full = {.name = onv_ort_policy_name((uint32_t)index),
                            .created_bytes = r->created[index],
                            .most_bytes = r->most[index],
                            .best_order_bytes = r->best[index],
                            .worst_order_bytes = r->worst[index],
                            .out_of_memory = r->out_of_memory[index]};
    return onv_give(info, size, &full, sizeof full);
}

uint64_t onv_analysis_request_in_use(const onv_analysis *analysis, size_t request)
{
    const onv_shape_requests *r = &analysis->requests;
    return request < r->n_requests ? r->result.requests[request].peak : ONV_SIZE_UNKNOWN;
}

int64_t onv_analysis_request_dim(const onv_analysis *analysis, size_t request, size_t dim,
                                 const char **name)
{
    const onv_shape_requests *r = &analysis->requests;
    if (request >= r->n_requests || dim >= r->n_names) return -1;
    if (name != NULL) *name = r->names[dim];
    return r->sizes[request * r->n_names + dim];
}

uint64_t onv_analysis_request_reserved(const onv_analysis *analysis, size_t request, size_t policy)
{
    const onv_shape_requests *r = &analysis->requests;
    if (request >= r->n_requests || policy >= ONV_ORT_MOST_POLICIES) return ONV_SIZE_UNKNOWN;
    return r->result.requests[request].reserved[policy];
}

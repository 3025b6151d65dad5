/* What can be asked of runtimes, training and replays: figures, and what fits. */
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
        info->least_peak_bytes = r->allocated_ends.low;
        info->locals_peak_bytes = r->allocated_ends.high;
        info->least_tensor_bytes = r->tensor_ends.low;
        info->most_tensor_bytes = r->tensor_ends.high;
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

/* --- Growth ------------------------------------------------------------------------------------ */

bool onv_analysis_growth_get(const onv_analysis *analysis, size_t index, onv_growth_info *info,
                             size_t size)
{
    if (index >= analysis->gate.n_rows) return false;
    const onv_gate_row *row = &analysis->gate.rows[index];
    onv_growth_info full = {row->what, row->before, row->after, row->exceeds};
    return onv_give(info, size, &full, sizeof full);
}

/* --- Training ---------------------------------------------------------------------------------- */

bool onv_analysis_training_get(const onv_analysis *analysis, onv_training_info *info, size_t size)
{
    const onv_training *t = &analysis->training;
    if (t->optimizer == NULL) return false;
    const onv_training_figures *f = &t->figures;
    const onv_train_parts *parts = &f->parts;
    onv_training_info full = {
        .optimizer = t->optimizer->name,
        .loss = t->loss,
        .evidence = onv_program_evidence(t->model),
        .parameter_bytes = f->parameter_bytes,
        .gradient_bytes = f->gradient_bytes,
        .optimizer_bytes = f->optimizer_bytes,
        .saved_activation_bytes = f->saved_activation_bytes,
        .peak_bytes = f->peak_bytes,
        .allocated_peak_bytes = f->allocated_peak_bytes,
        .reserved_peak_bytes = f->reserved_peak_bytes,
        .buffer_bytes = f->buffer_bytes,
        .requested_peak_bytes = f->requested_peak_bytes,
        .driver_bytes = f->driver_bytes,
        .first_iteration_peak_bytes = f->first_peak_bytes,
        .released_bytes = f->release.returned_bytes,
        .unbounded_reserved_bytes = f->release.suffices ? f->reserved_peak_bytes : 0,
        .forward_macs = f->forward_macs,
        .bucket_bytes = parts->bucket_bytes,
        .gathered_bytes = parts->gathered_bytes,
        .reduce_bytes = parts->reduce_bytes,
        .master_bytes = parts->master_bytes,
        .ema_bytes = parts->ema_bytes,
        .host_bytes = parts->host_bytes,
        .quantized_bytes = parts->quantized_bytes,
        .dequantized_bytes = parts->dequantized_bytes,
        .units = t->n_units,
    };
    return onv_give(info, size, &full, sizeof full);
}

bool onv_analysis_checkpoint_get(const onv_analysis *analysis, size_t index,
                                 onv_checkpoint_info *info, size_t size)
{
    const onv_training *t = &analysis->training;
    if (index >= t->n_plans) return false;
    const onv_training_plan *plan = &t->plans[index];
    onv_checkpoint_info full = {.name = plan->name,
                                .peak_bytes = plan->figures.peak_bytes,
                                .saved_activation_bytes = plan->figures.saved_activation_bytes,
                                .allocated_peak_bytes = plan->figures.allocated_peak_bytes,
                                .reserved_peak_bytes = plan->figures.reserved_peak_bytes,
                                .recompute_macs = plan->recomputed_macs,
                                .pass_macs = plan->pass_macs,
                                .segments = plan->n_segments,
                                .chosen = index == t->chosen,
                                .offloaded_bytes = plan->figures.offloaded_bytes,
                                .returned_bytes = plan->figures.returned_bytes,
                                .host_bytes = plan->figures.pinned_bytes,
                                .offloads = plan->saves_on_cpu || plan->offload_until > 0,
                                .max_batch = plan->max_batch,
                                .max_batch_by_release = plan->max_batch_by_release,
                                .by_hand = plan->n_by_hand,
                                .kept = plan->n_kept_ops,
                                .compiles = plan->compiles,
                                .memory_budget = plan->memory_budget};
    return onv_give(info, size, &full, sizeof full);
}

/* --- Replays ----------------------------------------------------------------------------------- */

bool onv_analysis_replay_get(const onv_analysis *analysis, onv_replay_info *info, size_t size)
{
    const onv_replays *r = &analysis->replays;
    if (r->kind == NULL) return false;
    onv_replay_info full = {0};
    onv_replays_info(r, &full);
    return onv_give(info, size, &full, sizeof full);
}

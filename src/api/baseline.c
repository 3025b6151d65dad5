/* The figures of an earlier report, beside those of the analysis. */
#include "api/analysis.h"

#include <string.h>

#include "base/fail.h"

static bool figure(const onv_baseline *baseline, const char *what, uint64_t *bytes)
{
    for (size_t i = 0; i < baseline->n_figures; i++) {
        if (strcmp(baseline->figures[i].what, what) != 0) continue;
        *bytes = baseline->figures[i].bytes;
        return true;
    }
    return false;
}

bool onv_analysis_figure(const onv_analysis *analysis, size_t index, onv_figure *figure)
{
    const onv_live *live = &analysis->live;
    const onv_figure of_graph[] = {{"weights", live->weight_bytes},
                                   {"peak", live->peak_bytes},
                                   {"total", live->weight_bytes + live->peak_bytes}};
    size_t n = live->unknown == 0 ? sizeof of_graph / sizeof of_graph[0] : 1;
    if (index >= n + analysis->n_runtimes) return false;
    const onv_runtime_result *r = &analysis->runtimes[index < n ? 0 : index - n];
    *figure = index < n ? of_graph[index] : (onv_figure){r->runtime->name, r->held_bytes};
    return true;
}

/* Whether one of the lists lacks a binding of the other, or has another size for it. */
static bool has_other_bindings(const onv_infer_info *infer, const onv_baseline *baseline)
{
    size_t n_dims = 0;
    if (baseline->bindings == NULL) return false; /* it does not tell */
    for (size_t i = 0; i < infer->bounds.count; i++) {
        const onv_bound *bound = &infer->bounds.at[i];
        bool found = bound->size < 0; /* a whole shape: its dims are not listed */
        for (size_t k = 0; k < baseline->n_bindings; k++)
            found |= strcmp(bound->name, baseline->bindings[k].name) == 0 &&
                     bound->size == baseline->bindings[k].size;
        if (!found) return true;
        n_dims += bound->size >= 0;
    }
    return n_dims < baseline->n_bindings;
}

/* A verdict is of the judged runtimes: a report of inference does not say whether training grew. */
static void say_missing(onv_analysis *analysis, const onv_baseline *baseline)
{
    onv_gate *gate = &analysis->gate;
    uint64_t before;
    for (size_t i = 0; i < analysis->n_runtimes; i++) {
        const onv_runtime_result *r = &analysis->runtimes[i];
        if (!r->is_judged || figure(baseline, r->runtime->name, &before)) continue;
        gate->lacks = r->runtime->name;
        onv_model_diag(&analysis->model, ONV_WARNING, "baseline-lacks", NULL,
                       "the baseline %s has no figure of %s, so its growth is not known; write the "
                       "baseline with --json=FILE and the options of this command",
                       gate->baseline, gate->lacks);
    }
}

onv_status onv_analysis_compare(const onv_options *options, onv_analysis *analysis, onv_error *err)
{
    const onv_baseline *baseline = options->baseline;
    const onv_live *live = &analysis->live;
    onv_gate *gate = &analysis->gate;
    if (baseline == NULL) return ONV_OK;
    if (live->unknown > 0 && options->has_max_growth)
        return onv_fail_unsized(analysis, "compare with a baseline", err);
    gate->baseline = onv_arena_printf(&analysis->model.arena, "%s", baseline->name);
    if (gate->baseline == NULL) return onv_fail_memory(err);
    gate->has_most = options->has_max_growth;
    gate->most_basis_points = options->max_growth_basis_points;
    gate->other_bindings = has_other_bindings(&analysis->infer, baseline);
    onv_figure now;
    uint64_t before;
    for (size_t i = 0; onv_analysis_figure(analysis, i, &now); i++)
        if (figure(baseline, now.what, &before))
            onv_gate_compare(gate, now.what, before, now.bytes);
    say_missing(analysis, baseline);
    if (gate->n_rows > 0) return ONV_OK;
    return onv_fail(err, ONV_ERR_USAGE, "the baseline %s has no figure of what is asked for",
                    baseline->name);
}

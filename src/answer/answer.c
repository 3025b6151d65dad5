#include "answer/answer.h"

#include <string.h>

#include "base/fail.h"

/* The GPU whose libraries count where none is named: onv_cuda_library_defaults(). */
static const char usual_gpu[] = "H100";

/* --- Rows -------------------------------------------------------------------------------------- */

/* "backward of conv /layer1/Conv", "Conv /layer1/Conv", "optimizer, add". */
static const char *where_text(const onv_runtime_result *r, onv_arena *arena)
{
    const char *phase = "", *of = "";
    const char *label = r->peak_label != NULL ? r->peak_label : "";
    if (r->peak_phase != ONV_PHASE_FORWARD) {
        phase = onv_phase_name(r->peak_phase);
        of = onv_is_node(r->peak_node) ? " of " : ", ";
    }
    if (!onv_is_node(r->peak_node)) return onv_arena_printf(arena, "%s%s%s", phase, of, label);
    const onv_node *node = onv_model_node(r->model, r->peak_node);
    if (r->peak_label == NULL) label = node->op_type;
    bool is_named = node->name != NULL && node->name[0] != '\0';
    return onv_arena_printf(arena, "%s%s%s%s%s", phase, of, label, is_named ? " " : "",
                            is_named ? node->name : "");
}

static const char *set_by_text(onv_model *model, const onv_runtime_result *r)
{
    const char *where = where_text(r, &model->arena);
    if (where == NULL) return NULL;
    return onv_arena_printf(&model->arena, "%s, with the peak at %s", r->runtime->holder, where);
}

static onv_range live_range(const onv_runtime_result *r)
{
    if (r->tensor_ends.high > 0) return r->tensor_ends;
    uint64_t bytes = r->tensor_peak_bytes > 0 ? r->tensor_peak_bytes : r->held_bytes;
    return (onv_range){bytes, bytes};
}

static void fill_row(const onv_runtime_result *r, size_t index, onv_answer_row *row)
{
    *row = (onv_answer_row){
        .runtime = r->runtime->name,
        .result = (uint32_t)index,
        .weight_bytes = r->weight_bytes,
        .live = live_range(r),
        .reserved = {r->low_bytes, r->high_bytes},
        .library_bytes = r->driver_bytes,
        .context = r->context_bytes,
        .total = r->total_bytes,
        .out_of_memory = r->out_of_memory,
    };
}

/* --- Devices ----------------------------------------------------------------------------------- */

static uint32_t find_largest(const onv_range *totals, uint32_t n)
{
    uint32_t most = 0;
    for (uint32_t i = 1; i < n; i++)
        if (totals[i].high > totals[most].high) most = i;
    return most;
}

static void judge_devices(onv_answer *answer)
{
    if (answer->n_rows == 0) answer->n_devices = answer->n_usual = 0;
    for (uint32_t i = 0; i < answer->n_devices + answer->n_usual; i++) {
        onv_answer_device *device = &answer->devices[i];
        device->largest = find_largest(device->totals, answer->n_rows);
        device->verdict = device->fit.all.fits              ? ONV_VERDICT_FITS
                          : device->fit.all.fits_by_release ? ONV_VERDICT_FITS_BY_RELEASE
                                                            : ONV_VERDICT_DOES_NOT_FIT;
        device->is_assumed = device->gpu == NULL && answer->is_assumed;
        if (device->gpu == NULL || answer->gpu == NULL) device->gpu = answer->gpu;
        answer->fits_some |= i < answer->n_devices && device->verdict == ONV_VERDICT_FITS;
    }
    if (answer->n_devices > 0) answer->verdict = answer->devices[0].verdict;
}

/* --- Warnings ---------------------------------------------------------------------------------- */

static onv_status list_warnings(onv_model *model, onv_answer *answer, onv_error *err)
{
    answer->warnings = ONV_ARENA_ARRAY(&model->arena, const char *, model->diags.count);
    if (answer->warnings == NULL && model->diags.count > 0) return onv_fail_memory(err);
    for (size_t i = 0; i < model->diags.count; i++) {
        const onv_diag *diag = &model->diags.at[i];
        bool is_known = diag->severity != ONV_WARNING;
        for (uint32_t k = 0; k < answer->n_warnings && !is_known; k++)
            is_known = strcmp(answer->warnings[k], diag->code) == 0;
        if (!is_known) answer->warnings[answer->n_warnings++] = diag->code;
    }
    return ONV_OK;
}

onv_status onv_answer_make(onv_model *model, const onv_runtime_result *results, size_t n_results,
                           const char *gpu, onv_answer *answer, onv_error *err)
{
    bool has_libraries = false;
    *answer = (onv_answer){
        .devices = answer->devices, .n_devices = answer->n_devices, .n_usual = answer->n_usual};
    for (size_t i = 0; i < n_results; i++) {
        const onv_runtime_result *r = &results[i];
        if (!r->is_judged) continue;
        onv_answer_row *row = &answer->rows[answer->n_rows];
        fill_row(r, i, row);
        row->set_by = set_by_text(model, r);
        if (row->set_by == NULL) return onv_fail_memory(err);
        has_libraries |= r->runtime->has_context;
        if (row->total.high > answer->rows[answer->largest].total.high)
            answer->largest = answer->n_rows;
        answer->n_rows++;
    }
    if (has_libraries) {
        answer->gpu = gpu != NULL ? gpu : usual_gpu;
        answer->is_assumed = gpu == NULL;
    }
    judge_devices(answer);
    return list_warnings(model, answer, err);
}

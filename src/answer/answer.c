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

/* The rows are the results that are judged, in their order. */
static void fill_device(const onv_answer_parts *parts, const onv_answer *answer,
                        const onv_device_fit *from, onv_answer_device *device)
{
    uint32_t n = 0;
    *device = (onv_answer_device){.name = from->name, .fit = &from->fit};
    for (size_t i = 0; i < parts->n_results; i++)
        if (parts->results[i].is_judged) device->totals[n++] = from->totals[i];
    device->largest = find_largest(device->totals, n);
    device->verdict = from->fit.all.fits              ? ONV_VERDICT_FITS
                      : from->fit.all.fits_by_release ? ONV_VERDICT_FITS_BY_RELEASE
                                                      : ONV_VERDICT_DOES_NOT_FIT;
    if (answer->gpu == NULL) return;
    device->gpu = from->gpu != NULL ? from->gpu : answer->gpu;
    device->is_assumed = from->gpu == NULL && answer->is_assumed;
}

static onv_status fill_devices(const onv_answer_parts *parts, onv_answer *answer, onv_error *err)
{
    size_t n = parts->n_devices + parts->n_usual;
    if (answer->n_rows == 0 || n == 0) return ONV_OK;
    answer->devices = ONV_ARENA_ARRAY(&parts->model->arena, onv_answer_device, n);
    if (answer->devices == NULL) return onv_fail_memory(err);
    answer->n_devices = (uint32_t)parts->n_devices;
    answer->n_usual = (uint32_t)parts->n_usual;
    for (size_t i = 0; i < n; i++) {
        onv_answer_device *device = &answer->devices[i];
        fill_device(parts, answer, &parts->devices[i], device);
        answer->fits_some |= i < parts->n_devices && device->verdict == ONV_VERDICT_FITS;
    }
    if (answer->n_devices > 0) answer->verdict = answer->devices[0].verdict;
    return ONV_OK;
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

onv_status onv_answer_make(const onv_answer_parts *parts, onv_answer *answer, onv_error *err)
{
    *answer = (onv_answer){.gpu = NULL};
    bool has_libraries = false;
    for (size_t i = 0; i < parts->n_results; i++) {
        const onv_runtime_result *r = &parts->results[i];
        if (!r->is_judged) continue;
        onv_answer_row *row = &answer->rows[answer->n_rows];
        fill_row(r, i, row);
        row->set_by = set_by_text(parts->model, r);
        if (row->set_by == NULL) return onv_fail_memory(err);
        has_libraries |= r->runtime->has_context;
        if (row->total.high > answer->rows[answer->largest].total.high)
            answer->largest = answer->n_rows;
        answer->n_rows++;
    }
    if (has_libraries) {
        answer->gpu = parts->gpu != NULL ? parts->gpu : usual_gpu;
        answer->is_assumed = parts->gpu == NULL;
    }
    ONV_TRY(fill_devices(parts, answer, err));
    return list_warnings(parts->model, answer, err);
}

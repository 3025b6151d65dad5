#include "measured/measured.h"

#include <string.h>

#include "base/fail.h"
#include "measured/compare.h"

const char *onv_measured_kind_name(onv_measured_kind kind)
{
    static const char *const names[ONV_N_MEASURED_KINDS] = {
        [ONV_MEASURED_PARAMETERS] = "parameters",
        [ONV_MEASURED_GRADIENTS] = "gradients",
        [ONV_MEASURED_OPTIMIZER] = "optimizer",
        [ONV_MEASURED_INPUTS] = "inputs",
        [ONV_MEASURED_ACTIVATIONS] = "activations",
        [ONV_MEASURED_WORKSPACES] = "workspaces",
        [ONV_MEASURED_OTHER] = "other"};
    return names[kind];
}

/* --- Figures ----------------------------------------------------------------------------------- */

static void add_figure(onv_measured *m, const char *what, onv_range predicted, uint64_t measured)
{
    uint64_t below = predicted.low / ONV_MEASURED_TOLERANCE;
    uint64_t above = predicted.high / ONV_MEASURED_TOLERANCE;
    bool is_outside = measured < predicted.low - below ||
                      (measured > predicted.high && measured - predicted.high > above);
    m->figures[m->n_figures++] = (onv_measured_figure){what, predicted, measured, is_outside};
    m->is_outside |= is_outside;
}

/* What exports leave open makes it a range. */
static onv_range allocated_range(const onv_runtime_result *r)
{
    onv_range range = {r->allocated_peak_bytes, r->allocated_peak_bytes};
    if (r->allocated_ends.high > range.high) range.high = r->allocated_ends.high;
    if (r->allocated_ends.low > 0 && r->allocated_ends.low < range.low)
        range.low = r->allocated_ends.low;
    return range;
}

static const onv_answer_row *find_row(const onv_answer *answer, bool needs_torch)
{
    for (uint32_t i = 0; needs_torch && i < answer->n_rows; i++)
        if (strcmp(answer->rows[i].runtime, "train") == 0 ||
            strcmp(answer->rows[i].runtime, "torch") == 0)
            return &answer->rows[i];
    return needs_torch || answer->n_rows == 0 ? NULL : &answer->rows[answer->largest];
}

static onv_status compare_snapshot(const onv_measured_request *request, onv_measured *m,
                                   onv_error *err)
{
    onv_snapshot s;
    onv_status status = onv_snapshot_read(&s, request->snapshot, request->most_bytes, err);
    if (status == ONV_OK) {
        const onv_runtime_result *result = &request->results[m->row->result];
        add_figure(m, "allocated", allocated_range(result), s.allocated_peak);
        add_figure(m, "reserved", m->row->reserved, s.reserved_peak);
        status = onv_measured_compare(request, &s, m, err);
    }
    onv_snapshot_cleanup(&s);
    return status;
}

onv_status onv_measured_make(const onv_measured_request *request, onv_measured *measured,
                             onv_error *err)
{
    *measured = (onv_measured){.total_bytes = request->total_bytes};
    if (request->snapshot == NULL && request->total_bytes == 0) return ONV_OK;
    measured->row = find_row(request->answer, request->snapshot != NULL);
    if (measured->row == NULL)
        return onv_fail(err, ONV_ERR_USAGE,
                        "what was measured is compared with %s, which has no figure: bind "
                        "all dimensions with --batch N or --dim NAME=N",
                        request->snapshot != NULL ? "PyTorch" : "the answer");
    if (request->snapshot != NULL) {
        measured->snapshot = onv_arena_printf(request->arena, "%s", request->snapshot);
        if (measured->snapshot == NULL) return onv_fail_memory(err);
        ONV_TRY(compare_snapshot(request, measured, err));
    }
    if (request->total_bytes > 0)
        add_figure(measured, "on the device", measured->row->total, request->total_bytes);
    return ONV_OK;
}

void onv_measured_cleanup(onv_measured *measured)
{
    onv_vec_cleanup(&measured->modules);
    onv_vec_cleanup(&measured->only_predicted);
    onv_vec_cleanup(&measured->only_measured);
}

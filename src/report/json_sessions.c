#include "report/json_parts.h"
#include "report/text.h"

void onv_json_put_ort_settings(onv_json *json, const onv_ort_settings *settings)
{
    char number[24];
    onv_json_put_open(json, "options", '{', ONV_JSON_INLINE);
    for (size_t i = 0; onv_ort_setting_name(i, NULL) != NULL; i++)
        onv_json_put_string(json, onv_ort_setting_name(i, NULL),
                            onv_ort_setting_value(settings, i, number, sizeof number));
    onv_json_close(json);
}

static void write_advice(const onv_ort_advice *advice, onv_json *json)
{
    onv_json_put_open(json, "ort_advice", '[', ONV_JSON_LINES);
    for (uint32_t i = 0; i < advice->count; i++) {
        const onv_ort_advice_row *row = &advice->rows[i];
        onv_json_open(json, '{', ONV_JSON_INLINE);
        ONV_JSON_FIELDS(json, row, first_run_bytes, steady_bytes, low_bytes);
        onv_json_put_u64(json, "in_use_bytes", row->peak_bytes);
        onv_json_put_u64(json, "least_limit_bytes", row->least_limit);
        onv_json_put_bool(json, "given", i == advice->given);
        onv_json_put_ort_settings(json, &row->settings);
        onv_json_close(json);
    }
    onv_json_close(json);
}

static void write_request(const onv_shape_requests *r, uint32_t i, onv_json *json)
{
    const onv_ort_shape_figures *f = &r->result.requests[i];
    onv_json_open(json, '{', ONV_JSON_INLINE);
    onv_json_put_open(json, "dims", '{', ONV_JSON_INLINE);
    for (uint32_t k = 0; k < r->n_names; k++) {
        onv_json_key(json, r->names[k]);
        onv_json_i64(json, r->sizes[(size_t)i * r->n_names + k]);
    }
    onv_json_close(json);
    onv_json_put_u64(json, "in_use_bytes", f->peak);
    onv_json_put_numbers(json, "reserved_bytes", f->reserved, ONV_ORT_MOST_POLICIES);
    onv_json_close(json);
}

static void write_requests(const onv_shape_requests *r, onv_json *json)
{
    onv_json_put_open(json, "shape_trace", '{', ONV_JSON_LINES);
    onv_json_put_open(json, "policies", '[', ONV_JSON_INLINE);
    for (uint32_t p = 0; p < ONV_ORT_MOST_POLICIES; p++)
        onv_json_string(json, onv_ort_policies[p].name);
    onv_json_close(json);
    onv_json_put_numbers(json, "created_bytes", r->result.created, ONV_ORT_MOST_POLICIES);
    onv_json_put_numbers(json, "most_bytes", r->result.most, ONV_ORT_MOST_POLICIES);
    onv_json_put_numbers(json, "best_order_bytes", r->result.best, ONV_ORT_MOST_POLICIES);
    onv_json_put_numbers(json, "worst_order_bytes", r->result.worst, ONV_ORT_MOST_POLICIES);
    onv_json_put_open(json, "out_of_memory", '[', ONV_JSON_INLINE);
    for (uint32_t p = 0; p < ONV_ORT_MOST_POLICIES; p++)
        onv_json_bool(json, r->result.out_of_memory[p]);
    onv_json_close(json);
    onv_json_put_u64(json, "orders", r->result.n_orders);
    onv_json_put_open(json, "requests", '[', ONV_JSON_LINES);
    for (uint32_t i = 0; i < r->n_requests; i++) write_request(r, i, json);
    onv_json_close(json);
    onv_json_close(json);
}

void onv_json_write_sessions(const onv_json_part *job)
{
    const onv_view *view = job->view;
    onv_json *json = job->json;
    if (view->advice.count > 0) write_advice(&view->advice, json);
    if (view->requests.n_requests > 0) write_requests(&view->requests, json);
}

void onv_json_write_together(const onv_report_job *job, onv_json *json)
{
    const onv_together_info *info = job->options->together;
    const onv_view *view = job->views[0];
    onv_json_put_open(json, "together", '{', ONV_JSON_LINES);
    onv_json_put_u64(json, "sessions", info->sessions);
    onv_json_put_u64(json, "arenas_low_bytes", info->arenas_low);
    onv_json_put_u64(json, "arenas_high_bytes", info->arenas_high);
    onv_json_put_known(json, "shared_arena_bytes", info->shared_arena < UINT64_MAX,
                       info->shared_arena);
    onv_json_put_u64(json, "driver_bytes", info->driver_bytes);
    onv_json_put_u64(json, "context_low_bytes", info->context_low);
    onv_json_put_u64(json, "context_high_bytes", info->context_high);
    onv_json_put_u64(json, "total_low_bytes", info->total_low);
    onv_json_put_u64(json, "total_high_bytes", info->total_high);
    onv_json_put_u64(json, "largest_low_bytes", info->largest_low);
    onv_json_put_u64(json, "largest_high_bytes", info->largest_high);
    onv_json_put_bool(json, "sequential", info->is_sequential);
    onv_json_put_open(json, "fits", '[', ONV_JSON_INLINE);
    for (size_t i = 0; i < view->n_devices; i++) {
        onv_json_open(json, '{', ONV_JSON_INLINE);
        onv_json_put_string(json, "device", view->devices[i].name);
        onv_json_put_u64(json, "budget_bytes", view->devices[i].fit.budget_bytes);
        onv_json_put_bool(json, "fits", onv_fits_together(info, &view->devices[i]));
        onv_json_close(json);
    }
    onv_json_close(json);
    onv_json_close(json);
}

#include "report/json_parts.h"
#include "report/text.h"

void onv_json_put_ort_settings(onv_json *json, const onv_ort_settings *settings)
{
    char number[24];
    ONV_JSON_PART(json, "options", INLINE)
        for (size_t i = 0; onv_ort_setting_name(i, NULL) != NULL; i++)
            onv_json_put_string(json, onv_ort_setting_name(i, NULL),
                                onv_ort_setting_value(settings, i, number, sizeof number));
}

static void write_advice(const onv_ort_advice *advice, onv_json *json)
{
    ONV_JSON_ROWS(json, "ort_advice", i, advice->count, INLINE) {
        const onv_ort_advice_row *row = &advice->rows[i];
        ONV_JSON_FIELDS(json, row, first_run_bytes, steady_bytes, low_bytes);
        onv_json_put_u64(json, "in_use_bytes", row->peak_bytes);
        onv_json_put_u64(json, "least_limit_bytes", row->least_limit);
        onv_json_put_bool(json, "given", i == advice->given);
        onv_json_put_ort_settings(json, &row->settings);
    }
}

static void write_request(const onv_shape_requests *r, uint32_t i, onv_json *json)
{
    const onv_ort_shape_figures *f = &r->result.requests[i];
    ONV_JSON_PART(json, "dims", INLINE)
        for (uint32_t k = 0; k < r->n_names; k++) {
            onv_json_key(json, r->names[k]);
            onv_json_i64(json, r->sizes[(size_t)i * r->n_names + k]);
        }
    onv_json_put_u64(json, "in_use_bytes", f->peak);
    onv_json_put_numbers(json, "reserved_bytes", f->reserved, ONV_ORT_MOST_POLICIES);
}

static void write_requests(const onv_shape_requests *r, onv_json *json)
{
    ONV_JSON_LIST(json, "policies", INLINE)
        for (uint32_t p = 0; p < ONV_ORT_MOST_POLICIES; p++)
            onv_json_string(json, onv_ort_policies[p].name);
    onv_json_put_numbers(json, "created_bytes", r->result.created, ONV_ORT_MOST_POLICIES);
    onv_json_put_numbers(json, "most_bytes", r->result.most, ONV_ORT_MOST_POLICIES);
    onv_json_put_numbers(json, "best_order_bytes", r->result.best, ONV_ORT_MOST_POLICIES);
    onv_json_put_numbers(json, "worst_order_bytes", r->result.worst, ONV_ORT_MOST_POLICIES);
    ONV_JSON_LIST(json, "out_of_memory", INLINE)
        for (uint32_t p = 0; p < ONV_ORT_MOST_POLICIES; p++)
            onv_json_bool(json, r->result.out_of_memory[p]);
    onv_json_put_u64(json, "orders", r->result.n_orders);
    ONV_JSON_ROWS(json, "requests", i, r->n_requests, INLINE) write_request(r, i, json);
}

void onv_json_write_sessions(onv_json *json, const onv_view *view)
{
    if (view->advice.count > 0) write_advice(&view->advice, json);
    if (view->requests.n_requests > 0)
        ONV_JSON_PART(json, "shape_trace", LINES) write_requests(&view->requests, json);
}

void onv_json_write_together(const onv_report_job *job, onv_json *json)
{
    const onv_together_info *info = job->options.together;
    const onv_view *view = job->views[0];
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
    ONV_JSON_LIST(json, "fits", INLINE)
        for (size_t i = 0; i < view->n_devices; i++)
            ONV_JSON_ROW(json, INLINE) {
                onv_json_put_string(json, "device", view->devices[i].name);
                onv_json_put_u64(json, "budget_bytes", view->devices[i].fit.budget_bytes);
                onv_json_put_bool(json, "fits", onv_fits_together(info, &view->devices[i]));
            }
}

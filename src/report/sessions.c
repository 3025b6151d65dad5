/* ONNX Runtime's sessions: settings side by side, sequences of requests, several in one process. */
#include <string.h>

#include "report/sections.h"

/* --- Advice ------------------------------------------------------------------------------------ */

enum { ADVICE_ROWS = 8 };

static const char *search_text(const onv_ort_settings *s)
{
    static const char *const names[] = {"EXHAUSTIVE", "HEURISTIC", "DEFAULT"};
    return names[s->cudnn_conv_algo_search % 3];
}

static void add_advice(onv_table *table, const onv_page *page, const onv_ort_advice_row *row,
                       bool is_given)
{
    const onv_ort_settings *s = &row->settings;
    onv_table_row(table, is_given ? "given" : "",
                  s->arena_extend_strategy == ONV_BFC_SAME_AS_REQUESTED ? "same" : "next 2^n",
                  s->enable_mem_pattern ? "on" : "off",
                  s->use_device_allocator_for_initializers ? "beside" : "in arena", search_text(s),
                  onv_page_bytes(page, row->first_run_bytes),
                  onv_page_bytes(page, row->steady_bytes), onv_page_bytes(page, row->peak_bytes),
                  onv_page_bytes(page, row->least_limit));
}

/* Provider options that differ from the defaults, as `open` KEY `between` VALUE `close`. */
static void write_provider_options(const onv_page *page, const onv_ort_settings *s,
                                   const char *open, const char *between, const char *close)
{
    const onv_ort_settings *d = &onv_ort_settings_default;
    uint32_t n = 0;
    char number[24], other[24];
    for (size_t i = 0; onv_ort_setting_name(i, NULL) != NULL; i++) {
        const char *key = onv_ort_setting_name(i, NULL);
        const char *value = onv_ort_setting_value(s, i, number, sizeof number);
        bool is_session = strchr(key, '.') != NULL || strncmp(key, "enable_mem", 10) == 0 ||
                          strcmp(key, "graph_optimization_level") == 0;
        if (is_session || strcmp(value, onv_ort_setting_value(d, i, other, sizeof other)) == 0)
            continue;
        onv_write_format(page->out, "%s%s\"%s\"%s\"%s\"%s", n++ > 0 ? ", " : "", open, key, between,
                         value, close);
    }
}

/* How the settings are written in a language. */
typedef struct language {
    const char *begin, *no_pattern, *beside, *providers, *open, *between, *close, *end;
} language;

#define BESIDE "\"session.use_device_allocator_for_initializers\", \"1\")"

static const language languages[] = {
    {"  Python\n    options = onnxruntime.SessionOptions()\n",
     "    options.enable_mem_pattern = False\n",
     "    options.add_session_config_entry(" BESIDE "\n", "    cuda = {", "", ": ", "",
     "}\n    session = onnxruntime.InferenceSession(path, options, "
     "providers=[(\"CUDAExecutionProvider\", cuda), \"CPUExecutionProvider\"])\n"},
    {"  C++\n    Ort::SessionOptions options;\n", "    options.DisableMemPattern();\n",
     "    options.AddConfigEntry(" BESIDE ";\n",
     "    Ort::CUDAProviderOptions cuda;\n    cuda.Update({", "{", ", ", "}",
     "});\n    options.AppendExecutionProvider_CUDA_V2(*cuda);\n"}};

static void write_settings(const onv_page *page, const onv_ort_settings *s, const language *l)
{
    onv_write_text(page->out, l->begin);
    if (!s->enable_mem_pattern) onv_write_text(page->out, l->no_pattern);
    if (s->use_device_allocator_for_initializers) onv_write_text(page->out, l->beside);
    onv_write_text(page->out, l->providers);
    write_provider_options(page, s, l->open, l->between, l->close);
    onv_write_text(page->out, l->end);
}

void onv_write_advice(const onv_view *view, const onv_page *page)
{
    const onv_ort_advice *advice = &view->advice;
    if (advice->count == 0) return;
    onv_page_title(page, "Settings of ONNX Runtime, the arena of each");
    onv_table table = onv_table_of("~", "extend", "pattern", "initializers", "search",
                                   "> first run", "> steady", "> in use", "> least limit");
    for (uint32_t i = 0; i < advice->count; i++)
        if (page->verbose || i < ADVICE_ROWS || i == advice->given)
            add_advice(&table, page, &advice->rows[i], i == advice->given);
    onv_table_finish(&table, page);
    if (!page->verbose && advice->count > ADVICE_ROWS)
        onv_write_format(page->out, "  %u of %u; -v shows all\n", (unsigned)ADVICE_ROWS,
                         (unsigned)advice->count);
    onv_ort_settings best = advice->rows[0].settings;
    best.gpu_mem_limit = advice->rows[0].least_limit;
    onv_page_line(page);
    onv_write_text(page->out, "  Least memory, with the limit that is enough:\n");
    for (size_t i = 0; i < sizeof languages / sizeof languages[0]; i++)
        write_settings(page, &best, &languages[i]);
}

/* --- Requests ---------------------------------------------------------------------------------- */

enum { REQUEST_ROWS = 24 };

static const char *dims_text(const onv_page *page, const onv_shape_requests *r, uint32_t request)
{
    const char *text = "";
    for (uint32_t i = 0; i < r->n_names; i++)
        text = onv_page_print(page, "%s%s%s=%lld", text, i > 0 ? " " : "", r->names[i],
                              (long long)r->sizes[(size_t)request * r->n_names + i]);
    return text;
}

static bool grows(const onv_shape_requests *r, uint32_t request)
{
    for (uint32_t p = 0; p < 2; p++) {
        uint64_t before =
            request > 0 ? r->result.requests[request - 1].reserved[p] : r->result.created[p];
        if (r->result.requests[request].reserved[p] > before) return true;
    }
    return false;
}

static void write_request_rows(const onv_shape_requests *r, const onv_page *page)
{
    uint32_t shown = 0;
    bool all = page->verbose || r->n_requests <= REQUEST_ROWS;
    onv_table table =
        onv_table_of(">~", "12 request", "> in use", "> power of two", "> as requested",
                     ">12 power of two, shrunk", ">12 as requested, shrunk");
    for (uint32_t i = 0; i < r->n_requests; i++) {
        bool is_last = i + 1 == r->n_requests;
        if (!all && !is_last && (shown >= REQUEST_ROWS || !grows(r, i))) continue;
        shown++;
        const onv_ort_shape_figures *f = &r->result.requests[i];
        onv_table_row(&table, onv_page_print(page, "%u", i + 1), dims_text(page, r, i),
                      onv_page_bytes(page, f->peak));
        for (uint32_t p = 0; p < ONV_ORT_MOST_POLICIES; p++)
            onv_table_add(&table, onv_page_bytes(page, f->reserved[p]));
    }
    onv_table_finish(&table, page);
    if (!all)
        onv_write_format(page->out,
                         "  requests that make the arena larger, and the last; "
                         "-v shows all %u\n",
                         (unsigned)r->n_requests);
}

void onv_write_requests(const onv_view *view, const onv_page *page)
{
    const onv_shape_requests *r = &view->requests;
    if (r->n_requests == 0) return;
    onv_page_title(page, "Requests to one session of ONNX Runtime, the arena after each");
    write_request_rows(r, page);
    uint64_t in_use = 0;
    for (uint32_t i = 0; i < r->n_requests; i++)
        if (r->result.requests[i].peak > in_use) in_use = r->result.requests[i].peak;
    for (uint32_t p = 0; p < ONV_ORT_MOST_POLICIES; p++) {
        if (r->result.out_of_memory[p]) {
            onv_write_format(page->out, "  %s: gpu_mem_limit is not enough\n",
                             onv_ort_policies[p].name);
            continue;
        }
        uint64_t end = r->result.requests[r->n_requests - 1].reserved[p];
        onv_write_format(page->out, "  %s: %s at most, %s at the end; in other orders %s to %s\n",
                         onv_ort_policies[p].name, onv_label_bytes(r->result.most[p]).text,
                         onv_label_bytes(end).text, onv_label_bytes(r->result.best[p]).text,
                         onv_label_bytes(r->result.worst[p]).text);
    }
    onv_write_format(page->out, "  %u requests of %u shapes, %u orders tried, %s in use at most\n",
                     (unsigned)r->n_requests, (unsigned)r->n_shapes, (unsigned)r->result.n_orders,
                     onv_label_bytes(in_use).text);
}

/* --- Together ---------------------------------------------------------------------------------- */

static void add_sum(onv_table *table, const onv_page *page, const char *name, uint64_t low,
                    uint64_t high, const char *note)
{
    onv_table_row(table, name, onv_page_range(page, low, high), note);
}

static bool fits_together(const onv_together_info *info, const onv_answer_device *device)
{
    return (info->is_sequential ? info->largest_high : info->total_high) <=
           device->fit.usable_bytes;
}

/* Whether all of them fit, by device. */
static void write_together_fits(const onv_report_job *job, const onv_page *page)
{
    const onv_view *view = job->views[0];
    for (size_t i = 0; i < view->answer.n_devices; i++) {
        const onv_answer_device *device = &view->answer.devices[i];
        const onv_together_info *info = job->options.together;
        onv_page_item(page);
        onv_write_format(
            page->out, "%s they %s %s.\n", info->is_sequential ? "One after the other" : "Together",
            fits_together(info, device) ? "fit" : "do not fit",
            device->name != NULL ? device->name : onv_label_bytes(device->fit.budget_bytes).text);
    }
}

void onv_write_together(const onv_report_job *job)
{
    const onv_page *page = &job->page;
    const onv_together_info *info = job->options.together;
    onv_page_title(page, "Together, sessions of ONNX Runtime in one process");
    onv_table table = onv_table_of(ONV_FACTS);
    onv_table_row(&table, "sessions",
                  onv_page_print(page, "%llu", (unsigned long long)info->sessions), "");
    add_sum(&table, page, "arenas", info->arenas_low, info->arenas_high, "one for each session");
    add_sum(&table, page, "handles", info->driver_bytes, info->driver_bytes, "of each session");
    add_sum(&table, page, "context", info->context_low, info->context_high, "once");
    add_sum(&table, page, "total", info->total_low, info->total_high, "all of them at once");
    add_sum(&table, page, "in turn", info->largest_low, info->largest_high,
            "each ends before the next one is made: the largest");
    onv_table_finish(&table, page);
    onv_page_item(page);
    if (info->shared_arena < UINT64_MAX)
        onv_write_format(page->out,
                         "one arena for all (session.use_env_allocators), one run at a time: %s\n",
                         onv_label_bytes(info->shared_arena).text);
    else
        onv_write_text(page->out, "one arena for all: gpu_mem_limit is not enough\n");
    write_together_fits(job, page);
}

/* --- JSON -------------------------------------------------------------------------------------- */

void onv_json_put_ort_settings(onv_json *json, const onv_ort_settings *settings)
{
    char number[24];
    ONV_JSON_PART(json, "options", INLINE)
        for (size_t i = 0; onv_ort_setting_name(i, NULL) != NULL; i++)
            onv_json_put_string(json, onv_ort_setting_name(i, NULL),
                                onv_ort_setting_value(settings, i, number, sizeof number));
}

static void put_advice(const onv_ort_advice *advice, onv_json *json)
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

static void put_request(const onv_shape_requests *r, uint32_t i, onv_json *json)
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

static void put_requests(const onv_shape_requests *r, onv_json *json)
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
    ONV_JSON_ROWS(json, "requests", i, r->n_requests, INLINE) put_request(r, i, json);
}

void onv_json_write_sessions(onv_json *json, const onv_view *view)
{
    if (view->advice.count > 0) put_advice(&view->advice, json);
    if (view->requests.n_requests > 0)
        ONV_JSON_PART(json, "shape_trace", LINES) put_requests(&view->requests, json);
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
        for (size_t i = 0; i < view->answer.n_devices; i++)
            ONV_JSON_ROW(json, INLINE) {
                onv_json_put_string(json, "device", view->answer.devices[i].name);
                onv_json_put_u64(json, "budget_bytes", view->answer.devices[i].fit.budget_bytes);
                onv_json_put_bool(json, "fits", fits_together(info, &view->answer.devices[i]));
            }
}

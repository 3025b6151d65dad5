/* Parts of the JSON report that stand in several of its objects, or in files of their own. */
#ifndef ONV_REPORT_JSON_PARTS_H
#define ONV_REPORT_JSON_PARTS_H

#include "report/format.h"
#include "report/json.h"
#include "report/report.h"

/* Each writes members into the object that is open. Bindings, runtimes, savings, sessions and free dims are members with
 * keys of their own, and absent where there are none. They use the writer's `scratch`, which is emptied after each tensor,
 * node or region, so that a large model needs no more memory than a small one. */
typedef void onv_json_part_fn(onv_json *json, const onv_view *view);
onv_json_part_fn onv_json_write_answer, onv_json_write_bindings, onv_json_write_peak,
    onv_json_write_runtimes, onv_json_write_training, onv_json_write_measured,
    onv_json_write_replays, onv_json_write_sessions, onv_json_write_quantized,
    onv_json_write_kv_cache, onv_json_write_savings, onv_json_write_open;

void onv_json_put_range(onv_json *json, const char *key, onv_range range);        /* a pair */
void onv_json_put_ort_settings(onv_json *json, const onv_ort_settings *settings); /* "options" */
void onv_json_put_total(onv_json *json, onv_range total); /* "low_bytes" and "high_bytes" */
/* "fits", and the largest size where it was searched, with the second figures where they differ. */
void onv_json_write_fit_of(onv_json *json, const onv_fit *fit, const onv_fit_of *of);

/* The object that recompute.apply() takes, as the member `key`; NULL: alone. */
void onv_json_put_plan(onv_json *json, const char *key, const onv_training_plan *plan);

/* "time": an estimate, or why there is none; nothing where nobody asked. That of a plan has its overhead. */
void onv_json_put_time(onv_json *json, const onv_time *time, bool is_plan);

/* Parts of a plan. `are_places`: segments from place to place, not from node to node. */
void onv_json_put_segments(onv_json *json, const onv_training_plan *plan, bool are_places);
void onv_json_put_memory_budget(onv_json *json, double budget);

/* "timelines": what was kept to be drawn; nothing where nothing was. `named` has the names of tensors and nodes; the
 * view may be its example. */
void onv_json_write_timelines(onv_json *json, const onv_view *view, const onv_view *named);

/* The whole report. */
void onv_json_write_document(const onv_report_job *job, onv_json *json);

void onv_json_write_together(const onv_report_job *job, onv_json *json);

#endif

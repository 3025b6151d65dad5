/* Parts of the JSON report that stand in several of its objects, or in files of their own. */
#ifndef ONV_REPORT_JSON_PARTS_H
#define ONV_REPORT_JSON_PARTS_H

#include "report/format.h"
#include "report/json.h"
#include "report/report.h"

/* Where a part writes: the members of the object of one model. `scratch` is emptied now and then,
 * so that a large model costs no more memory than a small one. */
typedef struct onv_json_part {
    onv_json *json;
    const onv_view *view;
    onv_arena *scratch;
} onv_json_part;

void onv_json_write_answer(const onv_json_part *job);                             /* "answer" */
void onv_json_put_range(onv_json *json, const char *key, onv_range range);        /* a pair */
void onv_json_put_ort_settings(onv_json *json, const onv_ort_settings *settings); /* "options" */
void onv_json_put_total(onv_json *json, onv_range total); /* "low_bytes" and "high_bytes" */
/* "fits", and the largest size where it was searched, with the second figures where they differ. */
void onv_json_write_fit_of(onv_json *json, const onv_fit *fit, const onv_fit_of *of);
void onv_json_write_bindings(const onv_json_part *job); /* "bindings" */
void onv_json_write_peak(const onv_json_part *job);     /* "peak" */
void onv_json_write_runtimes(
    const onv_json_part *job); /* "runtimes"; nothing where there are none */

void onv_json_write_training(
    const onv_json_part *job); /* "training"; nothing where it was not asked for */

/* The object that recompute.apply() takes, as the member `key`; NULL: alone. */
void onv_json_put_plan(onv_json *json, const char *key, const onv_training_plan *plan);

/* "time": an estimate, or why there is none; nothing where nobody asked. That of a plan has its overhead. */
void onv_json_put_time(onv_json *json, const onv_time *time, bool is_plan);

/* Parts of a plan. `are_places`: segments from place to place, not from node to node. */
void onv_json_put_segments(onv_json *json, const onv_training_plan *plan, bool are_places);
void onv_json_put_memory_budget(onv_json *json, double budget);

/* "free_dims", "formula" and "example"; nothing where no dim is free. */
void onv_json_write_open(const onv_json_part *job);

/* "timelines": what was kept to be drawn; nothing where nothing was. Names are those of the tensors and
 * nodes of `named`, of which the part's view may be an example. */
void onv_json_write_timelines(const onv_json_part *job, const onv_view *named);

/* The whole report. */
onv_status onv_json_write_document(const onv_report_job *job, onv_json *json);

void onv_json_write_measured(const onv_json_part *job); /* "measured" */
void onv_json_write_replays(const onv_json_part *job);  /* "replay" */
void onv_json_write_sessions(const onv_json_part *job); /* settings of ONNX Runtime, and requests */
void onv_json_write_together(const onv_report_job *job, onv_json *json);

/* What would be otherwise (json_what_if.c). */
void onv_json_write_quantized(const onv_json_part *job);
void onv_json_write_kv_cache(const onv_json_part *job);
void onv_json_write_savings(const onv_json_part *job);

#endif

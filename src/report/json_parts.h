/* Parts of the JSON report that stand in several of its objects, or in files of their own. */
#ifndef ONV_REPORT_JSON_PARTS_H
#define ONV_REPORT_JSON_PARTS_H

#include "report/json.h"
#include "report/report.h"

/* Where a part writes: the members of the object of one model. `scratch` is emptied now and then,
 * so that a large model costs no more memory than a small one. */
typedef struct onv_json_part {
    onv_json *json;
    const onv_view *view;
    onv_arena *scratch;
} onv_json_part;

void onv_json_write_bindings(const onv_json_part *job); /* "bindings" */
void onv_json_write_peak(const onv_json_part *job);     /* "peak" */
void onv_json_write_runtimes(
    const onv_json_part *job); /* "runtimes"; nothing where there are none */

/* "free_dims", "formula" and "example"; nothing where no dim is free. */
void onv_json_write_open(const onv_json_part *job);

/* What would be otherwise (json_what_if.c). */
void onv_json_write_quantized(const onv_json_part *job);
void onv_json_write_kv_cache(const onv_json_part *job);
void onv_json_write_savings(const onv_json_part *job);

#endif

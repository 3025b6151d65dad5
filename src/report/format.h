/* The formats, one row each; report.c lists them. */
#ifndef ONV_REPORT_FORMAT_H
#define ONV_REPORT_FORMAT_H

#include "report/report.h"
#include "report/writer.h"

/* Everything a format works with. `options` is complete and `out` is finished by the caller, who
 * also turns a sticky failure of the arena (scratch, empty at the start) into an error. */
typedef struct onv_report_job {
    const onv_view *views;
    size_t count;
    const onv_report_options *options;
    onv_writer *out;
    onv_arena *arena;
    onv_error *err;
} onv_report_job;

typedef struct onv_report_format {
    onv_format id;
    const char *name;
    const char *summary;
    onv_status (*write)(const onv_report_job *job);
} onv_report_format;

/* Planners, simulators and viewers would be misled by a missing size: without every size, and of several
 * models, there is no `what`. */
onv_status onv_need_sizes(const onv_report_job *job, const onv_view *view, const char *what);

extern const onv_report_format onv_format_text;
extern const onv_report_format onv_format_json;
extern const onv_report_format onv_format_csv;
extern const onv_report_format onv_format_layers;
extern const onv_report_format onv_format_dump_graph;
extern const onv_report_format onv_format_dump_intervals;
extern const onv_report_format onv_format_dump_plan;
extern const onv_report_format onv_format_dump_trace;
extern const onv_report_format onv_format_dump_replay;
extern const onv_report_format onv_format_checkpoints;
extern const onv_report_format onv_format_ort_partition;
extern const onv_report_format onv_format_formula;
extern const onv_report_format onv_format_markdown;
extern const onv_report_format onv_format_diff;
extern const onv_report_format onv_format_diff_markdown;
extern const onv_report_format onv_format_diff_json;
extern const onv_report_format onv_format_onnx;
extern const onv_report_format onv_format_dump_header;
extern const onv_report_format onv_format_html;
extern const onv_report_format onv_format_svg;
extern const onv_report_format onv_format_memory_viz;
extern const onv_report_format onv_format_perfetto;
extern const onv_report_format onv_format_model_explorer;
extern const onv_report_format onv_format_formula_python;
extern const onv_report_format onv_format_formula_c;

/* All of them, for documentation and tests. */
extern const onv_report_format *const onv_report_formats[];
extern const size_t onv_n_report_formats;

#endif

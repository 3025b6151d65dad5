/* The formats, one row each; report.c lists them. */
#ifndef ONV_REPORT_FORMAT_H
#define ONV_REPORT_FORMAT_H

#include "report/json.h"
#include "report/page.h"
#include "report/report.h"
#include "report/writer.h"

/* A model in a row of the text report's comparison: the cells of its table, then by runtime that is judged its name and,
 * in decimals, the upper end of what it needs. */
enum { ONV_COMPARED_CELLS = 5, ONV_COMPARED_MOST = ONV_COMPARED_CELLS + 2 * ONV_MAX_RUNTIMES };
typedef struct onv_compared {
    const char *fields[ONV_COMPARED_MOST];
    size_t count;
} onv_compared;

/* A report while it is written, and everything that a format works with. It stays where it is meanwhile. */
typedef struct onv_report_job {
    const struct onv_report_format *format;
    onv_report_options options; /* complete */
    onv_page page;              /* these two: on `out`, with `arena` */
    onv_json json;
    onv_writer *out; /* finished by the caller */
    onv_arena
        *arena; /* scratch, empty at the start; the caller turns its sticky failure into an error */
    const onv_view *const *views;
    size_t count;    /* of views: all models, or the one that is written */
    size_t expected; /* models in the whole report, at most */
    onv_error *err;
    /* Of the models that were written: */
    size_t written;
    size_t between; /* bytes that separate the last model from the one before */
    onv_arena kept; /* texts of `compared` */
    ONV_VEC(onv_compared) compared;
    onv_writer writer;
    onv_arena scratch;
} onv_report_job;

typedef onv_status onv_format_fn(onv_report_job *job);

/* A model is added for itself, so that it need not be kept, between a beginning and an end. NULL: there is nothing to write. What
 * shows all models at once has an end alone, which then sees them. */
typedef struct onv_report_format {
    onv_format_fn *begin, *add, *end;
    bool is_markdown;
} onv_report_format;

bool onv_report_is_by_model(onv_format format);

/* What was made for one element in an arena is dropped behind it; a failure stays. */
static inline void onv_end_element(onv_arena *arena)
{
    if (!arena->failed) onv_arena_reset(arena);
}

/* In a format's `add`: what separates a model from the one before; nothing before the first. */
void onv_write_between(onv_report_job *job, const char *text);

/* A report that is written model by model: a start, onv_report_put for each, onv_report_stop in any case, with what came of the
 * others. */
onv_status onv_report_start(onv_report_job *job, onv_format format, size_t expected,
                            const onv_report_options *options, onv_write_fn write, void *context,
                            onv_error *err);
onv_status onv_report_put(onv_report_job *job, const onv_view *view, onv_error *err);
onv_status onv_report_stop(onv_report_job *job, const onv_view *const *views, size_t count,
                           onv_status status, onv_error *err);

/* Steps of these: the beginning, before the first model; the end of a run that writes no more. */
onv_status onv_report_open(onv_report_job *job, onv_error *err);
void onv_report_drop(onv_report_job *job);

/* What onv_report_put would write of the view, for onv_report_put_part of another process of this program. */
onv_status onv_report_write_part(const onv_view *view, onv_format format, size_t expected,
                                 const onv_report_options *options, onv_write_fn write,
                                 void *context, onv_error *err);
onv_status onv_report_put_part(onv_report_job *job, const char *part, size_t bytes, onv_error *err);

/* Planners, simulators and viewers would be misled by a missing size: without every size, and of several
 * models, there is no `what`. */
onv_status onv_need_sizes(const onv_report_job *job, const onv_view *view, const char *what);

/* Those of the formats, which report.c lists. */
onv_format_fn onv_format_text_add, onv_format_text_end, onv_format_json_begin, onv_format_json_add,
    onv_format_json_end, onv_format_csv_begin, onv_format_csv_add, onv_format_layers_add,
    onv_format_dump_graph_add, onv_format_dump_program_add, onv_format_dump_intervals_write,
    onv_format_dump_plan_write, onv_format_dump_trace_write, onv_format_dump_replay_write,
    onv_format_checkpoints_write, onv_format_checkpoints_python_write,
    onv_format_ort_partition_write, onv_format_formula_write, onv_format_formula_python_write,
    onv_format_formula_c_write, onv_format_diff_write, onv_format_diff_json_write,
    onv_format_measured_write, onv_format_onnx_write, onv_format_dump_header_write,
    onv_format_svg_write, onv_format_html_write, onv_format_memory_viz_write,
    onv_format_perfetto_write, onv_format_model_explorer_write;

/* onv_page_write, to a writer. */
onv_status onv_page_around(const char *title, const char *json, const char *still, onv_writer *out,
                           onv_error *err);

#endif

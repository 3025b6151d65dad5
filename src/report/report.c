#include "report/report.h"

#include <string.h>

#include "base/fail.h"
#include "report/format.h"

static const onv_report_format formats[] = {
    [ONV_FORMAT_TEXT] = {.add = onv_format_text_add, .end = onv_format_text_end},
    [ONV_FORMAT_JSON] = {.begin = onv_format_json_begin,
                         .add = onv_format_json_add,
                         .end = onv_format_json_end},
    [ONV_FORMAT_CSV] = {.begin = onv_format_csv_begin, .add = onv_format_csv_add},
    [ONV_FORMAT_LAYERS] = {.add = onv_format_layers_add},
    [ONV_FORMAT_DUMP_GRAPH] = {.add = onv_format_dump_graph_add},
    [ONV_FORMAT_DUMP_PROGRAM] = {.add = onv_format_dump_program_add},
    [ONV_FORMAT_DUMP_INTERVALS] = {.end = onv_format_dump_intervals_write},
    [ONV_FORMAT_DUMP_PLAN] = {.end = onv_format_dump_plan_write},
    [ONV_FORMAT_DUMP_TRACE] = {.end = onv_format_dump_trace_write},
    [ONV_FORMAT_DUMP_REPLAY] = {.end = onv_format_dump_replay_write},
    [ONV_FORMAT_CHECKPOINTS] = {.end = onv_format_checkpoints_write},
    [ONV_FORMAT_CHECKPOINTS_PYTHON] = {.end = onv_format_checkpoints_python_write},
    [ONV_FORMAT_ORT_PARTITION] = {.end = onv_format_ort_partition_write},
    [ONV_FORMAT_FORMULA] = {.end = onv_format_formula_write},
    [ONV_FORMAT_FORMULA_PYTHON] = {.end = onv_format_formula_python_write},
    [ONV_FORMAT_FORMULA_C] = {.end = onv_format_formula_c_write},
    [ONV_FORMAT_MARKDOWN] = {.add = onv_format_text_add,
                             .end = onv_format_text_end,
                             .is_markdown = true},
    [ONV_FORMAT_DIFF] = {.end = onv_format_diff_write},
    [ONV_FORMAT_DIFF_MARKDOWN] = {.end = onv_format_diff_write, .is_markdown = true},
    [ONV_FORMAT_DIFF_JSON] = {.end = onv_format_diff_json_write},
    [ONV_FORMAT_MEASURED] = {.end = onv_format_measured_write},
    [ONV_FORMAT_MEASURED_MARKDOWN] = {.end = onv_format_measured_write, .is_markdown = true},
    [ONV_FORMAT_ONNX] = {.end = onv_format_onnx_write},
    [ONV_FORMAT_DUMP_HEADER] = {.end = onv_format_dump_header_write},
    [ONV_FORMAT_HTML] = {.end = onv_format_html_write},
    [ONV_FORMAT_SVG] = {.end = onv_format_svg_write},
    [ONV_FORMAT_MEMORY_VIZ] = {.end = onv_format_memory_viz_write},
    [ONV_FORMAT_PERFETTO] = {.end = onv_format_perfetto_write},
    [ONV_FORMAT_MODEL_EXPLORER] = {.end = onv_format_model_explorer_write},
};

const char *onv_view_file(const onv_view *view)
{
    const char *path = onv_view_path(view), *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static const onv_report_format *find_format(onv_format format)
{
    return (size_t)format < sizeof formats / sizeof formats[0] ? &formats[format] : NULL;
}

bool onv_report_is_by_model(onv_format format)
{
    const onv_report_format *found = find_format(format);
    return found != NULL && found->add != NULL;
}

onv_status onv_report_start(onv_report_job *job, onv_format format, size_t expected,
                            const onv_report_options *options, onv_write_fn write, void *context,
                            onv_error *err)
{
    *job = (onv_report_job){.format = find_format(format), .options = *options};
    job->expected = expected;
    job->out = &job->writer;
    job->arena = &job->scratch;
    onv_writer_init(job->out, write, context);
    /* What a report holds at once is a part of what the analysis holds, which has a limit. */
    onv_arena_init(job->arena, SIZE_MAX);
    onv_arena_init(&job->kept, SIZE_MAX);
    onv_json_init(&job->json, job->out, job->arena);
    if (job->format == NULL)
        return onv_fail(err, ONV_ERR_USAGE, "there is no report format %d", (int)format);
    job->page = onv_page_make(job->out, job->arena, options);
    if (job->format->is_markdown) {
        job->page.mode = ONV_CLEAN_MARKDOWN;
        job->page.color = job->page.verbose = false;
    }
    return ONV_OK;
}

static onv_status part(onv_report_job *job, onv_format_fn *write, const onv_view *const *views,
                       size_t count, onv_error *err)
{
    if (write == NULL) return ONV_OK;
    job->views = views;
    job->count = count;
    job->err = err;
    onv_status status = write(job);
    if (status == ONV_OK && job->arena->failed) status = onv_fail_memory(err);
    onv_arena_reset(job->arena);
    return status;
}

onv_status onv_report_open(onv_report_job *job, onv_error *err)
{
    return job->written > 0 ? ONV_OK : part(job, job->format->begin, NULL, 0, err);
}

onv_status onv_report_put(onv_report_job *job, const onv_view *view, onv_error *err)
{
    uint64_t *most = &job->out->most;
    if (__builtin_add_overflow(*most, view->model.most_output, most)) *most = UINT64_MAX;
    ONV_TRY(onv_report_open(job, err));
    ONV_TRY(part(job, job->format->add, &view, 1, err));
    job->written++;
    return onv_writer_finish(job->out, err);
}

onv_status onv_report_stop(onv_report_job *job, const onv_view *const *views, size_t count,
                           onv_status status, onv_error *err)
{
    if (status == ONV_OK) status = onv_report_open(job, err);
    if (status == ONV_OK) status = part(job, job->format->end, views, count, err);
    onv_status written = onv_writer_finish(job->out, status == ONV_OK ? err : NULL);
    onv_report_drop(job);
    return status != ONV_OK ? status : written;
}

void onv_report_drop(onv_report_job *job)
{
    onv_arena_cleanup(job->arena);
    onv_arena_cleanup(&job->kept);
    onv_vec_cleanup(&job->compared);
}

onv_status onv_report_write(const onv_view *const *views, size_t count, onv_format format,
                            const onv_report_options *options, onv_write_fn write, void *context,
                            onv_error *err)
{
    onv_report_job job;
    onv_status status = onv_report_start(&job, format, count, options, write, context, err);
    if (status == ONV_OK && job.format->add == NULL && count == 0)
        status = onv_fail(err, ONV_ERR_USAGE, "expected a model to report on, found none");
    for (size_t i = 0; i < count && status == ONV_OK; i++)
        status = onv_report_put(&job, views[i], err);
    return onv_report_stop(&job, views, count, status, err);
}

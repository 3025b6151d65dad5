#include "report/report.h"

#include "base/fail.h"
#include "report/format.h"

const onv_report_format *const onv_report_formats[] = {
    &onv_format_text,
    &onv_format_json,
    &onv_format_csv,
    &onv_format_layers,
    &onv_format_dump_graph,
    &onv_format_dump_program,
    &onv_format_dump_intervals,
    &onv_format_dump_plan,
    &onv_format_dump_trace,
    &onv_format_dump_replay,
    &onv_format_checkpoints,
    &onv_format_ort_partition,
    &onv_format_formula,
    &onv_format_formula_python,
    &onv_format_formula_c,
    &onv_format_markdown,
    &onv_format_diff,
    &onv_format_diff_markdown,
    &onv_format_diff_json,
    &onv_format_measured,
    &onv_format_measured_markdown,
    &onv_format_onnx,
    &onv_format_dump_header,
    &onv_format_html,
    &onv_format_svg,
    &onv_format_memory_viz,
    &onv_format_perfetto,
    &onv_format_model_explorer,
};

const size_t onv_n_report_formats = sizeof onv_report_formats / sizeof onv_report_formats[0];

static const onv_report_format *find_format(onv_format format)
{
    for (size_t i = 0; i < onv_n_report_formats; i++)
        if (onv_report_formats[i]->id == format) return onv_report_formats[i];
    return NULL;
}

bool onv_report_is_by_model(onv_format format)
{
    const onv_report_format *found = find_format(format);
    return found != NULL && found->add != NULL;
}

onv_status onv_report_start(onv_report_run *run, onv_format format, size_t expected,
                            const onv_report_options *options, onv_write_fn write, void *context,
                            onv_error *err)
{
    *run = (onv_report_run){.format = find_format(format), .options = *options};
    run->job = (onv_report_job){
        .expected = expected,
        .options = &run->options,
        .out = &run->writer,
        .arena = &run->arena,
        .state = &run->state,
    };
    onv_writer_init(&run->writer, write, context);
    /* What a report holds at once is a part of what the analysis holds, which has a limit. */
    onv_arena_init(&run->arena, SIZE_MAX);
    onv_arena_init(&run->state.kept, SIZE_MAX);
    if (run->format != NULL) return ONV_OK;
    return onv_fail(err, ONV_ERR_USAGE, "there is no report format %d", (int)format);
}

static onv_status part(onv_report_run *run, onv_status (*write)(const onv_report_job *job),
                       const onv_view *views, size_t count, onv_error *err)
{
    if (write == NULL) return ONV_OK;
    run->job.views = views;
    run->job.count = count;
    run->job.err = err;
    onv_status status = write(&run->job);
    if (status == ONV_OK && run->arena.failed) status = onv_fail_memory(err);
    onv_arena_reset(&run->arena);
    return status;
}

onv_status onv_report_open(onv_report_run *run, onv_error *err)
{
    return run->state.written > 0 ? ONV_OK : part(run, run->format->begin, NULL, 0, err);
}

onv_status onv_report_put(onv_report_run *run, const onv_view *view, onv_error *err)
{
    uint64_t *most = &run->writer.most;
    if (__builtin_add_overflow(*most, view->model->most_output, most)) *most = UINT64_MAX;
    ONV_TRY(onv_report_open(run, err));
    ONV_TRY(part(run, run->format->add, view, 1, err));
    run->state.written++;
    return onv_writer_finish(&run->writer, err);
}

onv_status onv_report_stop(onv_report_run *run, const onv_view *views, size_t count,
                           onv_status status, onv_error *err)
{
    if (status == ONV_OK) status = onv_report_open(run, err);
    if (status == ONV_OK) status = part(run, run->format->end, views, count, err);
    onv_status written = onv_writer_finish(&run->writer, status == ONV_OK ? err : NULL);
    onv_report_drop(run);
    return status != ONV_OK ? status : written;
}

void onv_report_drop(onv_report_run *run)
{
    onv_arena_cleanup(&run->arena);
    onv_arena_cleanup(&run->state.kept);
    onv_vec_cleanup(&run->state.compared);
}

onv_status onv_report_write(const onv_view *views, size_t count, onv_format format,
                            const onv_report_options *options, onv_write_fn write, void *context,
                            onv_error *err)
{
    onv_report_run run;
    onv_status status = onv_report_start(&run, format, count, options, write, context, err);
    bool is_whole = status == ONV_OK && run.format->write != NULL;
    if (is_whole && count == 0) {
        status = onv_fail(err, ONV_ERR_USAGE, "expected a model to report on, found none");
    } else if (is_whole) {
        for (size_t i = 0; i < count; i++)
            if (__builtin_add_overflow(run.writer.most, views[i].model->most_output,
                                       &run.writer.most))
                run.writer.most = UINT64_MAX;
        status = part(&run, run.format->write, views, count, err);
    } else {
        for (size_t i = 0; i < count && status == ONV_OK; i++)
            status = onv_report_put(&run, &views[i], err);
    }
    return onv_report_stop(&run, views, count, status, err);
}

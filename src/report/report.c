#include "report/report.h"

#include "report/format.h"

const onv_report_format *const onv_report_formats[] = {
    &onv_format_text,
    &onv_format_json,
    &onv_format_csv,
    &onv_format_layers,
    &onv_format_dump_graph,
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
    &onv_format_onnx,
    &onv_format_dump_header,
    &onv_format_html,
    &onv_format_svg,
    &onv_format_memory_viz,
    &onv_format_perfetto,
    &onv_format_model_explorer,
};

const size_t onv_n_report_formats = sizeof onv_report_formats / sizeof onv_report_formats[0];

onv_status onv_report_write(const onv_view *views, size_t count, onv_format format,
                            const onv_report_options *options, onv_write_fn write, void *context,
                            onv_error *err)
{
    const onv_report_format *found = NULL;
    for (size_t i = 0; i < onv_n_report_formats; i++)
        if (onv_report_formats[i]->id == format) found = onv_report_formats[i];
    if (found == NULL)
        return onv_fail(err, ONV_ERR_USAGE, "there is no report format %d", (int)format);
    const onv_report_options defaults = onv_report_options_default();
    onv_writer writer;
    onv_writer_init(&writer, write, context);
    for (size_t i = 0; i < count; i++)
        if (__builtin_add_overflow(writer.most, views[i].model->most_output, &writer.most))
            writer.most = UINT64_MAX;
    onv_arena arena;
    /* What a report holds at once is a part of what the analysis holds, which has a limit. */
    onv_arena_init(&arena, SIZE_MAX);
    onv_report_job job = {
        .views = views,
        .count = count,
        .options = options != NULL ? options : &defaults,
        .out = &writer,
        .arena = &arena,
        .err = err,
    };
    onv_status status = found->write(&job);
    if (status == ONV_OK && arena.failed) status = onv_fail_memory(err);
    onv_status written = onv_writer_finish(&writer, status == ONV_OK ? err : NULL);
    onv_arena_cleanup(&arena);
    return status != ONV_OK ? status : written;
}

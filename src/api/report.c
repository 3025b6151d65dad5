/* Reports of finished analyses. */
#include "api/analysis.h"
#include "api/sized.h"
#include "base/fail.h"
#include "load/limits.h"
#include "report/format.h"

void onv_report_options_init(onv_report_options *options, size_t size)
{
    onv_start(options, size);
}

static onv_report_options complete_options(const onv_report_options *given)
{
    onv_report_options options = onv_report_options_default();
    if (given != NULL) onv_take(&options, sizeof options, given, given->struct_size);
    return options;
}

/* What a short search for the best order reaches; UINT64_MAX where the user chose an order, or the
 * graph is too large to look for one on the side. */
static onv_status peak_of_better_order(onv_analysis *analysis, uint64_t *peak, onv_error *err)
{
    enum { MOST_NODES = 20000, EFFORT = 50000 /* some 50 ms */ };
    const onv_order_options how = {.effort = EFFORT};
    onv_order_result *order = &analysis->best_order;
    *peak = UINT64_MAX;
    if (strcmp(analysis->order.name, "model") != 0 ||
        analysis->live.timeline.steps.count > MOST_NODES)
        return ONV_OK;
    ONV_TRY(onv_order_compute(onv_order_find("optimal"), &analysis->model, &how, order, err));
    *peak = order->peak_bytes;
    return ONV_OK;
}

/* Looks for the best order and for what changes of the whole model save, once, where all sizes are known. */
static onv_status find_what_if(const onv_analysis *analysis, onv_error *err)
{
    onv_analysis *of = &analysis->making->analysis;
    uint64_t better;
    if (of->has_what_if || of->live.unknown > 0) return ONV_OK;
    ONV_TRY(peak_of_better_order(of, &better, err));
    ONV_TRY(onv_global_savings_compute(&of->model, &of->live, better, &of->global_savings, err));
    of->has_what_if = true;
    return ONV_OK;
}

/* The line of a quiet report has no formula, and nothing that could be otherwise. */
static onv_status prepare(const onv_analysis *analysis, onv_format format,
                          const onv_report_options *options, onv_error *error)
{
    if (format == ONV_FORMAT_TEXT && options->verbosity < 0) return ONV_OK;
    ONV_TRY(onv_analysis_formula(analysis, error));
    ONV_TRY(find_what_if(analysis, error));
    return analysis->example != NULL ? find_what_if(analysis->example, error) : ONV_OK;
}

static onv_status report(const onv_analysis *const *analyses, size_t count, onv_format format,
                         const onv_report_options *options, onv_write_fn write, void *context,
                         onv_error *error)
{
    for (size_t i = 0; i < count; i++) ONV_TRY(prepare(analyses[i], format, options, error));
    return onv_report_write(analyses, count, format, options, write, context, error);
}

/* What one of the analyses has left of its memory. */
static onv_watch most_left(const onv_analysis *const *analyses, size_t count)
{
    onv_watch most = {0};
    for (size_t i = 0; i < count; i++) {
        const onv_quota *has = &analyses[i]->making->watch.quota;
        if (i == 0 || has->limit - has->used > most.quota.limit - most.quota.used)
            most = analyses[i]->making->watch;
    }
    return most;
}

onv_status onv_report(const onv_analysis *const *analyses, size_t count, onv_format format,
                      const onv_report_options *options, onv_write_fn write, void *context,
                      onv_error *error)
{
    if (error != NULL) *error = (onv_error){0};
    onv_report_options complete = complete_options(options);
    if (count == 0) return report(analyses, count, format, &complete, write, context, error);
    onv_watch watch = most_left(analyses, count);
    onv_watch_resume(&watch);
    onv_status status = report(analyses, count, format, &complete, write, context, error);
    return onv_watch_leave(&watch, status, error);
}

/* --- Model by model ---------------------------------------------------------------------------- */

struct onv_report_stream {
    onv_report_job job;
    onv_status status; /* of what was added */
    onv_error why;
};

bool onv_report_can_stream(onv_format format)
{
    return onv_report_is_by_model(format);
}

static onv_status check_by_model(onv_format format, const onv_report_options *options,
                                 onv_error *error)
{
    if (onv_report_is_by_model(format) && options->together == NULL) return ONV_OK;
    return onv_fail(error, ONV_ERR_USAGE, "that report takes all models at once: onv_report()");
}

onv_status onv_report_begin(onv_format format, size_t expected, const onv_report_options *options,
                            onv_write_fn write, void *context, onv_report_stream **stream,
                            onv_error *error)
{
    *stream = NULL;
    if (error != NULL) *error = (onv_error){0};
    onv_report_options complete = complete_options(options);
    ONV_TRY(check_by_model(format, &complete, error));
    onv_report_stream *made = onv_heap_calloc(1, sizeof *made);
    if (made == NULL) return onv_fail_memory(error);
    *stream = made;
    return onv_report_start(&made->job, format, expected, &complete, write, context, error);
}

onv_status onv_report_part(const onv_analysis *analysis, onv_format format, size_t expected,
                           const onv_report_options *options, onv_write_fn write, void *context,
                           onv_error *error)
{
    if (error != NULL) *error = (onv_error){0};
    onv_report_options complete = complete_options(options);
    ONV_TRY(check_by_model(format, &complete, error));
    onv_watch watch = most_left(&analysis, 1);
    onv_watch_resume(&watch);
    onv_status status = prepare(analysis, format, &complete, error);
    if (status == ONV_OK)
        status =
            onv_report_write_part(analysis, format, expected, &complete, write, context, error);
    return onv_watch_leave(&watch, status, error);
}

onv_status onv_report_add_part(onv_report_stream *stream, const void *part, size_t bytes,
                               onv_error *error)
{
    if (error != NULL) *error = (onv_error){0};
    if (stream->status == ONV_OK) {
        onv_locale locale = onv_locale_enter();
        stream->status = onv_report_put_part(&stream->job, part, bytes, &stream->why);
        onv_locale_leave(locale);
    }
    if (error != NULL) *error = stream->why;
    return stream->status;
}

onv_status onv_report_end(onv_report_stream *stream, onv_error *error)
{
    if (error != NULL) *error = (onv_error){0};
    if (stream == NULL) return ONV_OK;
    onv_locale locale = onv_locale_enter();
    onv_status status = onv_report_stop(&stream->job, NULL, 0, stream->status, &stream->why);
    onv_locale_leave(locale);
    if (error != NULL) *error = stream->why;
    onv_heap_free(stream);
    return status;
}

onv_status onv_page_write(const char *title, const char *json, const char *still,
                          onv_write_fn write, void *context, onv_error *error)
{
    onv_writer out;
    onv_writer_init(&out, write, context);
    onv_status status = onv_page_around(title, json, still, &out, error);
    return status == ONV_OK ? onv_writer_finish(&out, error) : status;
}

/* What stands between the passes, as text that other programs take: intervals, offsets, trace. */
#include <string.h>

#include "report/csv.h"
#include "report/format.h"
#include "report/value.h"

/* Intervals and traces are input to planners and simulators, which a missing size would mislead:
 * without every size there is no dump. */
static onv_status need_sizes(const onv_report_job *job, const onv_view *view, const char *what)
{
    const onv_live *live = view->live;
    if (job->count > 1)
        return onv_fail(job->err, ONV_ERR_USAGE, "the %s dump takes one model at a time", what);
    if (live->unknown == 0) return ONV_OK;
    const onv_buffer *first = live->timeline.buffers.at;
    while (first->sized) first++;
    const onv_infer_info *infer = view->infer;
    if (infer->free_dims.count > 0) {
        const onv_free_dim *dim = &infer->free_dims.at[0];
        return onv_fail(job->err, ONV_ERR_MODEL,
                        "the %s dump needs every size: '%s' has none while '%s' is free (%s%s=N)",
                        what, first->label, dim->name, "--dim ", dim->name);
    }
    const onv_value *value = onv_model_value(view->model, first->value);
    onv_status status =
        onv_fail(job->err, ONV_ERR_MODEL, "the %s dump needs every size: that of '%s' is not known",
                 what, first->label);
    if (onv_is_node(value->producer)) {
        const onv_node *node = onv_model_node(view->model, value->producer);
        onv_error_at(job->err, node->name, node->op_type);
    }
    return status;
}

/* --- Intervals --------------------------------------------------------------------------------- */

static onv_status write_intervals(const onv_report_job *job)
{
    for (size_t i = 0; i < job->count; i++) ONV_TRY(need_sizes(job, &job->views[i], "intervals"));
    onv_write_text(job->out, "id,lower,upper,size\n");
    for (size_t i = 0; i < job->count; i++) {
        const onv_live *live = job->views[i].live;
        for (uint32_t r = 0; r < live->timeline.buffers.count && !job->out->failed; r++) {
            const onv_buffer *row = &live->timeline.buffers.at[r];
            if (row->within != ONV_NO_BUFFER) continue;
            onv_write_format(job->out, "%lu,%lu,%lu,%llu\n", (unsigned long)r,
                             (unsigned long)row->first, (unsigned long)row->last + 1,
                             (unsigned long long)row->bytes);
        }
    }
    return ONV_OK;
}

const onv_report_format onv_format_dump_intervals = {
    .id = ONV_FORMAT_DUMP_INTERVALS,
    .name = "intervals",
    .summary = "one row per buffer: id,lower,upper,size, half-open",
    .write = write_intervals,
};

/* --- Plan -------------------------------------------------------------------------------------- */

static onv_status write_plan(const onv_report_job *job)
{
    const onv_view *view = &job->views[0];
    ONV_TRY(need_sizes(job, view, "plan"));
    if (view->plan_offsets == NULL)
        return onv_fail(job->err, ONV_ERR_USAGE,
                        "the plan is that of the runtime arena, which was not asked for: add arena "
                        "to --runtime");
    onv_write_text(job->out, "id,lower,upper,size,offset\n");
    for (uint32_t i = 0; i < view->live->timeline.buffers.count && !job->out->failed; i++) {
        const onv_buffer *b = &view->live->timeline.buffers.at[i];
        onv_write_format(job->out, "%lu,%lu,%lu,%llu,%llu\n", (unsigned long)i,
                         (unsigned long)b->first, (unsigned long)b->last + 1,
                         (unsigned long long)b->bytes, (unsigned long long)view->plan_offsets[i]);
    }
    return ONV_OK;
}

const onv_report_format onv_format_dump_plan = {
    .id = ONV_FORMAT_DUMP_PLAN,
    .name = "plan",
    .summary = "the intervals with the offsets that the runtime arena has",
    .write = write_plan,
};

/* --- Trace ------------------------------------------------------------------------------------- */

static void write_event(onv_writer *out, const onv_timeline *t, const onv_timeline_event *e)
{
    const onv_buffer *b = &t->buffers.at[e->buffer];
    if (e->is_free) {
        onv_write_format(out, "free,%lu\n", (unsigned long)e->buffer);
        return;
    }
    onv_write_format(out, "alloc,%lu,%llu,%lu,", (unsigned long)e->buffer,
                     (unsigned long long)b->bytes, (unsigned long)e->step);
    onv_csv_field(out, b->label != NULL ? b->label : "");
    if (b->stream != 0) onv_write_format(out, ",%u", b->stream);
    onv_write_char(out, '\n');
}

static onv_status write_trace(const onv_report_job *job)
{
    onv_timeline_events events = {0};
    ONV_TRY(need_sizes(job, &job->views[0], "trace"));
    const onv_view *view = &job->views[0];
    const onv_timeline *t = &view->live->timeline;
    if (view->training != NULL && view->training->optimizer != NULL && view->trained != NULL) {
        t = view->trained;
        if (view->training->n_plans > 1)
            return onv_fail(
                job->err, ONV_ERR_USAGE,
                "there are %u checkpointing plans, and a trace is of one: name it, as in "
                "--checkpoint sqrt",
                view->training->n_plans);
    }
    onv_status status = onv_timeline_list_events(t, &events, job->err);
    for (size_t i = 0; status == ONV_OK && i < events.count && !job->out->failed; i++)
        write_event(job->out, t, &events.at[i]);
    onv_vec_cleanup(&events);
    return status;
}

const onv_report_format onv_format_dump_trace = {
    .id = ONV_FORMAT_DUMP_TRACE,
    .name = "trace",
    .summary = "what is allocated and freed, in order; with --train by PyTorch",
    .write = write_trace,
};

/* The tensors as CSV, one row each. */
#include "report/format.h"
#include "report/quoted.h"
#include "report/value.h"

static void write_row(const onv_report_job *job, const onv_view *view, onv_value_id id)
{
    onv_writer *out = job->out;
    const onv_value *value = onv_model_value(&view->model, id);
    const onv_buffer *interval = onv_view_interval(view, id);
    const char *dtype = onv_view_dtype(job->arena, &value->type);
    const char *shape = onv_view_shape(view, job->arena, id, ONV_CLEAN_CELL);
    onv_csv_field(out, onv_view_path(view));
    onv_write_char(out, ',');
    onv_csv_field(out, value->name);
    onv_write_format(out, ",%s,", onv_view_kind_name(view, id));
    onv_csv_field(out, dtype != NULL ? dtype : "");
    onv_write_char(out, ',');
    onv_csv_field(out, shape != NULL ? shape : "");
    uint64_t bytes;
    onv_write_char(out, ',');
    if (onv_view_bytes(view, id, &bytes)) onv_write_format(out, "%llu", (unsigned long long)bytes);
    onv_write_format(out, ",%d,", onv_view_is_bound(view, id) ? 1 : 0);
    if (interval != NULL)
        onv_write_format(out, "%lu,%lu,", (unsigned long)interval->first,
                         (unsigned long)interval->last);
    else
        onv_write_text(out, ",,");
    if (interval != NULL && interval->becomes != ONV_NO_BUFFER)
        onv_csv_field(out, view->live.timeline.buffers.at[interval->becomes].label);
    onv_write_char(out, '\n');
}

onv_status onv_format_csv_begin(onv_report_job *job)
{
    onv_write_text(job->out,
                   "model,name,kind,dtype,shape,bytes,bound,first_step,last_step,alias_of\n");
    return ONV_OK;
}

onv_status onv_format_csv_add(onv_report_job *job)
{
    const onv_view *view = job->views[0];
    for (uint32_t v = 0; v < view->model.values.count && !job->out->failed; v++) {
        if (!onv_view_is_there(view, (onv_value_id){v})) continue;
        write_row(job, view, (onv_value_id){v});
        onv_end_element(job->arena);
    }
    return ONV_OK;
}

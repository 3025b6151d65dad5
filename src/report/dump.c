/* What stands between the passes, as text that other programs take: intervals and the trace. */
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
    const onv_interval *first = live->intervals;
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
        for (uint32_t r = 0; r < live->n_intervals && !job->out->failed; r++) {
            const onv_interval *row = &live->intervals[r];
            if (row->alias_of != ONV_NO_ALIAS) continue; /* a part of another row's buffer */
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

/* --- Trace ------------------------------------------------------------------------------------- */

/* The rows by the step behind which they end: those of step s are order[start[s]] up to
 * order[start[s + 1]]. A counting sort, so rows keep their order. */
typedef struct end_list {
    uint32_t *start;
    uint32_t *order;
} end_list;

static bool sort_ends(const onv_live *live, onv_arena *arena, end_list *result)
{
    result->start = ONV_ARENA_ARRAY(arena, uint32_t, (size_t)live->n_steps + 2);
    result->order = ONV_ARENA_ARRAY(arena, uint32_t, live->n_intervals);
    if (result->start == NULL || result->order == NULL) return false;
    /* Counted two places up, so that filling moves each start to its final place. */
    for (uint32_t i = 0; i < live->n_intervals; i++) result->start[live->intervals[i].last + 2]++;
    for (uint32_t s = 2; s < live->n_steps + 2; s++) result->start[s] += result->start[s - 1];
    for (uint32_t i = 0; i < live->n_intervals; i++)
        result->order[result->start[live->intervals[i].last + 1]++] = i;
    return true;
}

static void write_alloc(onv_writer *out, const onv_interval *row, uint32_t id)
{
    onv_write_format(out, "alloc,%lu,%llu,%lu,", (unsigned long)id, (unsigned long long)row->bytes,
                     (unsigned long)row->first);
    onv_csv_field(out, row->label != NULL ? row->label : "");
    onv_write_char(out, '\n');
}

static onv_status write_trace(const onv_report_job *job)
{
    for (size_t i = 0; i < job->count; i++) ONV_TRY(need_sizes(job, &job->views[i], "trace"));
    for (size_t i = 0; i < job->count; i++) {
        const onv_live *live = job->views[i].live;
        end_list ends;
        if (!sort_ends(live, job->arena, &ends)) return onv_fail_memory(job->err);
        uint32_t next = 0;
        for (uint32_t s = 0; s < live->n_steps && !job->out->failed; s++) {
            for (; next < live->n_intervals && live->intervals[next].first == s; next++)
                if (live->intervals[next].alias_of == ONV_NO_ALIAS)
                    write_alloc(job->out, &live->intervals[next], next);
            for (uint32_t e = ends.start[s]; e < ends.start[s + 1]; e++)
                if (live->intervals[ends.order[e]].alias_of == ONV_NO_ALIAS)
                    onv_write_format(job->out, "free,%lu\n", (unsigned long)ends.order[e]);
        }
    }
    return ONV_OK;
}

const onv_report_format onv_format_dump_trace = {
    .id = ONV_FORMAT_DUMP_TRACE,
    .name = "trace",
    .summary = "what is allocated and freed, in order",
    .write = write_trace,
};

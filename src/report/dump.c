/* Dumps of what passes give each other, in formats of other programs: intervals, offsets, traces, replays, bytes by node. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "report/format.h"
#include "report/quoted.h"
#include "report/value.h"

onv_status onv_need_sizes(const onv_report_job *job, const onv_view *view, const char *what)
{
    const onv_live *live = &view->live;
    if (job->count > 1)
        return onv_fail(job->err, ONV_ERR_USAGE, "the %s takes one model at a time", what);
    if (live->unknown == 0) return ONV_OK;
    const onv_buffer *first = live->timeline.buffers.at;
    while (first->sized) first++;
    const onv_infer_info *infer = &view->infer;
    if (infer->free_dims.count > 0) {
        const onv_free_dim *dim = &infer->free_dims.at[0];
        return onv_fail(job->err, ONV_ERR_MODEL,
                        "the %s needs every size: '%s' has none while '%s' is free (%s%s=N)", what,
                        first->label, dim->name, "--dim ", dim->name);
    }
    const onv_value *value = onv_model_value(&view->model, first->value);
    onv_status status =
        onv_fail(job->err, ONV_ERR_MODEL, "the %s needs every size: that of '%s' is not known",
                 what, first->label);
    if (onv_is_node(value->producer)) {
        const onv_node *node = onv_model_node(&view->model, value->producer);
        onv_error_at(job->err, node->name, node->op_type);
    }
    return status;
}

/* --- Intervals --------------------------------------------------------------------------------- */

onv_status onv_format_dump_intervals_write(onv_report_job *job)
{
    const onv_live *live = &job->views[0]->live;
    ONV_TRY(onv_need_sizes(job, job->views[0], "intervals dump"));
    onv_write_text(job->out, "id,lower,upper,size\n");
    for (uint32_t i = 0; i < live->timeline.buffers.count && !job->out->failed; i++) {
        const onv_buffer *row = &live->timeline.buffers.at[i];
        if (row->within != ONV_NO_BUFFER) continue;
        onv_write_format(job->out, "%lu,%lu,%lu,%llu\n", (unsigned long)i,
                         (unsigned long)row->first, (unsigned long)row->last + 1,
                         (unsigned long long)row->bytes);
    }
    return ONV_OK;
}

/* --- Plan -------------------------------------------------------------------------------------- */

static onv_status need_plan(const onv_report_job *job, const onv_view *view)
{
    if (view->plan_offsets != NULL) return ONV_OK;
    return onv_fail(job->err, ONV_ERR_USAGE,
                    "the plan is that of the runtime arena, which was not asked for: add arena "
                    "to --runtime");
}

onv_status onv_format_dump_plan_write(onv_report_job *job)
{
    const onv_view *view = job->views[0];
    ONV_TRY(onv_need_sizes(job, view, "plan dump"));
    ONV_TRY(need_plan(job, view));
    onv_write_text(job->out, "id,lower,upper,size,offset\n");
    for (uint32_t i = 0; i < view->live.timeline.buffers.count && !job->out->failed; i++) {
        const onv_buffer *b = &view->live.timeline.buffers.at[i];
        onv_write_format(job->out, "%lu,%lu,%lu,%llu,%llu\n", (unsigned long)i,
                         (unsigned long)b->first, (unsigned long)b->last + 1,
                         (unsigned long long)b->bytes, (unsigned long long)view->plan_offsets[i]);
    }
    return ONV_OK;
}

/* --- Plan as a header --------------------------------------------------------------------------- */

enum { MOST_ID_CHARS = 200 };

/* In a comment, which no name ends. */
static void write_commented(onv_writer *out, const char *label)
{
    for (; *label != '\0'; label++) {
        bool is_plain = onv_is_identifier_char(*label) || strchr(" .:/-[]()#+", *label) != NULL;
        onv_write_char(out, (char)(is_plain ? *label : '.')); /* ? could make a trigraph */
    }
}

static uint64_t arena_bytes(const onv_view *view)
{
    uint64_t end = 0, rounded;
    for (uint32_t i = 0; i < view->live.timeline.buffers.count; i++) {
        uint64_t top = view->plan_offsets[i] + view->live.timeline.buffers.at[i].bytes;
        if (top > end) end = top;
    }
    return onv_u64_round_up(end, view->plan_alignment, &rounded) ? rounded : end;
}

static onv_status write_rows(const onv_report_job *job, onv_strings *taken)
{
    const onv_view *view = job->views[0];
    onv_writer *out = job->out;
    for (uint32_t i = 0; i < view->live.timeline.buffers.count && !out->failed; i++) {
        const onv_buffer *b = &view->live.timeline.buffers.at[i];
        const char *label = b->label != NULL ? b->label : "";
        const char *id = onv_identifier(taken, job->arena, "", label, MOST_ID_CHARS, i);
        if (id == NULL) return onv_fail_memory(job->err);
        onv_write_format(out, "\n/* steps %lu to %lu: ", (unsigned long)b->first,
                         (unsigned long)b->last);
        write_commented(out, label);
        onv_write_format(out, " */\n#define ONV_OFFSET_%s UINT64_C(%llu)\n", id,
                         (unsigned long long)view->plan_offsets[i]);
        onv_write_format(out, "#define ONV_BYTES_%s UINT64_C(%llu)\n", id,
                         (unsigned long long)b->bytes);
        onv_write_format(out, "ONV_ARENA_CHECK(%s);\n", id);
    }
    return ONV_OK;
}

onv_status onv_format_dump_header_write(onv_report_job *job)
{
    const onv_view *view = job->views[0];
    ONV_TRY(onv_need_sizes(job, view, "header dump"));
    ONV_TRY(need_plan(job, view));
    onv_writer *out = job->out;
    onv_write_text(out, "/* Made by onnxvram: where the values of a model lie in one arena. "
                        "Weights are not in it. */\n"
                        "#ifndef ONV_ARENA_H\n#define ONV_ARENA_H\n\n#include <stdint.h>\n\n");
    onv_write_format(out, "#define ONV_ARENA_BYTES UINT64_C(%llu)\n",
                     (unsigned long long)arena_bytes(view));
    onv_write_format(out, "#define ONV_ARENA_ALIGNMENT UINT64_C(%llu)\n\n",
                     (unsigned long long)view->plan_alignment);
    onv_write_text(
        out, "#ifdef __cplusplus\n"
             "#define ONV_ARENA_ASSERT static_assert\n"
             "#else\n"
             "#define ONV_ARENA_ASSERT _Static_assert\n"
             "#endif\n"
             "#define ONV_ARENA_CHECK(id) \\\n"
             "    ONV_ARENA_ASSERT(ONV_OFFSET_##id % ONV_ARENA_ALIGNMENT == 0 && \\\n"
             "                         ONV_OFFSET_##id + ONV_BYTES_##id <= ONV_ARENA_BYTES, \\\n"
             "                     \"lies in the arena, aligned\")\n");
    onv_strings taken;
    onv_strings_init(&taken, job->arena);
    onv_status status = write_rows(job, &taken);
    onv_strings_cleanup(&taken);
    onv_write_text(out, "\n#endif\n");
    return status;
}

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

onv_status onv_format_dump_trace_write(onv_report_job *job)
{
    onv_timeline_events events = {0};
    ONV_TRY(onv_need_sizes(job, job->views[0], "trace dump"));
    const onv_view *view = job->views[0];
    const onv_timeline *t = &view->live.timeline;
    if (onv_view_trains(view)) {
        t = &view->training.timeline;
        if (view->training.n_plans > 1)
            return onv_fail(
                job->err, ONV_ERR_USAGE,
                "there are %u checkpointing plans, and a trace is of one: name it, as in "
                "--checkpoint sqrt",
                view->training.n_plans);
    }
    onv_status status = onv_timeline_list_events(t, &events, job->err);
    for (size_t i = 0; status == ONV_OK && i < events.count && !job->out->failed; i++)
        write_event(job->out, t, &events.at[i]);
    onv_vec_cleanup(&events);
    return status;
}

/* --- Replays: what was held at each step, predicted next to measured --------------------------------- */

static void write_replay(onv_writer *out, const onv_replay_result *r)
{
    for (uint32_t s = 0; s < r->n_steps && !out->failed; s++)
        onv_write_format(
            out, "%s,%s,%s,%lu,%llu,%llu,%llu,%llu\n", r->runtime, r->plan != NULL ? r->plan : "",
            r->mode, (unsigned long)s, (unsigned long long)r->predicted_held_at[s],
            (unsigned long long)r->measured_held_at[s], (unsigned long long)r->predicted_live_at[s],
            (unsigned long long)r->measured_live_at[s]);
}

onv_status onv_format_dump_replay_write(onv_report_job *job)
{
    const onv_replays *replays = &job->views[0]->replays;
    if (job->count > 1)
        return onv_fail(job->err, ONV_ERR_USAGE, "the replay dump takes one model at a time");
    if (replays->kind == NULL)
        return onv_fail(job->err, ONV_ERR_USAGE, "the replay dump needs a replay");
    onv_write_text(job->out, "runtime,plan,mode,step,predicted_bytes,measured_bytes,"
                             "predicted_live_bytes,measured_live_bytes\n");
    for (size_t i = 0; i < replays->results.count; i++)
        write_replay(job->out, &replays->results.at[i]);
    return ONV_OK;
}

/* --- Bytes by node, as ONNX Runtime's partitioning by resources reads them ------------------------ */

onv_status onv_format_ort_partition_write(onv_report_job *job)
{
    const onv_ort_node_stats *stats = &job->views[0]->node_stats;
    if (job->count > 1)
        return onv_fail(job->err, ONV_ERR_USAGE, "statistics by node are of one model at a time");
    if (stats->rows == NULL)
        return onv_fail(job->err, ONV_ERR_USAGE, "statistics by node were not asked for");
    onv_write_text(job->out, "#name,input_sizes,initializers_sizes,total_dynamic_sizes,"
                             "total_temp_allocations\n");
    for (uint32_t i = 0; i < stats->count && !job->out->failed; i++) {
        const onv_ort_node_stat *row = &stats->rows[i];
        /* A name as it is: ONNX Runtime looks it up. One such line and it refuses the file. */
        if (strpbrk(row->name, ",\r\n") != NULL)
            return onv_fail(job->err, ONV_ERR_MODEL,
                            "the name of node '%s' has a comma or a line break, and ONNX Runtime "
                            "cannot read statistics with such names: rename the node",
                            row->name);
        onv_write_text(job->out, row->name);
        onv_write_format(job->out, "_%llu,%llu,0,%llu,%llu\n", (unsigned long long)row->hash,
                         (unsigned long long)row->input_bytes,
                         (unsigned long long)row->dynamic_bytes,
                         (unsigned long long)row->temporary_bytes);
    }
    return ONV_OK;
}

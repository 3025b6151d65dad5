/* A trace for Perfetto, as JSON: one process for each execution, with counters of bytes, the steps as slices in their
 * phases, and an instant at the peak. One step is a microsecond. */
#include "base/fail.h"
#include "report/json.h"
#include "report/viewers.h"

enum { STEPS_THREAD = 1 };

typedef struct trace {
    onv_json *json;
    const onv_kept_execution *kept;
    uint64_t process; /* from 1 */
} trace;

/* An event whose object stays open, in its member "args". */
static void begin_event(trace *t, const char *type, const char *name, uint64_t step)
{
    onv_viewer_name shown;
    onv_viewer_fit(&shown, name);
    onv_json_open(t->json, '{', ONV_JSON_INLINE);
    onv_json_put_string(t->json, "ph", type);
    onv_json_put_string(t->json, "name", shown.text);
    onv_json_put_u64(t->json, "pid", t->process);
    onv_json_put_u64(t->json, "tid", STEPS_THREAD);
    onv_json_put_u64(t->json, "ts", step);
    onv_json_put_open(t->json, "args", '{', ONV_JSON_INLINE);
}

static void end_event(trace *t)
{
    onv_json_close(t->json);
    onv_json_close(t->json);
}

/* A slice ends by its length, which stands behind its arguments. */
static void end_slice(trace *t, uint64_t steps)
{
    onv_json_close(t->json);
    onv_json_put_u64(t->json, "dur", steps);
    onv_json_close(t->json);
}

static void put_name(trace *t, const char *of, const char *name)
{
    begin_event(t, "M", of, 0);
    onv_json_put_string(t->json, "name", name);
    end_event(t);
}

static void put_number(trace *t, const char *type, const char *name, uint64_t step, uint64_t bytes)
{
    begin_event(t, type, name, step);
    onv_json_put_u64(t->json, "bytes", bytes);
    end_event(t);
}

/* --- Executions -------------------------------------------------------------------------------- */

/* The steps of a phase or a run, which begins at `first`; returns its end. */
static uint32_t put_group(trace *t, uint32_t first)
{
    const onv_timeline *line = &t->kept->made.timeline;
    onv_viewer_name name;
    uint32_t end = first + 1;
    while (end < line->steps.count &&
           onv_viewer_same_group(&line->steps.at[first], &line->steps.at[end]))
        end++;
    onv_viewer_group(&name, t->kept, &line->steps.at[first]);
    begin_event(t, "X", name.text, first);
    end_slice(t, end - first);
    return end;
}

static void put_step(trace *t, uint32_t at)
{
    const onv_step *step = &t->kept->made.timeline.steps.at[at];
    const char *node = onv_kept_node(t->kept, step);
    onv_viewer_name shown;
    onv_viewer_fit(&shown, node);
    begin_event(t, "X", onv_kept_op(t->kept, step), at);
    if (node[0] != '\0') onv_json_put_string(t->json, "node", shown.text);
    onv_json_put_u64(t->json, "step", at);
    if (step->macs > 0) onv_json_put_u64(t->json, "multiply-accumulates", step->macs);
    end_slice(t, 1);
}

/* A counter that stays is written once. */
static void put_counter(trace *t, const char *name, const uint64_t *values, uint32_t n)
{
    for (uint32_t i = 0; i < n && !t->json->out->failed; i++)
        if (i == 0 || values[i] != values[i - 1]) put_number(t, "C", name, i, values[i]);
    put_number(t, "C", name, n, 0);
}

static onv_status put_execution(trace *t, const onv_report_job *job)
{
    const onv_timeline *line = &t->kept->made.timeline;
    const onv_placement *p = &t->kept->made.placement;
    onv_viewer_name title;
    onv_peak peak;
    uint64_t *live;
    ONV_TRY(onv_viewer_live(job, t->kept, &peak, &live));
    onv_viewer_title(&title, job->views[0], t->kept);
    put_name(t, "process_name", title.text);
    put_name(t, "thread_name", "steps");
    for (uint32_t i = 0, end = 0; i < line->steps.count && !job->out->failed; i++) {
        if (i == end) end = put_group(t, i);
        if (i == peak.step) put_number(t, "i", "peak", i, peak.bytes);
        put_step(t, i);
    }
    put_counter(t, "live", live, p->n_steps);
    put_counter(t, "allocated", p->allocated_at, p->n_steps);
    put_counter(t, "reserved", p->reserved_at, p->n_steps);
    return ONV_OK;
}

/* All runtimes, training, and of its plans the chosen one. */
onv_status onv_format_perfetto_write(onv_report_job *job)
{
    const onv_kept_execution *kept;
    ONV_TRY(onv_viewer_execution(job, "Perfetto trace", &kept));
    const onv_view *view = job->views[0];
    const onv_executions *all = &view->executions;
    uint32_t chosen = view->training.chosen;
    trace t = {.json = &job->json};
    onv_json_open(t.json, '{', ONV_JSON_INLINE);
    onv_json_put_open(t.json, "traceEvents", '[', ONV_JSON_LINES);
    for (size_t i = 0; i < all->list.count && !job->out->failed; i++) {
        t.kept = &all->list.at[i];
        if (t.kept->plan != ONV_NO_PLAN && t.kept->plan != chosen) continue;
        t.process++;
        ONV_TRY(put_execution(&t, job));
    }
    onv_json_close(t.json);
    onv_json_close(t.json);
    return ONV_OK;
}

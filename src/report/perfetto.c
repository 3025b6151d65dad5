/* A trace for Perfetto: one process for each execution, with counters of bytes, the steps as slices in their
 * phases, and an instant at the peak. One step is a microsecond.
 *
 * A trace is a sequence of packets, which are written one by one. The numbers of the fields are those of Perfetto's
 * protos/perfetto/trace.
 */
#include <string.h>

#include "base/fail.h"
#include "report/viewers.h"
#include "report/wire_made.h"

#define NS_PER_STEP UINT64_C(1000)

enum {
    TRACE_PACKET = 1,

    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_TRACK_DESCRIPTOR = 60,

    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8,
    PROCESS_PID = 1,
    PROCESS_NAME = 6,
    COUNTER_UNIT = 3,
    UNIT_BYTES = 3,

    EVENT_ANNOTATION = 4,
    EVENT_TYPE = 9,
    EVENT_TRACK = 11,
    EVENT_NAME = 23,
    EVENT_COUNTER_VALUE = 30,
    ANNOTATION_UINT = 3,
    ANNOTATION_STRING = 6,
    ANNOTATION_NAME = 10,
};

typedef enum event_type { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3, COUNTER = 4 } event_type;

/* Of each process; the first is the process itself. */
typedef enum track { T_PROCESS, T_STEPS, T_LIVE, T_ALLOCATED, T_RESERVED, N_TRACKS } track;

static const char *const track_names[N_TRACKS] = {[T_STEPS] = "steps",
                                                  [T_LIVE] = "live bytes",
                                                  [T_ALLOCATED] = "allocated bytes",
                                                  [T_RESERVED] = "reserved bytes"};

typedef struct trace {
    onv_writer *out;
    const onv_kept_execution *kept;
    uint64_t process; /* from 1 */
    bool failed;      /* without memory */
} trace;

/* --- Packets ----------------------------------------------------------------------------------- */

static void put_text(onv_made *to, uint32_t field, const char *text)
{
    onv_made_field(to, field, text, strlen(text));
}

static uint64_t uuid_of(const trace *t, track which)
{
    return t->process * N_TRACKS + which;
}

/* Writes the packet and empties it. */
static void put_packet(trace *t, onv_made *packet)
{
    onv_made whole = {0};
    onv_made_number(packet, PACKET_SEQUENCE, 1);
    onv_made_message(&whole, TRACE_PACKET, packet);
    t->failed |= whole.failed;
    if (!whole.failed) onv_write_bytes(t->out, (const char *)whole.bytes.at, whole.bytes.count);
    onv_vec_cleanup(&whole.bytes);
}

static void put_track(trace *t, track which, const char *process)
{
    onv_made packet = {0}, descriptor = {0}, part = {0};
    onv_made_number(&descriptor, TRACK_UUID, uuid_of(t, which));
    if (which == T_PROCESS) {
        onv_made_number(&part, PROCESS_PID, t->process);
        put_text(&part, PROCESS_NAME, process);
        onv_made_message(&descriptor, TRACK_PROCESS, &part);
    } else {
        put_text(&descriptor, TRACK_NAME, track_names[which]);
        onv_made_number(&descriptor, TRACK_PARENT, uuid_of(t, T_PROCESS));
    }
    if (which >= T_LIVE) {
        onv_made_number(&part, COUNTER_UNIT, UNIT_BYTES);
        onv_made_message(&descriptor, TRACK_COUNTER, &part);
    }
    onv_made_message(&packet, PACKET_TRACK_DESCRIPTOR, &descriptor);
    put_packet(t, &packet);
}

static void begin_event(const trace *t, onv_made *event, event_type type, track which)
{
    onv_made_number(event, EVENT_TYPE, type);
    onv_made_number(event, EVENT_TRACK, uuid_of(t, which));
}

static void end_event(trace *t, onv_made *event, uint64_t step)
{
    onv_made packet = {0};
    onv_made_number(&packet, PACKET_TIMESTAMP, step * NS_PER_STEP);
    onv_made_message(&packet, PACKET_TRACK_EVENT, event);
    put_packet(t, &packet);
}

static void annotate_number(onv_made *event, const char *name, uint64_t value)
{
    onv_made part = {0};
    put_text(&part, ANNOTATION_NAME, name);
    onv_made_number(&part, ANNOTATION_UINT, value);
    onv_made_message(event, EVENT_ANNOTATION, &part);
}

static void annotate_text(onv_made *event, const char *name, const char *text)
{
    onv_made part = {0};
    onv_viewer_name shown;
    onv_viewer_fit(&shown, text);
    put_text(&part, ANNOTATION_NAME, name);
    put_text(&part, ANNOTATION_STRING, shown.text);
    onv_made_message(event, EVENT_ANNOTATION, &part);
}

/* --- Events ------------------------------------------------------------------------------------ */

static void put_counter(trace *t, track which, uint64_t step, uint64_t value)
{
    onv_made event = {0};
    begin_event(t, &event, COUNTER, which);
    onv_made_number(&event, EVENT_COUNTER_VALUE, value);
    end_event(t, &event, step);
}

static void put_end(trace *t, uint64_t step)
{
    onv_made event = {0};
    begin_event(t, &event, SLICE_END, T_STEPS);
    end_event(t, &event, step);
}

static void put_group(trace *t, uint32_t at)
{
    onv_made event = {0};
    onv_viewer_name name;
    onv_viewer_group(&name, t->kept, &t->kept->made.timeline.steps.at[at]);
    begin_event(t, &event, SLICE_BEGIN, T_STEPS);
    put_text(&event, EVENT_NAME, name.text);
    end_event(t, &event, at);
}

static void put_step(trace *t, uint32_t at)
{
    const onv_step *step = &t->kept->made.timeline.steps.at[at];
    const char *node = onv_kept_node(t->kept, step);
    onv_made event = {0};
    onv_viewer_name name;
    onv_viewer_fit(&name, onv_kept_op(t->kept, step));
    begin_event(t, &event, SLICE_BEGIN, T_STEPS);
    put_text(&event, EVENT_NAME, name.text);
    if (node[0] != '\0') annotate_text(&event, "node", node);
    annotate_number(&event, "step", at);
    if (step->macs > 0) annotate_number(&event, "multiply-accumulates", step->macs);
    end_event(t, &event, at);
    put_end(t, (uint64_t)at + 1);
}

static void put_peak(trace *t, const onv_peak *peak)
{
    onv_made event = {0};
    begin_event(t, &event, INSTANT, T_STEPS);
    put_text(&event, EVENT_NAME, "peak");
    annotate_number(&event, "bytes", peak->bytes);
    end_event(t, &event, peak->step);
}

/* A counter that stays is written once. */
static void put_counters(trace *t, const uint64_t *live)
{
    const onv_placement *p = &t->kept->made.placement;
    const uint64_t *of[N_TRACKS] = {
        [T_LIVE] = live, [T_ALLOCATED] = p->allocated_at, [T_RESERVED] = p->reserved_at};
    for (track which = T_LIVE; which < N_TRACKS; which++) {
        for (uint32_t i = 0; i < p->n_steps && !t->out->failed; i++)
            if (i == 0 || of[which][i] != of[which][i - 1]) put_counter(t, which, i, of[which][i]);
        put_counter(t, which, p->n_steps, 0);
    }
}

static onv_status put_execution(trace *t, const onv_report_job *job)
{
    const onv_timeline *line = &t->kept->made.timeline;
    onv_viewer_name title;
    onv_peak peak;
    uint64_t *live;
    ONV_TRY(onv_viewer_live(job, t->kept, &peak, &live));
    onv_viewer_title(&title, &job->views[0], t->kept);
    for (track which = T_PROCESS; which < N_TRACKS; which++) put_track(t, which, title.text);
    for (uint32_t i = 0; i < line->steps.count && !t->out->failed; i++) {
        const onv_step *step = &line->steps.at[i];
        bool begins = i == 0 || !onv_viewer_same_group(step - 1, step);
        if (begins && i > 0) put_end(t, i);
        if (begins) put_group(t, i);
        if (i == peak.step) put_peak(t, &peak);
        put_step(t, i);
    }
    if (line->steps.count > 0) put_end(t, line->steps.count);
    put_counters(t, live);
    return t->failed ? onv_fail_memory(job->err) : ONV_OK;
}

/* All runtimes, training, and of its plans the chosen one. */
onv_status onv_format_perfetto_write(const onv_report_job *job)
{
    const onv_kept_execution *kept;
    ONV_TRY(onv_viewer_execution(job, "Perfetto trace", &kept));
    const onv_view *view = &job->views[0];
    const onv_executions *all = view->executions;
    uint32_t chosen = view->training != NULL ? view->training->chosen : ONV_NO_PLAN;
    trace t = {.out = job->out};
    for (size_t i = 0; i < all->list.count && !job->out->failed; i++) {
        t.kept = &all->list.at[i];
        if (t.kept->plan != ONV_NO_PLAN && t.kept->plan != chosen) continue;
        t.process++;
        ONV_TRY(put_execution(&t, job));
    }
    return ONV_OK;
}

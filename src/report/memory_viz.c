/* The memory snapshot that PyTorch's own viewer reads: a pickle as torch.cuda.memory._dump_snapshot writes it.
 *
 * A snapshot holds the segments of the moment when it is taken, and what happened before on each device.
 * At the end of a run nothing is left to see, so there are two devices: device 0 has the run, from the first
 * allocation until everything has gone back, and device 1 the segments at the peak, which is what the tools that sum
 * up a snapshot then count.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/heap.h"
#include "report/pickle.h"
#include "report/viewers.h"

#define FIRST_ADDRESS UINT64_C(0x7f0000000000)
#define LAST_ADDRESS  (UINT64_C(1) << 62)
#define SEGMENT_ALIGN (UINT64_C(2) << 20)
#define SMALL_SEGMENT (UINT64_C(2) << 20)

enum { RUN_DEVICE, PEAK_DEVICE };

enum { MOST_WORDS = 64 }; /* keys and other words that come again, first in the memo */

typedef struct live {
    uint64_t offset;
    uint32_t segment, buffer;
} live;

typedef struct snapshot {
    const onv_report_job *job;
    onv_writer *out;
    const onv_kept_execution *kept;
    const onv_timeline *t;
    const onv_placement *p;
    uint64_t *bases;          /* addresses by segment */
    uint32_t *back;           /* by event: the last segment that goes back */
    uint32_t *next;           /* by segment: the one before */
    onv_strings words;        /* what the memo holds of them, by number */
    uint8_t *is_put;          /* what it holds of frames: see memo_of */
    uint32_t *groups;         /* by step: the first one of its group */
    struct live *live;        /* buffers at the peak, by place */
    uint32_t n_live, n_shown; /* the pieces so far have the first n_shown of them */
    size_t peak_event;
} snapshot;

/* --- The memo ---------------------------------------------------------------------------------- */

/* Frames of buffers, of steps, of groups of steps by their first one. */
typedef enum memo_kind { OF_BUFFER, OF_STEP, OF_GROUP } memo_kind;

static uint32_t memo_of(const snapshot *s, memo_kind kind, uint32_t index)
{
    uint32_t first = MOST_WORDS;
    if (kind != OF_BUFFER) first += (uint32_t)s->t->buffers.count;
    if (kind == OF_GROUP) first += (uint32_t)s->t->steps.count;
    return first + index;
}

/* True where it was there and has been written; else the caller writes it, and then puts it there. */
static bool recall(snapshot *s, uint32_t memo)
{
    if (!s->is_put[memo]) return false;
    onv_pickle_get(s->out, memo);
    return true;
}

static void remember(snapshot *s, uint32_t memo)
{
    onv_pickle_put(s->out, memo);
    s->is_put[memo] = true;
}

/* Without memory the arena of the job has failed, and the report does. */
static void put_word(snapshot *s, const char *text)
{
    size_t before = s->words.count;
    const char *word = onv_intern(&s->words, text);
    if (word == NULL) return;
    if (s->words.count == before) {
        onv_pickle_get(s->out, onv_string_number(word));
        return;
    }
    onv_pickle_text(s->out, word);
    onv_pickle_put(s->out, onv_string_number(word));
}

static void put_number(snapshot *s, const char *key, uint64_t value)
{
    put_word(s, key);
    onv_pickle_u64(s->out, value);
}

/* --- Frames ------------------------------------------------------------------------------------ */

static void put_frame(snapshot *s, const char *name, const char *file, uint32_t line)
{
    onv_viewer_name shown;
    onv_pickle_dict(s->out);
    onv_viewer_fit(&shown, name);
    put_word(s, "name");
    onv_pickle_text(s->out, shown.text);
    onv_viewer_fit(&shown, file);
    put_word(s, "filename");
    onv_pickle_text(s->out, shown.text);
    put_number(s, "line", line);
    onv_pickle_end_dict(s->out);
}

static void append_step_frame(snapshot *s, uint32_t at)
{
    uint32_t memo = memo_of(s, OF_STEP, at);
    if (!recall(s, memo)) {
        const onv_step *step = &s->t->steps.at[at];
        put_frame(s, onv_kept_op(s->kept, step), onv_kept_node(s->kept, step), at);
        remember(s, memo);
    }
    onv_pickle_append(s->out);
}

static void append_group_frame(snapshot *s, uint32_t at)
{
    uint32_t first = s->groups[at];
    uint32_t memo = memo_of(s, OF_GROUP, first);
    if (!recall(s, memo)) {
        onv_viewer_name name;
        onv_viewer_group(&name, s->kept, &s->t->steps.at[first]);
        put_frame(s, name.text, s->kept->runtime, first);
        remember(s, memo);
    }
    onv_pickle_append(s->out);
}

/* Of what happens in a step. */
static void put_step_frames(snapshot *s, uint32_t step)
{
    onv_pickle_list(s->out);
    append_step_frame(s, step);
    append_group_frame(s, step);
}

/* What is allocated: the tensor on top of what makes it. What is there before the first operation runs
 * has none. */
static void put_buffer_frames(snapshot *s, uint32_t index)
{
    const onv_buffer *b = &s->t->buffers.at[index];
    uint32_t memo = memo_of(s, OF_BUFFER, index);
    if (recall(s, memo)) return;
    onv_pickle_list(s->out);
    put_frame(s, b->label, onv_buffer_kind_name((onv_buffer_kind)b->kind), b->first);
    onv_pickle_append(s->out);
    if (!onv_buffer_is_fixed(s->t, b) && b->kind != ONV_BUFFER_INPUT) {
        append_step_frame(s, b->first);
        append_group_frame(s, b->first);
    }
    remember(s, memo);
}

/* --- What happens ------------------------------------------------------------------------------ */

/* Memory of its own, with an address. */
static bool is_block(const snapshot *s, uint32_t buffer)
{
    return s->t->buffers.at[buffer].within == ONV_NO_BUFFER && s->t->buffers.at[buffer].bytes > 0 &&
           s->p->places.at[buffer].segment < s->p->segments.count;
}

static uint64_t address_of(const snapshot *s, uint32_t buffer)
{
    const onv_place *place = &s->p->places.at[buffer];
    return s->bases[place->segment] + place->offset;
}

static void begin_event(snapshot *s, const char *action, uint64_t address, uint64_t bytes,
                        uint32_t step)
{
    onv_pickle_dict(s->out);
    put_word(s, "action");
    put_word(s, action);
    put_number(s, "addr", address);
    put_number(s, "size", bytes);
    put_number(s, "time_us", step);
}

static void end_event(snapshot *s, uint32_t stream)
{
    put_number(s, "stream", stream);
    onv_pickle_end_dict(s->out);
    onv_pickle_append(s->out);
}

static void put_segment_event(snapshot *s, const char *action, uint64_t address, uint64_t bytes,
                              uint32_t step, uint32_t stream)
{
    begin_event(s, action, address, bytes, step);
    put_word(s, "frames");
    put_step_frames(s, step);
    end_event(s, stream);
}

static void put_block_event(snapshot *s, const char *action, uint32_t buffer, uint32_t step)
{
    const onv_buffer *b = &s->t->buffers.at[buffer];
    begin_event(s, action, address_of(s, buffer), b->bytes, step);
    put_word(s, "frames");
    if (strcmp(action, "alloc") == 0)
        put_buffer_frames(s, buffer);
    else
        put_step_frames(s, step);
    end_event(s, b->stream);
}

/* Segments that go back at an event, behind the last one too. */
static void put_returns(snapshot *s, size_t event, uint32_t step)
{
    for (uint32_t k = s->back[event]; k != ONV_NO_SEGMENT; k = s->next[k])
        if (!s->p->segments.at[k].grows)
            put_segment_event(s, "segment_free", s->bases[k], s->p->segments.at[k].counted, step,
                              0);
}

static void put_mappings(snapshot *s, size_t *m, size_t event, uint32_t step, uint32_t stream)
{
    for (; *m < s->p->mappings.count && s->p->mappings.at[*m].event <= event; ++*m) {
        const onv_mapping *mapping = &s->p->mappings.at[*m];
        put_segment_event(s, mapping->goes_back ? "segment_unmap" : "segment_map",
                          s->bases[mapping->segment] + mapping->offset, mapping->bytes, step,
                          stream);
    }
}

/* --- Segments ---------------------------------------------------------------------------------- */

/* Where what is mapped of a segment changes. */
typedef struct edge {
    uint64_t offset;
    int64_t change;
} edge;

static int compare_edges(const void *a, const void *b)
{
    const edge *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Calls `visit` for each piece of a segment with memory behind it after an event; all of it, where it does
 * not grow. */
typedef onv_status (*piece_fn)(snapshot *s, uint32_t segment, uint64_t from, uint64_t to);

static onv_status each_piece(snapshot *s, uint32_t segment, size_t event, piece_fn visit)
{
    const onv_taken_segment *taken = &s->p->segments.at[segment];
    if (!taken->grows) return visit(s, segment, 0, taken->counted);
    edge *edges = onv_heap_alloc((2 * s->p->mappings.count + 1) * sizeof *edges);
    if (edges == NULL) return onv_fail_memory(s->job->err);
    size_t n = 0;
    for (size_t i = 0; i < s->p->mappings.count; i++) {
        const onv_mapping *m = &s->p->mappings.at[i];
        if (m->segment != segment || m->event > event) continue;
        edges[n++] = (edge){m->offset, m->goes_back ? -1 : 1};
        edges[n++] = (edge){m->offset + m->bytes, m->goes_back ? 1 : -1};
    }
    qsort(edges, n, sizeof *edges, compare_edges);
    onv_status status = ONV_OK;
    int64_t depth = 0;
    uint64_t from = 0;
    for (size_t i = 0; i < n && status == ONV_OK;) {
        int64_t before = depth;
        uint64_t at = edges[i].offset;
        for (; i < n && edges[i].offset == at; i++) depth += edges[i].change;
        if (before == 0 && depth != 0) from = at;
        if (before != 0 && depth == 0) status = visit(s, segment, from, at);
    }
    onv_heap_free(edges);
    return status;
}

/* `buffer` ONV_NO_BUFFER: bytes between two. */
static void put_block(snapshot *s, uint64_t address, uint64_t bytes, uint32_t buffer)
{
    bool is_used = buffer != ONV_NO_BUFFER;
    if (!is_used && bytes == 0) return;
    onv_pickle_dict(s->out);
    put_number(s, "address", address);
    put_number(s, "size", bytes);
    put_number(s, "requested_size", is_used ? s->t->buffers.at[buffer].bytes : 0);
    put_word(s, "state");
    put_word(s, is_used ? "active_allocated" : "inactive");
    put_word(s, "frames");
    if (is_used)
        put_buffer_frames(s, buffer);
    else
        onv_pickle_list(s->out);
    onv_pickle_end_dict(s->out);
    onv_pickle_append(s->out);
}

static onv_status put_blocks(snapshot *s, uint32_t segment, uint64_t from, uint64_t to,
                             uint32_t first, uint32_t end)
{
    uint64_t base = s->bases[segment], at = from;
    put_word(s, "blocks");
    onv_pickle_list(s->out);
    for (uint32_t i = first; i < end && !s->out->failed; i++) {
        const onv_place *place = &s->p->places.at[s->live[i].buffer];
        if (place->offset < at || place->counted > to - place->offset)
            return onv_fail(s->job->err, ONV_ERR_MODEL, "two buffers of '%s' overlap",
                            s->kept->runtime);
        put_block(s, base + at, place->offset - at, ONV_NO_BUFFER);
        put_block(s, base + place->offset, place->counted, s->live[i].buffer);
        at = place->offset + place->counted;
    }
    put_block(s, base + at, to - at, ONV_NO_BUFFER);
    return ONV_OK;
}

static onv_status put_segment(snapshot *s, uint32_t segment, uint64_t from, uint64_t to)
{
    uint64_t allocated = 0, requested = 0, bytes = to - from;
    /* Pieces come in the order of their buffers. */
    const live *next = &s->live[s->n_shown];
    while (s->n_shown < s->n_live &&
           (next->segment < segment || (next->segment == segment && next->offset < from)))
        next = &s->live[++s->n_shown];
    uint32_t first = s->n_shown, end = first;
    for (; end < s->n_live; end++) {
        const live *row = &s->live[end];
        if (row->segment != segment || row->offset >= to) break;
        allocated += s->p->places.at[row->buffer].counted;
        requested += s->t->buffers.at[row->buffer].bytes;
    }
    s->n_shown = end;
    onv_pickle_dict(s->out);
    put_number(s, "device", PEAK_DEVICE);
    put_number(s, "address", s->bases[segment] + from);
    put_number(s, "total_size", bytes);
    put_number(s, "allocated_size", allocated);
    put_number(s, "active_size", allocated);
    put_number(s, "requested_size", requested);
    put_number(s, "stream", first < end ? s->t->buffers.at[s->live[first].buffer].stream : 0);
    put_word(s, "segment_type");
    put_word(s, bytes <= SMALL_SEGMENT ? "small" : "large");
    put_word(s, "is_expandable");
    onv_pickle_bool(s->out, s->p->segments.at[segment].grows);
    put_word(s, "frames");
    onv_pickle_list(s->out);
    ONV_TRY(put_blocks(s, segment, from, to, first, end));
    onv_pickle_end_dict(s->out);
    onv_pickle_append(s->out);
    return ONV_OK;
}

static onv_status unmap_rest(snapshot *s, uint32_t segment, uint64_t from, uint64_t to)
{
    put_segment_event(s, "segment_unmap", s->bases[segment] + from, to - from, s->p->n_steps - 1,
                      0);
    return ONV_OK;
}

/* --- The whole --------------------------------------------------------------------------------- */

static onv_status put_trace(snapshot *s)
{
    const onv_placement *p = s->p;
    size_t m = 0;
    uint32_t taken = 0, last = 0;
    onv_pickle_list(s->out);
    for (size_t i = 0; i < p->events.count && !s->out->failed; i++) {
        const onv_timeline_event *e = &p->events.at[i];
        uint32_t stream = s->t->buffers.at[e->buffer].stream;
        last = e->step;
        if (e->is_free && is_block(s, e->buffer)) {
            put_block_event(s, "free_requested", e->buffer, e->step);
            put_block_event(s, "free_completed", e->buffer, e->step);
        }
        put_returns(s, i, e->step);
        for (; taken < p->segments.count && p->segments.at[taken].taken <= i; taken++)
            if (!p->segments.at[taken].grows)
                put_segment_event(s, "segment_alloc", s->bases[taken],
                                  p->segments.at[taken].counted, e->step, stream);
        put_mappings(s, &m, i, e->step, stream);
        if (!e->is_free && is_block(s, e->buffer)) put_block_event(s, "alloc", e->buffer, e->step);
    }
    for (uint32_t k = 0; k < p->segments.count; k++)
        if (p->segments.at[k].grows && p->segments.at[k].returned >= p->events.count)
            ONV_TRY(each_piece(s, k, p->events.count, unmap_rest));
    put_returns(s, p->events.count, last);
    onv_pickle_append(s->out);
    return ONV_OK;
}

static onv_status put_segments(snapshot *s)
{
    onv_pickle_list(s->out);
    for (uint32_t k = 0; k < s->p->segments.count && !s->out->failed; k++) {
        const onv_taken_segment *taken = &s->p->segments.at[k];
        if (taken->taken <= s->peak_event && s->peak_event < taken->returned)
            ONV_TRY(each_piece(s, k, s->peak_event, put_segment));
    }
    return ONV_OK;
}

static onv_status put_all(snapshot *s)
{
    bool is_expandable = s->p->mappings.count > 0;
    onv_pickle_begin(s->out);
    onv_pickle_dict(s->out);
    onv_pickle_text(s->out, "device_traces");
    onv_pickle_list(s->out);
    ONV_TRY(put_trace(s));
    onv_pickle_list(s->out);
    onv_pickle_append(s->out);
    onv_pickle_text(s->out, "segments");
    ONV_TRY(put_segments(s));
    onv_pickle_text(s->out, "allocator_settings");
    onv_pickle_dict(s->out);
    onv_pickle_text(s->out, "PYTORCH_CUDA_ALLOC_CONF");
    onv_pickle_text(s->out, is_expandable ? "expandable_segments:True" : "");
    put_word(s, "expandable_segments");
    onv_pickle_bool(s->out, is_expandable);
    onv_pickle_end_dict(s->out);
    onv_pickle_text(s->out, "external_annotations");
    onv_pickle_list(s->out);
    onv_pickle_end_dict(s->out);
    onv_pickle_end(s->out);
    return ONV_OK;
}

/* --- Before it is written ---------------------------------------------------------------------- */

static onv_status set_bases(snapshot *s)
{
    uint64_t at = FIRST_ADDRESS;
    for (uint32_t k = 0; k < s->p->segments.count; k++) {
        const onv_taken_segment *taken = &s->p->segments.at[k];
        uint64_t bytes = taken->grows ? taken->bytes : taken->counted;
        s->bases[k] = at;
        if (!onv_u64_add(at, bytes, &at) || !onv_u64_round_up(at, SEGMENT_ALIGN, &at) ||
            at > LAST_ADDRESS)
            return onv_fail(s->job->err, ONV_ERR_OVERFLOW, "the segments do not fit 62 bits");
    }
    for (size_t i = 0; i <= s->p->events.count; i++) s->back[i] = ONV_NO_SEGMENT;
    for (uint32_t k = 0; k < s->p->segments.count; k++) {
        size_t event = s->p->segments.at[k].returned;
        if (event > s->p->events.count) event = s->p->events.count;
        s->next[k] = s->back[event];
        s->back[event] = k;
    }
    return ONV_OK;
}

/* The event after which the most is allocated; of several that with the most reserved. */
static void find_peak(snapshot *s)
{
    const onv_placement *p = s->p;
    uint64_t allocated = 0, reserved = 0, most = 0, most_reserved = 0;
    size_t m = 0;
    uint32_t taken = 0;
    for (size_t i = 0; i < p->events.count; i++) {
        const onv_timeline_event *e = &p->events.at[i];
        uint64_t bytes = is_block(s, e->buffer) ? p->places.at[e->buffer].counted : 0;
        allocated += e->is_free ? -bytes : bytes;
        for (uint32_t k = s->back[i]; k != ONV_NO_SEGMENT; k = s->next[k])
            reserved -= p->segments.at[k].counted;
        for (; taken < p->segments.count && p->segments.at[taken].taken <= i; taken++)
            reserved += p->segments.at[taken].counted;
        for (; m < p->mappings.count && p->mappings.at[m].event <= i; m++)
            reserved +=
                p->mappings.at[m].goes_back ? -p->mappings.at[m].bytes : p->mappings.at[m].bytes;
        if (allocated < most || (allocated == most && reserved <= most_reserved)) continue;
        most = allocated;
        most_reserved = reserved;
        s->peak_event = i;
    }
}

static int compare_live(const void *a, const void *b)
{
    const live *x = a, *y = b;
    if (x->segment != y->segment) return x->segment < y->segment ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Those that were allocated up to the peak, and freed behind it. `is_live` has room for all, of zeros. */
static void list_live(snapshot *s, uint8_t *is_live)
{
    for (size_t i = 0; i < s->p->events.count && i <= s->peak_event; i++)
        is_live[s->p->events.at[i].buffer] = !s->p->events.at[i].is_free;
    for (uint32_t b = 0; b < s->t->buffers.count; b++) {
        if (!is_live[b] || !is_block(s, b)) continue;
        const onv_place *place = &s->p->places.at[b];
        s->live[s->n_live++] = (live){place->offset, place->segment, b};
    }
    qsort(s->live, s->n_live, sizeof *s->live, compare_live);
}

static onv_status prepare(snapshot *s)
{
    size_t n_buffers = s->t->buffers.count, n_steps = s->t->steps.count;
    size_t n_events = s->p->events.count, n_segments = s->p->segments.count;
    if (n_buffers > UINT32_MAX / 2 - MOST_WORDS || n_steps > UINT32_MAX / 8)
        return onv_fail(s->job->err, ONV_ERR_LIMIT, "%zu buffers are too many for a snapshot",
                        n_buffers);
    s->bases = onv_arena_alloc(s->job->arena, (n_segments + 1) * sizeof *s->bases);
    s->back = onv_arena_alloc(s->job->arena, (n_events + 1) * sizeof *s->back);
    s->next = onv_arena_alloc(s->job->arena, (n_segments + 1) * sizeof *s->next);
    s->groups = onv_arena_alloc(s->job->arena, (n_steps + 1) * sizeof *s->groups);
    s->live = onv_arena_alloc(s->job->arena, (n_buffers + 1) * sizeof *s->live);
    s->is_put = onv_arena_alloc(s->job->arena, MOST_WORDS + n_buffers + 2 * n_steps);
    uint8_t *is_live = onv_arena_alloc(s->job->arena, n_buffers + 1);
    if (s->job->arena->failed) return onv_fail_memory(s->job->err);
    memset(s->is_put, 0, MOST_WORDS + n_buffers + 2 * n_steps);
    memset(is_live, 0, n_buffers + 1);
    for (uint32_t i = 0; i < n_steps; i++)
        s->groups[i] = i > 0 && onv_viewer_same_group(&s->t->steps.at[i - 1], &s->t->steps.at[i])
                           ? s->groups[i - 1]
                           : i;
    ONV_TRY(set_bases(s));
    find_peak(s);
    list_live(s, is_live);
    return ONV_OK;
}

onv_status onv_format_memory_viz_write(onv_report_job *job)
{
    const onv_kept_execution *kept;
    ONV_TRY(onv_viewer_execution(job, "memory snapshot", &kept));
    snapshot s = {.job = job,
                  .out = job->out,
                  .kept = kept,
                  .t = &kept->made.timeline,
                  .p = &kept->made.placement};
    ONV_TRY(prepare(&s));
    onv_strings_init(&s.words, job->arena);
    onv_status status = put_all(&s);
    onv_strings_cleanup(&s.words);
    return status;
}

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/sort.h"
#include "device/pattern.h"
#include "device/runner.h"

/* Seeds of segments, which are written before any buffer, are not those of buffers. */
#define SEGMENT_SEEDS (UINT64_C(1) << 32)

/* Patterns are written and checked in stretches of this, so that a request to stop is soon heard. */
#define STRETCH_BYTES (UINT64_C(128) << 20)

/* --- Measuring --------------------------------------------------------------------------------- */

/* What changed since our last call is not ours. */
static onv_status look(onv_runner *r, uint64_t *free_bytes, onv_error *err)
{
    uint64_t total, seen = r->free_seen;
    ONV_TRY(r->device->kind->memory(r->device, free_bytes, &total, err));
    r->result->foreign_bytes += *free_bytes > seen ? *free_bytes - seen : seen - *free_bytes;
    r->free_seen = *free_bytes;
    return ONV_OK;
}

/* After a call of ours: books what the free memory changed by. */
static onv_status book(onv_runner *r, bool pooled, uint64_t before, onv_error *err)
{
    uint64_t after, total;
    ONV_TRY(r->device->kind->memory(r->device, &after, &total, err));
    r->free_seen = after;
    if (after < r->result->device_free.least) r->result->device_free.least = after;
    if (!pooled) {
        r->held += before - after; /* wraps back where memory came free */
        return ONV_OK;
    }
    onv_device_pool pool;
    ONV_TRY(r->device->kind->pool(r->device, &pool, err));
    r->pool_used = pool.used;
    r->result->pool.used_peak_bytes = pool.used_peak;
    r->result->pool.reserved_peak_bytes = pool.reserved_peak;
    return ONV_OK;
}

/* The step that runs holds at least what there is now. */
static void note(onv_runner *r)
{
    onv_replay_result *to = r->result;
    uint64_t held = r->held + r->pool_used;
    if (held > to->measured_held_at[r->step]) to->measured_held_at[r->step] = held;
    if (r->live > to->measured_live_at[r->step]) to->measured_live_at[r->step] = r->live;
    if (held > to->measured_bytes) to->measured_bytes = held;
    if (r->live > to->measured_live_bytes) to->measured_live_bytes = r->live;
}

static void advance(onv_runner *r, uint32_t step)
{
    while (r->step < step) {
        r->step++;
        r->result->measured_held_at[r->step] = r->held + r->pool_used;
        r->result->measured_live_at[r->step] = r->live;
    }
}

/* --- Patterns ---------------------------------------------------------------------------------- */

static onv_status stop_if_asked(const onv_runner *r, onv_error *err)
{
    if (r->options->cancelled == NULL || !r->options->cancelled(r->options->cancel_context))
        return ONV_OK;
    return onv_fail(err, ONV_ERR_CANCELLED, "stopped in step %" PRIu32 " of the replay", r->step);
}

static uint64_t stretch(uint64_t left)
{
    return left < STRETCH_BYTES ? left : STRETCH_BYTES;
}

static onv_status fill(onv_runner *r, onv_device_address to, uint64_t seed, uint64_t bytes,
                       onv_error *err)
{
    for (uint64_t at = 0, part; at < bytes; at += part) {
        part = stretch(bytes - at);
        if (at > 0) ONV_TRY(stop_if_asked(r, err));
        ONV_TRY(r->device->kind->fill(r->device, to + at, seed, at, part, err));
    }
    return ONV_OK;
}

/* `*wrong` is `bytes` where all is well. */
static onv_status check(onv_runner *r, onv_device_address from, uint64_t seed, uint64_t bytes,
                        uint64_t *wrong, onv_error *err)
{
    uint64_t at = 0, found = 0;
    for (uint64_t part = 0; at < bytes && found == part; at += found) {
        part = stretch(bytes - at);
        if (at > 0) ONV_TRY(stop_if_asked(r, err));
        ONV_TRY(r->device->kind->check(r->device, from + at, seed, at, part, &found, err));
    }
    *wrong = at;
    return ONV_OK;
}

/* --- Segments ---------------------------------------------------------------------------------- */

/* A buffer that fills its segment writes all of it. */
static bool is_covered(const onv_runner *r, size_t event)
{
    const onv_timeline_event *e = &r->placement->events.at[event];
    if (e->buffer >= r->placement->places.count || e->is_free) return false;
    const onv_buffer *b = &r->timeline->buffers.at[e->buffer];
    const onv_place *place = &r->placement->places.at[e->buffer];
    return onv_buffer_has_content(r->timeline, b) &&
           place->segment < r->placement->segments.count &&
           r->placement->segments.at[place->segment].taken == event &&
           r->placement->segments.at[place->segment].bytes == b->bytes;
}

static onv_status take_segment(onv_runner *r, uint32_t index, bool *refused, onv_error *err)
{
    const onv_taken_segment *s = &r->placement->segments.at[index];
    onv_runner_segment *at = &r->segments[index];
    bool pooled = r->placement->is_pooled;
    uint64_t before;
    ONV_TRY(look(r, &before, err));
    onv_status status = r->device->kind->alloc(r->device, s->bytes, pooled, &at->address, err);
    if (at->address != 0) {
        at->life = ONV_LIFE_THERE; /* also after a failure: it is there to be freed */
        r->allocations++;
    }
    ONV_TRY(status);
    if (at->address == 0) {
        r->result->oom.bytes = s->bytes;
        r->result->oom.free_bytes = before;
        *refused = true;
        return ONV_OK;
    }
    ONV_TRY(book(r, pooled, before, err));
    note(r);
    /* Also what no buffer will ever cover is written, so that it is really there. */
    if (r->options->allocate_only || is_covered(r, s->taken)) return ONV_OK;
    return fill(r, at->address, onv_pattern_seed(SEGMENT_SEEDS + index), s->bytes, err);
}

static void find_orphan(onv_runner *r, uint32_t segment)
{
    for (uint32_t b = 0; b < r->timeline->buffers.count; b++) {
        if (r->placement->places.at[b].segment != segment || r->buffers[b].life != ONV_LIFE_THERE)
            continue;
        onv_runner_fault(r, ONV_FAULT_PULLED_AWAY, b,
                         "segment %" PRIu32 " is freed in step %" PRIu32 " while '%s' lives in it",
                         segment, r->step, onv_runner_label(r, b));
        r->buffers[b].has_content = false;
    }
}

static onv_status give_back(onv_runner *r, uint32_t index, onv_error *err)
{
    onv_runner_segment *at = &r->segments[index];
    uint64_t before = 0, bytes = r->placement->segments.at[index].bytes;
    bool pooled = r->placement->is_pooled;
    at->life = ONV_LIFE_OVER;
    r->allocations--;
    onv_status looked = look(r, &before, err); /* whatever comes of it, the memory goes back */
    onv_status freed =
        r->device->kind->free(r->device, at->address, bytes, pooled, looked == ONV_OK ? err : NULL);
    ONV_TRY(looked);
    ONV_TRY(freed);
    return book(r, pooled, before, err);
}

static onv_status return_segment(onv_runner *r, uint32_t index, onv_error *err)
{
    if (r->segments[index].life != ONV_LIFE_THERE) {
        onv_runner_fault(r, ONV_FAULT_FREED_TWICE, UINT32_MAX,
                         "segment %" PRIu32 " is freed in step %" PRIu32 ", but is not there",
                         index, r->step);
        return ONV_OK;
    }
    if (r->segments[index].n_live > 0) find_orphan(r, index);
    return give_back(r, index, err);
}

/* Those that change at an event; what goes back makes room first. */
static onv_status change_segments(onv_runner *r, size_t event, bool *refused, onv_error *err)
{
    const onv_taken_segment *s = r->placement->segments.at;
    size_t n = r->placement->segments.count;
    for (; r->n_returned < n && s[r->returned[r->n_returned]].returned == event; r->n_returned++)
        ONV_TRY(return_segment(r, r->returned[r->n_returned], err));
    for (; r->n_taken < n && s[r->taken[r->n_taken]].taken == event && !*refused; r->n_taken++)
        ONV_TRY(take_segment(r, r->taken[r->n_taken], refused, err));
    return ONV_OK;
}

/* --- Buffers ----------------------------------------------------------------------------------- */

/* Whether its bytes may be touched. */
static bool has_place(onv_runner *r, uint32_t index)
{
    const onv_place *place = &r->placement->places.at[index];
    uint64_t bytes = r->timeline->buffers.at[index].bytes;
    if (place->segment >= r->placement->segments.count ||
        r->segments[place->segment].life != ONV_LIFE_THERE) {
        onv_runner_fault(r, ONV_FAULT_NO_SEGMENT, index,
                         "'%s' is allocated in step %" PRIu32 " in segment %" PRIu32
                         ", which is not there",
                         onv_runner_label(r, index), r->step, place->segment);
        return false;
    }
    uint64_t size = r->placement->segments.at[place->segment].bytes;
    if (place->offset <= size && bytes <= size - place->offset) return true;
    onv_runner_fault(r, ONV_FAULT_OUTSIDE, index,
                     "'%s' (%" PRIu64 " bytes at offset %" PRIu64 ") reaches in step %" PRIu32
                     " beyond segment %" PRIu32 " of %" PRIu64 " bytes",
                     onv_runner_label(r, index), bytes, place->offset, r->step, place->segment,
                     size);
    return false;
}

static onv_device_address address_of(const onv_runner *r, uint32_t index)
{
    const onv_place *place = &r->placement->places.at[index];
    return r->segments[place->segment].address + place->offset;
}

static onv_status birth(onv_runner *r, uint32_t index, onv_error *err)
{
    uint64_t bytes = r->timeline->buffers.at[index].bytes;
    onv_runner_buffer *at = &r->buffers[index];
    if (at->life != ONV_LIFE_NONE) {
        onv_runner_fault(r, ONV_FAULT_BORN_TWICE, index,
                         "'%s' is allocated in step %" PRIu32 ", but was allocated in step %" PRIu32
                         " already",
                         onv_runner_label(r, index), r->step, at->born);
        return ONV_OK;
    }
    at->life = ONV_LIFE_THERE;
    at->born = r->step;
    at->has_content = has_place(r, index);
    r->live += bytes;
    r->result->buffers++;
    note(r);
    if (!at->has_content) return ONV_OK;
    r->segments[r->placement->places.at[index].segment].n_live++;
    if (r->options->allocate_only) return ONV_OK;
    return fill(r, address_of(r, index), onv_pattern_seed(index), bytes, err);
}

/* Looks for the pattern, for the last time. */
static onv_status read_last(onv_runner *r, uint32_t index, onv_error *err)
{
    uint64_t wrong, bytes = r->timeline->buffers.at[index].bytes;
    if (!r->buffers[index].has_content || r->options->allocate_only) return ONV_OK;
    ONV_TRY(check(r, address_of(r, index), onv_pattern_seed(index), bytes, &wrong, err));
    r->result->checked_buffers++;
    return wrong < bytes ? onv_runner_blame(r, index, wrong, err) : ONV_OK;
}

static onv_status death(onv_runner *r, uint32_t index, onv_error *err)
{
    onv_runner_buffer *at = &r->buffers[index];
    if (at->life != ONV_LIFE_THERE) {
        bool over = at->life == ONV_LIFE_OVER;
        onv_runner_fault(r, over ? ONV_FAULT_FREED_TWICE : ONV_FAULT_USE_BEFORE, index,
                         "'%s' is freed in step %" PRIu32 " %s", onv_runner_label(r, index),
                         r->step, over ? "after it was freed" : "before it is allocated");
        return ONV_OK;
    }
    ONV_TRY(read_last(r, index, err));
    at->life = ONV_LIFE_OVER;
    r->live -= r->timeline->buffers.at[index].bytes;
    if (at->has_content) r->segments[r->placement->places.at[index].segment].n_live--;
    return ONV_OK;
}

/* --- Events ------------------------------------------------------------------------------------ */

static onv_status handle(onv_runner *r, size_t i, bool *refused, onv_error *err)
{
    const onv_timeline_event *e = &r->placement->events.at[i];
    const onv_timeline *t = r->timeline;
    bool is_known = e->buffer < t->buffers.count && e->step < t->steps.count && e->step >= r->step;
    if (is_known)
        advance(r, e->step);
    else
        onv_runner_fault(r, ONV_FAULT_UNKNOWN, UINT32_MAX,
                         "an event in step %" PRIu32 " is about buffer %" PRIu32
                         " in step %" PRIu32,
                         r->step, e->buffer, e->step);
    bool has_content = is_known && onv_buffer_has_content(t, &t->buffers.at[e->buffer]);
    if (has_content && e->is_free) ONV_TRY(death(r, e->buffer, err));
    ONV_TRY(change_segments(r, i, refused, err));
    return has_content && !e->is_free && !*refused ? birth(r, e->buffer, err) : ONV_OK;
}

static onv_status walk(onv_runner *r, bool *complete, onv_error *err)
{
    bool refused = false;
    size_t n = r->placement->events.count;
    for (size_t i = 0; i < n && !refused; i++) {
        ONV_TRY(stop_if_asked(r, err));
        ONV_TRY(handle(r, i, &refused, err));
    }
    *complete = !refused;
    r->result->out_of_memory = refused;
    r->result->oom.step = r->step;
    if (!refused && r->result->n_steps > 0) advance(r, r->result->n_steps - 1);
    if (!refused) ONV_TRY(change_segments(r, n, &refused, err));
    return onv_device_sync(r->device, err);
}

/* What is still held goes back; the first failure is kept, the rest goes on. */
static onv_status release_all(onv_runner *r, bool complete, onv_error *err)
{
    onv_status status = ONV_OK;
    for (uint32_t b = 0; complete && b < r->timeline->buffers.count; b++)
        if (r->buffers[b].life == ONV_LIFE_THERE)
            onv_runner_fault(r, ONV_FAULT_NEVER_FREED, b,
                             "'%s', allocated in step %" PRIu32 ", is never freed",
                             onv_runner_label(r, b), r->buffers[b].born);
    for (uint32_t s = 0; s < r->placement->segments.count; s++) {
        if (r->segments[s].life != ONV_LIFE_THERE) continue;
        if (complete)
            onv_runner_fault(r, ONV_FAULT_NEVER_FREED, UINT32_MAX,
                             "segment %" PRIu32 " is never freed", s);
        onv_status one = give_back(r, s, status == ONV_OK ? err : NULL);
        if (status == ONV_OK) status = one;
    }
    return status;
}

/* --- What should be there ---------------------------------------------------------------------- */

/* By step, the most that the buffers take while it runs: what is there before it, what begins in it,
 * in the order of the list, and each transient one while it is there. From the buffers alone: events
 * are what is tried. */
static onv_status expect_live(const onv_timeline *t, uint64_t *live, uint64_t *peak, onv_error *err)
{
    size_t n = t->steps.count;
    uint64_t *now = onv_heap_calloc(n + 1, sizeof *now);
    if (now == NULL) return onv_fail_memory(err);
    for (size_t i = 0; i < t->buffers.count; i++) {
        const onv_buffer *b = &t->buffers.at[i];
        if (!onv_buffer_has_content(t, b) || b->first == b->last) continue;
        now[b->first + 1] += b->bytes; /* differences wrap, sums do not */
        now[b->last + 1] -= b->bytes;
    }
    for (size_t s = 0; s < n; s++) {
        if (s > 0) now[s] += now[s - 1];
        live[s] = now[s];
    }
    for (size_t i = 0; i < t->buffers.count; i++) {
        const onv_buffer *b = &t->buffers.at[i];
        if (!onv_buffer_has_content(t, b)) continue;
        uint64_t with = now[b->first] + b->bytes;
        if (!b->is_transient) now[b->first] = with;
        if (with > live[b->first]) live[b->first] = with;
        if (with > *peak) *peak = with;
    }
    onv_heap_free(now);
    return ONV_OK;
}

static const onv_taken_segment *segments_of(const onv_runner *r, uint32_t index)
{
    return &r->placement->segments.at[index];
}

/* Order of two segments by an event; of one event, that of the list. */
static int compare_taken(const void *a, const void *b, void *runner)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    size_t at = segments_of(runner, x)->taken, other = segments_of(runner, y)->taken;
    return at != other ? (at < other ? -1 : 1) : (x > y) - (x < y);
}

static int compare_returned(const void *a, const void *b, void *runner)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    size_t at = segments_of(runner, x)->returned, other = segments_of(runner, y)->returned;
    return at != other ? (at < other ? -1 : 1) : (x > y) - (x < y);
}

/* The most segments at a time. */
static uint32_t count_most(const onv_runner *r)
{
    size_t n = r->placement->segments.count, back = 0;
    uint32_t now = 0, most = 0;
    for (size_t i = 0; i < n; i++) {
        size_t event = segments_of(r, r->taken[i])->taken;
        while (back < n && segments_of(r, r->returned[back])->returned <= event) {
            back++;
            if (now > 0) now--;
        }
        if (++now > most) most = now;
    }
    return most;
}

/* --- All together ------------------------------------------------------------------------------ */

static onv_status prepare(onv_runner *r, onv_error *err)
{
    const onv_placement *p = r->placement;
    onv_replay_result *to = r->result;
    size_t n = to->n_steps, n_segments = p->segments.count;
    r->segments = onv_heap_calloc(n_segments, sizeof *r->segments);
    r->buffers = onv_heap_calloc(r->timeline->buffers.count, sizeof *r->buffers);
    r->taken = onv_heap_calloc(n_segments, sizeof *r->taken);
    r->returned = onv_heap_calloc(n_segments, sizeof *r->returned);
    to->predicted_held_at = onv_heap_calloc(4 * n, sizeof(uint64_t)); /* and those behind it */
    if (r->segments == NULL || r->buffers == NULL || r->taken == NULL || r->returned == NULL ||
        to->predicted_held_at == NULL)
        return onv_fail_memory(err);
    to->measured_held_at = to->predicted_held_at + n;
    to->predicted_live_at = to->measured_held_at + n;
    to->measured_live_at = to->predicted_live_at + n;
    for (uint32_t s = 0; s < n_segments; s++) r->taken[s] = r->returned[s] = s;
    onv_sort_ids(r->taken, n_segments, compare_taken, r);
    onv_sort_ids(r->returned, n_segments, compare_returned, r);
    to->most_allocations = count_most(r);
    if (n > 0) memcpy(to->predicted_held_at, onv_placement_held_at(p), n * sizeof(uint64_t));
    return expect_live(r->timeline, to->predicted_live_at, &to->predicted_live_bytes, err);
}

static onv_status begin(onv_runner *r, onv_error *err)
{
    onv_replay_result *to = r->result;
    onv_device *d = r->device;
    for (size_t i = 0; i < r->placement->segments.count; i++)
        if (r->placement->segments.at[i].grows)
            return onv_fail(err, ONV_ERR_USAGE,
                            "segments that grow page by page (expandable segments) are not "
                            "replayed");
    if (to->has_pool && d->info.pool_granularity_bytes == 0)
        return onv_fail(err, ONV_ERR_DEVICE, "%s has no stream-ordered pool", d->info.name);
    if (to->has_pool) ONV_TRY(d->kind->pool_reset(d, err));
    ONV_TRY(d->kind->memory(d, &to->device_free.before, &to->total, err));
    r->free_seen = to->device_free.least = to->device_free.before;
    return ONV_OK;
}

static onv_status run(onv_runner *r, uint64_t figure, onv_error *err)
{
    onv_device *d = r->device;
    bool complete = false;
    if (r->placement->places.count != r->timeline->buffers.count ||
        r->placement->n_steps != r->timeline->steps.count)
        return onv_fail(err, ONV_ERR_MODEL, "the placement is one of another timeline");
    ONV_TRY(prepare(r, err));
    ONV_TRY(begin(r, err));
    onv_status status = walk(r, &complete, err);
    onv_status released = release_all(r, complete, status == ONV_OK ? err : NULL);
    ONV_TRY(status);
    ONV_TRY(released);
    ONV_TRY(onv_device_sync(d, err));
    if (r->result->has_pool) ONV_TRY(d->kind->pool_reset(d, err));
    uint64_t total;
    ONV_TRY(d->kind->memory(d, &r->result->device_free.after, &total, err));
    onv_runner_judge(r, figure, complete);
    return ONV_OK;
}

onv_status onv_replay_run(const onv_replay *replay, onv_device *device,
                          const onv_replay_options *options, onv_replay_result *result,
                          onv_error *err)
{
    static const onv_replay_options defaults = {0};
    const onv_placement *p = &replay->placement;
    const onv_device_info *info = &device->info;
    *result = (onv_replay_result){
        .mode = replay->mode,
        .runtime = replay->runtime,
        .plan = replay->plan,
        .predicted_bytes = onv_placement_held_peak(p),
        .has_pool = p->is_pooled,
        .pool.predicted_reserved_peak_bytes = p->is_pooled ? p->figures.reserved_peak : 0,
        .granularity_bytes = p->is_pooled ? info->pool_granularity_bytes : info->granularity_bytes,
        .n_steps = p->n_steps};
    onv_runner r = {.timeline = &replay->timeline,
                    .placement = p,
                    .device = device,
                    .options = options != NULL ? options : &defaults,
                    .result = result};
    result->allocate_only = r.options->allocate_only;
    onv_status status = run(&r, replay->figure, err);
    onv_heap_free(r.segments);
    onv_heap_free(r.buffers);
    onv_heap_free(r.taken);
    onv_heap_free(r.returned);
    return status;
}

void onv_replay_result_cleanup(onv_replay_result *result)
{
    onv_heap_free(result->predicted_held_at); /* and those behind it */
    result->predicted_held_at = result->measured_held_at = NULL;
    result->predicted_live_at = result->measured_live_at = NULL;
}

#include <inttypes.h>
#include <stdio.h>

#include "base/heap.h"
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
    if (after < r->result->free_least) r->result->free_least = after;
    if (!pooled) {
        r->held += before - after; /* wraps back where memory came free */
        return ONV_OK;
    }
    onv_device_pool pool;
    ONV_TRY(r->device->kind->pool(r->device, &pool, err));
    r->pool_used = pool.used;
    r->result->pool_used = pool.used_peak;
    r->result->pool_reserved = pool.reserved_peak;
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
    if (r->live > to->measured_live) to->measured_live = r->live;
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
    r->result->filled_bytes += bytes;
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

static onv_status segment_alloc(onv_runner *r, uint32_t index, bool *refused, onv_error *err)
{
    const onv_script_segment *s = &r->script->segments.at[index];
    onv_runner_segment *at = &r->segments[index];
    const onv_device_kind *kind = r->device->kind;
    uint64_t before;
    if (at->life != ONV_LIFE_NONE) {
        onv_runner_fault(r, ONV_FAULT_BORN_TWICE, UINT32_MAX,
                         "segment %" PRIu32 " is allocated twice", index);
        return ONV_OK;
    }
    ONV_TRY(look(r, &before, err));
    onv_status status = kind->alloc(r->device, s->bytes, s->pooled, &at->address, err);
    if (at->address != 0) {
        at->life = ONV_LIFE_THERE; /* also after a failure: it is there to be freed */
        r->allocations++;
    }
    ONV_TRY(status);
    if (at->address == 0) {
        r->result->oom_bytes = s->bytes;
        r->result->oom_free = before;
        *refused = true;
        return ONV_OK;
    }
    ONV_TRY(book(r, s->pooled, before, err));
    if (r->allocations > r->result->most_allocations) r->result->most_allocations = r->allocations;
    note(r);
    /* Also what no buffer will ever cover is written, so that it is really there. */
    if (s->is_whole || r->options->allocate_only) return ONV_OK;
    return fill(r, at->address, onv_pattern_seed(SEGMENT_SEEDS + index), s->bytes, err);
}

static void find_orphan(onv_runner *r, uint32_t segment)
{
    for (uint32_t b = 0; b < r->script->buffers.count; b++) {
        const onv_script_buffer *buffer = &r->script->buffers.at[b];
        if (buffer->segment != segment || r->buffers[b].life != ONV_LIFE_THERE) continue;
        onv_runner_fault(r, ONV_FAULT_PULLED_AWAY, b,
                         "segment %" PRIu32 " is freed in step %" PRIu32 " while '%s' lives in it",
                         segment, r->step, buffer->label);
        r->buffers[b].has_content = false;
    }
}

static onv_status give_back(onv_runner *r, uint32_t index, onv_error *err)
{
    const onv_script_segment *s = &r->script->segments.at[index];
    onv_runner_segment *at = &r->segments[index];
    uint64_t before = 0;
    at->life = ONV_LIFE_OVER;
    r->allocations--;
    onv_status looked = look(r, &before, err); /* whatever comes of it, the memory goes back */
    onv_status freed = r->device->kind->free(r->device, at->address, s->bytes, s->pooled,
                                             looked == ONV_OK ? err : NULL);
    ONV_TRY(looked);
    ONV_TRY(freed);
    return book(r, s->pooled, before, err);
}

static onv_status segment_free(onv_runner *r, uint32_t index, onv_error *err)
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

/* --- Buffers ----------------------------------------------------------------------------------- */

/* Whether its bytes may be touched. */
static bool has_place(onv_runner *r, uint32_t index)
{
    const onv_script_buffer *b = &r->script->buffers.at[index];
    if (b->segment >= r->script->segments.count || r->segments[b->segment].life != ONV_LIFE_THERE) {
        onv_runner_fault(r, ONV_FAULT_NO_SEGMENT, index,
                         "'%s' is born in step %" PRIu32 " in segment %" PRIu32
                         ", which is not there",
                         b->label, r->step, b->segment);
        return false;
    }
    uint64_t size = r->script->segments.at[b->segment].bytes;
    if (b->offset <= size && b->bytes <= size - b->offset) return true;
    onv_runner_fault(r, ONV_FAULT_OUTSIDE, index,
                     "'%s' (%" PRIu64 " bytes at offset %" PRIu64 ") reaches in step %" PRIu32
                     " beyond segment %" PRIu32 " of %" PRIu64 " bytes",
                     b->label, b->bytes, b->offset, r->step, b->segment, size);
    return false;
}

static onv_device_address address_of(const onv_runner *r, uint32_t index)
{
    const onv_script_buffer *b = &r->script->buffers.at[index];
    return r->segments[b->segment].address + b->offset;
}

static onv_status birth(onv_runner *r, uint32_t index, onv_error *err)
{
    const onv_script_buffer *b = &r->script->buffers.at[index];
    onv_runner_buffer *at = &r->buffers[index];
    if (at->life != ONV_LIFE_NONE) {
        onv_runner_fault(r, ONV_FAULT_BORN_TWICE, index,
                         "'%s' is born in step %" PRIu32 ", but was born in step %" PRIu32
                         " already",
                         b->label, r->step, at->born);
        return ONV_OK;
    }
    at->life = ONV_LIFE_THERE;
    at->born = r->step;
    at->has_content = has_place(r, index);
    r->live += b->bytes;
    r->result->n_buffers++;
    note(r);
    if (!at->has_content) return ONV_OK;
    r->segments[b->segment].n_live++;
    if (r->options->allocate_only) return ONV_OK;
    return fill(r, address_of(r, index), onv_pattern_seed(index), b->bytes, err);
}

/* An event of a buffer that is not there. */
static void misuse(onv_runner *r, uint32_t index, bool is_read)
{
    const onv_script_buffer *b = &r->script->buffers.at[index];
    const onv_runner_buffer *at = &r->buffers[index];
    onv_fault_kind kind = ONV_FAULT_USE_BEFORE;
    if (at->life == ONV_LIFE_OVER) kind = is_read ? ONV_FAULT_USE_AFTER : ONV_FAULT_FREED_TWICE;
    onv_runner_fault(r, kind, index, "'%s' is %s in step %" PRIu32 " %s", b->label,
                     is_read ? "read" : "freed", r->step,
                     at->life == ONV_LIFE_OVER ? "after it was freed" : "before it is born");
}

static onv_status last_read(onv_runner *r, uint32_t index, onv_error *err)
{
    const onv_script_buffer *b = &r->script->buffers.at[index];
    onv_runner_buffer *at = &r->buffers[index];
    if (at->life != ONV_LIFE_THERE) {
        misuse(r, index, true);
        return ONV_OK;
    }
    at->is_read = true;
    if (!at->has_content || r->options->allocate_only) return ONV_OK;
    uint64_t wrong;
    ONV_TRY(check(r, address_of(r, index), onv_pattern_seed(index), b->bytes, &wrong, err));
    r->result->n_checked++;
    return wrong < b->bytes ? onv_runner_blame(r, index, wrong, err) : ONV_OK;
}

static void death(onv_runner *r, uint32_t index)
{
    const onv_script_buffer *b = &r->script->buffers.at[index];
    onv_runner_buffer *at = &r->buffers[index];
    if (at->life != ONV_LIFE_THERE) {
        misuse(r, index, false);
        return;
    }
    if (!at->is_read)
        onv_runner_fault(r, ONV_FAULT_UNREAD, index,
                         "'%s' is freed in step %" PRIu32 " without having been read", b->label,
                         r->step);
    at->life = ONV_LIFE_OVER;
    r->live -= b->bytes;
    if (at->has_content) r->segments[b->segment].n_live--;
}

/* --- Events ------------------------------------------------------------------------------------ */

static onv_status handle(onv_runner *r, const onv_script_event *e, bool *refused, onv_error *err)
{
    bool of_segment = e->act == ONV_SCRIPT_SEGMENT_ALLOC || e->act == ONV_SCRIPT_SEGMENT_FREE;
    size_t count = of_segment ? r->script->segments.count : r->script->buffers.count;
    if (e->index >= count || e->step >= r->script->n_steps || e->step < r->step) {
        onv_runner_fault(r, ONV_FAULT_UNKNOWN, UINT32_MAX,
                         "an event in step %" PRIu32 " is about %s %" PRIu32 " in step %" PRIu32,
                         r->step, of_segment ? "segment" : "buffer", e->index, e->step);
        return ONV_OK;
    }
    advance(r, e->step);
    switch ((onv_script_act)e->act) {
    case ONV_SCRIPT_SEGMENT_ALLOC: return segment_alloc(r, e->index, refused, err);
    case ONV_SCRIPT_SEGMENT_FREE: return segment_free(r, e->index, err);
    case ONV_SCRIPT_BIRTH: return birth(r, e->index, err);
    case ONV_SCRIPT_READ: return last_read(r, e->index, err);
    case ONV_SCRIPT_DEATH: death(r, e->index); break;
    }
    return ONV_OK;
}

static onv_status walk(onv_runner *r, bool *complete, onv_error *err)
{
    const onv_script *script = r->script;
    bool refused = false;
    for (size_t i = 0; i < script->events.count && !refused; i++) {
        ONV_TRY(stop_if_asked(r, err));
        ONV_TRY(handle(r, &script->events.at[i], &refused, err));
    }
    *complete = !refused;
    r->result->out_of_memory = refused;
    r->result->oom_step = r->step;
    if (!refused) advance(r, script->n_steps - 1);
    return r->device->kind->sync(r->device, err);
}

/* What is still held goes back; the first failure is kept, the rest goes on. */
static onv_status release_all(onv_runner *r, bool complete, onv_error *err)
{
    onv_status status = ONV_OK;
    for (uint32_t b = 0; complete && b < r->script->buffers.count; b++)
        if (r->buffers[b].life == ONV_LIFE_THERE)
            onv_runner_fault(r, ONV_FAULT_NEVER_FREED, b,
                             "'%s', born in step %" PRIu32 ", is never freed",
                             r->script->buffers.at[b].label, r->buffers[b].born);
    for (uint32_t s = 0; s < r->script->segments.count; s++) {
        if (r->segments[s].life != ONV_LIFE_THERE) continue;
        if (complete)
            onv_runner_fault(r, ONV_FAULT_NEVER_FREED, UINT32_MAX,
                             "segment %" PRIu32 " is never freed", s);
        onv_status one = give_back(r, s, status == ONV_OK ? err : NULL);
        if (status == ONV_OK) status = one;
    }
    return status;
}

/* --- All together ------------------------------------------------------------------------------ */

static bool prepare(onv_runner *r)
{
    const onv_script *script = r->script;
    onv_replay_result *to = r->result;
    size_t n = script->n_steps;
    r->segments = onv_heap_calloc(script->segments.count, sizeof *r->segments);
    r->buffers = onv_heap_calloc(script->buffers.count, sizeof *r->buffers);
    to->predicted_held_at = onv_heap_calloc(n, sizeof(uint64_t));
    to->measured_held_at = onv_heap_calloc(n, sizeof(uint64_t));
    to->predicted_live_at = onv_heap_calloc(n, sizeof(uint64_t));
    to->measured_live_at = onv_heap_calloc(n, sizeof(uint64_t));
    if (r->segments == NULL || r->buffers == NULL || to->predicted_held_at == NULL ||
        to->measured_held_at == NULL || to->predicted_live_at == NULL ||
        to->measured_live_at == NULL)
        return false;
    for (size_t s = 0; s < n; s++) {
        to->predicted_held_at[s] = script->held[s];
        to->predicted_live_at[s] = script->live[s];
    }
    return true;
}

static bool uses_pool(const onv_script *script)
{
    return script->segments.count > 0 && script->segments.at[0].pooled;
}

static onv_status begin(onv_runner *r, onv_error *err)
{
    onv_replay_result *to = r->result;
    onv_device *d = r->device;
    if (to->has_pool && d->info.pool_granularity_bytes == 0)
        return onv_fail(err, ONV_ERR_DEVICE, "%s has no stream-ordered pool", d->info.name);
    if (to->has_pool) ONV_TRY(d->kind->pool_reset(d, err));
    ONV_TRY(d->kind->memory(d, &to->free_before, &to->total, err));
    r->free_seen = to->free_least = to->free_before;
    return ONV_OK;
}

static onv_status run(onv_runner *r, onv_error *err)
{
    onv_device *d = r->device;
    bool complete = false;
    ONV_TRY(begin(r, err));
    onv_status status = walk(r, &complete, err);
    onv_status released = release_all(r, complete, status == ONV_OK ? err : NULL);
    ONV_TRY(status);
    ONV_TRY(released);
    ONV_TRY(d->kind->sync(d, err));
    if (r->result->has_pool) ONV_TRY(d->kind->pool_reset(d, err));
    uint64_t total;
    ONV_TRY(d->kind->memory(d, &r->result->free_after, &total, err));
    onv_runner_judge(r, complete);
    return ONV_OK;
}

onv_status onv_replay_run(const onv_script *script, onv_device *device,
                          const onv_replay_options *options, onv_replay_result *result,
                          onv_error *err)
{
    static const onv_replay_options defaults = {0};
    bool pooled = uses_pool(script);
    *result = (onv_replay_result){.mode = script->mode,
                                  .runtime = script->runtime,
                                  .plan = script->plan,
                                  .predicted_bytes = script->held_peak,
                                  .predicted_live = script->live_peak,
                                  .has_pool = pooled,
                                  .predicted_pool_reserved = script->pool_reserved,
                                  .granularity_bytes = pooled ? device->info.pool_granularity_bytes
                                                              : device->info.granularity_bytes,
                                  .most_allocations = script->most_segments,
                                  .n_steps = script->n_steps};
    onv_runner r = {.script = script,
                    .device = device,
                    .options = options != NULL ? options : &defaults,
                    .result = result};
    result->allocate_only = r.options->allocate_only;
    onv_status status = prepare(&r) ? run(&r, err) : onv_fail_memory(err);
    onv_heap_free(r.segments);
    onv_heap_free(r.buffers);
    return status;
}

void onv_replay_cleanup(onv_replay_result *result)
{
    onv_heap_free(result->predicted_held_at);
    onv_heap_free(result->measured_held_at);
    onv_heap_free(result->predicted_live_at);
    onv_heap_free(result->measured_live_at);
    result->predicted_held_at = result->measured_held_at = NULL;
    result->predicted_live_at = result->measured_live_at = NULL;
}

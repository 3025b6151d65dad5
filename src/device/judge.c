/* What a replay found: faults by name, and the verdict. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/checked.h"
#include "device/pattern.h"
#include "device/runner.h"

const char *onv_fault_name(onv_fault_kind kind)
{
    static const char *const names[ONV_N_FAULTS] = {
        [ONV_FAULT_OVERLAP] = "overlap",           [ONV_FAULT_LOST] = "lost-write",
        [ONV_FAULT_OUTSIDE] = "outside-segment",   [ONV_FAULT_NO_SEGMENT] = "no-segment",
        [ONV_FAULT_BORN_TWICE] = "born-twice",     [ONV_FAULT_USE_BEFORE] = "use-before-birth",
        [ONV_FAULT_FREED_TWICE] = "freed-twice",   [ONV_FAULT_PULLED_AWAY] = "segment-freed-in-use",
        [ONV_FAULT_NEVER_FREED] = "never-freed",   [ONV_FAULT_UNKNOWN] = "unknown-event",
        [ONV_FAULT_LIVE_DIFFERS] = "live-differs", [ONV_FAULT_HELD_DIFFERS] = "held-differs",
        [ONV_FAULT_FIGURE] = "figure-differs",     [ONV_FAULT_NOT_BACK] = "not-given-back",
        [ONV_FAULT_NO_MEMORY] = "no-memory",
    };
    return (unsigned)kind < ONV_N_FAULTS ? names[kind] : "?";
}

void onv_runner_fault(onv_runner *r, onv_fault_kind kind, uint32_t buffer, const char *format, ...)
{
    onv_replay_result *to = r->result;
    if (to->n_faults++ >= ONV_REPLAY_MAX_FAULTS) return;
    onv_fault *fault = &to->faults[to->n_faults - 1];
    *fault = (onv_fault){.kind = kind, .step = r->step, .buffer = buffer, .other = UINT32_MAX};
    va_list args;
    va_start(args, format);
    vsnprintf(fault->text, sizeof fault->text, format, args);
    va_end(args);
}

/* --- Broken patterns --------------------------------------------------------------------------- */

enum { ENOUGH_BYTES = 16 }; /* to know a pattern by */

/* Whether the place holds what `other` wrote, and wrote it at that place of the segment. */
static onv_status holds(onv_runner *r, uint32_t other, uint64_t place, uint64_t segment_bytes,
                        bool *result, onv_error *err)
{
    const onv_place *at = &r->placement->places.at[other];
    uint64_t bytes = r->timeline->buffers.at[other].bytes;
    *result = false;
    if (place < at->offset || place - at->offset >= bytes) return ONV_OK;
    uint64_t left = bytes - (place - at->offset), wrong;
    if (left > segment_bytes - place) left = segment_bytes - place;
    if (left > ENOUGH_BYTES) left = ENOUGH_BYTES;
    ONV_TRY(r->device->kind->check(r->device, r->segments[at->segment].address + place,
                                   onv_pattern_seed(other), place - at->offset, left, &wrong, err));
    *result = wrong == left;
    return ONV_OK;
}

onv_status onv_runner_blame(onv_runner *r, uint32_t buffer, uint64_t offset, onv_error *err)
{
    const onv_place *places = r->placement->places.at, *at = &places[buffer];
    const char *label = onv_runner_label(r, buffer);
    uint64_t place = at->offset + offset, size = r->placement->segments.at[at->segment].bytes;
    uint32_t step = r->buffers[buffer].born, found = UINT32_MAX;
    /* The one born last wrote last. */
    for (uint32_t i = (uint32_t)r->timeline->buffers.count; i-- > 0;) {
        bool result;
        if (i == buffer || places[i].segment != at->segment || !r->buffers[i].has_content ||
            (found != UINT32_MAX && r->buffers[i].born <= r->buffers[found].born))
            continue;
        ONV_TRY(holds(r, i, place, size, &result, err));
        if (result) found = i;
    }
    if (found == UINT32_MAX) {
        onv_runner_fault(r, ONV_FAULT_LOST, buffer,
                         "'%s', written in step %" PRIu32 ", does not hold it any more in step "
                         "%" PRIu32 ", from byte %" PRIu64 " on",
                         label, step, r->step, offset);
    } else {
        onv_runner_fault(r, ONV_FAULT_OVERLAP, buffer,
                         "'%s', written in step %" PRIu32 ", holds in step %" PRIu32
                         " from byte %" PRIu64 " on what '%s' wrote in step %" PRIu32,
                         label, step, r->step, offset, onv_runner_label(r, found),
                         r->buffers[found].born);
    }
    if (r->result->n_faults <= ONV_REPLAY_MAX_FAULTS) {
        r->result->faults[r->result->n_faults - 1].offset = offset;
        r->result->faults[r->result->n_faults - 1].other = found;
    }
    return ONV_OK;
}

/* --- Verdict ----------------------------------------------------------------------------------- */

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* The first step where the two differ by more than is allowed, and how many do. */
static void compare(onv_runner *r, const uint64_t *predicted, const uint64_t *measured,
                    uint64_t allowed, onv_fault_kind kind, const char *what)
{
    uint64_t count = 0;
    uint32_t first = 0;
    for (uint32_t s = 0; s < r->result->n_steps; s++) {
        if (distance(predicted[s], measured[s]) <= allowed) continue;
        if (count++ == 0) first = s;
    }
    if (count == 0) return;
    r->step = first;
    onv_runner_fault(r, kind, UINT32_MAX,
                     "step %" PRIu32 ": %s %" PRIu64 " bytes, predicted are %" PRIu64 "; %" PRIu64
                     " of %" PRIu32 " steps differ",
                     first, what, measured[first], predicted[first], count, r->result->n_steps);
}

static void judge_memory(onv_runner *r)
{
    onv_replay_result *to = r->result;
    uint64_t needed = to->predicted_bytes;
    if (to->pool.predicted_reserved_peak_bytes > needed)
        needed = to->pool.predicted_reserved_peak_bytes;
    needed = onv_u64_plus(needed, to->tolerance_bytes);
    if (needed > to->device_free.before) return; /* it was to be expected */
    onv_runner_fault(r, ONV_FAULT_NO_MEMORY, UINT32_MAX,
                     "step %" PRIu32 ": no memory for %" PRIu64 " bytes with %" PRIu64
                     " free, where all of %" PRIu64 " bytes should fit",
                     to->oom.step, to->oom.bytes, to->oom.free_bytes, to->predicted_bytes);
}

void onv_runner_judge(onv_runner *r, uint64_t figure, bool complete)
{
    onv_replay_result *to = r->result;
    /* An allocation ends somewhere in its last granule. */
    uint64_t slack = to->granularity_bytes - 1;
    if (!onv_u64_mul(slack, to->most_allocations, &to->tolerance_bytes) ||
        !onv_u64_add(to->tolerance_bytes, to->foreign_bytes, &to->tolerance_bytes))
        to->tolerance_bytes = UINT64_MAX;
    if (to->n_faults == 0 && complete) {
        /* Otherwise these would only follow from what was found. */
        compare(r, to->predicted_held_at, to->measured_held_at, to->tolerance_bytes,
                ONV_FAULT_HELD_DIFFERS, "the device holds");
        compare(r, to->predicted_live_at, to->measured_live_at, 0, ONV_FAULT_LIVE_DIFFERS,
                "the buffers take");
    }
    if (figure > 0 && figure != to->predicted_bytes)
        onv_runner_fault(r, ONV_FAULT_FIGURE, UINT32_MAX,
                         "the placement holds %" PRIu64 " bytes, the prediction says %" PRIu64,
                         to->predicted_bytes, figure);
    if (!complete) judge_memory(r);
    /* A driver that hands out whole granules may keep those of small allocations for what comes
     * next: at most as many as there were. */
    uint64_t spare = 0;
    if (!to->has_pool && to->granularity_bytes > 1 &&
        !onv_u64_mul(to->granularity_bytes, to->most_allocations, &spare))
        spare = UINT64_MAX;
    uint64_t kept = r->held + r->pool_used; /* wraps where more came back than was taken */
    if ((kept > INT64_MAX ? -kept : kept) > spare && to->foreign_bytes == 0)
        onv_runner_fault(r, ONV_FAULT_NOT_BACK, UINT32_MAX,
                         "of what was freed %" PRId64 " bytes did not come back", (int64_t)kept);
    to->agrees = to->n_faults == 0;
}

/* Planning of a timeline's buffers, some of which are one memory: what a branch hands out becomes the
 * output of its If, and what is within a container lies where its producer put it. */
#include "base/heap.h"
#include "plan/plan.h"

/* The buffer whose place buffer i has: the container, or the end of the chain that it becomes. */
static onv_status find_owner(const onv_buffer *buffers, size_t count, size_t i, size_t *owner,
                             onv_error *err)
{
    for (size_t hops = 0;; hops++) {
        uint32_t next = buffers[i].within != ONV_NO_BUFFER ? buffers[i].within : buffers[i].becomes;
        if (next == ONV_NO_BUFFER) break;
        if (next >= count || hops == count)
            return onv_fail(err, ONV_ERR_USAGE, "buffer %zu shares the memory of no buffer", i);
        i = next;
    }
    *owner = i;
    return ONV_OK;
}

static onv_status merge(const onv_buffer *intervals, size_t count, onv_plan_buffer *buffers,
                        onv_error *err)
{
    for (size_t i = 0; i < count; i++) {
        size_t owner;
        ONV_TRY(find_owner(intervals, count, i, &owner, err));
        onv_plan_buffer *to = &buffers[owner];
        uint64_t lower = intervals[i].first, upper = (uint64_t)intervals[i].last + 1;
        bool first = to->upper == 0;
        if (first || lower < to->lower) to->lower = lower;
        if (upper > to->upper) to->upper = upper;
        if (intervals[i].bytes > to->size && intervals[i].within == ONV_NO_BUFFER)
            to->size = intervals[i].bytes;
    }
    /* Rows that own nothing: empty buffers, which no plan minds. */
    for (size_t i = 0; i < count; i++)
        if (buffers[i].upper == 0) buffers[i].upper = 1;
    return ONV_OK;
}

onv_status onv_plan_intervals(const onv_buffer *intervals, size_t count,
                              const onv_plan_options *options, onv_plan *plan, onv_error *err)
{
    *plan = (onv_plan){.strategy = ""};
    onv_plan_buffer *buffers = onv_heap_calloc(count, sizeof *buffers);
    if (buffers == NULL) return onv_fail_memory(err);
    onv_status status = merge(intervals, count, buffers, err);
    if (status == ONV_OK) status = onv_plan_compute(buffers, count, options, plan, err);
    onv_heap_free(buffers);
    for (size_t i = 0; status == ONV_OK && i < count; i++) {
        size_t owner = i;
        status = find_owner(intervals, count, i, &owner, err);
        plan->offsets[i] = plan->offsets[owner] + intervals[i].offset;
    }
    return status;
}

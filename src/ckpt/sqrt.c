/* Chen et al., "Training deep nets with sublinear memory cost" (2016): n units in about √n segments,
 * so that what stays between segments and what is rebuilt inside one are of a size. The weights of
 * units are the bytes they save. The last segment keeps everything: backward comes to it at once. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/heap.h"
#include "ckpt/ckpt.h"

/* A segment ends with the unit in whose middle its share of the bytes is reached. */
static uint32_t cut(const onv_ckpt_units *units, uint32_t n, onv_tape_segment *segments)
{
    long double total = 0, before = 0;
    uint32_t count = 0, begin = 0;
    for (uint32_t i = 0; i < units->count; i++) total += (long double)units->at[i].saved_bytes;
    for (uint32_t i = 0; i + 1 < units->count && count + 1 < n; i++) {
        before += (long double)units->at[i].saved_bytes;
        long double goal = total * (long double)(count + 1) / (long double)n;
        if (before + (long double)units->at[i + 1].saved_bytes / 2 < goal) continue;
        segments[count++] = (onv_tape_segment){units->at[begin].first_op, units->at[i].last_op};
        begin = i + 1;
    }
    return count;
}

static onv_status make(const onv_ckpt_problem *problem, onv_ckpt_plans *plans, onv_error *err)
{
    uint32_t n = onv_ckpt_units_root(problem->units);
    onv_tape_segment *segments = onv_heap_calloc(n, sizeof *segments);
    if (segments == NULL) return onv_fail_memory(err);
    n = cut(problem->units, n, segments);
    onv_status status = onv_ckpt_plans_add(problem, "sqrt", segments, n, plans, err);
    onv_heap_free(segments);
    return status;
}

const onv_ckpt_plan_kind onv_ckpt_sqrt = {
    .name = "sqrt",
    .summary = "about sqrt(n) segments of n units, balanced by bytes",
    .in_all = true,
    .make = make};

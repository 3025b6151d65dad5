#include "ckpt/front.h"

#include "base/fail.h"

/* Of equal ones the one that takes less with workspaces. torch.compile betters no eager plan: not every network compiles,
 * and its peaks are told less exactly. */
static bool betters(const onv_ckpt_plan *a, const onv_ckpt_plan *b)
{
    if (a->compiles && !b->compiles) return false;
    bool are_equal = a->peak_bytes == b->peak_bytes && a->recomputed_macs == b->recomputed_macs &&
                     a->moved_bytes == b->moved_bytes;
    if (are_equal) return a->requested_bytes <= b->requested_bytes;
    return a->peak_bytes <= b->peak_bytes && a->recomputed_macs <= b->recomputed_macs &&
           a->moved_bytes <= b->moved_bytes;
}

onv_status onv_front_offer(onv_ckpt_plans *plans, const onv_ckpt_plan *plan, onv_error *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < plans->at.count; i++)
        if (betters(&plans->at.at[i], plan)) return ONV_OK;
    if (!onv_vec_reserve(&plans->at, 1)) return onv_fail_memory(err);
    onv_ckpt_plan *at = plans->at.at;
    for (size_t i = 0; i < plans->at.count; i++)
        if (!betters(plan, &at[i])) at[kept++] = at[i];
    size_t place = kept;
    while (place > 0 && at[place - 1].peak_bytes < plan->peak_bytes) {
        at[place] = at[place - 1];
        place--;
    }
    at[place] = *plan;
    plans->at.count = kept + 1;
    return ONV_OK;
}

#include "ckpt/front.h"

#include <string.h>

#include "base/fail.h"
#include "base/heap.h"

enum { MOST_GIVEN = 64, LEAST_GIVEN = 8, GIVEN_STEPS = 32000 };
enum { PARTS = 1000, MIN_PARTS = 8, FAR_PARTS = 32 };

/* Of equal ones the one that takes less with workspaces. torch.compile betters no eager plan: not every network compiles,
 * and its peaks are predicted less exactly. */
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

onv_status onv_front_offer_all(onv_ckpt_plans *plans, const onv_ckpt_plans *from, onv_error *err)
{
    for (size_t i = 0; from != NULL && i < from->at.count; i++)
        if (from->at.at[i].moved_bytes == 0) ONV_TRY(onv_front_offer(plans, &from->at.at[i], err));
    return ONV_OK;
}

/* --- What is given ----------------------------------------------------------------------------- */

static bool is_bettered(const onv_ckpt_plan *plan, const onv_ckpt_plans *plans, const bool *stays,
                        size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (stays[i] && betters(&plans->at.at[i], plan)) return true;
    return false;
}

/* The smallest one of its kind, the last one before much more runs again, what alone betters another plan of the list,
 * and what is bettered by none that stays even if it took a part of its peak more. */
static bool is_given(const onv_ckpt_plans *plans, size_t i, const onv_ckpt_plans *others,
                     uint32_t parts, const bool *stays)
{
    onv_ckpt_plan plan = plans->at.at[i];
    size_t next = i + 1;
    while (next < plans->at.count && plans->at.at[next].compiles != plan.compiles) next++;
    if (next == plans->at.count) return true;
    uint64_t most = plans->at.at[plans->at.count - 1].recomputed_macs;
    uint64_t far = most / (parts < FAR_PARTS ? parts : FAR_PARTS);
    if (plans->at.at[next].recomputed_macs > plan.recomputed_macs + far) return true;
    for (size_t k = 0; others != NULL && k < others->at.count; k++)
        if (betters(&plan, &others->at.at[k]) && !is_bettered(&others->at.at[k], plans, stays, i))
            return true;
    plan.peak_bytes += plan.peak_bytes / parts;
    return !is_bettered(&plan, plans, stays, i);
}

static size_t most_given(const onv_eager *eager)
{
    size_t n = GIVEN_STEPS / (eager->ops.count + 1);
    return n > MOST_GIVEN ? MOST_GIVEN : n > LEAST_GIVEN ? n : LEAST_GIVEN;
}

onv_status onv_front_give(const onv_ckpt_problem *problem, const onv_ckpt_plans *front,
                          const char *name, onv_ckpt_plans *plans, onv_error *err)
{
    onv_status status = ONV_OK;
    size_t most = most_given(problem->eager);
    size_t n_given = front->at.count;
    bool *stays = onv_heap_calloc(front->at.count + 1, sizeof *stays);
    if (stays == NULL) return onv_fail_memory(err);
    memset(stays, true, n_given);
    for (uint32_t parts = PARTS; n_given > most && parts > MIN_PARTS; parts -= parts / 4) {
        n_given = 0;
        for (size_t i = 0; i < front->at.count; i++)
            n_given += stays[i] = is_given(front, i, problem->others, parts, stays);
    }
    for (size_t i = 0; i < front->at.count && status == ONV_OK; i++) {
        onv_ckpt_plan plan = front->at.at[i];
        plan.name = name;
        bool fits = stays[i] ? onv_vec_push(&plans->at, plan) : onv_vec_push(&plans->spare, plan);
        if (!fits) status = onv_fail_memory(err);
    }
    onv_heap_free(stays);
    return status;
}

#include <stdlib.h>
#include <string.h>

#include "api/training.h"
#include "base/fail.h"
#include "runtime/fit.h"

enum { ID_LENGTH = 8, LEAST_BYTES = 1 << 20 };

static bool is_id(const char *text)
{
    return strspn(text, "0123456789abcdef") == ID_LENGTH && text[ID_LENGTH] == '\0';
}

onv_status onv_plan_pick_read(const char *checkpoint, onv_plan_pick *pick, onv_error *err)
{
    const char *at = strchr(checkpoint, '@');
    char *end;
    *pick = (onv_plan_pick){.list = checkpoint};
    if (is_id(checkpoint)) *pick = (onv_plan_pick){checkpoint, .list = "all", .id = checkpoint};
    if (pick->id != NULL || at == NULL) return ONV_OK;
    pick->text = at + 1;
    if (is_id(at + 1)) {
        pick->id = at + 1;
        return ONV_OK;
    }
    pick->percent = strtod(at + 1, &end);
    pick->is_percent = strspn(at + 1, "0123456789.") == (size_t)(end - at - 1) && end > at + 1 &&
                       strcmp(end, "%") == 0;
    /* "5" is a percentage or gigabytes, and no size of a plan. */
    if (pick->is_percent || (onv_size_parse(at + 1, &pick->bytes) && pick->bytes >= LEAST_BYTES))
        return ONV_OK;
    return onv_fail(err, ONV_ERR_USAGE,
                    "--checkpoint: expected an overhead as in @5%%, a size as in @12GiB or the "
                    "eight digits of a plan behind the @, found '%.40s'",
                    at + 1);
}

static double percent_of(const onv_training_plan *plan)
{
    return plan->pass_macs > 0
               ? 100.0 * (double)plan->does.recomputed_macs / (double)plan->pass_macs
               : 0;
}

/* Whether it is one of those that are asked for, and better than the best so far (NULL: none). */
static onv_status compare(const onv_plan_pick *pick, const onv_training_plan *plan,
                          const onv_training_plan *best, bool *is_best, onv_error *err)
{
    onv_runtime_result result;
    if (pick->id != NULL) {
        *is_best = best == NULL && strcmp(plan->id, pick->id) == 0;
        return ONV_OK;
    }
    ONV_TRY(onv_runtime_of_training(&plan->figures, &result, err));
    uint64_t bytes = plan->figures.reserved_peak_bytes, price = onv_training_plan_price(plan);
    uint64_t least = best != NULL ? best->figures.reserved_peak_bytes : UINT64_MAX;
    uint64_t cheapest = best != NULL ? onv_training_plan_price(best) : UINT64_MAX;
    bool is_smaller = bytes < least || (bytes == least && price < cheapest);
    bool is_cheaper = price < cheapest || (price == cheapest && bytes < least);
    *is_best = pick->is_percent ? percent_of(plan) <= pick->percent && is_smaller
                                : result.total_bytes.high <= pick->bytes && is_cheaper;
    return ONV_OK;
}

onv_status onv_plan_pick_find(void *context, const onv_training *all, uint32_t *plan,
                              onv_error *err)
{
    const onv_plan_pick *pick = context;
    const onv_training_plan *best = NULL;
    for (uint32_t i = 0; i < all->n_plans; i++) {
        bool is_best;
        ONV_TRY(compare(pick, &all->plans[i], best, &is_best, err));
        if (is_best) best = &all->plans[i];
    }
    if (best == NULL)
        return onv_fail(err, ONV_ERR_USAGE,
                        "--checkpoint: none of the %u plans %s %.40s: --checkpoint %.*s shows them",
                        (unsigned)all->n_plans,
                        pick->id != NULL   ? "is"
                        : pick->is_percent ? "costs at most"
                                           : "fits into",
                        pick->text, (int)strcspn(pick->list, "@"), pick->list);
    *plan = (uint32_t)(best - all->plans);
    return ONV_OK;
}

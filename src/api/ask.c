#include "api/analysis.h"

#include <string.h>

#include "base/fail.h"

const char *onv_ask_keep(const onv_analysis *analysis, const char *text)
{
    onv_making *making = analysis->making;
    const char *kept = text != NULL ? onv_intern(&making->text, text) : NULL;
    onv_arena_reset(&making->scratch);
    return kept;
}

onv_status onv_ask_formula(const onv_analysis *analysis, onv_error *err)
{
    onv_analysis *of = &analysis->making->analysis;
    if (of->formula != NULL) return ONV_OK;
    onv_formula *formula = ONV_ARENA_ARRAY(&of->model.arena, onv_formula, 1);
    if (formula == NULL) return onv_fail_memory(err);
    ONV_TRY(onv_formula_compute(&of->model, &of->live, formula, err));
    of->formula = formula;
    return ONV_OK;
}

/* What a short search for the best order reaches; UINT64_MAX where the user chose an order, or the
 * graph is too large to look for one on the side. */
static onv_status peak_of_better_order(onv_analysis *analysis, uint64_t *peak, onv_error *err)
{
    enum { MOST_NODES = 20000, EFFORT = 50000 /* some 50 ms */ };
    const onv_order_options how = {.effort = EFFORT};
    onv_order_result *order = &analysis->best_order;
    *peak = UINT64_MAX;
    if (strcmp(analysis->order.name, "model") != 0 ||
        analysis->live.timeline.steps.count > MOST_NODES)
        return ONV_OK;
    ONV_TRY(onv_order_compute(onv_order_find("optimal"), &analysis->model, &how, order, err));
    *peak = order->peak_bytes;
    return ONV_OK;
}

onv_status onv_ask_what_if(const onv_analysis *analysis, onv_error *err)
{
    onv_analysis *of = &analysis->making->analysis;
    uint64_t better;
    if (of->has_what_if || of->live.unknown > 0) return ONV_OK;
    ONV_TRY(peak_of_better_order(of, &better, err));
    ONV_TRY(onv_global_savings_compute(&of->model, &of->live, better, &of->global_savings, err));
    of->has_what_if = true;
    return ONV_OK;
}

#include "api/ask.h"

#include <string.h>

#include "base/fail.h"

bool onv_asked_init(onv_analysis *analysis)
{
    onv_asked *asked = onv_heap_calloc(1, sizeof *asked);
    analysis->asked = asked;
    if (asked == NULL) return false;
    asked->of = analysis;
    onv_arena_init(&asked->arena, SIZE_MAX);
    onv_arena_init(&asked->scratch, SIZE_MAX);
    onv_strings_init(&asked->text, &asked->arena);
    return true;
}

void onv_asked_cleanup(onv_analysis *analysis)
{
    onv_asked *asked = analysis->asked;
    if (asked == NULL) return;
    onv_strings_cleanup(&asked->text);
    onv_arena_cleanup(&asked->scratch);
    onv_arena_cleanup(&asked->arena);
    onv_heap_free(asked);
    analysis->asked = NULL;
}

const char *onv_ask_keep(const onv_analysis *analysis, const char *text)
{
    onv_asked *asked = analysis->asked;
    const char *kept = text != NULL ? onv_intern(&asked->text, text) : NULL;
    onv_arena_reset(&asked->scratch);
    return kept;
}

onv_status onv_ask_formula(const onv_analysis *analysis, onv_error *err)
{
    onv_analysis *of = analysis->asked->of;
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
    onv_analysis *of = analysis->asked->of;
    uint64_t better;
    if (of->has_what_if || of->live.unknown > 0) return ONV_OK;
    ONV_TRY(peak_of_better_order(of, &better, err));
    ONV_TRY(onv_global_savings_compute(&of->model, &of->live, better, &of->global_savings, err));
    of->has_what_if = true;
    return ONV_OK;
}

onv_view onv_analysis_view(const onv_analysis *analysis)
{
    const struct {
        const onv_rewritten *graph;
        const onv_live *live;
    } made[] = {{&analysis->rewritten, &analysis->rewritten_live},
                {&analysis->on_cpu, &analysis->on_cpu_live},
                {&analysis->engine, &analysis->engine_live}};
    size_t shown = 0; /* the first one that was asked for */
    while (shown < 2 && made[shown].graph->model.graphs.count == 0) shown++;
    const onv_model *types = analysis->unbound != NULL ? analysis->unbound : &analysis->model;
    return (onv_view){
        .model = &analysis->model,
        .unbound = analysis->writes_onnx ? types : NULL,
        .infer = &analysis->infer,
        .live = &analysis->live,
        .largest = &analysis->largest,
        .formula = analysis->formula,
        .sampled = &analysis->sampled,
        .order = &analysis->order,
        .best_order = &analysis->best_order,
        .runtimes = analysis->runtimes,
        .n_runtimes = analysis->n_runtimes,
        .rewritten = made[shown].graph->model.graphs.count > 0 ? made[shown].graph : NULL,
        .rewritten_live = made[shown].live,
        .dumps_rewritten = analysis->dumps_rewritten,
        .plan_offsets = analysis->plan_offsets,
        .plan_alignment = analysis->plan_alignment,
        .training = &analysis->training,
        .trained = &analysis->training.timeline,
        .global_savings = &analysis->global_savings,
        .savings = &analysis->savings,
        .quantized = &analysis->quantized,
        .cache = &analysis->cache,
        .answer = &analysis->answer,
        .fit = &analysis->fit,
        .gate = &analysis->gate,
        .devices = analysis->devices,
        .n_devices = analysis->n_devices,
        .node_stats = &analysis->node_stats,
        .advice = &analysis->advice,
        .requests = &analysis->requests,
        .replays = &analysis->replays,
        .executions = &analysis->executions,
        .measured = &analysis->measured,
        .in_force = analysis->in_force,
    };
}

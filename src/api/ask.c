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

onv_view onv_analysis_view(const onv_analysis *analysis)
{
    const onv_rewritten *rewritten = analysis->rewritten.model.graphs.count > 0
                                         ? &analysis->rewritten
                                     : analysis->on_cpu.model.graphs.count > 0 ? &analysis->on_cpu
                                                                               : NULL;
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
        .rewritten = rewritten,
        .rewritten_live =
            rewritten == &analysis->on_cpu ? &analysis->on_cpu_live : &analysis->rewritten_live,
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

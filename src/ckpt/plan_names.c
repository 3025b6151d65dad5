#include "ckpt/plan_names.h"

#include "base/fail.h"

static onv_status name_segments(onv_places *places, onv_training_plan *plan, onv_error *err)
{
    onv_arena *arena = &places->namer.model->arena;
    onv_segment_names *names = ONV_ARENA_ARRAY(arena, onv_segment_names, plan->n_segments);
    const char **kept = ONV_ARENA_ARRAY(arena, const char *, plan->n_kept_ops);
    if (names == NULL || kept == NULL) return onv_fail_memory(err);
    plan->names = names;
    plan->kept = kept;
    for (uint32_t i = 0; i < plan->n_segments; i++)
        ONV_TRY(onv_segment_name(&places->namer, plan->segments[i], &names[i], err));
    if (plan->offload_until > 0)
        ONV_TRY(onv_place_name(&places->namer, plan->offload_until, &plan->until, err));
    for (uint32_t i = 0; i < plan->n_kept_ops; i++) {
        kept[i] = onv_border_text(&places->borders.of_op[plan->kept_ops[i]], arena);
        if (kept[i] == NULL) return onv_fail_memory(err);
    }
    return ONV_OK;
}

/* A row of modules is applied as such, other segments by their borders. */
static bool is_placed(const onv_training_plan *plan, uint32_t segment)
{
    const onv_segment_names *names = &plan->names[segment];
    return plan->sequential > 0 || names->begin != NULL || (!plan->prunes && names->is_chain);
}

/* What the lines of Python achieve that the plan file has. */
static onv_status measure_placed(onv_model *model, const onv_eager *eager,
                                 const onv_training_options *options, onv_training_plan *plan,
                                 onv_error *err)
{
    onv_ckpt_plan placed = {.offload_until = plan->offload_until};
    onv_tape_segment *segments = ONV_ARENA_ARRAY(&model->arena, onv_tape_segment, plan->n_segments);
    if (segments == NULL) return onv_fail_memory(err);
    for (uint32_t i = 0; i < plan->n_segments; i++)
        if (is_placed(plan, i)) segments[placed.n_segments++] = plan->segments[i];
    plan->n_by_hand = plan->n_segments - placed.n_segments;
    if (plan->n_by_hand == 0 || placed.n_segments + placed.offload_until == 0) return ONV_OK;
    onv_ckpt_problem problem = {.options = &options->train};
    placed.segments = segments;
    placed.prunes = true; /* as borders are applied */
    ONV_TRY(onv_pricing_open(model, eager, &options->train, &problem.pricing, err));
    onv_status status = onv_ckpt_measure(&problem, &placed, err);
    onv_pricing_close(problem.pricing);
    ONV_TRY(status);
    plan->placed_peak_bytes = placed.peak_bytes;
    plan->placed_macs = placed.recomputed_macs;
    return ONV_OK;
}

onv_status onv_plans_name(onv_model *model, const onv_eager *eager,
                          const onv_training_options *options, onv_training *result, onv_error *err)
{
    onv_places places = {.is_told = false};
    onv_arena arena;
    onv_arena_init(&arena, SIZE_MAX);
    onv_status status = onv_places_find(model, eager, &arena, &places, err);
    for (uint32_t i = 0; i < result->n_plans && status == ONV_OK; i++)
        status = name_segments(&places, &result->plans[i], err);
    onv_places_cleanup(&places);
    onv_arena_cleanup(&arena);
    for (uint32_t i = 0; i < result->n_plans && status == ONV_OK; i++)
        status = measure_placed(model, eager, options, &result->plans[i], err);
    return status;
}

#include "ckpt/unit_list.h"

#include "base/checked.h"
#include "base/fail.h"

static onv_listed_unit list_unit(const onv_eager *eager, uint32_t first, uint32_t end)
{
    const onv_eager_op *most = &eager->ops.at[first];
    onv_listed_unit unit = {.macs = 0};
    for (uint32_t i = first; i < end; i++) {
        const onv_eager_op *op = &eager->ops.at[i];
        if (op->macs > most->macs) most = op;
        unit.macs = onv_u64_plus(unit.macs, op->macs);
    }
    unit.node = most->node;
    unit.operation = most->name;
    return unit;
}

static onv_status list_units(const onv_ckpt_problem *problem, onv_arena *arena, onv_unit_list *list,
                             onv_error *err)
{
    onv_tape_beside beside;
    onv_tape_chain tape;
    ONV_TRY(onv_tape_beside_find(problem, arena, &beside, err));
    const onv_tape_chain_options options = {.max_units = ONV_CHAIN_MAX_UNITS};
    ONV_TRY(onv_tape_chain_build(problem, &beside, &options, arena, &tape, err));
    onv_listed_unit *units = ONV_ARENA_ARRAY(arena, onv_listed_unit, tape.chain.n_units);
    if (units == NULL) return onv_fail_memory(err);
    for (uint32_t u = 0; u < tape.chain.n_units; u++)
        units[u] = list_unit(problem->eager, tape.first_op[u], tape.first_op[u + 1]);
    *list = (onv_unit_list){.chain = tape.chain, .units = units};
    return ONV_OK;
}

onv_status onv_unit_list_make(onv_model *model, const onv_eager *eager,
                              const onv_train_options *options, const onv_unit_list **list,
                              onv_error *err)
{
    onv_places places = {.is_told = false};
    onv_unit_list *made = ONV_ARENA_ARRAY(&model->arena, onv_unit_list, 1);
    if (made == NULL) return onv_fail_memory(err);
    onv_status status = onv_places_find(model, eager, &model->arena, &places, err);
    const onv_ckpt_problem problem = {
        .model = model, .eager = eager, .places = &places, .options = options, .prunes = true};
    if (status == ONV_OK) status = list_units(&problem, &model->arena, made, err);
    onv_places_cleanup(&places);
    if (status == ONV_OK) *list = made;
    return status;
}

#include "runtime/executions.h"

#include "base/fail.h"

void onv_executions_cleanup(onv_executions *kept)
{
    for (size_t i = 0; i < kept->list.count; i++) onv_execution_cleanup(&kept->list.at[i].made);
    onv_vec_cleanup(&kept->list);
}

onv_status onv_executions_take(onv_executions *kept, const char *runtime, uint32_t plan,
                               const onv_model *model, onv_execution *made, onv_error *err)
{
    onv_kept_execution row = {.runtime = runtime, .plan = plan, .model = model, .made = *made};
    *made = (onv_execution){0};
    if (onv_vec_push(&kept->list, row)) return ONV_OK;
    onv_execution_cleanup(&row.made);
    return onv_fail_memory(err);
}

onv_status onv_executions_take_training(onv_executions *kept, uint32_t plan, const onv_model *model,
                                        const onv_timeline *t, const onv_alloc_options *alloc,
                                        onv_error *err)
{
    const onv_runtime_options how = {.alloc = *alloc};
    uint64_t rows = (uint64_t)t->steps.count + t->buffers.count;
    if (plan != ONV_NO_PLAN && kept->rows + rows > ONV_EXECUTIONS_MOST_ROWS) return ONV_OK;
    kept->rows += rows;
    onv_execution made = {0};
    onv_status status = onv_timeline_path(t, &made.timeline, NULL, err);
    if (status == ONV_OK) status = onv_runtime_place(onv_runtime_find("torch"), &how, &made, err);
    if (status == ONV_OK) return onv_executions_take(kept, "train", plan, model, &made, err);
    onv_execution_cleanup(&made);
    return status;
}

const char *onv_kept_op(const onv_kept_execution *kept, const onv_step *step)
{
    if (step->label != NULL) return step->label;
    return onv_is_node(step->node) ? onv_model_node(kept->model, step->node)->op_type : "?";
}

const char *onv_kept_node(const onv_kept_execution *kept, const onv_step *step)
{
    if (!onv_is_node(step->node)) return "";
    const onv_node *node = onv_model_node(kept->model, step->node);
    if (node->name != NULL && node->name[0] != '\0') return node->name;
    for (uint32_t i = 0; i < node->n_outputs; i++)
        if (onv_is_value(node->outputs[i]))
            return onv_model_value(kept->model, node->outputs[i])->name;
    return "";
}

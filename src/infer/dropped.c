/* Which weights may be trained, and which ones no run holds: those of branches that cannot be taken, and
 * those outside that only such branches read. One that nothing reads at all stays: it is in the file,
 * and runtimes load it. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "infer/driver.h"

enum { READ = 1, READ_IN_DROPPED = 2 };

static void note(uint8_t *reads, onv_value_id id, bool dropped)
{
    if (onv_is_value(id)) reads[id.index] |= dropped ? READ_IN_DROPPED : READ;
}

/* A few initializers, as the scales of a Resize, do not make Constant nodes numbers in the code. */
enum { MORE_IN_CONSTANTS = 10 };

/* Where nearly all numbers are in Constant nodes, the parameters are. */
static void find_parameters(onv_model *model)
{
    uint64_t elems[2] = {0};
    for (size_t i = 0; i < model->values.count; i++) {
        const onv_value *value = &model->values.at[i];
        if (!onv_value_is_weight(value) || value->tensor == NULL) continue;
        const onv_tensor *tensor = value->tensor;
        if (!onv_dtype_is_float((onv_dtype)tensor->type.dtype) || tensor->elems < 2) continue;
        uint64_t *sum = &elems[value->kind == ONV_VALUE_CONSTANT];
        *sum = onv_u64_plus(*sum, tensor->elems);
    }
    /* PyTorch writes no parameter there, but zeros and tables of the code. */
    bool by_pytorch = strncmp(model->producer, "pytorch", strlen("pytorch")) == 0;
    model->trains_constants =
        !by_pytorch && elems[1] > 0 && elems[0] <= elems[1] / MORE_IN_CONSTANTS;
}

onv_status onv_drop_weights(onv_driver *driver)
{
    onv_model *model = driver->model;
    find_parameters(model);
    bool any = false;
    for (size_t g = 0; g < model->graphs.count; g++) any |= model->graphs.at[g].never_runs;
    if (!any) return ONV_OK;
    uint8_t *reads = ONV_ARENA_ARRAY(&driver->scratch, uint8_t, model->values.count);
    if (reads == NULL) return onv_fail_memory(driver->err);
    for (size_t i = 0; i < model->nodes.count; i++) {
        const onv_node *node = &model->nodes.at[i];
        bool dropped = onv_model_graph(model, node->graph)->never_runs;
        for (uint32_t k = 0; k < node->n_inputs; k++) note(reads, node->inputs[k], dropped);
    }
    for (size_t g = 0; g < model->graphs.count; g++) {
        const onv_graph *graph = &model->graphs.at[g];
        for (uint32_t k = 0; k < graph->n_outputs; k++)
            note(reads, graph->outputs[k], graph->never_runs);
    }
    for (size_t i = 0; i < model->values.count; i++) {
        onv_value *value = &model->values.at[i];
        if (!onv_value_is_weight(value)) continue; /* inputs are fed, and what runs gives values */
        value->is_dropped =
            onv_model_graph(model, value->graph)->never_runs || reads[i] == READ_IN_DROPPED;
    }
    return ONV_OK;
}

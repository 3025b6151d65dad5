#include "order/order.h"

#include <string.h>

#include "base/fail.h"

extern const onv_order onv_order_model, onv_order_ort, onv_order_greedy, onv_order_optimal;

const onv_order *const onv_orders[] = {&onv_order_model, &onv_order_ort, &onv_order_greedy,
                                       &onv_order_optimal};
const size_t onv_n_orders = sizeof onv_orders / sizeof onv_orders[0];

const onv_order *onv_order_find(const char *name)
{
    for (size_t i = 0; i < onv_n_orders; i++)
        if (strcmp(onv_orders[i]->name, name) == 0) return onv_orders[i];
    return NULL;
}

onv_status onv_order_compute(const onv_order *order, onv_model *model,
                             const onv_order_options *options, onv_order_result *result,
                             onv_error *err)
{
    onv_order_options defaults = {0};
    *result = (onv_order_result){
        .name = order->name,
        .n_nodes = onv_model_graph(model, (onv_graph_id){0})->n_nodes,
    };
    result->nodes = ONV_ARENA_ARRAY(&model->arena, onv_node_id, result->n_nodes);
    if (result->nodes == NULL) return onv_fail_memory(err);
    return order->compute(model, options != NULL ? options : &defaults, result, err);
}

static onv_status compute_model(onv_model *model, const onv_order_options *options,
                                onv_order_result *result, onv_error *err)
{
    (void)options;
    (void)err;
    const onv_graph *graph = onv_model_graph(model, (onv_graph_id){0});
    memcpy(result->nodes, graph->nodes, graph->n_nodes * sizeof *graph->nodes);
    return ONV_OK;
}

const onv_order onv_order_model = {
    .name = "model",
    .summary = "as in the file",
    .compute = compute_model,
};

#include "order/order_dag.h"

#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "graph/liveness.h"

static onv_status compute_model(onv_model *model, onv_order_result *result, onv_error *err)
{
    (void)err;
    const onv_graph *graph = onv_model_graph(model, (onv_graph_id){0});
    memcpy(result->nodes, graph->nodes, graph->n_nodes * sizeof *graph->nodes);
    return ONV_OK;
}

const onv_order onv_orders[] = {
    {.name = "model", .summary = "as in the file", .compute = compute_model},
    {.name = "ort",
     .summary = "ONNX Runtime's default: depth first from the results",
     .compute = onv_order_compute_ort},
    {.name = "greedy",
     .summary = "smallest memory increase first; the best of several such orders",
     .on_dag = onv_dag_order_greedy},
    {.name = "optimal",
     .summary = "minimum peak (exact search); says whether that is proven",
     .on_dag = onv_dag_order_optimal},
};
const size_t onv_n_orders = sizeof onv_orders / sizeof onv_orders[0];

const onv_order *onv_order_find(const char *name)
{
    for (size_t i = 0; i < onv_n_orders; i++)
        if (strcmp(onv_orders[i].name, name) == 0) return &onv_orders[i];
    return NULL;
}

static onv_status apply(const onv_order *order, const onv_dag *dag, const onv_model *model,
                        const onv_order_options *options, onv_order_result *result, onv_error *err)
{
    const onv_graph *graph = onv_model_graph(model, (onv_graph_id){0});
    onv_dag_order found = {.nodes = onv_heap_alloc(dag->n_nodes * sizeof *found.nodes)};
    if (found.nodes == NULL) return onv_fail_memory(err);
    for (uint32_t i = 0; i < dag->n_nodes; i++) found.nodes[i] = i;
    onv_status status = order->on_dag(dag, options, &found, err);
    for (uint32_t i = 0; i < dag->n_nodes; i++) result->nodes[i] = graph->nodes[found.nodes[i]];
    result->has_bound = found.has_bound;
    result->peak_bytes = found.peak_bytes;
    result->lower_bound_bytes = found.lower_bound_bytes;
    result->proven = found.has_bound && found.peak_bytes == found.lower_bound_bytes;
    onv_heap_free(found.nodes);
    return status;
}

/* From the order of the file. */
static onv_status compute_on_dag(const onv_order *order, onv_model *model,
                                 const onv_order_options *options, onv_order_result *result,
                                 onv_error *err)
{
    onv_live live;
    onv_dag dag = {0};
    onv_arena arena;
    onv_arena_init(&arena, model->arena.limit_bytes);
    onv_status status = onv_live_compute_in(&arena, model, NULL, &live, err);
    if (status == ONV_OK) status = onv_dag_init_model(&dag, model, &live, err);
    onv_arena_cleanup(&arena);
    if (status == ONV_OK) status = apply(order, &dag, model, options, result, err);
    onv_dag_cleanup(&dag);
    return status;
}

onv_status onv_order_compute(const onv_order *order, onv_model *model,
                             const onv_order_options *options, onv_order_result *result,
                             onv_error *err)
{
    static const onv_order_options defaults = {0};
    *result = (onv_order_result){
        .name = order->name,
        .n_nodes = onv_model_graph(model, (onv_graph_id){0})->n_nodes,
    };
    result->nodes = ONV_ARENA_ARRAY(&model->arena, onv_node_id, result->n_nodes);
    if (result->nodes == NULL) return onv_fail_memory(err);
    if (order->compute != NULL) return order->compute(model, result, err);
    return compute_on_dag(order, model, options != NULL ? options : &defaults, result, err);
}

#include "order/order_dag.h"

#include "base/fail.h"
#include "base/heap.h"
#include "graph/liveness.h"

static onv_status apply(onv_dag_strategy strategy, const onv_dag *dag, const onv_model *model,
                        const onv_order_options *options, onv_order_result *result, onv_error *err)
{
    const onv_graph *graph = onv_model_graph(model, (onv_graph_id){0});
    onv_dag_order order = {.nodes = onv_heap_alloc(dag->n_nodes * sizeof *order.nodes)};
    if (order.nodes == NULL) return onv_fail_memory(err);
    for (uint32_t i = 0; i < dag->n_nodes; i++) order.nodes[i] = i;
    onv_status status = strategy(dag, options, &order, err);
    for (uint32_t i = 0; i < dag->n_nodes; i++) result->nodes[i] = graph->nodes[order.nodes[i]];
    result->has_bound = order.has_bound;
    result->peak_bytes = order.peak_bytes;
    result->lower_bound_bytes = order.lower_bound_bytes;
    result->proven = order.has_bound && order.peak_bytes == order.lower_bound_bytes;
    result->searched = order.searched;
    onv_heap_free(order.nodes);
    return status;
}

onv_status onv_order_by_dag(onv_dag_strategy strategy, onv_model *model,
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
    if (status == ONV_OK) status = apply(strategy, &dag, model, options, result, err);
    onv_dag_cleanup(&dag);
    return status;
}

/* ONNX Runtime's default order (graph/steps.h). */
#include "base/fail.h"
#include "base/heap.h"
#include "graph/steps.h"
#include "order/order_dag.h"

typedef struct search {
    const onv_model *model;
    uint32_t *
        position; /* by node: its number among those of the main graph, as they were made: as in the file,
                           then what rewriting added; UINT32_MAX for inner graphs' nodes */
    onv_node_id *nodes; /* by that number */
    uint32_t *order;
    onv_edges edges;
} search;

static bool prepare(search *s, const onv_graph *graph)
{
    uint32_t n = graph->n_nodes, at = 0;
    s->nodes = onv_heap_alloc(n * sizeof *s->nodes);
    s->order = onv_heap_alloc(n * sizeof *s->order);
    s->position = onv_heap_alloc(s->model->nodes.count * sizeof *s->position);
    if (s->nodes == NULL || s->order == NULL || s->position == NULL) return false;
    for (size_t i = 0; i < s->model->nodes.count; i++) s->position[i] = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) s->position[graph->nodes[i].index] = i;
    for (uint32_t i = 0; i < s->model->nodes.count; i++) {
        if (s->position[i] == UINT32_MAX) continue;
        s->nodes[at].index = i;
        s->position[i] = at++;
    }
    return true;
}

/* An edge from the producer of a value to a node of the main graph: `reader`, or the one that owns the
 * subgraph in which that is. */
static bool add_edge(search *s, onv_node_id reader, onv_value_id value)
{
    if (!onv_is_value(value)) return true;
    onv_node_id from = onv_model_value(s->model, value)->producer;
    if (!onv_is_node(from) || s->position[from.index] == UINT32_MAX) return true;
    for (onv_graph_id g; (g = onv_model_node(s->model, reader)->graph).index != 0;)
        reader = onv_model_graph(s->model, g)->owner;
    return onv_vec_push(&s->edges,
                        ((onv_edge){s->position[from.index], s->position[reader.index]}));
}

/* What a subgraph reads or hands out from outside is read by the node that owns it. */
static bool list_edges(search *s)
{
    bool good = true;
    for (uint32_t i = 0; good && i < s->model->nodes.count; i++) {
        const onv_node *node = &s->model->nodes.at[i];
        for (uint32_t k = 0; good && k < node->n_inputs; k++)
            good = add_edge(s, (onv_node_id){i}, node->inputs[k]);
    }
    for (size_t g = 1; good && g < s->model->graphs.count; g++) {
        const onv_graph *graph = &s->model->graphs.at[g];
        for (uint32_t k = 0; good && k < graph->n_outputs; k++)
            good = add_edge(s, graph->owner, graph->outputs[k]);
    }
    return good;
}

onv_status onv_order_compute_ort(onv_model *model, onv_order_result *result, onv_error *err)
{
    const onv_graph *graph = onv_model_graph(model, (onv_graph_id){0});
    search s = {.model = model};
    bool good = prepare(&s, graph) && list_edges(&s);
    onv_status status =
        good ? onv_backward_order(graph->n_nodes, &s.edges, s.order, err) : onv_fail_memory(err);
    for (uint32_t i = 0; status == ONV_OK && i < graph->n_nodes; i++)
        result->nodes[i] = s.nodes[s.order[i]];
    onv_heap_free(s.nodes);
    onv_heap_free(s.order);
    onv_heap_free(s.position);
    onv_vec_cleanup(&s.edges);
    return status;
}

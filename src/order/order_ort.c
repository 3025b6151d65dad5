/* ONNX Runtime's default order (read in source: onnxruntime/core/graph/graph_viewer.cc, checked by
 * measurement: see bench/order/ort_order.py): a depth-first search against the edges from the nodes that feed no other, the last
 * of them first; at each node the producers of its inputs are visited, the one with the highest
 * index first. A node runs after everything it was reached through. */
#include <stdlib.h>

#include "base/fail.h"
#include "base/heap.h"
#include "order/order.h"

typedef struct search {
    const onv_model *model;
    const onv_graph *graph;
    onv_node_id
        *nodes; /* of the graph, in the order in which they were made: as in the file, then what
                             rewriting added */
    uint32_t *position;   /* by node: its place in `nodes`, UINT32_MAX for inner graphs' nodes */
    uint32_t *pred_start; /* by position: its producers in `preds`, highest position first */
    uint32_t *preds;
    bool *is_leaf, *seen;   /* by position */
    uint32_t *stack, *next; /* positions on the path, and the producer to look at */
    onv_node_id *out;
    uint32_t n_out;
} search;

static bool prepare(search *s)
{
    uint32_t n = s->graph->n_nodes;
    s->nodes = onv_heap_alloc(n * sizeof *s->nodes);
    s->position = onv_heap_alloc(s->model->nodes.count * sizeof *s->position);
    s->pred_start = onv_heap_calloc((size_t)n + 2, sizeof *s->pred_start);
    s->is_leaf = onv_heap_alloc(n * sizeof *s->is_leaf);
    s->seen = onv_heap_calloc(n, sizeof *s->seen);
    s->stack = onv_heap_alloc(n * sizeof *s->stack);
    s->next = onv_heap_alloc(n * sizeof *s->next);
    if (s->nodes == NULL || s->position == NULL || s->pred_start == NULL || s->is_leaf == NULL ||
        s->seen == NULL || s->stack == NULL || s->next == NULL)
        return false;
    for (size_t i = 0; i < s->model->nodes.count; i++) s->position[i] = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) s->position[s->graph->nodes[i].index] = i;
    for (uint32_t i = 0, at = 0; i < s->model->nodes.count; i++) {
        if (s->position[i] == UINT32_MAX) continue;
        s->is_leaf[at] = true;
        s->nodes[at].index = i;
        s->position[i] = at++;
    }
    return true;
}

typedef void (*edge_fn)(search *s, uint32_t consumer, uint32_t producer);

/* An edge from the producer of a value to a node of the main graph: `reader`, or the one that owns the
 * subgraph in which that is. */
static void add_edge(search *s, onv_node_id reader, onv_value_id value, edge_fn edge)
{
    if (!onv_is_value(value)) return;
    onv_node_id from = onv_model_value(s->model, value)->producer;
    if (!onv_is_node(from) || s->position[from.index] == UINT32_MAX) return;
    for (onv_graph_id g; (g = onv_model_node(s->model, reader)->graph).index != 0;)
        reader = onv_model_graph(s->model, g)->owner;
    edge(s, s->position[reader.index], s->position[from.index]);
}

/* Calls for each edge (consumer, producer) of the main graph. What a subgraph reads or hands out from
 * outside is read by the node that owns it. */
static void each_edge(search *s, edge_fn edge)
{
    for (uint32_t i = 0; i < s->model->nodes.count; i++) {
        const onv_node *node = &s->model->nodes.at[i];
        for (uint32_t k = 0; k < node->n_inputs; k++)
            add_edge(s, (onv_node_id){i}, node->inputs[k], edge);
    }
    for (size_t g = 1; g < s->model->graphs.count; g++) {
        const onv_graph *graph = &s->model->graphs.at[g];
        for (uint32_t k = 0; k < graph->n_outputs; k++)
            add_edge(s, graph->owner, graph->outputs[k], edge);
    }
}

static void count_edge(search *s, uint32_t consumer, uint32_t producer)
{
    if (consumer == producer) return;
    s->is_leaf[producer] = false;
    s->pred_start[consumer + 2]++;
}

static void store_edge(search *s, uint32_t consumer, uint32_t producer)
{
    if (consumer != producer) s->preds[s->pred_start[consumer + 1]++] = producer;
}

static int compare_descending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x < y) - (x > y);
}

static bool collect_producers(search *s)
{
    uint32_t n = s->graph->n_nodes;
    each_edge(s, count_edge);
    for (uint32_t i = 0; i < n; i++) s->pred_start[i + 2] += s->pred_start[i + 1];
    s->preds = onv_heap_alloc(s->pred_start[n + 1] * sizeof *s->preds);
    if (s->preds == NULL) return false;
    each_edge(s, store_edge);
    for (uint32_t i = 0; i < n; i++)
        qsort(s->preds + s->pred_start[i], s->pred_start[i + 1] - s->pred_start[i],
              sizeof *s->preds, compare_descending);
    return true;
}

static void visit(search *s, uint32_t leaf)
{
    uint32_t depth = 0;
    s->seen[leaf] = true;
    s->stack[depth] = leaf;
    s->next[depth++] = s->pred_start[leaf];
    while (depth > 0) {
        uint32_t at = s->stack[depth - 1];
        if (s->next[depth - 1] == s->pred_start[at + 1]) {
            s->out[s->n_out++] = s->nodes[at];
            depth--;
            continue;
        }
        uint32_t producer = s->preds[s->next[depth - 1]++];
        if (s->seen[producer]) continue;
        s->seen[producer] = true;
        s->stack[depth] = producer;
        s->next[depth++] = s->pred_start[producer];
    }
}

static onv_status compute_ort(onv_model *model, const onv_order_options *options,
                              onv_order_result *result, onv_error *err)
{
    (void)options;
    search s = {
        .model = model, .graph = onv_model_graph(model, (onv_graph_id){0}), .out = result->nodes};
    bool good = prepare(&s) && collect_producers(&s);
    for (uint32_t i = s.graph->n_nodes; good && i-- > 0;)
        if (s.is_leaf[i] && !s.seen[i]) visit(&s, i);
    onv_heap_free(s.nodes);
    onv_heap_free(s.position);
    onv_heap_free(s.pred_start);
    onv_heap_free(s.preds);
    onv_heap_free(s.is_leaf);
    onv_heap_free(s.seen);
    onv_heap_free(s.stack);
    onv_heap_free(s.next);
    return good ? ONV_OK : onv_fail_memory(err);
}

const onv_order onv_order_ort = {
    .name = "ort",
    .summary = "ONNX Runtime's default: depth first from the results",
    .compute = compute_ort,
};

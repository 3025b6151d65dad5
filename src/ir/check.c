#include "ir/check.h"

#include <stdio.h>

#include "base/fail.h"
#include "base/quota.h"
#include "base/sort.h"

/* A use is an edge from the node that produces a value to a node of the same graph that needs it.
 * What a subgraph reads from outside is needed by the node that owns the subgraph, on whichever
 * level the value lives. */
typedef struct check {
    onv_model *model;
    uint32_t *position;   /* by node: its place in its graph, as in the file */
    bool *unsorted;       /* by graph */
    uint32_t *n_waiting;  /* by node: uses it still waits for */
    uint32_t *first_edge; /* by node, one more at the end: where its edges start */
    uint32_t *edges;      /* nodes that use it */
    onv_error *err;
} check;

typedef onv_status (*use_fn)(check *c, onv_node_id producer, onv_node_id user);

static const char *node_text(const onv_model *model, onv_node_id id)
{
    const onv_node *node = onv_model_node(model, id);
    return node->name[0] != '\0' ? node->name : node->op_type;
}

/* --- Uses -------------------------------------------------------------------------------------- */

static onv_status visit_use(check *c, onv_value_id id, onv_node_id user, use_fn fn)
{
    const onv_model *model = c->model;
    if (!onv_is_value(id)) return ONV_OK;
    onv_node_id producer = onv_model_value(model, id)->producer;
    if (!onv_is_node(producer)) return ONV_OK;
    onv_graph_id graph = onv_model_node(model, producer)->graph;
    while (onv_is_node(user) && onv_model_node(model, user)->graph.index != graph.index)
        user = onv_model_graph(model, onv_model_node(model, user)->graph)->owner;
    if (!onv_is_node(user))
        return onv_fail(c->err, ONV_ERR_MODEL, "value '%s' is used outside its scope",
                        onv_model_value(model, id)->name);
    return fn(c, producer, user);
}

static onv_status visit_uses(check *c, use_fn fn)
{
    const onv_model *model = c->model;
    for (uint32_t n = 0; n < model->nodes.count; n++) {
        const onv_node *node = &model->nodes.at[n];
        for (uint32_t i = 0; i < node->n_inputs; i++)
            ONV_TRY(visit_use(c, node->inputs[i], (onv_node_id){n}, fn));
    }
    for (uint32_t g = 0; g < model->graphs.count; g++) {
        const onv_graph *graph = &model->graphs.at[g];
        for (uint32_t i = 0; i < graph->n_outputs && onv_is_node(graph->owner); i++) {
            onv_value_id id = graph->outputs[i];
            if (onv_is_value(id) && onv_model_value(model, id)->graph.index != g)
                ONV_TRY(visit_use(c, id, graph->owner, fn));
        }
    }
    return ONV_OK;
}

static onv_status note_order(check *c, onv_node_id producer, onv_node_id user)
{
    if (producer.index == user.index) {
        onv_fail(c->err, ONV_ERR_MODEL, "node '%s' needs its own output",
                 node_text(c->model, user));
        onv_error_at(c->err, node_text(c->model, user), onv_model_node(c->model, user)->op_type);
        return ONV_ERR_MODEL;
    }
    if (c->position[producer.index] > c->position[user.index])
        c->unsorted[onv_model_node(c->model, user)->graph.index] = true;
    return ONV_OK;
}

static onv_status count_edge(check *c, onv_node_id producer, onv_node_id user)
{
    if (!c->unsorted[onv_model_node(c->model, user)->graph.index]) return ONV_OK;
    if (c->first_edge[producer.index + 1] == UINT32_MAX)
        return onv_fail(c->err, ONV_ERR_LIMIT, "the graph has too many edges");
    c->first_edge[producer.index + 1]++;
    c->n_waiting[user.index]++;
    return ONV_OK;
}

static onv_status store_edge(check *c, onv_node_id producer, onv_node_id user)
{
    if (c->unsorted[onv_model_node(c->model, user)->graph.index])
        c->edges[c->first_edge[producer.index]++] = user.index;
    return ONV_OK;
}

/* --- Sorting ----------------------------------------------------------------------------------- */

/* Names a few nodes of a cycle among those that still wait. Every one of them waits for another, so
 * that going backwards from any must come round. `before` and `seen` are by place. */
static onv_status fail_cycle(check *c, const onv_graph *graph, uint32_t *before, uint32_t *seen)
{
    enum { SHOWN = 5 };
    uint32_t at = UINT32_MAX;
    for (uint32_t p = 0; p < graph->n_nodes; p++) seen[p] = 0;
    for (uint32_t p = 0; p < graph->n_nodes; p++) {
        uint32_t node = graph->nodes[p].index;
        if (c->n_waiting[node] == 0) continue;
        at = p;
        uint32_t start = node > 0 ? c->first_edge[node - 1] : 0;
        for (uint32_t e = start; e < c->first_edge[node]; e++) before[c->position[c->edges[e]]] = p;
    }
    while (seen[at] == 0) {
        seen[at] = 1;
        at = before[at];
    }
    char text[400];
    size_t used = 0;
    uint32_t first = at, shown = 0;
    do {
        const char *name = node_text(c->model, graph->nodes[at]);
        int n =
            shown < SHOWN ? snprintf(text + used, sizeof text - used, "'%.60s' needs ", name) : 0;
        if (n > 0) used += (size_t)n;
        shown++;
        at = before[at];
    } while (at != first);
    onv_fail(c->err, ONV_ERR_MODEL, "a cycle of %u nodes: %s%s'%.60s'", shown, text,
             shown > SHOWN ? "... needs " : "", node_text(c->model, graph->nodes[first]));
    onv_error_at(c->err, node_text(c->model, graph->nodes[first]),
                 onv_model_node(c->model, graph->nodes[first])->op_type);
    return ONV_ERR_MODEL;
}

/* Of what is ready the earliest in the file goes first. After store_edge, first_edge[n] is where the edges of n end; they
 * start where those of n - 1 do. */
static onv_status sort_graph(check *c, onv_graph *graph, uint32_t *heap, uint32_t *order)
{
    uint32_t n_ready = 0, n_sorted = 0;
    ONV_WORK(graph->n_nodes);
    for (uint32_t p = 0; p < graph->n_nodes; p++)
        if (c->n_waiting[graph->nodes[p].index] == 0) onv_smallest_push(heap, &n_ready, p);
    while (n_ready > 0) {
        uint32_t node = graph->nodes[onv_smallest_pop(heap, &n_ready)].index;
        order[n_sorted++] = node;
        uint32_t start = node > 0 ? c->first_edge[node - 1] : 0;
        for (uint32_t e = start; e < c->first_edge[node]; e++)
            if (--c->n_waiting[c->edges[e]] == 0)
                onv_smallest_push(heap, &n_ready, c->position[c->edges[e]]);
    }
    if (n_sorted < graph->n_nodes) return fail_cycle(c, graph, heap, order);
    for (uint32_t p = 0; p < n_sorted; p++) graph->nodes[p].index = order[p];
    onv_model_diag(c->model, ONV_NOTE, "unsorted-graph", NULL,
                   "the nodes of %s%s%s are not in order of execution; they have been sorted",
                   graph->name[0] != '\0' ? "graph '" : "the graph", graph->name,
                   graph->name[0] != '\0' ? "'" : "");
    return ONV_OK;
}

static onv_status sort_graphs(check *c, onv_arena *scratch)
{
    onv_model *model = c->model;
    size_t n = model->nodes.count;
    c->n_waiting = ONV_ARENA_ARRAY(scratch, uint32_t, n);
    c->first_edge = ONV_ARENA_ARRAY(scratch, uint32_t, n + 1);
    uint32_t *heap = ONV_ARENA_ARRAY(scratch, uint32_t, n);
    uint32_t *order = ONV_ARENA_ARRAY(scratch, uint32_t, n);
    if (c->n_waiting == NULL || c->first_edge == NULL || heap == NULL || order == NULL)
        return onv_fail_memory(c->err);
    ONV_TRY(visit_uses(c, count_edge));
    uint64_t n_edges = 0;
    for (size_t i = 0; i < n; i++) {
        n_edges += c->first_edge[i + 1];
        if (n_edges > UINT32_MAX)
            return onv_fail(c->err, ONV_ERR_LIMIT, "the graph has too many edges");
        c->first_edge[i + 1] = (uint32_t)n_edges;
    }
    c->edges = ONV_ARENA_ARRAY(scratch, uint32_t, (size_t)n_edges);
    if (c->edges == NULL) return onv_fail_memory(c->err);
    ONV_TRY(visit_uses(c, store_edge));
    for (uint32_t g = 0; g < model->graphs.count; g++)
        if (c->unsorted[g]) ONV_TRY(sort_graph(c, &model->graphs.at[g], heap, order));
    return ONV_OK;
}

static onv_status check_order(check *c, onv_arena *scratch)
{
    onv_model *model = c->model;
    c->position = ONV_ARENA_ARRAY(scratch, uint32_t, model->nodes.count);
    c->unsorted = ONV_ARENA_ARRAY(scratch, bool, model->graphs.count);
    if (c->position == NULL || c->unsorted == NULL) return onv_fail_memory(c->err);
    for (size_t g = 0; g < model->graphs.count; g++)
        for (uint32_t p = 0; p < model->graphs.at[g].n_nodes; p++)
            c->position[model->graphs.at[g].nodes[p].index] = p;
    ONV_TRY(visit_uses(c, note_order));
    for (size_t g = 0; g < model->graphs.count; g++)
        if (c->unsorted[g]) return sort_graphs(c, scratch);
    return ONV_OK;
}

onv_status onv_graph_check(onv_model *model, onv_error *err)
{
    onv_arena scratch;
    onv_arena_init(&scratch, SIZE_MAX);
    check c = {.model = model, .err = err};
    onv_status status = check_order(&c, &scratch);
    onv_arena_cleanup(&scratch);
    return status;
}

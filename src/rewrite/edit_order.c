#include <stdlib.h>

#include "base/fail.h"
#include "base/quota.h"
#include "graph/steps.h"
#include "rewrite/edit.h"

typedef struct ordering {
    onv_edit *e;
    onv_graph_id graph;
    onv_node_id *nodes; /* as they were made */
    uint32_t *number;   /* by node: its place in `nodes` */
    uint32_t *order;
    onv_edges edges;
} ordering;

static int compare_ids(const void *a, const void *b)
{
    const onv_node_id *x = a, *y = b;
    return (x->index > y->index) - (x->index < y->index);
}

/* What an inner graph reads is read by the node that owns it. */
static bool list_edges(ordering *o, uint32_t i)
{
    const onv_edit *e = o->e;
    const onv_node *node = onv_edit_node_at(e, o->nodes[i]);
    for (uint32_t k = 0; k < node->n_outputs; k++) {
        if (!onv_is_value(node->outputs[k])) continue;
        if (!onv_work(1 + onv_edit_n_uses(e, node->outputs[k]))) return false;
        ONV_EACH_USE(e, node->outputs[k], u)
        {
            onv_node_id reader = u->node;
            while (onv_edit_node_at(e, reader)->graph.index != o->graph.index)
                reader = e->model->graphs.at[onv_edit_node_at(e, reader)->graph.index].owner;
            if (!onv_vec_push(&o->edges, ((onv_edge){i, o->number[reader.index]}))) return false;
        }
    }
    return true;
}

static onv_status order_nodes(ordering *o, uint32_t n)
{
    const onv_edit *e = o->e;
    uint32_t at = 0;
    for (onv_node_id id = onv_edit_first(e, o->graph); onv_is_node(id); id = onv_edit_next(e, id))
        o->nodes[at++] = id;
    qsort(o->nodes, n, sizeof *o->nodes, compare_ids);
    for (uint32_t i = 0; i < n; i++) o->number[o->nodes[i].index] = i;
    for (uint32_t i = 0; i < n; i++)
        if (!list_edges(o, i)) return onv_fail_memory(e->err);
    return onv_backward_order(n, &o->edges, o->order, e->err);
}

onv_node_id *onv_edit_backward_order(onv_edit *e, onv_graph_id graph)
{
    uint32_t n = onv_edit_n_nodes(e, graph);
    onv_arena *scratch = &e->driver.scratch, *arena = &e->model->arena;
    onv_node_id *ordered = ONV_ARENA_ARRAY(arena, onv_node_id, n);
    ordering o = {.e = e, .graph = graph};
    o.nodes = ONV_ARENA_ARRAY(scratch, onv_node_id, n);
    o.order = ONV_ARENA_ARRAY(scratch, uint32_t, n);
    o.number = ONV_ARENA_ARRAY(scratch, uint32_t, e->nodes.count);
    onv_edit_fail(e, arena->failed || scratch->failed ? ONV_ERR_MEMORY : order_nodes(&o, n));
    for (uint32_t i = 0; i < n && e->status == ONV_OK; i++) ordered[i] = o.nodes[o.order[i]];
    onv_arena_reset(scratch);
    onv_vec_cleanup(&o.edges);
    return ordered;
}

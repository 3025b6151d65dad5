/* The end of editing: what is gone goes, and the rest gets new numbers. */
#include "base/fail.h"
#include "ir/check.h"
#include "rewrite/edit.h"
#include "rewrite/seen.h"

typedef struct renumbering {
    onv_edit *e;
    uint32_t *value_of, *node_of; /* by old number; UINT32_MAX: gone */
    uint32_t n_values, n_nodes;
    onv_type *seen; /* by new number */
} renumbering;

static void keep_value(renumbering *r, onv_value_id id)
{
    if (onv_is_value(id)) r->value_of[id.index] = 0;
}

/* What nodes read and make, and what graphs take and give. */
static void mark_kept(renumbering *r)
{
    const onv_edit *e = r->e;
    const onv_model *model = e->model;
    for (uint32_t i = 0; i < model->values.count; i++) {
        if (onv_edit_is_there(e, model->values.at[i].producer) || e->values.at[i].n_uses > 0)
            r->value_of[i] = 0;
    }
    for (uint32_t g = 0; g < model->graphs.count; g++) {
        const onv_graph *graph = &model->graphs.at[g];
        if (e->graphs.at[g].is_removed) continue;
        for (uint32_t k = 0; k < graph->n_inputs; k++) keep_value(r, graph->inputs[k]);
        for (uint32_t k = 0; k < graph->n_outputs; k++) keep_value(r, graph->outputs[k]);
    }
}

static onv_value_id new_value(const renumbering *r, onv_value_id id)
{
    if (onv_is_value(id)) id.index = r->value_of[id.index];
    return id;
}

static void move_values(renumbering *r)
{
    onv_model *model = r->e->model;
    for (uint32_t i = 0; i < model->values.count; i++) {
        if (r->value_of[i] == UINT32_MAX) continue;
        onv_value value = model->values.at[i];
        if (onv_is_node(value.producer)) value.producer.index = r->node_of[value.producer.index];
        r->value_of[i] = r->n_values;
        r->seen[r->n_values] = r->e->values.at[i].seen;
        model->values.at[r->n_values++] = value;
    }
    model->values.count = r->n_values;
}

static void move_nodes(renumbering *r)
{
    onv_model *model = r->e->model;
    for (uint32_t i = 0; i < model->nodes.count; i++) {
        if (r->node_of[i] == UINT32_MAX) continue;
        onv_node node = model->nodes.at[i];
        for (uint32_t k = 0; k < node.n_inputs; k++) node.inputs[k] = new_value(r, node.inputs[k]);
        for (uint32_t k = 0; k < node.n_outputs; k++)
            node.outputs[k] = new_value(r, node.outputs[k]);
        model->nodes.at[r->node_of[i]] = node;
    }
    model->nodes.count = r->n_nodes;
}

static bool move_graphs(renumbering *r)
{
    const onv_edit *e = r->e;
    onv_model *model = e->model;
    for (uint32_t g = 0; g < model->graphs.count; g++) {
        onv_graph *graph = &model->graphs.at[g];
        if (e->graphs.at[g].is_removed) {
            graph->never_runs = true;
            graph->n_nodes = graph->n_inputs = graph->n_outputs = 0;
            graph->owner = (onv_node_id){0}; /* any: nobody owns it any more */
            continue;
        }
        onv_graph_id id = {g};
        graph->nodes = ONV_ARENA_ARRAY(&model->arena, onv_node_id, onv_edit_n_nodes(e, id));
        if (graph->nodes == NULL) return false;
        graph->n_nodes = 0;
        for (onv_node_id at = onv_edit_first(e, id); onv_is_node(at); at = onv_edit_next(e, at))
            graph->nodes[graph->n_nodes++].index = r->node_of[at.index];
        if (onv_is_node(graph->owner)) graph->owner.index = r->node_of[graph->owner.index];
        for (uint32_t k = 0; k < graph->n_inputs; k++)
            graph->inputs[k] = new_value(r, graph->inputs[k]);
        for (uint32_t k = 0; k < graph->n_outputs; k++)
            graph->outputs[k] = new_value(r, graph->outputs[k]);
    }
    return true;
}

static onv_status renumber(renumbering *r)
{
    onv_edit *e = r->e;
    onv_model *model = e->model;
    size_t n_values = model->values.count, n_nodes = model->nodes.count;
    r->value_of = ONV_ARENA_ARRAY(&e->driver.scratch, uint32_t, n_values);
    r->node_of = ONV_ARENA_ARRAY(&e->driver.scratch, uint32_t, n_nodes);
    if (r->value_of == NULL || r->node_of == NULL) return onv_fail_memory(e->err);
    for (size_t i = 0; i < n_values; i++) r->value_of[i] = UINT32_MAX;
    for (uint32_t i = 0; i < n_nodes; i++)
        r->node_of[i] = e->nodes.at[i].is_removed ? UINT32_MAX : r->n_nodes++;
    mark_kept(r);
    move_values(r);
    move_nodes(r);
    return move_graphs(r) ? ONV_OK : onv_fail_memory(e->err);
}

onv_status onv_edit_finish(onv_edit *e, onv_type **seen)
{
    renumbering r = {.e = e};
    ONV_TRY(e->status);
    if (!e->is_seen) onv_seen_graph(e);
    ONV_TRY(e->status);
    onv_arena_reset(&e->driver.scratch);
    r.seen = ONV_ARENA_ARRAY(&e->model->arena, onv_type, e->model->values.count);
    if (r.seen == NULL) return onv_fail_memory(e->err);
    *seen = r.seen;
    ONV_TRY(renumber(&r));
    if (e->model->arena.failed || e->model->dims.failed) return onv_fail_memory(e->err);
    return onv_graph_check(e->model, e->err);
}

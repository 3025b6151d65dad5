#include "graph/steps.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"

typedef struct lister {
    onv_model *model;
    onv_live *live;
    onv_graph_steps *out;
    const onv_node_id *order; /* of the main graph; NULL: the file's */
} lister;

/* --- Costs ------------------------------------------------------------------------------------- */

onv_dim onv_graph_all_runs(onv_model *model, const onv_node *node, onv_dim one)
{
    onv_graph_id graph = node->graph;
    while (graph.index != 0 && !onv_dim_is(one, 0)) {
        const onv_graph *at = onv_model_graph(model, graph);
        if (!onv_dim_is(at->trips, 1)) one = onv_dim_mul(&model->dims, one, at->trips);
        graph = onv_model_node(model, at->owner)->graph;
    }
    return one;
}

/* A number, its upper bound, or 0 where nothing is known. */
static uint64_t number(onv_model *model, onv_dim dim)
{
    onv_dim at_most = onv_dim_substitute_bounds(&model->dims, dim);
    return onv_dim_is_const(at_most) && at_most.raw > 0 ? (uint64_t)at_most.raw : 0;
}

/* --- Forms ------------------------------------------------------------------------------------- */

onv_graph_id onv_graph_body(const onv_model *model, const onv_node *node, const char *name)
{
    const onv_attr *attr = onv_node_attr(node, name);
    if (attr == NULL || attr->kind != ONV_ATTR_GRAPH ||
        onv_model_graph(model, attr->graph)->never_runs)
        return ONV_NO_GRAPH;
    return attr->graph;
}

bool onv_loop_form_of(const onv_model *model, const onv_node *node, onv_loop_form *form)
{
    bool loop = node->code == ONV_OP_Loop, scan = node->code == ONV_OP_Scan;
    if ((!loop && !scan) || node->domain[0] != '\0') return false;
    *form = (onv_loop_form){.body = onv_graph_body(model, node, "body")};
    if (form->body.index == ONV_NO_GRAPH.index) return false;
    const onv_graph *body = onv_model_graph(model, form->body);
    if (loop) {
        form->node_in = form->body_in = 2;
        form->body_out = 1;
        form->n_states = body->n_inputs > 2 ? body->n_inputs - 2 : 0;
        return true;
    }
    int64_t n = onv_node_int(node, "num_scan_inputs", 0);
    form->node_in = node->version < 9 ? 1 : 0; /* Scan-8 begins with sequence lengths */
    form->n_states = n >= 0 && n <= (int64_t)body->n_inputs ? body->n_inputs - (uint32_t)n : 0;
    return true;
}

/* --- Steps ------------------------------------------------------------------------------------- */

static void list_graph(lister *l, onv_graph_id id, uint32_t parent);

static uint32_t add_region(lister *l, onv_region_kind kind, uint32_t parent, onv_node_id owner,
                           const char *label)
{
    onv_region region = {.first = l->live->timeline.steps.count,
                         .end = l->live->timeline.steps.count,
                         .parent = parent,
                         .kind = (uint8_t)kind,
                         .trips = 1,
                         .node = owner,
                         .label = label};
    l->live->timeline.regions.at[l->live->timeline.regions.count] = region;
    return (uint32_t)l->live->timeline.regions.count++;
}

/* An If, where more than one branch may be taken, has ALTERNATIVES around them. */
static bool is_branch(const onv_node *node)
{
    return node->code == ONV_OP_If && node->domain[0] == '\0';
}

static void list_subgraph(lister *l, onv_node_id owner, onv_graph_id id, uint32_t parent)
{
    const onv_graph *graph = onv_model_graph(l->model, id);
    if (graph->never_runs) return;
    bool branch = is_branch(onv_model_node(l->model, owner));
    uint32_t at = add_region(l, branch ? ONV_REGION_SEQUENCE : ONV_REGION_LOOP, parent, owner,
                             graph->owner_attr);
    onv_region *region = &l->live->timeline.regions.at[at];
    if (!branch) region->trips = number(l->model, graph->trips);
    l->out->graph_region[id.index] = at;
    list_graph(l, id, at);
    l->live->timeline.regions.at[at].end = l->live->timeline.steps.count;
}

/* Recursion is as deep as graphs nest, which the loader bounds. */
static void list_subgraphs(lister *l, onv_node_id id, uint32_t parent)
{
    const onv_node *node = onv_model_node(l->model, id);
    uint32_t n = 0, outer = parent;
    for (uint32_t i = 0; i < node->n_attrs; i++)
        if (node->attrs[i].kind == ONV_ATTR_GRAPH)
            n += !onv_model_graph(l->model, node->attrs[i].graph)->never_runs;
    if (n > 1 && is_branch(node)) outer = add_region(l, ONV_REGION_ALTERNATIVES, parent, id, NULL);
    for (uint32_t i = 0; i < node->n_attrs; i++) {
        const onv_attr *attr = &node->attrs[i];
        if (attr->kind == ONV_ATTR_GRAPH) list_subgraph(l, id, attr->graph, outer);
        if (attr->kind != ONV_ATTR_GRAPHS) continue;
        for (uint32_t k = 0; k < attr->count; k++) list_subgraph(l, id, attr->graphs[k], outer);
    }
    if (outer != parent) l->live->timeline.regions.at[outer].end = l->live->timeline.steps.count;
}

static void list_graph(lister *l, onv_graph_id id, uint32_t parent)
{
    const onv_graph *graph = onv_model_graph(l->model, id);
    const onv_node_id *nodes = id.index == 0 && l->order != NULL ? l->order : graph->nodes;
    l->out->graph_first[id.index] = l->live->timeline.steps.count;
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
        const onv_node *node = onv_model_node(l->model, nodes[i]);
        list_subgraphs(l, nodes[i], parent);
        onv_dim macs = onv_graph_all_runs(l->model, node, node->macs);
        uint32_t s = (uint32_t)l->live->timeline.steps.count++;
        l->out->of_node[nodes[i].index] = s;
        l->out->innermost[s] = parent;
        if (l->live->macs_of != NULL) l->live->macs_of[s] = macs;
        l->live->timeline.steps.at[s] =
            (onv_step){.node = nodes[i], .label = node->op_type, .macs = number(l->model, macs)};
    }
}

onv_status onv_graph_list_steps(onv_model *model, const onv_node_id *order, onv_arena *arena,
                                onv_arena *scratch, onv_live *live, onv_graph_steps *steps,
                                onv_error *err)
{
    size_t n_nodes = model->nodes.count, n_graphs = model->graphs.count;
    lister l = {.model = model, .live = live, .out = steps, .order = order};
    *steps = (onv_graph_steps){.of_node = ONV_ARENA_ARRAY(scratch, uint32_t, n_nodes),
                               .graph_first = ONV_ARENA_ARRAY(scratch, uint32_t, n_graphs),
                               .graph_region = ONV_ARENA_ARRAY(scratch, uint32_t, n_graphs),
                               .innermost = ONV_ARENA_ARRAY(scratch, uint32_t, n_nodes)};
    if (n_graphs > 1) live->macs_of = ONV_ARENA_ARRAY(arena, onv_dim, n_nodes);
    live->timeline.steps.at = ONV_ARENA_ARRAY(arena, onv_step, n_nodes);
    live->timeline.regions.at = ONV_ARENA_ARRAY(arena, onv_region, 2 * n_graphs);
    if (arena->failed || scratch->failed) return onv_fail_memory(err);
    if (n_nodes > 0) memset(steps->of_node, 0xff, n_nodes * sizeof *steps->of_node);
    memset(steps->graph_region, 0xff, n_graphs * sizeof *steps->graph_region);
    list_graph(&l, (onv_graph_id){0}, ONV_NO_REGION);
    if (live->timeline.steps.count > 0) return ONV_OK;
    return onv_fail(err, ONV_ERR_MODEL, "the graph is empty: it has no nodes");
}

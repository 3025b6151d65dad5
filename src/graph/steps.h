/* Steps and regions of a graph: the first half of liveness. */
#ifndef ONV_GRAPH_STEPS_H
#define ONV_GRAPH_STEPS_H

#include "base/status.h"
#include "base/vec.h"
#include "graph/liveness.h"

typedef struct onv_graph_steps {
    uint32_t *of_node; /* by node: its step, UINT32_MAX: it never runs */
    uint32_t
        *graph_first; /* by graph: the first step of its nodes; where it has none, the owner's */
    uint32_t *graph_region; /* by graph: its region, ONV_NO_REGION: the main graph, or never runs */
    uint32_t *innermost;    /* by step: the innermost region around it, or ONV_NO_REGION */
} onv_graph_steps;

/* Fills steps and regions of `live`, in `arena`, and the tables, in `scratch`. Fails with ONV_ERR_MODEL
 * where the model has no node. */
onv_status onv_graph_list_steps(onv_model *model, const onv_node_id *order, onv_arena *arena,
                                onv_arena *scratch, onv_live *live, onv_graph_steps *steps,
                                onv_error *err);

/* The subgraph in a node's attribute `name`; ONV_NO_GRAPH where there is none that runs. */
onv_graph_id onv_graph_body(const onv_model *model, const onv_node *node, const char *name);

/* Loops hand on `n_states` values, and stack the rest: where these are among the inputs and outputs
 * of the body and of the node. */
typedef struct onv_loop_form {
    onv_graph_id body;
    uint32_t node_in, body_in, body_out; /* of the first state */
    uint32_t n_states;
} onv_loop_form;

/* False for what is no Loop or Scan, or does not run. */
bool onv_loop_form_of(const onv_model *model, const onv_node *node, onv_loop_form *form);

/* ONNX Runtime's default order of nodes (read in source: onnxruntime/core/graph/graph_viewer.cc, checked by
 * measurement: see bench/order/ort_order.py): a depth-first search against the edges from the nodes that feed no other, the last
 * of them first; at each node the producers of its inputs are visited, the one with the highest
 * number first. A node runs after everything it was reached through. */

typedef struct onv_edge {
    uint32_t from,
        to; /* producer and consumer, numbered from 0 on in the order in which nodes were made */
} onv_edge;

typedef ONV_VEC(onv_edge) onv_edges;

/* `order` has room for the nodes. Edges may occur repeatedly; those from a node to itself do not count. Cost: sorts the
 * producers of each node. */
onv_status onv_backward_order(uint32_t n_nodes, const onv_edges *edges, uint32_t *order,
                              onv_error *err);

#endif

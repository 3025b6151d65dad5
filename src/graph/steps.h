/* Steps and regions of a graph: the first half of liveness. */
#ifndef ONV_GRAPH_STEPS_H
#define ONV_GRAPH_STEPS_H

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

#endif

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

/* Fills steps and regions of `live` and the tables; everything in the model's arena. Fails with
 * ONV_ERR_MODEL where the model has no node. */
onv_status onv_graph_list_steps(onv_model *model, const onv_node_id *order, onv_live *live,
                                onv_graph_steps *steps, onv_error *err);

#endif

/* Sums over a graph that no step decides: weights, operations, inputs and outputs. */
#ifndef ONV_GRAPH_WEIGHTS_H
#define ONV_GRAPH_WEIGHTS_H

#include "graph/liveness.h"

/* Fills the sums of `live`, whose steps and buffers are complete. Fails with ONV_ERR_OVERFLOW where
 * one does not fit 64 bits. Linear in values and steps. */
onv_status onv_graph_sum(onv_model *model, onv_live *live, onv_error *err);

#endif

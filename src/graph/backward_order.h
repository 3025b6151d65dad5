/* ONNX Runtime's default order of nodes (read in source: onnxruntime/core/graph/graph_viewer.cc, checked by
 * measurement: see bench/order/ort_order.py): a depth-first search against the edges from the nodes that feed no other, the last
 * of them first; at each node the producers of its inputs are visited, the one with the highest
 * number first. A node runs after everything it was reached through. */
#ifndef ONV_GRAPH_BACKWARD_ORDER_H
#define ONV_GRAPH_BACKWARD_ORDER_H

#include "base/status.h"
#include "base/vec.h"

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

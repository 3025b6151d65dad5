/* What ONNX Runtime sees of shapes before a session runs.
 *
 * It infers the graph as the file has it: no size is bound, symbols of the inputs are carried along, and of
 * contents it follows those of initializers, and what Shape, Size, Gather, Squeeze, Unsqueeze and simple
 * arithmetic make of shapes whose dims are all numbers. A dim that is computed in any other way is unknown; two symbols that are
 * added are, too, and one that a factor multiplies. Types that the file declares help. (Measured, version 1.31.)
 */
#ifndef ONV_REWRITE_SEEN_H
#define ONV_REWRITE_SEEN_H

#include "rewrite/edit.h"

/* One node: the types of its outputs from those of its inputs. */
void onv_seen_node(onv_edit *e, onv_node_id id);

/* All of the graph, subgraphs too. */
void onv_seen_graph(onv_edit *e);

#endif

/* The check of a graph, and its order.
 *
 * Requires: a model as `load` builds it: ids in range, every name resolved.
 * Gives: graphs whose nodes stand in a topological order. A graph that was out of order is sorted
 * (stable: the next node is always the earliest one of the file that is ready) with a diagnostic.
 * The error: a cycle, with names. That each value is defined once is the loader's to see to.
 * Cost: linear for ordered graphs, n log n where sorting is needed.
 */
#ifndef ONV_IR_CHECK_H
#define ONV_IR_CHECK_H

#include "ir/model.h"

onv_status onv_graph_check(onv_model *model, onv_error *err);

#endif

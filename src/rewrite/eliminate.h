/* When a node may be removed, as ONNX Runtime decides it. */
#ifndef ONV_REWRITE_ELIMINATE_H
#define ONV_REWRITE_ELIMINATE_H

#include "rewrite/rules.h"

/* A node of which one output is used, that makes no result of its graph, and of whose inputs one comes from
 * a node (or which has a single one): what follows can read that instead. */
bool onv_edit_can_remove(const onv_edit *e, onv_node_id node);
bool onv_edit_remove_single(onv_edit *e, onv_node_id node);

#endif

/* What the fusions look at.
 *
 * A fusion is tried at one node and says whether it changed something. It follows the checks of ONNX
 * Runtime's transformer of the same name, in its order, because what is left undone matters as much as what is
 * done. */
#ifndef ONV_REWRITE_FUSE_H
#define ONV_REWRITE_FUSE_H

#include "rewrite/edit.h"

#define ONV_MS_DOMAIN "com.microsoft"

typedef bool (*onv_fusion)(onv_edit *e, onv_node_id node);

bool onv_fuse_gelu_level1(onv_edit *e, onv_node_id div);
bool onv_fuse_gelu_level2(onv_edit *e, onv_node_id div);
bool onv_fuse_bias_gelu(onv_edit *e, onv_node_id add);
bool onv_fuse_fast_gelu(onv_edit *e, onv_node_id first);
bool onv_fuse_quick_gelu(onv_edit *e, onv_node_id first);
bool onv_fuse_layer_norm_level1(onv_edit *e, onv_node_id mean);
bool onv_fuse_layer_norm_level2(onv_edit *e, onv_node_id mean);
bool onv_fuse_simplified_layer_norm(onv_edit *e, onv_node_id pow);
bool onv_fuse_skip_layer_norm(onv_edit *e, onv_node_id norm);
bool onv_fuse_bias_skip_layer_norm(onv_edit *e, onv_node_id norm);
bool onv_fuse_matmul_transpose(onv_edit *e, onv_node_id matmul);
bool onv_fuse_matmul_scale(onv_edit *e, onv_node_id matmul);
bool onv_fuse_bias_softmax(onv_edit *e, onv_node_id add);
bool onv_fuse_gather_to_slice(onv_edit *e, onv_node_id range);
uint32_t onv_fuse_gather_slice_to_split(onv_edit *e, onv_graph_id graph);

/* --- Helpers ----------------------------------------------------------------------------------- */

/* Of ai.onnx, any version. */
static inline bool onv_fuse_is(const onv_edit *e, onv_node_id node, const char *op_type)
{
    return onv_edit_is(e, node, op_type, 0);
}

bool onv_fuse_same_provider(const onv_edit *e, onv_node_id a, onv_node_id b);

/* That operator, of the same provider as `with`, with floats as its first n inputs (0: all). */
bool onv_fuse_is_float_op(const onv_edit *e, onv_node_id node, const char *op_type,
                          onv_node_id with, uint32_t n);

/* float16, float32, float64 or bfloat16. */
bool onv_fuse_is_float(const onv_edit *e, onv_value_id value);

/* No output of its graph, and read so often. */
bool onv_fuse_has_uses(const onv_edit *e, onv_node_id node, uint32_t n);

/* The first node that reads output 0; ONV_NO_NODE. */
onv_node_id onv_fuse_reader(const onv_edit *e, onv_node_id node);

/* The node of that operator that makes an input; ONV_NO_NODE. */
onv_node_id onv_fuse_parent(const onv_edit *e, onv_node_id node, const char *op_type);

/* A constant of one element, of rank 0 or 1, that is that number, but for rounding. */
bool onv_fuse_is_number(onv_edit *e, onv_value_id value, double number);

/* Of two inputs the one that is not `value`; ONV_NO_VALUE where neither is. */
onv_value_id onv_fuse_other_input(const onv_edit *e, onv_node_id node, onv_value_id value);

bool onv_fuse_same_value(onv_value_id a, onv_value_id b);

/* The rank that the runtime sees; -1: none. */
int onv_fuse_rank(const onv_edit *e, onv_value_id value);

/* The dims that the runtime sees; unknown where the axis (negative: from the end) is outside. */
onv_dim onv_fuse_dim(const onv_edit *e, onv_value_id value, int axis);

/* A node that makes output 0 of `last` in place of it; then all of `nodes` go (those that are still read
 * stay). False where memory ran out. */
typedef struct onv_fused {
    const char *op_type, *domain;
    const onv_value_id *inputs;
    uint32_t n_inputs;
    const onv_attr *attrs;
    uint32_t n_attrs;
    int32_t version; /* as in onv_new_node */
    onv_node_id last;
    const onv_node_id *nodes; /* `last` among them */
    uint32_t n_nodes;
} onv_fused;

#define ONV_FUSED(...) ((onv_fused){__VA_ARGS__})

bool onv_fuse_replace(onv_edit *e, const onv_fused *fused);

/* Attributes. */
onv_attr onv_fuse_int(onv_edit *e, const char *name, int64_t value);
onv_attr onv_fuse_float(onv_edit *e, const char *name, double value);
onv_attr onv_fuse_ints(onv_edit *e, const char *name, const int64_t *list, uint32_t count);

#endif

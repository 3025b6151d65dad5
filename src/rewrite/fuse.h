/* What the fusions look at.
 *
 * A fusion is tried at one node and says whether it changed something. It follows the checks of ONNX
 * Runtime's transformer of the same name, in its order, because what is left undone matters as much as what is
 * done. */
#ifndef ONV_REWRITE_FUSE_H
#define ONV_REWRITE_FUSE_H

#include "ir/form.h"
#include "rewrite/edit.h"
#include "rewrite/rules.h"

#define ONV_MS_DOMAIN "com.microsoft"

/* --- Helpers ----------------------------------------------------------------------------------- */

bool onv_fuse_same_provider(const onv_edit *e, onv_node_id a, onv_node_id b);

/* A node of which one output is used, that makes no result of its graph, and of whose inputs one comes from
 * a node (or which has a single one): what follows can read that instead. */
bool onv_edit_can_remove(const onv_edit *e, onv_node_id node);
bool onv_edit_remove_single(onv_edit *e, onv_node_id node);

/* float16, float32, float64 or bfloat16. */
bool onv_fuse_is_float(const onv_edit *e, onv_value_id value);

/* No output of its graph, and read so often. */
bool onv_fuse_has_uses(const onv_edit *e, onv_node_id node, uint32_t n);

/* The first node that reads output 0; ONV_NO_NODE. */
onv_node_id onv_fuse_reader(const onv_edit *e, onv_node_id node);

/* Of two inputs the one that is not `value`; ONV_NO_VALUE where neither is. */
onv_value_id onv_fuse_other_input(const onv_edit *e, onv_node_id node, onv_value_id value);

/* Whether the CPU runs one of these operators of ai.onnx or com.microsoft there. */
bool onv_fuse_has_on_cpu(const onv_edit *e, onv_graph_id graph, const char *ops);

/* The rank that the runtime sees; -1: none. */
int onv_fuse_rank(const onv_edit *e, onv_value_id value);

/* The dims that the runtime sees; unknown where the axis (negative: from the end) is outside. */
onv_dim onv_fuse_dim(const onv_edit *e, onv_value_id value, int axis);

/* A node that makes output 0 of `last` in place of it; then all of `nodes` go (those that are still read
 * stay), of which `last` is one. False where memory ran out. */
bool onv_fuse_replace(onv_edit *e, onv_node_id last, const onv_node_id *nodes, uint32_t n_nodes,
                      onv_new_node made);

/* The DequantizeLinear that makes input k; ONV_NO_NODE: none does (qdq.c). */
onv_node_id onv_fuse_dequantize(const onv_edit *e, onv_node_id node, uint32_t k);

/* (N), (1, N), (M, 1) or (M, N). */
bool onv_fuse_is_gemm_bias(const onv_type *bias, onv_dim m, onv_dim n);

/* A Squeeze or an Unsqueeze of these axes before `at`, which makes `out`, or a new value (ONV_NO_VALUE): what it makes. */
onv_value_id onv_fuse_squeeze(onv_edit *e, onv_node_id at, const char *op_type, onv_value_id in,
                              const int64_t *axes, uint32_t n, onv_value_id out);

/* --- Forms ------------------------------------------------------------------------------------- */

/* Whether `first` is a part of such a form (ir/form.h): operators of its provider: of ai.onnx with floating-point numbers, or, where the form
 * begins with `^`, any of com.microsoft, too. The number of a `.` is a constant with one element. */
bool onv_fuse_form(onv_edit *e, onv_node_id first, const char *form, onv_form_match *m);

/* Puts that node in place of the form. */
bool onv_fuse_form_by(onv_edit *e, const onv_form_match *m, onv_new_node made);
#define ONV_FORM_BY(e, m, op, ...)                                                                 \
    onv_fuse_form_by(e, m, ONV_NEW_NODE(.op_type = (op), __VA_ARGS__))

/* The node that makes the value of that name. */
static inline onv_node_id onv_fuse_form_node(const onv_edit *e, const onv_form_match *m, char name)
{
    return onv_edit_producer(e, onv_form_value(m, name));
}

/* Takes over a Cast that makes the value and that only the form reads: its input has the name then. */
void onv_fuse_form_cast(onv_edit *e, onv_form_match *m, char name);

/* Attributes. */
onv_attr onv_fuse_int(onv_edit *e, const char *name, int64_t value);
onv_attr onv_fuse_float(onv_edit *e, const char *name, double value);
onv_attr onv_fuse_ints(onv_edit *e, const char *name, const int64_t *list, uint32_t count);

#endif

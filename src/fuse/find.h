/* What the files that look for fusions share. */
#ifndef ONV_FUSE_FIND_H
#define ONV_FUSE_FIND_H

#include "aten/aten.h"
#include "fuse/fuse.h"

typedef struct onv_finder {
    onv_model *model;
    onv_fusions *f;
    ONV_VEC(onv_fusion) at; /* those so far */
    onv_fusing fusing;
    onv_fusing_kernels kernels;
    const char *note; /* the last name of a call that was looked up, and its row */
    onv_aten_id noted;
    uint64_t rules[ONV_N_OP_NAMES]; /* that begin at nodes of an operator, as bits in their order */
    uint64_t forms[ONV_N_OP_NAMES]; /* likewise: that end with it (decomposed.c) */
    bool failed;                    /* memory */
} onv_finder;

enum { ONV_MAX_GROUP = 256 };

/* The nodes of a group while it is being matched. */
typedef struct onv_group {
    onv_node_id nodes[ONV_MAX_GROUP];
    uint32_t count;
} onv_group;

/* --- fuse.c ------------------------------------------------------------------------------------ */

/* A node of that operator, with a result that has a name: what is not read by anything is no part of a
 * pattern, and has no uses to look at. */
bool onv_find_is_op(const onv_node *node, onv_op_name op);
onv_node_id onv_find_id(const onv_finder *s, const onv_node *node);
const onv_node *onv_find_node(const onv_finder *s, onv_node_id id);
/* The node of that operator that made the value, or NULL. */
const onv_node *onv_find_producer(const onv_finder *s, onv_value_id value, onv_op_name op);
/* The only reader of a value, if it is of that operator. */
const onv_node *onv_find_reader(const onv_finder *s, onv_value_id value, onv_op_name op);
/* Of a node with two inputs, the one that is not `value`. */
onv_value_id onv_find_other(const onv_node *node, onv_value_id value);
bool onv_find_is_number(const onv_finder *s, onv_value_id value);
bool onv_find_take(onv_finder *s, onv_group *g, const onv_node *node);
bool onv_find_is_inside(const onv_group *g, onv_node_id id);
/* Of all that it makes, by nodes and by the graph. */
uint32_t onv_find_n_reads(const onv_finder *s, onv_node_id id);
/* Does a node outside of the group read the value, or the graph give it? */
bool onv_find_is_read_outside(const onv_finder *s, const onv_group *g, onv_value_id value);
onv_fusion onv_find_unary(onv_finder *s, onv_fusion_kind kind, onv_value_id x,
                          const onv_node *last);
/* Adds `* w` and `+ b` with vectors of the file to a normalisation whose result is `out`. */
void onv_find_affine(onv_finder *s, onv_group *g, onv_fusion *fusion);
/* Its number in `of_node`; without memory `failed` is set. */
uint32_t onv_find_add(onv_finder *s, onv_fusion fusion);
/* Nothing of the group is another one's by now. */
void onv_find_publish(onv_finder *s, const onv_group *g, onv_fusion fusion);

/* --- attention.c -------------------------------------------------------------------------- */

/* From the Softmax on. */
void onv_find_attention(onv_finder *s, const onv_node *softmax);

/* --- encoder.c ----------------------------------------------------------------------------- */

/* From the layer's first node on. */
void onv_find_encoder_layer(onv_finder *s, const onv_node *first);

/* --- noted.c ------------------------------------------------------------------------------ */

/* Nodes that PyTorch's exporter notes as one operation, or as several. */
void onv_find_noted(onv_finder *s, const onv_node *node);
bool onv_find_same_call(const onv_finder *s, const onv_group *g);

/* --- pool.c ------------------------------------------------------------------------------- */

/* From the quotient or the mean on that gives the result. */
void onv_find_adaptive_pool(onv_finder *s, const onv_node *last);

/* --- decomposed.c ------------------------------------------------------------------------- */

/* From its last node back; before any other, of which parts may be operations. */
void onv_find_decomposed(onv_finder *s, const onv_node *last);
/* What exporters write as a formula, from its last node back. */
void onv_find_formula(onv_finder *s, const onv_node *last);
/* By the operators that they end with: all forms, and that rule for those of formulas. */
void onv_list_forms(onv_finder *s, uint64_t rule);

#endif

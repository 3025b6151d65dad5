/* Moving Transposes: ONNX Runtime's TransposeOptimizer.
 *
 * Nodes are visited in order. One that reads a Transpose reads what is before it instead, and the Transpose
 * comes behind the node, where that costs less: as many dims as are not 1 count for each transposed value.
 * Two that meet become one, or none. */
#ifndef ONV_REWRITE_TRANSPOSE_H
#define ONV_REWRITE_TRANSPOSE_H

#include "rewrite/edit.h"

typedef struct onv_perm {
    int rank;
    int64_t at[ONV_MAX_RANK];
} onv_perm;

typedef struct onv_axes {
    int64_t at[ONV_MAX_RANK];
    uint32_t count;
} onv_axes;

typedef struct onv_pusher onv_pusher;

/* A Transpose that is about to be moved behind `node`. */
typedef struct onv_push {
    onv_edit *e;
    const onv_pusher *how;
    onv_node_id transpose, node;
    onv_perm perm, inverse;
    uint32_t inputs[ONV_MAX_RANK]; /* of the node, that are transposed with it */
    uint32_t n_inputs;
} onv_push;

typedef enum onv_pushed_inputs {
    ONV_PUSH_FIRST,
    ONV_PUSH_ALL,
    ONV_PUSH_NOT_SCALAR,
    ONV_PUSH_OPERANDS, /* the first two, each with its scale and zero point behind it */
    ONV_PUSH_PARTS,    /* all of those, behind the scale and zero point of the result */
} onv_pushed_inputs;

/* What becomes of axes behind the node. */
typedef enum onv_pushed_axes { ONV_PUSH_KEEPS, ONV_PUSH_KEEPDIMS, ONV_PUSH_DROPS } onv_pushed_axes;

/* What becomes of a Transpose before an operator. `move` says whether it did something. */
struct onv_pusher {
    const char *ops; /* with a space between */
    uint8_t inputs;  /* onv_pushed_inputs */
    bool moves_on;   /* the Transpose is behind the node then */
    bool is_fused;   /* of com.microsoft */
    bool (*move)(onv_push *p);
    int64_t axis; /* where the attribute is not given; INT64_MIN: it has to be */
    uint8_t axes; /* onv_pushed_axes: of those that the node names */
};

const onv_pusher *onv_pusher_find(const onv_edit *e, onv_node_id node);

/* --- Permutations ------------------------------------------------------------------------------ */

/* Of a Transpose; false where it is not valid or the rank is not known. */
bool onv_perm_of(const onv_edit *e, onv_node_id transpose, onv_perm *perm);
onv_perm onv_perm_inverse(const onv_perm *perm);
onv_perm onv_perm_compose(const onv_perm *first, const onv_perm *second);
bool onv_perm_same(const onv_perm *a, const onv_perm *b);
bool onv_perm_is_identity(const onv_perm *perm);

/* From channels behind the batch to channels last. */
onv_perm onv_perm_channels_last(int rank);

/* --- Steps of a move (transpose.c) ------------------------------------------------------------- */

/* Input k as if transposed by `perm`: what is before a Transpose that undoes it, a constant with other dims,
 * or a new Transpose. */
void onv_push_input(onv_edit *e, onv_node_id node, uint32_t k, const onv_perm *perm);

/* With leading dims of 1 up to that rank. */
bool onv_push_raise_ranks(onv_push *p);

/* The node has changed: it is typed again, and each of its outputs is transposed by `perm`. */
void onv_push_outputs(onv_edit *e, onv_node_id node, const onv_perm *perm);

/* An input of integers, one for each axis, in another order: a new constant, or a Gather. */
void onv_push_permute_numbers(onv_edit *e, onv_node_id node, uint32_t k, const int64_t *order,
                              uint32_t count);

/* A constant of integers as input k. */
void onv_push_set_numbers(onv_edit *e, onv_node_id node, uint32_t k, onv_dtype dtype,
                          const int64_t *numbers, uint32_t count);

/* The axes of a node, from its attribute or the constant input k; false: they are not known. */
bool onv_push_read_axes(onv_edit *e, onv_node_id node, uint32_t k, onv_axes *axes);

/* The perm that an Unsqueeze / a Squeeze of these axes leaves. */
onv_perm onv_perm_unsqueezed(const onv_perm *perm, const onv_axes *axes);
onv_perm onv_perm_squeezed(const onv_perm *perm, const onv_axes *axes);

/* Where the value of a node is only read by nodes of its own graph. */
uint32_t onv_move_transposes(onv_edit *e, onv_graph_id graph);

bool onv_push_is_inner(const onv_edit *e, onv_value_id value);

#endif

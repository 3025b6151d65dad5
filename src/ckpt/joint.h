/* The joint graph: forward and backward of a tape in the operations that torch.compile sees.
 *
 *   tape    batch_norm(x, w, b) -> y
 *   joint   var_mean(x), add, rsqrt, sub, mul, squeeze ..., and of backward, what reads these
 *
 * AOTAutograd traces a network with Inductor's decompositions; this makes the same graph from the
 * tape, by a recipe for each of the tape's operations (aten/recipes.h). What backward computes from the
 * incoming gradients stays in backward, so of it only the reads stand here: nodes say by what kind of
 * operation they are read. What backward computes from forward's values alone are nodes of their own.
 *
 * Nodes are in topological order: what is there from the start, then by operation of the tape.
 */
#ifndef ONV_CKPT_JOINT_H
#define ONV_CKPT_JOINT_H

#include "eager/eager.h"

typedef enum onv_joint_kind {
    ONV_JOINT_PRIMAL,    /* there from the start */
    ONV_JOINT_POINTWISE, /* and reductions: fused with what reads it, and may run again */
    ONV_JOINT_VIEW,      /* likewise, and takes no memory */
    ONV_JOINT_PART,      /* of a result of several tensors */
    ONV_JOINT_COMPUTE,   /* products, convolutions, attention */
    ONV_JOINT_CAT,       /* what it reads is fused into it */
    ONV_JOINT_OTHER,     /* kernels of their own */
} onv_joint_kind;

typedef struct onv_joint_node {
    uint8_t kind;            /* onv_joint_kind */
    bool is_tuple;           /* of several tensors: its parts can be kept, not itself */
    bool is_free;            /* a parameter or buffer: keeping it costs nothing */
    bool is_output;          /* of forward */
    bool fused_read;         /* what depends on gradients reads it, and is fused */
    bool apart_read;         /* the same in a kernel of its own */
    uint32_t op;             /* of the tape; ONV_JOINT_NONE: none */
    uint32_t tensor;         /* of the tape that it is; ONV_NO_TENSOR: none */
    uint32_t base;           /* the node whose memory it is: itself, if it is no view */
    uint32_t first_in, n_in; /* among `ins` */
    uint32_t next_view;      /* of the same node: 1 + the one before; 0: none */
    uint32_t last_view;
    uint64_t bytes; /* of all its tensors */
    uint64_t macs;
} onv_joint_node;

#define ONV_JOINT_NONE UINT32_MAX

typedef struct onv_joint_read {
    uint32_t node, op; /* backward of the tape's operation reads the node */
} onv_joint_read;

typedef struct onv_joint {
    ONV_VEC(onv_joint_node) nodes;
    ONV_VEC(uint32_t) ins;         /* nodes */
    ONV_VEC(onv_joint_read) reads; /* what depends on gradients reads */
    const char *unknown; /* an operation without a recipe, taken for a kernel of its own */
    uint32_t n_unknown;
} onv_joint;

/* Of the operations before the loss. Tables live in `arena`. Clean up in either case. */
onv_status onv_joint_make(const onv_eager *eager, onv_arena *arena, onv_joint *joint,
                          onv_error *err);
void onv_joint_cleanup(onv_joint *joint);

#endif

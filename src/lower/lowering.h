/* The inside of lowering: what its files share. Each part has a header of its own, with its share of the state:
 *
 *     rules.h        a rule for each operator and fusion
 *     weight.h       what reads of initializers stand for
 *     signature.h    the parameters that the export lists
 */
#ifndef ONV_LOWER_LOWERING_H
#define ONV_LOWER_LOWERING_H

#include "base/ptr_map.h"
#include "eager/eager.h"
#include "emit/emit.h"
#include "fuse/fuse.h"
#include "ir/origin.h"
#include "lower/recover.h"
#include "lower/rules.h"
#include "lower/signature.h"
#include "lower/weight.h"

/* Of a list of tensors: how many it goes on from, and one of them further back, as a skip list has it. */
typedef struct onv_list_place {
    uint32_t depth, jump;
} onv_list_place;

/* Of each value: what stands for it. "1 +": 0 is none. */
typedef struct onv_value_state {
    uint32_t tensor;       /* that stands for it now; ONV_NO_TENSOR: none yet, or on the host */
    bool is_known;         /* `tensor` is set */
    bool has_one_reader;   /* so has what it is a view of */
    bool is_cloned;        /* by contiguous(), say, for all that read it */
    uint32_t widened;      /* 1 + its cast to float32 for attention */
    uint32_t detached;     /* 1 + the tensor that readers of it detached have */
    uint32_t padded;       /* 1 + the tensor that a convolution padded last */
    const char *padded_as; /* the name of that, as its note tells; NULL: not told */
} onv_value_state;

/* The branch, the body or the segment around what is lowered now. */
typedef struct onv_region_state {
    uint32_t first_storage; /* those before were made outside of it */
    ONV_VEC(uint32_t) mark; /* by storage: the last owner of a region that listed it */
    uint32_t n_marks;
} onv_region_state;

/* The recurrent module of the last layer. */
typedef struct onv_recurrent_state {
    onv_origin origin;
    const char *call; /* as noted; or NULL */
} onv_recurrent_state;

/* The state of all passes (lower.c has their order): a part is written by the pass that it is of, and read by those behind it. */
struct onv_lowering {
    union { /* first: callbacks of the emitter find the rest by it */
        onv_emitter emit;
        onv_tape tape; /* what recovered calls are emitted by; its emitter is that one */
    };
    onv_recovery recovery;
    const onv_live *live;
    const bool *is_host; /* by value */

    const onv_fusions *fusions;
    onv_value_state *values; /* by value */
    onv_list_place *lists;   /* by value; NULL: no list was made yet */

    /* What is lowered now. */
    ONV_VEC(onv_value_id) to_clone; /* its results that PyTorch clones: once it is complete */
    onv_region_state region;
    onv_recurrent_state recurrent;

    /* What the file says, and hides. */
    onv_weights weights;
    onv_signature signature;
};

/* --- lower.c ------------------------------------------------------------------------------------ */

/* What is emitted from now on is of that node; ONV_NO_NODE: of none. */
void onv_lower_at(onv_emitter *e, onv_node_id id);
/* Nodes in their order, those of a subgraph too. */
void onv_lower_nodes(onv_lowering *l, const onv_node_id *nodes, uint32_t count);
/* The node, or all of the fusion that it is of, whatever its place. */
void onv_lower_once(onv_lowering *l, onv_node_id id);
bool onv_node_fills(const onv_node *node);

/* --- value.c ------------------------------------------------------------------------------ */

/* Takes notes. Gives which values have clones, and for whom. */
void onv_clones_mark(onv_lowering *l);

/* False where there is no such value, or status is set. */
bool onv_value_shape(onv_lowering *l, onv_value_id id, onv_shape *shape);
uint32_t onv_value_tensor(onv_lowering *l, onv_value_id id);
/* What is there from the start: parameters of all owners, buffers and constants. */
void onv_lower_weight(onv_lowering *l, onv_value_id id);
/* A vector that the network trains although the graph has it no more: "bn1" and "weight". */
uint32_t onv_lost_parameter(onv_emitter *e, uint8_t dtype, int64_t size, const char *module,
                            const char *name);
uint32_t onv_node_in(onv_lowering *l, const onv_node *node, uint32_t k);
void onv_node_set(onv_lowering *l, const onv_node *node, uint32_t k, uint32_t tensor);
void onv_value_set(onv_lowering *l, onv_value_id id, uint32_t tensor);
/* Those results of the last operation that PyTorch clones. */
void onv_clone_results(onv_lowering *l);
/* A new tensor with the shape of output k, in `dtype` (ONV_UNDEFINED: that of the graph). */
uint32_t onv_node_new(onv_lowering *l, const onv_node *node, uint32_t k, uint8_t dtype);
/* The same for any value; dtype as it comes. */
uint32_t onv_value_new(onv_lowering *l, onv_value_id id, uint8_t dtype);
/* The same for output 0 of an operation of images, whose channels come last where those of `like` do. */
uint32_t onv_node_new_image(onv_lowering *l, const onv_node *node, const onv_eager_tensor *like,
                            uint8_t dtype);
/* As the graph declares it; of what is no tensor, that of bytes. */
uint8_t onv_value_dtype(const onv_emitter *e, onv_value_id id);
/* x.new_empty(...).bernoulli_(p), which drops whole paths: the export has it in float32, a run in the type of x. */
bool onv_is_drawn(const onv_emitter *e, onv_value_id id);
/* The dtype that float operands of a pointwise operation are promoted to. */
uint8_t onv_promoted(onv_lowering *l, const onv_node *node);
bool onv_node_scalar(onv_emitter *e, const onv_node *node, uint32_t k, double *number);
/* Element i of a constant integer operand; `fallback` where it is not known. */
int64_t onv_node_operand(onv_emitter *e, const onv_node *node, uint32_t k, uint32_t i,
                         int64_t fallback);
uint32_t onv_node_operands(onv_emitter *e, const onv_node *node, uint32_t k); /* how many */

/* --- repeat.c ----------------------------------------------------------------------------------- */

/* Zeros, ones and the like that are made, and were read before. */
bool onv_value_is_fill(onv_lowering *l, onv_value_id id);
/* Makes zeros and the like once more, for a reader that has its own. */
void onv_fill_again(onv_lowering *l, onv_value_id id);
/* What the node scatters into, or begins with, is its own. */
void onv_repeat_base(onv_lowering *l, const onv_node *node);

/* --- Of all operations, when they are there ------------------------------------------------------ */

void onv_lowering_report(onv_lowering *l); /* diagnostics of what was hidden, and how it was read */
/* Calls that the exporter merged with equal ones, and the most that they keep (merged.c). */
void onv_merged_calls(onv_lowering *l);
void onv_parts_report(onv_lowering *l);
/* Calls that the network's own code checkpoints. */
void onv_checkpointed_report(onv_lowering *l);

#endif

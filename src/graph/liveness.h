/* Liveness: a typed graph in an order of execution, as a timeline in the graph's own terms.
 *
 * Requires: onv_infer has run. Gives: one buffer per graph input and node output (weights are counted
 * apart), the bytes that are live at every step, the peak and its set, by these definitions:
 *
 *   step        position of a node in execution order, from 0
 *   live        from the producing step through the last use; graph inputs from step 0 through
 *               their last use; graph outputs through the last step. An unused value is live in its
 *               own step.
 *   live bytes  what is live while the step runs, its inputs and outputs included
 *   peak        the largest live bytes; the peak set is what is live at the first such step
 *
 * Control flow. A node with subgraphs runs after the steps of its subgraphs, which stand before it
 * in the order; what they read from outside stays live through the owner's step. Graphs that never
 * run have no steps and no buffers.
 *   If          its branches are ALTERNATIVES; what a branch hands out becomes the If's output
 *   Loop, Scan  the body is a LOOP of one iteration: a carried value needs its input and its output,
 *               and the last output becomes the node's; the input of a body that runs once is the
 *               initial value itself. A stacked result is live from the body's first step.
 *
 * Cost: linear in values and uses, times the depth of graphs for what is read from outside.
 */
#ifndef ONV_GRAPH_LIVENESS_H
#define ONV_GRAPH_LIVENESS_H

#include "ir/model.h"
#include "timeline/timeline.h"

typedef struct onv_live {
    onv_timeline timeline; /* buffers in order of `first`, inputs before the outputs of step 0 */
    onv_dim *macs_of;      /* by step: onv_live_macs(); NULL: all steps run once */
    uint32_t *of_value;    /* by value index: its buffer, or UINT32_MAX for weights */
    uint64_t *live_bytes;  /* by step */
    uint64_t peak_bytes;
    uint32_t peak_step;
    uint32_t *peak_set; /* buffers, largest first, those of 0 bytes included */
    uint32_t n_peak_set;
    /* Sums, for reports */
    uint64_t input_bytes, output_bytes, activation_bytes; /* activations: all node outputs */
    uint64_t weight_bytes, weight_elems; /* initializers and Constant nodes; shared ones once */
    uint64_t trainable_elems; /* of them: float, and no running statistics of a normalisation */
    uint64_t macs, element_ops;
    bool macs_known;  /* of every node */
    uint64_t unknown; /* buffers of unknown size */
    uint64_t bounded; /* buffers whose size is an upper bound */
} onv_live;

/* Multiply-accumulates of a step, of all its iterations. */
static inline onv_dim onv_live_macs(const onv_model *model, const onv_live *live, uint32_t step)
{
    return live->macs_of != NULL ? live->macs_of[step]
                                 : onv_model_node(model, live->timeline.steps.at[step].node)->macs;
}

/* The result lives in the model's arena, its timeline too, which is not to be cleaned up. `order`
 * holds the nodes of the main graph in the order of execution (see order.h); NULL: as in the
 * file. */
onv_status onv_live_compute(onv_model *model, const onv_node_id *order, onv_live *live,
                            onv_error *err);

/* The same for a while: the result lives in `arena`. */
onv_status onv_live_compute_in(onv_arena *arena, onv_model *model, const onv_node_id *order,
                               onv_live *live, onv_error *err);

/* `one`, which a node needs each time it runs, over all its runs: times the trips of the bodies
 * around it. Unknown where one of them is. */
onv_dim onv_graph_all_runs(onv_model *model, const onv_node *node, onv_dim one);

#endif

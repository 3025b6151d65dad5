/* Liveness: the steps of a typed graph in an order, and the interval of every value.
 *
 * Requires: onv_infer has run. Gives: one interval per graph input and node output (weights and
 * constants are counted apart), the bytes that are live at every step, the peak and its set, by
 * these definitions:
 *
 *   step        position of a node in execution order, from 0
 *   live        from the producing step through the last use; graph inputs from step 0 through
 *               their last use; graph outputs through the last step. An unused value is live in its
 *               own step.
 *   live bytes  what is live while the step runs, its inputs and outputs included
 *   peak        the largest live bytes; the peak set is what is live at the first such step
 *
 * A node with subgraphs runs after the steps of its subgraphs, which stand before it in the order;
 * what they read from outside stays live through the owner's step.
 * Cost: linear in values and uses.
 */
#ifndef ONV_GRAPH_LIVENESS_H
#define ONV_GRAPH_LIVENESS_H

#include "ir/model.h"
#include "timeline/timeline.h"

typedef struct onv_live {
    onv_node_id *steps; /* steps[s] is the node that runs at step s */
    uint32_t n_steps;
    onv_buffer *intervals; /* in order of `first`; inputs before the outputs of step 0 */
    uint32_t n_intervals;
    uint32_t *of_value;   /* by value index: its row, or UINT32_MAX for weights */
    uint64_t *live_bytes; /* by step */
    uint64_t peak_bytes;
    uint32_t peak_step;
    uint32_t *peak_set; /* rows of intervals, largest first, rows of 0 bytes included */
    uint32_t n_peak_set;
    /* Sums, for reports */
    uint64_t input_bytes, output_bytes, activation_bytes; /* activations: all node outputs */
    uint64_t weight_bytes, weight_elems;                  /* initializers; shared ones once */
    uint64_t trainable_elems; /* of them: float, and no running statistics of a normalisation */
    uint64_t constant_bytes, constant_elems; /* Constant nodes */
    uint64_t macs, element_ops;
    bool macs_known;  /* of every node */
    uint64_t unknown; /* rows of unknown size */
    uint64_t bounded; /* rows whose size is an upper bound */
} onv_live;

/* The result lives in the model's arena. `order` holds the nodes of the main graph in the order of
 * execution (see order.h); NULL: as in the file. */
onv_status onv_live_compute(onv_model *model, const onv_node_id *order, onv_live *live,
                            onv_error *err);

#endif

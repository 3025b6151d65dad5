/* Possible savings: single changes of the graph or of its order that make the peak smaller.
 *
 * What is live at the peak is looked at, the largest values first: what if this value had 16 bits, were made in
 * place of an input that ends there, were freed earlier and computed again, or were made later. Where layers
 * are alike several steps reach the peak, and one change alone helps little: so the first two are tried for all
 * nodes of the operator, too. Each change is made to the graph or to its order, and that is analysed: lifetimes anew, and the peak of it. All peaks are
 * ideal ones (liveness.h). A change that another analysis has to confirm, smaller batches, comes from outside
 * (api/savings.c).
 *
 * Cost: an analysis of lifetimes for each change, of which there are at most MOST_TRIALS, fewer in large graphs.
 */
#ifndef ONV_RUNTIME_SAVINGS_H
#define ONV_RUNTIME_SAVINGS_H

#include "graph/liveness.h"

typedef enum onv_saving_kind {
    ONV_SAVING_HALF,      /* the value has 16 bits */
    ONV_SAVING_INPLACE,   /* its node overwrites an input, or gives a view of it */
    ONV_SAVING_RECOMPUTE, /* it is freed after its last use before the peak, and computed again */
    ONV_SAVING_LATER,     /* its node runs just before the value is first read */
    ONV_SAVING_EARLIER,   /* who reads it last runs as soon as it can */
    ONV_SAVING_BATCH,     /* the batch runs in parts */
    ONV_N_SAVINGS
} onv_saving_kind;

typedef struct onv_saving {
    uint8_t kind; /* onv_saving_kind */
    onv_value_id value;
    onv_node_id node;     /* that the change is made to; ONV_NO_NODE: to the batch */
    bool is_everywhere;   /* to all nodes of its operator */
    uint64_t peak_bytes;  /* with the change */
    uint64_t saved_bytes; /* of the peak */
    uint64_t more_macs;   /* to compute again */
    int64_t parts, part;  /* of the batch: how many, of how many samples each */
    uint64_t more_nodes;  /* that run beside those of before */
} onv_saving;

enum { ONV_MOST_SAVINGS = 10 };

typedef struct onv_savings {
    onv_saving of[ONV_MOST_SAVINGS]; /* the largest first */
    uint32_t count;
} onv_savings;

/* Takes one in where it is among the largest; below a hundredth of the peak it is none. */
void onv_savings_add(onv_savings *savings, const onv_live *live, const onv_saving *saving);

/* Requires that every value is sized. `order`: of the main graph, as liveness was computed in. Lives in the
 * model's arena; the model itself is as before afterwards. */
onv_status onv_savings_find(onv_model *model, const onv_node_id *order, const onv_live *live,
                            onv_savings *savings, onv_error *err);

const char *onv_saving_name(onv_saving_kind kind);

/* --- Of the whole graph ------------------------------------------------------------------------ */

/* The same values with other rules, sizes or order; computed, not estimated. */
typedef enum onv_global_saving_kind {
    ONV_GLOBAL_SAVING_VIEWS,   /* Reshape and its like share their input's memory */
    ONV_GLOBAL_SAVING_INPLACE, /* and elementwise operators overwrite an input that dies */
    ONV_GLOBAL_SAVING_ORDER,   /* another order of execution */
    ONV_GLOBAL_SAVING_HALF,    /* float tensors of 16 bits */
    ONV_N_GLOBAL_SAVINGS
} onv_global_saving_kind;

typedef struct onv_global_saving {
    bool known;            /* could be computed */
    uint64_t peak_bytes;   /* with it */
    uint64_t weight_bytes; /* with it */
    uint64_t saved_bytes;  /* of weights and peak together; 0: it does not help */
} onv_global_saving;

typedef struct onv_global_savings {
    onv_global_saving of[ONV_N_GLOBAL_SAVINGS];
} onv_global_savings;

/* Requires that every value is sized. `order_peak` is the peak of a better order, if one was looked
 * for; UINT64_MAX: none. */
onv_status onv_global_savings_compute(const onv_model *model, const onv_live *live,
                                      uint64_t order_peak, onv_global_savings *savings,
                                      onv_error *err);

#endif

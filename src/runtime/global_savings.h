/* Possible savings of the whole graph: what would make the peak smaller, and by how much. Each is computed, not estimated: the
 * same values with other rules, sizes or order. All peaks are ideal ones (live.h). */
#ifndef ONV_RUNTIME_GLOBAL_SAVINGS_H
#define ONV_RUNTIME_GLOBAL_SAVINGS_H

#include "graph/liveness.h"

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

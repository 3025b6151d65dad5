/* Levers: what would make the peak smaller, and by how much. Each is computed, not estimated: the
 * same values with other rules, sizes or order. All peaks are ideal ones (live.h). */
#ifndef ONV_RUNTIME_LEVERS_H
#define ONV_RUNTIME_LEVERS_H

#include "graph/liveness.h"

typedef enum onv_lever_kind {
    ONV_LEVER_VIEWS,   /* Reshape and its like share their input's memory */
    ONV_LEVER_INPLACE, /* and elementwise operators overwrite an input that dies */
    ONV_LEVER_ORDER,   /* another order of execution */
    ONV_LEVER_HALF,    /* float tensors of 16 bits */
    ONV_N_LEVERS
} onv_lever_kind;

typedef struct onv_lever {
    bool known;            /* could be computed */
    uint64_t peak_bytes;   /* with the lever */
    uint64_t weight_bytes; /* with the lever */
    uint64_t saved_bytes;  /* of weights and peak together; 0: it does not help */
} onv_lever;

typedef struct onv_levers {
    onv_lever of[ONV_N_LEVERS];
} onv_levers;

/* Requires that every value is sized. `order_peak` is the peak of a better order, if one was looked
 * for; UINT64_MAX: none. */
onv_status onv_levers_compute(const onv_model *model, const onv_live *live, uint64_t order_peak,
                              onv_levers *levers, onv_error *err);

#endif

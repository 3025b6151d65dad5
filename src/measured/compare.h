/* The comparison with a snapshot, block by block. */
#ifndef ONV_MEASURED_COMPARE_H
#define ONV_MEASURED_COMPARE_H

#include "measured/measured.h"

/* Fills what is of a snapshot but for its figures. */
onv_status onv_measured_compare(const onv_measured_request *request, const onv_snapshot *snapshot,
                                onv_measured *measured, onv_error *err);

/* --- Two orders of allocations, laid side by side --------------------------------------------------- */

#define ONV_NO_PARTNER UINT32_MAX

/* An allocation in its order. */
typedef struct onv_aligned {
    uint64_t units;    /* of 512 bytes, as allocators round */
    uint32_t freed;    /* how many allocations came before its end */
    uint32_t id;       /* the caller's */
    uint32_t partner;  /* of the other order; ONV_NO_PARTNER */
    bool is_workspace; /* of the prediction: its size is an estimate */
} onv_aligned;

typedef struct onv_order_of {
    onv_aligned *at;
    uint32_t n;
} onv_order_of;

/* Finds partners. `until`: where in the measured order the end of what is of interest is; the last place before it at
 * which the predicted order begins is taken, or else the first one. */
onv_status onv_align(onv_order_of *predicted, onv_order_of *measured, uint32_t until);

#endif

/* The comparison with a snapshot, block by block. */
#ifndef ONV_MEASURED_COMPARE_H
#define ONV_MEASURED_COMPARE_H

#include "measured/measured.h"

/* Fills what is of a snapshot but for its figures. */
onv_status onv_measured_compare(const onv_measured_request *request, const onv_snapshot *snapshot,
                                onv_measured *measured, onv_error *err);

/* --- Parts of it ------------------------------------------------------------------------------- */

/* What a stack tells of an allocation. */
typedef struct onv_stack_hint {
    onv_measured_kind kind; /* ONV_MEASURED_OTHER: nothing */
    bool is_in_module;      /* it is of a call of a module */
    onv_snapshot_frame at;  /* the innermost function of Python; its name may be NULL */
} onv_stack_hint;

onv_stack_hint onv_stack_read(const onv_pickled *frames);

/* "function file:line", or "backward"; NULL without memory. */
const char *onv_stack_text(const onv_pickled *frames, onv_arena *arena);

/* The predicted side: names of what a step runs. NULL without memory. */
const char *onv_step_text(const onv_kept_execution *kept, uint32_t step, onv_arena *arena);
const char *onv_step_module(const onv_kept_execution *kept, uint32_t step, onv_arena *arena);

onv_measured_kind onv_measured_kind_of(const onv_buffer *b);

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

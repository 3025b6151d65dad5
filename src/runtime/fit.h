/* Whether a model fits a budget, by the figures of its runtimes. */
#ifndef ONV_RUNTIME_FIT_H
#define ONV_RUNTIME_FIT_H

#include "runtime/runtime.h"

enum { ONV_MAX_RUNTIMES = 8 };

typedef struct onv_fit_of {
    bool fits;
    int64_t
        max_batch; /* or of the dim that is searched; 0: not even one; ONV_MAX_BATCH: no end was found */
} onv_fit_of;

/* Bounds the search for the largest batch. */
#define ONV_MAX_BATCH (INT64_C(1) << 30)

typedef struct onv_fit {
    uint64_t budget_bytes; /* 0: none was given, the rest means nothing */
    unsigned margin_percent;
    uint64_t usable_bytes; /* the budget less the margin */
    bool fits; /* every runtime asked for: its total, at the upper end of the estimates */
    bool has_max_batch;
    const char *max_dim;             /* the dim that was searched; NULL: the batch */
    int64_t max_batch;               /* that fits every runtime */
    onv_fit_of of[ONV_MAX_RUNTIMES]; /* in the order of the results */
} onv_fit;

/* One device of several, with the figures that its libraries make. */
typedef struct onv_device_fit {
    const char *name;                  /* the GPU's; NULL: a size was given */
    uint64_t totals[ONV_MAX_RUNTIMES]; /* the upper ends, in the order of the results */
    onv_fit fit;
} onv_device_fit;

/* Sets all but the batches. */
void onv_fit_judge(onv_fit *fit, const onv_runtime_result *results, size_t count);

#endif

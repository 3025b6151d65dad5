/* Whether a model fits a budget, by the figures of its runtimes. */
#ifndef ONV_RUNTIME_FIT_H
#define ONV_RUNTIME_FIT_H

#include "runtime/runtime.h"

enum { ONV_MAX_RUNTIMES = 8 };

/* Two figures. It fits where the upper end of what the runtime takes is within the budget. Where it is not, PyTorch's
 * allocator may still keep within it: it returns cached memory to the device and requests it again, which is slower
 * (alloc/requests.h). */
typedef struct onv_fit_of {
    bool fits;
    bool fits_by_release; /* it does not fit, unless cached memory is returned */
    /* Or of the dim that is searched; 0: not even one; ONV_MAX_BATCH: no end was found. */
    int64_t max_batch;
    int64_t
        max_batch_by_release; /* at least max_batch; equal: returning cached memory gains nothing */
} onv_fit_of;

/* Bounds the search for the largest batch. */
#define ONV_MAX_BATCH (INT64_C(1) << 30)
/* In place of a largest batch: the search was cut before it found one that fits. */
#define ONV_BATCH_NOT_FOUND (-1)

/* The best batch that fits, and what comes of it. */
typedef struct onv_fit_best {
    const char *objective; /* static: "batch", "throughput"; NULL: nobody asked */
    int64_t batch;         /* 0: none fits */
    uint64_t samples;      /* of a step: the batch, times the passes before a step */
    char plan[64];         /* its name; "": there is none */
    char id[16];           /* its id, or "" */
    uint64_t total_bytes;  /* upper end */
    onv_time time;         /* all 0 where no GPU is named */
} onv_fit_best;

typedef struct onv_fit {
    uint64_t budget_bytes; /* 0: none was given, the rest means nothing */
    unsigned margin_percent;
    uint64_t usable_bytes; /* the budget less the margin */
    bool has_max_batch;
    const char *max_dim; /* the dim that was searched; NULL: the batch */
    onv_fit_best best;
    onv_fit_of all;                  /* every runtime that is judged */
    onv_fit_of of[ONV_MAX_RUNTIMES]; /* in the order of the results */
} onv_fit;

/* Sets all but the batches. The results are those of runs with onv_runtime_room() of the usable bytes. */
void onv_fit_judge(onv_fit *fit, const onv_runtime_result *results, size_t count);

#endif

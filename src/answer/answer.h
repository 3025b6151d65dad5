/* The answer: how much memory the runtimes that are judged need on a GPU, and whether that fits.
 *
 * It is made once, of a finished analysis, and every surface prints it: text, Markdown, JSON, the page, Python, the exit
 * status. A verdict is that of the runtime with the larger upper end. Theoretical figures (`ideal`, `arena`) are in it
 * only where they were named.
 */
#ifndef ONV_ANSWER_ANSWER_H
#define ONV_ANSWER_ANSWER_H

#include "runtime/fit.h"

typedef enum onv_verdict {
    ONV_VERDICT_NONE, /* no budget, or a size is unknown */
    ONV_VERDICT_FITS,
    ONV_VERDICT_FITS_BY_RELEASE, /* it does not, unless PyTorch returns cached memory (onv_fit_of) */
    ONV_VERDICT_DOES_NOT_FIT,
} onv_verdict;

/* What a runtime needs: live tensors, what is reserved for them and for workspaces, and beside it the handles of libraries and the
 * context. Bytes; `total` is the sum of the other ranges. */
typedef struct onv_answer_row {
    const char *runtime;
    uint32_t result;       /* its place among all results, and in onv_fit.of */
    uint64_t weight_bytes; /* a part of what is live */
    onv_range live;        /* tensors, at their peak */
    onv_range
        reserved; /* by the runtime's allocator, workspaces included; a plan and a sum reserve what they hold */
    uint64_t library_bytes;
    onv_range context, total;
    const char *set_by; /* where the peak is, and who reserves it; in the model's arena */
    bool out_of_memory; /* a limit of the runtime's own is not enough */
} onv_answer_row;

/* A GPU, or a size, that the model has to fit, with the figures that its libraries make. What decides there is found with the
 * answer. */
typedef struct onv_answer_device {
    const char *name; /* the GPU's; NULL: a size was given */
    const char
        *gpu; /* whose libraries count; NULL: those of the options, and in an answer: none do */
    onv_fit fit;
    onv_range totals[ONV_MAX_RUNTIMES]; /* by row */
    bool is_assumed;                    /* the GPU was not named */
    uint32_t largest;                   /* the row that decides */
    onv_verdict verdict;
} onv_answer_device;

/* What would make it fit, or at least smaller; confirmed by an analysis. */
typedef struct onv_remedy {
    const char *option; /* to add to the command, as it is typed */
    const char *what;
    const char *runtime; /* the one that decided; where it does not fit, that decides then */
    onv_range total;     /* of it */
    bool fits;
} onv_remedy;

typedef struct onv_answer {
    const char *gpu; /* whose libraries count; NULL: none do */
    bool is_assumed; /* it was not named: the usual one */
    uint32_t n_rows; /* 0: a size is unknown */
    onv_answer_row rows[ONV_MAX_RUNTIMES];
    uint32_t largest;    /* the row with the largest upper end, the first of equal ones */
    onv_verdict verdict; /* on the first device, which the rows are of */
    bool fits_some;      /* a device, of several */
    uint32_t n_devices;  /* that were given; 0: none */
    uint32_t n_usual;    /* behind them, for a page: no part of the verdict */
    onv_answer_device *devices;
    const char **warnings; /* codes, each once */
    uint32_t n_warnings;
    const onv_remedy
        *remedies; /* those that fit first; none: it fits, or they were not asked for */
    uint32_t n_remedies;
} onv_answer;

/* Of the results that are judged; the devices are in the answer already. `gpu`: as named; NULL: the usual one is assumed. The
 * model's diagnostics count, and its arena is used. Fails without memory alone. */
onv_status onv_answer_make(onv_model *model, const onv_runtime_result *results, size_t n_results,
                           const char *gpu, onv_answer *answer, onv_error *err);

/* What a device says of a row. */
static inline const onv_fit_of *onv_answer_fit_of(const onv_answer *answer,
                                                  const onv_answer_device *device, uint32_t row)
{
    return &device->fit.of[answer->rows[row].result];
}

#endif

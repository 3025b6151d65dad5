/* What the text report measures memory in.
 *
 * Where every size is a number, that is bytes, as liveness computed them. Where dims are free, the
 * sizes that depend on them often share one form (every activation of an image classifier is some
 * bytes times the batch). Then memory is `fixed` bytes plus an amount for every unit, the unit
 * being that product of free dims; the peak is that of large units, where the fixed part no longer
 * decides. Where sizes have several forms, nothing can be summed, and the sized part is a lower
 * limit of what the model needs.
 *
 * Cost: linear in intervals and steps.
 */
#ifndef ONV_REPORT_FOOTPRINT_H
#define ONV_REPORT_FOOTPRINT_H

#include "report/value.h"

typedef enum onv_measure {
    ONV_MEASURE_BYTES,    /* every size is known */
    ONV_MEASURE_UNITS,    /* bytes for every `unit`, plus fixed bytes */
    ONV_MEASURE_AT_LEAST, /* some sizes cannot be told: what is known is a lower limit */
} onv_measure;

typedef struct onv_amount {
    uint64_t fixed; /* bytes */
    uint64_t units; /* bytes for every unit; 0 unless ONV_MEASURE_UNITS */
    bool is_open;   /* ONV_MEASURE_AT_LEAST: some part of it cannot be told */
    bool is_bound;  /* some part of it is an upper bound */
} onv_amount;

/* Something by its size. */
typedef struct onv_ranked {
    uint64_t size;
    size_t index;
} onv_ranked;

typedef struct onv_footprint {
    onv_measure measure;
    const char *unit; /* "batch", "batch * height * width"; ONV_MEASURE_UNITS only */
    uint64_t *rows;   /* by interval: bytes, with ONV_MEASURE_UNITS for every unit */
    uint64_t *steps;  /* by step, likewise */
    uint32_t peak_step;
    onv_ranked *peak_set; /* the rows that hold memory at the peak, largest first */
    uint32_t n_peak_set;
    onv_amount input, output, activation, peak;
} onv_footprint;

/* The arrays live in the page's arena; a failure is sticky there, the footprint is then empty. */
bool onv_footprint_make(onv_footprint *footprint, const onv_view *view, const onv_page *page);

/* "2.30 GiB", "9.3 MiB * batch", "9.3 MiB * batch + 12 B", ">= 12.0 KiB", "<= 4.0 KiB", "?". */
const char *onv_amount_text(const onv_footprint *footprint, const onv_page *page,
                            onv_amount amount);

/* The largest first, equal ones by index. */
void onv_rank(onv_ranked *items, size_t count);

#endif

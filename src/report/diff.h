/* Two models, the second one in place of the first: what changed, by module and by tensor.
 *
 * Modules are the same where their paths are, tensors where their names are. Where an exporter numbers its
 * names, a change moves the numbers, and tensors of one size stand on both sides: those are left out.
 * Cost: sorts the names of both.
 */
#ifndef ONV_REPORT_DIFF_H
#define ONV_REPORT_DIFF_H

#include "report/page.h"
#include "report/report.h"

typedef struct onv_diff_row {
    const char *name;
    bool was, is;                         /* in the first, in the second */
    uint64_t before, after;               /* bytes; of modules: activations */
    uint64_t params_before, params_after; /* elements; modules only */
} onv_diff_row;

typedef struct onv_diff {
    onv_diff_row *modules, *tensors; /* those that changed, the largest change first */
    uint32_t n_modules, n_tensors;
} onv_diff;

/* In the page's arena; false where memory is short. Sizes that are not known count as 0. */
bool onv_diff_make(onv_diff *diff, const onv_view *before, const onv_view *after,
                   const onv_page *page);

#endif

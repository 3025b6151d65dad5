/* Possible savings of an analysis. */
#ifndef ONV_API_SAVINGS_H
#define ONV_API_SAVINGS_H

#include "api/analysis.h"

/* Where they are asked for, and every tensor has a size: changes of single nodes (runtime/savings.h), and the
 * batch in 2, 4 and 8 parts, each an analysis of its own. Of the example where there is one. */
onv_status onv_analysis_find_savings(const onv_request *from, const onv_options *options,
                                     onv_analysis *analysis, onv_error *err);

/* The batch that was bound: by its option (`name` is then NULL), or by a dim of that name. 0: none was. */
int64_t onv_bound_batch(const onv_options *options, const char **name);

#endif

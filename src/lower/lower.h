/* Typed graph → the tape of operations that eager PyTorch executes (eager/eager.h). */
#ifndef ONV_LOWER_LOWER_H
#define ONV_LOWER_LOWER_H

#include "eager/eager.h"

/* In the order of `live`; `is_host` by value index: computed on the host (shapes). Fails with
 * ONV_ERR_USAGE where a size is no number, and for training where one of several branches or a loop
 * would run. */
onv_status onv_eager_lower(onv_model *model, const onv_live *live, const bool *is_host,
                           const onv_lower_options *options, onv_eager *eager, onv_error *err);

#endif

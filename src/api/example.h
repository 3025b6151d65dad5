/* An example of sizes for free dims. */
#ifndef ONV_API_EXAMPLE_H
#define ONV_API_EXAMPLE_H

#include "api/analysis.h"

/* Where dims are free and an example is asked for: analyses the model once more with usual sizes (batch
 * 1, sequences of 128, images of 224 x 224), as `analysis->example`. Where none fits, a note says why. */
onv_status onv_analysis_add_example(const onv_request *from, const onv_options *options,
                                    onv_analysis *analysis, onv_error *err);

#endif

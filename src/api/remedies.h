/* Ways to make a model fit that does not. */
#ifndef ONV_API_REMEDIES_H
#define ONV_API_REMEDIES_H

#include "api/analysis.h"

/* Where they are asked for and no budget fits: settings of ONNX Runtime, 16 bits, a checkpointing plan, the largest
 * batch that fits, the smallest GPU of the table that does. Each is confirmed by an analysis with that option, of the
 * runtimes that are judged; those that fit come first. Requires the answer. A note says so where the limits of the
 * analysis leave no room for further ones. */
onv_status onv_analysis_find_remedies(const onv_request *from, const onv_options *options,
                                      onv_analysis *analysis, onv_error *err);

#endif

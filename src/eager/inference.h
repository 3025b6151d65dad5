/* Inference: one forward pass of the tape in eval mode, as a timeline.
 *
 * Requires: a tape lowered for inference. Every operation is a step, so the regions of the tape are
 * those of the timeline. Weights and inputs are there all the time, results to the end, arguments of
 * calls until they return, everything else until its last use. With `locals`, what names of modules can
 * hold is there until their calls return, too (eager/calls.h); with `graph_module`, neither is. Cost:
 * linear.
 */
#ifndef ONV_EAGER_INFERENCE_H
#define ONV_EAGER_INFERENCE_H

#include "alloc/requests.h"
#include "eager/eager.h"
#include "timeline/timeline.h"

/* The caller cleans up after a success. `requests`, if it is not NULL, gets the sizes of all transient buffers, which then have one
 * for each onv_workspace_choice (onv_requests_list); the caller's also after a failure. */
onv_status onv_inference_build(onv_model *model, const onv_eager *eager,
                               const onv_lower_options *how, onv_timeline *timeline,
                               onv_requests *requests, onv_error *err);

#endif

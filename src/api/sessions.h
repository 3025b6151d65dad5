/* What is asked of ONNX Runtime's sessions beside what one of them holds. */
#ifndef ONV_API_SESSIONS_H
#define ONV_API_SESSIONS_H

#include "api/analysis.h"

/* The session that is analysed once more, with what it was computed from. The caller cleans up after a
 * success. `how` may have other settings. */
onv_status onv_session_execute(onv_analysis *analysis, const onv_ort_settings *settings,
                               onv_runtime_result *result, onv_execution *made, onv_error *err);

/* Statistics by node, advice and the trace of shapes, where they were asked for. */
onv_status onv_session_extras(const onv_request *from, const onv_options *options,
                              onv_analysis *analysis, onv_error *err);

#endif

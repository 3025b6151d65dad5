/* The model as it is, with nothing bound: what the file that is written has, and what contradicts itself. */
#ifndef ONV_API_UNBOUND_H
#define ONV_API_UNBOUND_H

#include "api/analysis.h"

/* Infers the model; where that fails, analysis->contradicts says which nodes do not fit without any size, either. */
onv_status onv_analysis_infer(const onv_request *from, const onv_options *options,
                              onv_analysis *analysis, onv_error *err);

/* Fills analysis->unbound where the options ask for a file and bind something. Values have the same ids. */
onv_status onv_analysis_infer_unbound(const onv_options *options, onv_analysis *analysis,
                                      onv_error *err);
void onv_analysis_forget_unbound(onv_analysis *analysis);

#endif

/* The model as it is: its types with nothing bound, which the file that is written has. */
#ifndef ONV_API_UNBOUND_H
#define ONV_API_UNBOUND_H

#include "api/analysis.h"

/* Fills analysis->unbound where the options ask for a file and bind something. Values have the same ids. */
onv_status onv_analysis_infer_unbound(const onv_options *options, onv_analysis *analysis,
                                      onv_error *err);
void onv_analysis_forget_unbound(onv_analysis *analysis);

#endif

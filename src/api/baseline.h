/* An earlier report as a baseline. */
#ifndef ONV_API_BASELINE_H
#define ONV_API_BASELINE_H

#include "api/analysis.h"

/* Fills `analysis->gate` where the options have a baseline. */
onv_status onv_analysis_compare(const onv_options *options, onv_analysis *analysis, onv_error *err);

#endif

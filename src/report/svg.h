/* Pictures of what was executed: live memory over the steps, and the front of checkpointing plans.
 * Attributes alone, no style sheet and no script, so that they stand in any page. */
#ifndef ONV_REPORT_SVG_H
#define ONV_REPORT_SVG_H

#include "report/format.h"

/* One SVG element with all models of the report, one below the other. */
onv_status onv_write_svg(const onv_report_job *job);

/* The execution that stands for a model: training with the chosen plan, or else the first of torch, ort and
 * the others. NULL where none was kept. */
const onv_kept_execution *onv_main_execution(const onv_view *view);

#endif

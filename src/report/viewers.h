/* What the files for viewers of other projects share: which execution they show, and how its rows are
 * named there. */
#ifndef ONV_REPORT_VIEWERS_H
#define ONV_REPORT_VIEWERS_H

#include "report/format.h"

/* Room for a name with its NUL: the end of a long one, safe to show. */
enum { ONV_VIEWER_NAME = 512 };

typedef struct onv_viewer_name {
    char text[ONV_VIEWER_NAME];
} onv_viewer_name;

/* `text` may be NULL: "?". */
void onv_viewer_fit(onv_viewer_name *name, const char *text);

/* The execution that stands for a model: training with the chosen plan, or else the first of torch, ort and
 * the others. NULL where none was kept. */
const onv_kept_execution *onv_main_execution(const onv_view *view);

/* The same; fails where a size is missing, or where
 * there are several models. `what`: "trace", say. */
onv_status onv_viewer_execution(const onv_report_job *job, const char *what,
                                const onv_kept_execution **kept);

/* Its peak, and what is live at each step, in the job's arena. */
onv_status onv_viewer_live(const onv_report_job *job, const onv_kept_execution *kept,
                           onv_peak *peak, uint64_t **live);

/* Steps that follow each other and have one phase: "backward", "run 2"; `first` is the first of them. */
bool onv_viewer_same_group(const onv_step *a, const onv_step *b);
void onv_viewer_group(onv_viewer_name *name, const onv_kept_execution *kept, const onv_step *first);

/* "torch", "training with adamw, plan sqrt". */
void onv_viewer_title(onv_viewer_name *name, const onv_view *view, const onv_kept_execution *kept);

#endif

/* What is said of ONNX Runtime's sessions beside what one of them holds. */
#ifndef ONV_REPORT_SESSIONS_H
#define ONV_REPORT_SESSIONS_H

#include "report/json.h"
#include "report/text.h"

/* Settings side by side, and how the best are written in Python and C++. */
void onv_write_advice(const onv_view *view, const onv_page *page, bool verbose);

/* What a sequence of requests leaves behind. */
void onv_write_requests(const onv_view *view, const onv_page *page, bool verbose);

/* Several sessions in one process. */
void onv_write_together(const onv_report_job *job, const onv_page *page);
void onv_write_together_json(const onv_together_info *info, onv_json *json);

/* Both as keys of the model's object. */
void onv_write_sessions_json(const onv_view *view, onv_json *json);

#endif

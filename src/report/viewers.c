#include "report/viewers.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "report/clean.h"

enum { COLUMNS = 160 };

void onv_viewer_fit(onv_viewer_name *name, const char *text)
{
    static const char more[] = "...";
    const onv_clean_mode mode = ONV_CLEAN_UNICODE;
    if (text == NULL) text = "?";
    const char *from = onv_clean_end(text, COLUMNS, mode);
    size_t n = 0;
    if (from != text) {
        memcpy(name->text, more, sizeof more);
        n = sizeof more - 1;
    }
    while (*from != '\0') {
        onv_unit unit = onv_clean_next(&from, mode);
        if (n + unit.bytes >= sizeof name->text) break; /* marks that take no column */
        memcpy(name->text + n, unit.text, unit.bytes);
        n += unit.bytes;
    }
    name->text[n] = '\0';
}

const onv_kept_execution *onv_main_execution(const onv_view *view)
{
    static const char *const order[] = {"train", "torch", "ort", "async", "arena", "ideal"};
    const onv_executions *kept = &view->executions;
    uint32_t chosen = view->training.chosen;
    for (size_t k = 0; k < sizeof order / sizeof order[0]; k++) {
        const onv_kept_execution *found = NULL;
        for (size_t i = 0; i < kept->list.count; i++) {
            const onv_kept_execution *e = &kept->list.at[i];
            bool is_fit = e->plan == ONV_NO_PLAN || e->plan == chosen;
            if (strcmp(e->runtime, order[k]) == 0 && is_fit) found = e;
        }
        if (found != NULL) return found;
    }
    return NULL;
}

onv_status onv_viewer_execution(const onv_report_job *job, const char *what,
                                const onv_kept_execution **kept)
{
    ONV_TRY(onv_need_sizes(job, job->views[0], what));
    *kept = onv_main_execution(job->views[0]);
    if (*kept != NULL) return ONV_OK;
    return onv_fail(job->err, ONV_ERR_USAGE,
                    "the %s shows what was executed, and nothing was kept: set timelines", what);
}

onv_status onv_viewer_live(const onv_report_job *job, const onv_kept_execution *kept,
                           onv_peak *peak, uint64_t **live)
{
    const onv_timeline *t = &kept->made.timeline;
    *live = ONV_ARENA_ARRAY(job->arena, uint64_t, t->steps.count + 1);
    if (*live == NULL) return onv_fail_memory(job->err);
    return onv_timeline_peak(t, peak, *live, job->err);
}

bool onv_viewer_same_group(const onv_step *a, const onv_step *b)
{
    return a->iteration == b->iteration && a->phase == b->phase &&
           a->is_recompute == b->is_recompute;
}

void onv_viewer_group(onv_viewer_name *name, const onv_kept_execution *kept, const onv_step *first)
{
    unsigned long number = (unsigned long)first->iteration + 1;
    if (strcmp(kept->runtime, "train") != 0)
        snprintf(name->text, sizeof name->text, "run %lu", number);
    else
        snprintf(name->text, sizeof name->text, "%s%s, iteration %lu",
                 onv_phase_name((onv_phase)first->phase),
                 first->is_recompute ? " again (recomputed)" : "", number);
}

void onv_viewer_title(onv_viewer_name *name, const onv_view *view, const onv_kept_execution *kept)
{
    const onv_training *t = &view->training;
    bool trains = strcmp(kept->runtime, "train") == 0 && t->optimizer != NULL;
    if (!trains)
        snprintf(name->text, sizeof name->text, "%s", kept->runtime);
    else if (kept->plan == ONV_NO_PLAN || kept->plan >= t->n_plans)
        snprintf(name->text, sizeof name->text, "training with %s", t->optimizer->name);
    else
        snprintf(name->text, sizeof name->text, "training with %s, plan %s", t->optimizer->name,
                 t->plans[kept->plan].does.name);
}

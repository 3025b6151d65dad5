/* Several models side by side, and what tells them apart. */
#include <string.h>

#include "report/text.h"

static const char *base_name(const onv_view *view)
{
    const char *path = view->model->path != NULL ? view->model->path : "";
    const char *base = strrchr(path, '/');
    return base != NULL && base[1] != '\0' ? base + 1 : path;
}

/* --- The models -------------------------------------------------------------------------------- */

static const onv_column comparison_columns[] = {
    {"model", .least = 12, .is_name = true},
    {"nodes", .right = true},
    {"MACs", .right = true},
    {"weights", .right = true},
    {"peak", .right = true, .least = 12},
    {"total", .right = true},
};

enum { COMPARISON_COLUMNS = sizeof comparison_columns / sizeof comparison_columns[0] };

static bool all_are_sized(const onv_report_job *job)
{
    for (size_t i = 0; i < job->count; i++)
        if (job->views[i].live->unknown > 0) return false;
    return true;
}

static void write_models(const onv_report_job *job, const onv_page *page)
{
    onv_write_text(page->out, "\n\n");
    onv_page_text(page, ONV_STYLE_TITLE, "Side by side");
    onv_page_line(page);
    /* Peaks with free dims are wide, and a total would say the same twice. */
    bool has_totals = all_are_sized(job);
    onv_table table;
    onv_table_init(&table, comparison_columns, COMPARISON_COLUMNS - !has_totals);
    for (size_t i = 0; i < job->count; i++) {
        const onv_view *view = &job->views[i];
        onv_footprint footprint;
        if (!onv_footprint_make(&footprint, view, page)) break;
        onv_table_add(&table, base_name(view));
        onv_table_add(&table,
                      onv_arena_printf(page->arena, "%s",
                                       onv_label_count(view->live->timeline.steps.count).text));
        onv_table_add(&table, onv_macs_text(view, page));
        onv_table_add(&table, onv_arena_printf(page->arena, "%s",
                                               onv_label_bytes(view->live->weight_bytes).text));
        onv_table_add(&table, onv_amount_text(&footprint, page, footprint.peak));
        if (has_totals)
            onv_table_add(&table,
                          onv_amount_text(&footprint, page, onv_total_amount(view, &footprint)));
    }
    onv_table_finish(&table, page);
}

/* --- The runtimes ------------------------------------------------------------------------------ */

const char *onv_difference_text(const onv_page *page, uint64_t first, uint64_t now)
{
    if (first == now) return "=";
    uint64_t gap = now > first ? now - first : first - now;
    const char *sign = now > first ? "+" : "-";
    /* Beyond twice as much a factor reads better than a percentage. */
    if (first == 0 || gap / first >= 10)
        return onv_arena_printf(page->arena, "%s%s", sign, onv_label_bytes(gap).text);
    if (now > first && gap > first)
        return onv_arena_printf(page->arena, "x%llu.%llu", (unsigned long long)(now / first),
                                (unsigned long long)(now % first * 10 / first));
    return onv_arena_printf(page->arena, "%s%s", sign, onv_label_percent(gap, first).text);
}

static bool have_same_runtimes(const onv_report_job *job)
{
    const onv_view *first = &job->views[0];
    for (size_t i = 1; i < job->count; i++)
        if (job->views[i].n_runtimes != first->n_runtimes) return false;
    return first->n_runtimes > 0;
}

static void write_runtimes(const onv_report_job *job, const onv_page *page)
{
    const onv_view *first = &job->views[0];
    onv_column columns[1 + ONV_MAX_RUNTIMES] = {{"held by", .least = 12, .is_name = true}};
    if (!have_same_runtimes(job)) return;
    for (size_t r = 0; r < first->n_runtimes; r++)
        columns[1 + r] = (onv_column){first->runtimes[r].runtime->name, .right = true};
    onv_table table;
    onv_page_line(page);
    onv_table_init(&table, columns, 1 + first->n_runtimes);
    for (size_t i = 0; i < job->count; i++) {
        const onv_view *view = &job->views[i];
        onv_table_add(&table, base_name(view));
        for (size_t r = 0; r < view->n_runtimes; r++)
            onv_table_add(&table,
                          onv_arena_printf(page->arena, "%s",
                                           onv_label_bytes(view->runtimes[r].held_bytes).text));
        if (i == 0) continue;
        onv_table_add(&table, "  against the first");
        for (size_t r = 0; r < view->n_runtimes; r++)
            onv_table_add(&table, onv_difference_text(page, first->runtimes[r].held_bytes,
                                                      view->runtimes[r].held_bytes));
    }
    onv_table_finish(&table, page);
}

void onv_write_comparison(const onv_report_job *job, const onv_page *page)
{
    write_models(job, page);
    write_runtimes(job, page);
}

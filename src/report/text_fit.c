/* Whether it fits. */
#include "report/text.h"

static const onv_column columns[] = {
    {"", .style = ONV_STYLE_PLAIN},
    {"total", .right = true},
    {"fits", .style = ONV_STYLE_PLAIN},
    {"largest batch", .right = true},
};

const char *onv_batch_text(const onv_page *page, int64_t batch)
{
    if (batch == 0) return "none";
    if (batch >= ONV_MAX_BATCH) return "no limit found";
    return onv_arena_printf(page->arena, "%s", onv_label_count((uint64_t)batch).text);
}

void onv_write_fit(const onv_view *view, const onv_page *page)
{
    const onv_fit *fit = view->fit;
    if (fit == NULL || fit->budget_bytes == 0 || view->n_runtimes == 0) return;
    onv_page_line(page);
    onv_page_text(page, ONV_STYLE_TITLE, "Budget");
    onv_write_format(page->out, " %s", onv_label_bytes(fit->budget_bytes).text);
    if (fit->margin_percent > 0)
        onv_write_format(page->out, ", less a margin of %u%%: %s", fit->margin_percent,
                         onv_label_bytes(fit->usable_bytes).text);
    onv_page_line(page);
    onv_table table;
    onv_table_init(&table, columns, fit->has_max_batch ? 4 : 3);
    for (size_t i = 0; i < view->n_runtimes; i++) {
        const onv_runtime_result *r = &view->runtimes[i];
        onv_table_add(&table, r->runtime->name);
        onv_table_add(
            &table, onv_arena_printf(page->arena, "%s", onv_label_bytes(r->total_bytes.high).text));
        onv_table_add(&table, fit->of[i].fits ? "yes" : "no");
        if (fit->has_max_batch) onv_table_add(&table, onv_batch_text(page, fit->of[i].max_batch));
    }
    onv_table_finish(&table, page);
}

/* A summary in Markdown, for a pull request: what the model needs, whether it fits, what grew. The sections are
 * those of the text report. */
#include "report/format.h"
#include "report/text.h"

static void write_view(const onv_view *view, const onv_page *page)
{
    const onv_view *sized = onv_view_sized(view);
    onv_footprint footprint;
    onv_write_text(page->out, "### ");
    onv_write_title(view, page);
    onv_write_answer(view, page);
    onv_write_training(view, page, false);
    onv_write_model(view, page);
    if (view->example != NULL) onv_write_example_title(view->example, page);
    if (view->example != NULL) onv_write_answer(view->example, page);
    if (!onv_footprint_make(&footprint, sized, page)) return;
    onv_write_memory(sized, page, &footprint);
    onv_write_quantized(sized, page);
    onv_write_kv_cache(sized, page);
    onv_write_comparison_runtimes(sized, page);
    onv_write_gate(sized, page);
    onv_write_measured(view, page);
    onv_write_savings(sized, page);
    onv_write_notes(sized, page, false);
}

/* What a comment has room for: at most 25 lines. */
static void write_comment(const onv_view *view, const onv_page *page)
{
    enum { MOST_WARNINGS = 12 };
    onv_write_text(page->out, "### ");
    onv_write_title(view, page);
    onv_page_line(page);
    onv_write_answer_line(view, page);
    onv_page_line(page);
    onv_write_gate(view, page);
    for (uint32_t i = 0; i < view->answer.n_warnings && i < MOST_WARNINGS; i++)
        onv_write_format(page->out, "%s%s", i == 0 ? "\nWarnings: " : ", ",
                         view->answer.warnings[i]);
    if (view->answer.n_warnings > 0) onv_page_line(page);
}

onv_status onv_format_markdown_add(const onv_report_job *job)
{
    const onv_page page = onv_report_page(job);
    onv_write_between(job, "\n");
    (job->options->verbosity < 0 ? write_comment : write_view)(job->views[0], &page);
    return ONV_OK;
}

onv_status onv_format_markdown_end(const onv_report_job *job)
{
    const onv_page page = onv_report_page(job);
    if (job->options->together != NULL) onv_write_together(job, &page);
    return ONV_OK;
}

/* A summary in Markdown, for a pull request: what the model needs, whether it fits, what grew. */
#include <string.h>

#include "report/format.h"
#include "report/text.h"

/* Text of the model in a cell or a line: what Markdown or HTML would act on is a character reference. */
static void write_plain(onv_writer *out, const char *text)
{
    while (*text != '\0') {
        onv_unit unit = onv_clean_next(&text, ONV_CLEAN_UNICODE);
        bool acts =
            unit.text[1] == '\0' && strchr("\\`*_{}[]()<>#+-!|&~@:\"'", unit.text[0]) != NULL;
        if (acts && strchr("-:_()", unit.text[0]) == NULL)
            onv_write_format(out, "&#%u;", (unsigned)(unsigned char)unit.text[0]);
        else if (acts && unit.text[0] == '_')
            onv_write_text(out, "\\_");
        else
            onv_write_text(out, unit.text);
    }
}

static void write_row(onv_writer *out, const char *name, const char *value)
{
    onv_write_format(out, "| %s | ", name);
    write_plain(out, value != NULL ? value : "");
    onv_write_text(out, " |\n");
}

static void write_totals(const onv_view *view, const onv_page *page)
{
    onv_footprint footprint;
    onv_writer *out = page->out;
    if (!onv_footprint_make(&footprint, view, page)) return;
    onv_write_text(out, "\n| | |\n|---|--:|\n");
    write_row(out, "weights", onv_label_bytes(view->live->weight_bytes).text);
    write_row(out, "peak", onv_amount_text(&footprint, page, footprint.peak));
    write_row(out, "weights and peak",
              onv_amount_text(&footprint, page, onv_total_amount(view, &footprint)));
    write_row(out, "parameters", onv_label_count(view->live->weight_elems).text);
    write_row(out, "multiply-accumulates", onv_macs_text(view, page));
    if (view->training != NULL && view->training->optimizer != NULL) {
        const onv_training_figures *f = &view->training->figures;
        write_row(out, "training, kept for backward",
                  onv_label_bytes(f->saved_activation_bytes).text);
        write_row(out, "training, peak of tensors", onv_label_bytes(f->peak_bytes).text);
        write_row(out, "training, reserved", onv_label_bytes(f->reserved_peak_bytes).text);
    }
}

static void write_runtimes(const onv_view *view, const onv_page *page)
{
    onv_writer *out = page->out;
    if (view->n_runtimes == 0) return;
    onv_write_text(out, "\n| runtime | total |");
    for (size_t d = 0; d < view->n_devices; d++) {
        const onv_device_fit *device = &view->devices[d];
        onv_write_char(out, ' ');
        write_plain(out, device->name != NULL ? device->name
                                              : onv_label_bytes(device->fit.budget_bytes).text);
        onv_write_text(out, " |");
    }
    onv_write_text(out, "\n|---|--:|");
    for (size_t d = 0; d < view->n_devices; d++) onv_write_text(out, "---|");
    onv_write_text(out, "\n");
    for (size_t i = 0; i < view->n_runtimes; i++) {
        const onv_runtime_result *r = &view->runtimes[i];
        const char *dash = onv_page_is_unicode(page) ? "–" : " to ";
        onv_write_format(out, "| %s | %s |", r->runtime->name,
                         onv_label_range(r->total_bytes.low, r->total_bytes.high, dash).text);
        for (size_t d = 0; d < view->n_devices; d++) {
            const onv_fit *fit = &view->devices[d].fit;
            onv_write_text(out, fit->of[i].fits ? " fits" : " **does not fit**");
            if (fit->has_max_batch)
                onv_write_format(out, ", at most %s", onv_batch_text(page, fit->of[i].max_batch));
            onv_write_text(out, " |");
        }
        onv_write_text(out, "\n");
    }
}

static void write_growth(const onv_view *view, const onv_page *page)
{
    const onv_gate *gate = view->gate;
    onv_writer *out = page->out;
    if (gate == NULL || gate->baseline == NULL) return;
    onv_write_text(out, gate->exceeds ? "\n**It grew too much**, since " : "\nGrowth since ");
    write_plain(out, gate->baseline);
    onv_write_text(out, gate->other_bindings ? ", which is of other sizes\n" : "\n");
    onv_write_text(out, "\n| | before | now | growth |\n|---|--:|--:|--:|\n");
    for (uint32_t i = 0; i < gate->n_rows; i++) {
        const onv_gate_row *row = &gate->rows[i];
        const char *growth = onv_difference_text(page, row->before, row->after);
        const char *strong = row->exceeds ? "**" : "";
        onv_write_format(out, "| %s | %s | %s | %s%s%s |\n", row->what,
                         onv_label_bytes(row->before).text, onv_label_bytes(row->after).text,
                         strong, growth != NULL ? growth : "", strong);
    }
}

static void write_notes(const onv_view *view, const onv_page *page)
{
    const onv_model *model = view->model;
    bool any = false;
    for (size_t i = 0; i < model->diags.count; i++) {
        const onv_diag *diag = &model->diags.at[i];
        if (diag->severity != ONV_WARNING) continue;
        if (!any) onv_write_text(page->out, "\nNotes\n\n");
        any = true;
        onv_write_format(page->out, "- %s: ", diag->code);
        if (diag->node != NULL && diag->node[0] != '\0') {
            write_plain(page->out, diag->node);
            onv_write_text(page->out, ": ");
        }
        write_plain(page->out, diag->message);
        onv_write_text(page->out, "\n");
    }
}

static void write_view(const onv_view *view, const onv_page *page)
{
    const onv_view *sized = view->example != NULL ? view->example : view;
    onv_write_text(page->out, "### ");
    write_plain(page->out, view->model->path != NULL ? view->model->path : "model");
    onv_write_text(page->out, view->example != NULL ? ", an example" : "");
    for (size_t i = 0; i < sized->infer->bounds.count; i++) {
        const onv_bound *bound = &sized->infer->bounds.at[i];
        if (bound->size < 0) continue;
        onv_write_text(page->out, ", ");
        write_plain(page->out, bound->name);
        onv_write_format(page->out, " = %lld", (long long)bound->size);
    }
    onv_write_text(page->out, "\n");
    write_totals(sized, page);
    write_runtimes(sized, page);
    write_growth(sized, page);
    write_notes(sized, page);
}

static onv_status write_markdown(const onv_report_job *job)
{
    const onv_page page = onv_page_make(job->out, job->arena, job->options);
    for (size_t i = 0; i < job->count; i++) {
        if (i > 0) onv_write_text(job->out, "\n");
        write_view(&job->views[i], &page);
        if (job->arena->failed) return onv_fail_memory(job->err);
        onv_arena_reset(job->arena);
    }
    return ONV_OK;
}

const onv_report_format onv_format_markdown = {
    .id = ONV_FORMAT_MARKDOWN,
    .name = "markdown",
    .summary = "a summary for a pull request",
    .write = write_markdown,
};

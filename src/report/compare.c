/* Several models side by side, and what tells them apart; what grew since a baseline. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "report/sections.h"

/* --- The models -------------------------------------------------------------------------------- */

onv_status onv_compare(onv_report_job *job)
{
    const onv_view *view = job->views[0];
    onv_page kept = job->page; /* texts that stay; arrays go with the page's own arena */
    onv_footprint footprint;
    kept.arena = &job->kept;
    if (!onv_footprint_make(&footprint, view, &job->page)) return onv_fail_memory(job->err);
    onv_compared row = {
        .fields = {onv_arena_printf(kept.arena, "%s", onv_view_file(view)),
                   onv_page_count(&kept, view->live.timeline.steps.count),
                   onv_macs_text(view, &kept), onv_page_bytes(&kept, view->live.weight_bytes),
                   onv_amount_text(&footprint, &kept, footprint.peak)},
        .count = ONV_COMPARED_CELLS,
    };
    for (size_t r = 0; r < view->answer.n_rows; r++) {
        const onv_answer_row *needs = &view->answer.rows[r];
        row.fields[row.count++] = needs->runtime;
        row.fields[row.count++] =
            onv_arena_printf(kept.arena, "%llu", (unsigned long long)needs->total.high);
    }
    bool is_kept = !kept.arena->failed && onv_vec_push(&job->compared, row);
    return is_kept ? ONV_OK : onv_fail_memory(job->err);
}

static void write_models(const onv_report_job *job)
{
    onv_page_line(&job->page);
    onv_page_title(&job->page, "Side by side");
    onv_table table = onv_table_of("12* model", "> nodes", "> MACs", "> weights", ">12 peak");
    for (size_t i = 0; i < job->compared.count; i++)
        onv_table_add_all(&table, job->compared.at[i].fields, ONV_COMPARED_CELLS);
    onv_table_finish(&table, &job->page);
}

/* --- The runtimes ------------------------------------------------------------------------------ */

const char *onv_change_text(const onv_page *page, uint64_t before, uint64_t now)
{
    if (before == now) return "";
    return onv_page_print(page, "%s%s", now > before ? "+" : "-",
                          onv_label_bytes(now > before ? now - before : before - now).text);
}

const char *onv_difference_text(const onv_page *page, uint64_t first, uint64_t now)
{
    if (first == now) return "=";
    if (first == 0) return "from 0";
    uint64_t gap = now > first ? now - first : first - now;
    const char *sign = now > first ? "+" : "-";
    /* Beyond twice as much a factor reads better than a percentage. */
    if (now > first && gap > first)
        return onv_page_print(page, "x%llu.%llu", (unsigned long long)(now / first),
                              (unsigned long long)(now % first * 10 / first));
    return onv_page_print(page, "%s%s", sign, onv_label_percent(gap, first).text);
}

/* What the model needs for its runtime `r`. */
static uint64_t needed(const onv_compared *row, size_t r)
{
    return strtoull(row->fields[ONV_COMPARED_CELLS + 2 * r + 1], NULL, 10);
}

static void write_runtimes(const onv_report_job *job)
{
    const onv_page *page = &job->page;
    const onv_compared *first = &job->compared.at[0];
    size_t n = (first->count - ONV_COMPARED_CELLS) / 2;
    bool are_same = n > 0;
    for (size_t i = 1; i < job->compared.count; i++)
        are_same = are_same && job->compared.at[i].count == first->count;
    if (!are_same) return;
    onv_page_line(page);
    onv_table table = onv_table_of("12* needs up to");
    for (size_t r = 0; r < n; r++)
        onv_table_column(&table,
                         onv_page_print(page, "> %s", first->fields[ONV_COMPARED_CELLS + 2 * r]));
    for (size_t i = 0; i < job->compared.count; i++) {
        const onv_compared *row = &job->compared.at[i];
        onv_table_add(&table, row->fields[0]);
        for (size_t r = 0; r < n; r++) onv_table_add(&table, onv_page_bytes(page, needed(row, r)));
        if (i == 0) continue;
        onv_table_add(&table, "  against the first");
        for (size_t r = 0; r < n; r++)
            onv_table_add(&table, onv_difference_text(page, needed(first, r), needed(row, r)));
    }
    onv_table_finish(&table, page);
}

void onv_write_comparison(const onv_report_job *job)
{
    write_models(job);
    write_runtimes(job);
}

/* --- What grew since a baseline ------------------------------------------------------------------ */

static void write_gate_title(const onv_gate *gate, const onv_page *page)
{
    onv_page_head(page, "Growth");
    const char *most =
        !gate->has_most ? ""
                        : onv_page_print(page, ", at most %u.%02u%%", gate->most_basis_points / 100,
                                         gate->most_basis_points % 100);
    const char *text = onv_page_print(page, "since %s%s", gate->baseline, most);
    onv_write_char(page->out, ' ');
    onv_page_wrapped(page, text, 7, 2);
}

void onv_write_gate(const onv_view *view, const onv_page *page)
{
    const onv_gate *gate = &view->gate;
    if (gate->baseline == NULL) return;
    write_gate_title(gate, page);
    onv_table table = onv_table_of("", "> before", "> now", "> growth", "8");
    for (uint32_t i = 0; i < gate->n_rows; i++) {
        const onv_gate_row *row = &gate->rows[i];
        bool is_sum = strcmp(row->what, "total") == 0;
        onv_table_row(&table, is_sum ? "weights + peak" : row->what,
                      onv_page_bytes(page, row->before_bytes),
                      onv_page_bytes(page, row->after_bytes),
                      onv_difference_text(page, row->before_bytes, row->after_bytes),
                      row->exceeds ? "too much" : "");
    }
    onv_table_finish(&table, page);
    if (!gate->other_bindings) return;
    onv_page_item(page);
    onv_write_text(page->out, "The baseline is of other sizes: its bindings differ.\n");
}

void onv_write_growth_verdict(const onv_view *view, const onv_page *page)
{
    const onv_gate *gate = &view->gate;
    const onv_gate_row *most = NULL;
    if (gate->baseline == NULL || gate->n_rows == 0) return;
    for (uint32_t i = 0; i < gate->n_rows; i++) {
        const onv_gate_row *row = &gate->rows[i];
        if (row->before_bytes == 0) continue;
        double growth = (double)row->after_bytes / (double)row->before_bytes;
        if (most == NULL || growth > (double)most->after_bytes / (double)most->before_bytes)
            most = row;
    }
    if (most == NULL) most = &gate->rows[0];
    const char *text = onv_difference_text(page, most->before_bytes, most->after_bytes);
    if (most->before_bytes != most->after_bytes)
        onv_page_format(page, ", %s %s since %s", most->what, text, gate->baseline);
    else if (gate->lacks == NULL)
        onv_page_format(page, ", no growth since %s", gate->baseline);
    if (gate->lacks != NULL)
        onv_page_format(page, ", growth of %s not known: it is not in %s", gate->lacks,
                        gate->baseline);
}

void onv_json_write_gate(onv_json *json, const onv_view *view)
{
    const onv_gate *gate = &view->gate;
    ONV_JSON_FIELDS(json, gate, baseline, other_bindings, exceeds);
    if (gate->has_most) onv_json_put_ratio(json, "max_growth", gate->most_basis_points, 10000);
    ONV_JSON_LIST(json, "figures", LINES)
        for (uint32_t i = 0; i < gate->n_rows; i++)
            ONV_JSON_OBJECT(json, &gate->rows[i], what, before_bytes, after_bytes, exceeds);
}

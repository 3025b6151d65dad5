/* What grew since a baseline. */
#include <string.h>

#include "report/text.h"

static void write_title(const onv_gate *gate, const onv_page *page)
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
    write_title(gate, page);
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
    if (most->before_bytes == most->after_bytes)
        onv_write_text(page->out, ", no growth since ");
    else
        onv_write_format(page->out, ", %s %s since ", most->what, text);
    onv_page_put(page, gate->baseline);
}

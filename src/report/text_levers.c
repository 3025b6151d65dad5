/* Possible savings: the levers that save something, the largest first. */
#include "report/text.h"

static const onv_column columns[] = {
    {"", .style = ONV_STYLE_PLAIN},
    {"", .right = true},
    {"", .right = true, .style = ONV_STYLE_DIM},
};

static const char *const names[ONV_N_LEVERS] = {
    [ONV_LEVER_VIEWS] = "views that share memory (Reshape and its like)",
    [ONV_LEVER_INPLACE] = "views, and elementwise operators in place",
    [ONV_LEVER_ORDER] = "another order of execution (--order optimal)",
    [ONV_LEVER_HALF] = "16-bit floats (--precision fp16 or bf16)",
};

/* Below a hundredth of the total a lever is not worth a line. */
enum { LEAST_SHARE = 100 };

void onv_write_levers(const onv_view *view, const onv_page *page)
{
    if (view->levers == NULL || view->n_runtimes == 0) return;
    uint64_t total = view->live->weight_bytes + view->live->peak_bytes;
    bool done[ONV_N_LEVERS] = {false}, any = false;
    onv_table table;
    onv_table_init(&table, columns, 3);
    for (int round = 0; round < ONV_N_LEVERS; round++) {
        int best = -1;
        for (int k = 0; k < ONV_N_LEVERS; k++) {
            const onv_lever *lever = &view->levers->of[k];
            if (done[k] || lever->saved_bytes < total / LEAST_SHARE || lever->saved_bytes == 0)
                continue;
            if (best < 0 || lever->saved_bytes > view->levers->of[best].saved_bytes) best = k;
        }
        if (best < 0) break;
        done[best] = true;
        if (!any) {
            onv_page_line(page);
            onv_page_text(page, ONV_STYLE_TITLE, "Possible savings, of weights and peak");
            onv_page_line(page);
        }
        any = true;
        uint64_t saved = view->levers->of[best].saved_bytes;
        onv_table_add(&table, names[best]);
        onv_table_add(&table,
                      onv_arena_printf(page->arena, "saves %s", onv_label_bytes(saved).text));
        onv_table_add(&table,
                      onv_arena_printf(page->arena, "%s", onv_label_percent(saved, total).text));
    }
    onv_table_finish(&table, page);
}

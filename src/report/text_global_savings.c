/* Possible savings: of the whole graph those that save something, the largest first. */
#include "report/text.h"

static const onv_column columns[] = {
    {"", .style = ONV_STYLE_PLAIN},
    {"", .right = true},
    {"", .right = true, .style = ONV_STYLE_DIM},
};

static const char *const names[ONV_N_GLOBAL_SAVINGS] = {
    [ONV_GLOBAL_SAVING_VIEWS] = "views that share memory (Reshape and its like)",
    [ONV_GLOBAL_SAVING_INPLACE] = "views, and elementwise operators in place",
    [ONV_GLOBAL_SAVING_ORDER] = "another order of execution (--order optimal)",
    [ONV_GLOBAL_SAVING_HALF] = "16-bit floats (--precision fp16 or bf16)",
};

/* Below a hundredth of the total a saving is not worth a line. */
enum { LEAST_SHARE = 100 };

void onv_write_global_savings(const onv_view *view, const onv_page *page)
{
    bool trains = view->training != NULL && view->training->optimizer != NULL;
    if (view->global_savings == NULL || view->n_runtimes == 0 || trains) return;
    uint64_t total = view->live->weight_bytes + view->live->peak_bytes;
    bool done[ONV_N_GLOBAL_SAVINGS] = {false}, any = false;
    onv_table table;
    onv_table_init(&table, columns, 3);
    for (int round = 0; round < ONV_N_GLOBAL_SAVINGS; round++) {
        int best = -1;
        for (int k = 0; k < ONV_N_GLOBAL_SAVINGS; k++) {
            const onv_global_saving *saving = &view->global_savings->of[k];
            if (done[k] || saving->saved_bytes < total / LEAST_SHARE || saving->saved_bytes == 0)
                continue;
            if (best < 0 || saving->saved_bytes > view->global_savings->of[best].saved_bytes)
                best = k;
        }
        if (best < 0) break;
        done[best] = true;
        if (!any) {
            onv_page_line(page);
            onv_page_text(page, ONV_STYLE_TITLE,
                          "Possible savings of the graph's lower bound, weights and peak");
            onv_page_line(page);
        }
        any = true;
        uint64_t saved = view->global_savings->of[best].saved_bytes;
        onv_table_row(&table, names[best],
                      onv_arena_printf(page->arena, "saves %s", onv_label_bytes(saved).text),
                      onv_page_percent(page, saved, total));
    }
    onv_table_finish(&table, page);
}

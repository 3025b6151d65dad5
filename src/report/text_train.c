/* What training needs. */
#include "report/text.h"

static const onv_column columns[] = {
    {"", .style = ONV_STYLE_DIM},
    {"", .right = true},
    {"", .least = 8, .style = ONV_STYLE_DIM},
};

static void add(onv_table *table, const onv_page *page, const char *name, uint64_t bytes,
                const char *note)
{
    onv_table_add(table, name);
    onv_table_add(table, onv_arena_printf(page->arena, "%s", onv_label_bytes(bytes).text));
    onv_table_add(table, note);
}

static const char *peak_note(const onv_view *view, const onv_page *page)
{
    static const char *const phases[ONV_N_PHASES] = {"forward", "backward", "optimizer"};
    const onv_training *t = view->training;
    if (!onv_is_node(t->peak_node))
        return onv_arena_printf(page->arena, "%s, %s", phases[t->peak_phase], t->peak_label);
    return onv_arena_printf(page->arena, "%s of %s %s", phases[t->peak_phase], t->peak_label,
                            onv_model_node(view->model, t->peak_node)->name);
}

void onv_write_training(const onv_view *view, const onv_page *page)
{
    const onv_training *t = view->training;
    if (t == NULL || t->optimizer == NULL) return;
    onv_page_line(page);
    onv_page_text(page, ONV_STYLE_TITLE, "Training");
    onv_write_format(page->out, " with %s in eager PyTorch, loss: %s\n", t->optimizer->name,
                     t->loss);
    onv_table table;
    onv_table_init(&table, columns, 3);
    add(&table, page, "parameters", t->parameter_bytes, "");
    add(&table, page, "buffers", t->buffer_bytes, "running statistics, constants");
    add(&table, page, "gradients", t->gradient_bytes, "");
    add(&table, page, "optimizer", t->optimizer_bytes, "state");
    add(&table, page, "activations", t->saved_activation_bytes, "saved for backward");
    add(&table, page, "peak", t->peak_bytes, peak_note(view, page));
    add(&table, page, "reserved", t->reserved_peak_bytes, "by PyTorch's caching allocator");
    onv_table_finish(&table, page);
    if (t->folded_norms == 0) return;
    onv_write_format(page->out,
                     "  The export folded batch norms into %u convolutions: training needs more "
                     "than\n  this. Export with training=TrainingMode.TRAINING.\n",
                     (unsigned)t->folded_norms);
}

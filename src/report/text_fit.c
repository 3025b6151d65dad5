/* Whether it fits: one budget with a row for each runtime, several with a row for each device. */
#include "report/text.h"

const char *onv_batch_text(const onv_page *page, int64_t batch)
{
    if (batch == 0) return "none";
    if (batch >= ONV_MAX_BATCH) return "no limit found";
    return onv_arena_printf(page->arena, "%s", onv_label_count((uint64_t)batch).text);
}

const char *onv_batches_text(const onv_page *page, int64_t batch, int64_t by_release)
{
    const char *first = onv_batch_text(page, batch);
    if (by_release <= batch || first == NULL) return first;
    const char *second = onv_batch_text(page, by_release);
    if (second == NULL) return NULL;
    return onv_arena_printf(page->arena, "%s; %s", first, second);
}

static const char *searched(const onv_view *view, const onv_page *page)
{
    return onv_arena_printf(page->arena, "largest %s",
                            view->fit->max_dim != NULL ? view->fit->max_dim : "batch");
}

/* The runtimes that do not fit, in words; empty where all do. */
static const char *misfits(const onv_view *view, const onv_page *page, const onv_fit *fit)
{
    const char *text = "";
    for (size_t i = 0; i < view->n_runtimes && text != NULL; i++)
        if (!fit->of[i].fits)
            text = onv_arena_printf(page->arena, "%s%s%s", text, text[0] != '\0' ? ", " : "",
                                    view->runtimes[i].runtime->name);
    return text;
}

static void write_verdict(const onv_view *view, const onv_page *page)
{
    const char *text = misfits(view, page, view->fit);
    if (text == NULL) return;
    onv_page_item(page);
    if (text[0] == '\0')
        onv_write_text(page->out, "It fits.\n");
    else
        onv_write_format(page->out, "It does not fit: %s.\n", text);
    if (view->fit->all.fits_by_release) {
        onv_page_item(page);
        onv_write_text(page->out, "It fits if PyTorch returns cached memory to the device, and "
                                  "slower.\n");
    }
    if (view->fit->all.max_batch_by_release <= view->fit->all.max_batch) return;
    onv_page_item(page);
    onv_write_text(page->out, "The second figure: if PyTorch returns cached memory to the device, "
                              "and slower.\n");
}

static void write_margin(const onv_fit *fit, const onv_page *page)
{
    if (fit->margin_percent > 0)
        onv_write_format(page->out, ", less a margin of %u%%", fit->margin_percent);
}

static void write_one(const onv_view *view, const onv_page *page)
{
    const onv_fit *fit = view->fit;
    const char *title = searched(view, page);
    if (title == NULL) return;
    const onv_column columns[] = {
        {"", .style = ONV_STYLE_PLAIN},
        {"total", .right = true},
        {"fits", .style = ONV_STYLE_PLAIN},
        {title, .right = true},
    };
    onv_page_text(page, ONV_STYLE_TITLE, "Budget");
    if (view->n_devices > 0 && view->devices[0].name != NULL)
        onv_write_format(page->out, " %s,", view->devices[0].name);
    onv_write_format(page->out, " %s", onv_label_bytes(fit->budget_bytes).text);
    write_margin(fit, page);
    if (fit->margin_percent > 0)
        onv_write_format(page->out, ": %s", onv_label_bytes(fit->usable_bytes).text);
    onv_page_line(page);
    onv_table table;
    onv_table_init(&table, columns, fit->has_max_batch ? 4 : 3);
    for (size_t i = 0; i < view->n_runtimes; i++) {
        const onv_runtime_result *r = &view->runtimes[i];
        onv_table_add(&table, r->runtime->name);
        onv_table_add(
            &table, onv_arena_printf(page->arena, "%s", onv_label_bytes(r->total_bytes.high).text));
        onv_table_add(&table, fit->of[i].fits ? "yes" : "no");
        if (fit->has_max_batch)
            onv_table_add(&table, onv_batches_text(page, fit->of[i].max_batch,
                                                   fit->of[i].max_batch_by_release));
    }
    onv_table_finish(&table, page);
    write_verdict(view, page);
}

/* What a device says of a runtime: what is asked of it, and the largest batch where that was asked. */
static const char *cell(const onv_page *page, const onv_device_fit *device, size_t runtime)
{
    const onv_fit_of *of = &device->fit.of[runtime];
    if (device->fit.has_max_batch)
        return onv_batches_text(page, of->max_batch, of->max_batch_by_release);
    return onv_arena_printf(page->arena, "%s%s", onv_label_bytes(device->totals[runtime]).text,
                            device->fit.of[runtime].fits ? "" : ": no");
}

static void write_several(const onv_view *view, const onv_page *page)
{
    onv_column columns[3 + ONV_MAX_RUNTIMES] = {{"", .style = ONV_STYLE_PLAIN},
                                                {"memory", .right = true},
                                                {"fits", .style = ONV_STYLE_PLAIN}};
    const char *title = searched(view, page);
    if (title == NULL) return;
    for (size_t r = 0; r < view->n_runtimes; r++)
        columns[3 + r] = (onv_column){view->runtimes[r].runtime->name, .right = true};
    onv_page_text(page, ONV_STYLE_TITLE, "Budgets");
    write_margin(view->fit, page);
    if (view->fit->has_max_batch) onv_write_text(page->out, ", and the ");
    onv_page_text(page, ONV_STYLE_PLAIN, view->fit->has_max_batch ? title : ", and the totals");
    onv_page_line(page);
    onv_table table;
    onv_table_init(&table, columns, 3 + view->n_runtimes);
    for (size_t i = 0; i < view->n_devices; i++) {
        const onv_device_fit *device = &view->devices[i];
        const char *memory =
            onv_arena_printf(page->arena, "%s", onv_label_bytes(device->fit.budget_bytes).text);
        onv_table_add(&table, device->name != NULL ? device->name : memory);
        onv_table_add(&table, memory);
        onv_table_add(&table, device->fit.all.fits ? "yes" : "no");
        for (size_t r = 0; r < view->n_runtimes; r++) onv_table_add(&table, cell(page, device, r));
    }
    onv_table_finish(&table, page);
}

static void write_device_verdict(const onv_view *view, const onv_page *page, const char *name,
                                 const onv_fit *fit)
{
    const char *text = misfits(view, page, fit);
    if (text == NULL) return;
    onv_write_format(page->out, ", %s %s", fit->all.fits ? "fits" : "does not fit",
                     name != NULL ? name : onv_label_bytes(fit->budget_bytes).text);
    if (!fit->all.fits) onv_write_format(page->out, ": %s", text);
    if (!fit->has_max_batch) return;
    const char *what = searched(view, page),
               *most = onv_batches_text(page, fit->all.max_batch, fit->all.max_batch_by_release);
    if (what == NULL || most == NULL) return;
    onv_write_text(page->out, ", ");
    onv_write_clean(page->out, what, page->mode);
    onv_write_format(page->out, " %s", most);
}

void onv_write_fit_verdict(const onv_view *view, const onv_page *page)
{
    const onv_training *t = view->training;
    if (t != NULL && t->optimizer != NULL) {
        onv_write_format(page->out, ", trained by %s %s", t->optimizer->name,
                         onv_label_bytes(t->figures.peak_bytes).text);
        if (t->chosen != ONV_NO_PLAN)
            onv_write_format(page->out, " with checkpoints %s",
                             onv_plan_label(page, &t->plans[t->chosen]));
        if (t->compiled != NULL)
            onv_write_format(page->out, ", under torch.compile %s",
                             onv_label_bytes(t->compiled->peak_bytes).text);
    }
    if (view->fit == NULL || view->fit->budget_bytes == 0) return;
    if (view->n_devices == 0) write_device_verdict(view, page, NULL, view->fit);
    for (size_t i = 0; i < view->n_devices; i++)
        write_device_verdict(view, page, view->devices[i].name, &view->devices[i].fit);
}

void onv_write_fit(const onv_view *view, const onv_page *page)
{
    const onv_fit *fit = view->fit;
    if (fit == NULL || fit->budget_bytes == 0 || view->n_runtimes == 0) return;
    onv_page_line(page);
    if (view->n_devices > 1)
        write_several(view, page);
    else
        write_one(view, page);
}

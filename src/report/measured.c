/* "measured": what a device held, next to what is predicted. */
#include <string.h>

#include "base/fail.h"
#include "report/sections.h"

enum { MOST_ROWS = 10 };

static void add_row(onv_table *table, const onv_page *page, const char *what,
                    onv_measured_pair bytes, const char *remark)
{
    onv_table_row(table, what, onv_page_bytes(page, bytes.predicted_bytes),
                  onv_page_bytes(page, bytes.measured_bytes),
                  onv_change_text(page, bytes.predicted_bytes, bytes.measured_bytes), remark);
}

static void add_figure(onv_table *table, const onv_page *page, const onv_measured_figure *f)
{
    uint64_t near = f->measured_bytes < f->predicted.low    ? f->predicted.low
                    : f->measured_bytes > f->predicted.high ? f->predicted.high
                                                            : f->measured_bytes;
    onv_table_row(table, f->what, onv_page_range(page, f->predicted.low, f->predicted.high),
                  onv_page_bytes(page, f->measured_bytes),
                  onv_change_text(page, near, f->measured_bytes), f->is_outside ? "outside" : "");
}

static const onv_measured_figure *find_figure(const onv_measured *m, const char *what)
{
    for (uint32_t i = 0; i < m->n_figures; i++)
        if (strcmp(m->figures[i].what, what) == 0) return &m->figures[i];
    return NULL;
}

static void write_kinds(const onv_measured *m, const onv_page *page)
{
    onv_table table = onv_table_of("12", "> predicted", "> measured", "> difference", "8");
    for (unsigned k = 0; k < ONV_N_MEASURED_KINDS && m->snapshot != NULL; k++)
        if (m->kinds[k].predicted_bytes > 0 || m->kinds[k].measured_bytes > 0)
            add_row(&table, page, onv_measured_kind_name((onv_measured_kind)k), m->kinds[k], "");
    if (m->snapshot != NULL) add_row(&table, page, "rounding", m->rounding, "of blocks");
    for (uint32_t i = 0; i < m->n_figures; i++) {
        if (strcmp(m->figures[i].what, "reserved") == 0)
            add_row(&table, page, "cached", m->cached, "and fragmented");
        add_figure(&table, page, &m->figures[i]);
    }
    onv_table_finish(&table, page);
}

/* --- The device -------------------------------------------------------------------------------- */

/* What the allocator holds, predicted or as the snapshot says; beside it handles, and the context. */
static void explain_total(const onv_measured *m, const onv_page *page)
{
    const onv_measured_figure *total = find_figure(m, "on the device");
    const onv_measured_figure *reserved = find_figure(m, "reserved");
    const onv_answer_row *row = m->row;
    if (total == NULL) return;
    uint64_t held = reserved != NULL ? reserved->measured_bytes : row->reserved.low;
    uint64_t known = held + row->library_bytes;
    const char *of = reserved != NULL ? "measured" : "predicted";
    const char *libraries = onv_page_bytes(page, row->library_bytes);
    const char *context = onv_page_range(page, row->context.low, row->context.high);
    if (total->measured_bytes < known)
        onv_page_say(page,
                     "%s are less than the allocator (%s, %s) and the handles of "
                     "libraries (%s) take: the device was looked at before the peak, "
                     "or it counts the process alone.",
                     onv_page_bytes(page, total->measured_bytes), onv_page_bytes(page, held), of,
                     libraries);
    else
        onv_page_say(page,
                     "Of %s the allocator explains %s (%s: live tensors %s, the rest "
                     "is workspaces, rounding and cache), handles of libraries %s; "
                     "%s remain for the context, which takes %s.",
                     onv_page_bytes(page, total->measured_bytes), onv_page_bytes(page, held), of,
                     onv_page_range(page, row->live.low, row->live.high), libraries,
                     onv_page_bytes(page, total->measured_bytes - known), context);
    if (total->measured_bytes > total->predicted.high)
        onv_page_say(page,
                     "%s are explained by nothing here: other processes, a "
                     "second context, what ran in this process before.",
                     onv_page_bytes(page, total->measured_bytes - total->predicted.high));
}

/* --- The snapshot ------------------------------------------------------------------------------ */

static void write_modules(const onv_measured *m, const onv_page *page)
{
    size_t n = 0;
    while (n < m->modules.count &&
           m->modules.at[n].bytes.predicted_bytes != m->modules.at[n].bytes.measured_bytes)
        n++;
    if (n == 0) return;
    onv_page_title(page, "Modules that differ at the peak");
    onv_table table = onv_table_of("12* module", "> predicted", "> measured", "> difference");
    for (size_t i = 0; i < n && i < MOST_ROWS; i++) {
        const onv_measured_module *row = &m->modules.at[i];
        onv_table_row(&table, row->path[0] != '\0' ? row->path : "(none)",
                      onv_page_bytes(page, row->bytes.predicted_bytes),
                      onv_page_bytes(page, row->bytes.measured_bytes),
                      onv_change_text(page, row->bytes.predicted_bytes, row->bytes.measured_bytes));
    }
    onv_table_finish(&table, page);
    if (n > MOST_ROWS)
        onv_page_say(page, "%zu more; %zu modules agree.", n - MOST_ROWS, m->modules.count - n);
}

static void write_singles(const onv_page *page, const char *title, const onv_measured_single *rows,
                          size_t n)
{
    uint64_t sum = 0;
    if (n == 0) return;
    for (size_t i = 0; i < n; i++) sum += rows[i].bytes;
    onv_page_titled(page, title, ": %zu of %s", n, onv_label_bytes(sum).text);
    onv_table table = onv_table_of("> bytes", "12* what", "12 where");
    for (size_t i = 0; i < n && i < MOST_ROWS; i++)
        onv_table_row(&table, onv_page_bytes(page, rows[i].bytes), rows[i].what, rows[i].where);
    onv_table_finish(&table, page);
}

static void write_parting(const onv_measured *m, const onv_page *page)
{
    const onv_measured_parting *p = &m->parting;
    if (!m->has_history)
        onv_page_sentence(page, "The snapshot has no history: it is of one moment, and compared by "
                                "sizes.");
    else if (m->paired_allocations == 0)
        onv_page_sentence(page, "No part of the history begins as the prediction does: blocks are "
                                "compared by sizes.");
    else
        onv_page_say(page,
                     "%u of %u predicted allocations of an iteration are "
                     "in the history, in their order.",
                     m->paired_allocations, m->predicted_allocations);
    if (m->makes_optimizer_state)
        onv_page_sentence(page, "The history has the first step of the optimizer, which makes its "
                                "state; the prediction is of a later iteration: record one.");
    if (!p->found) return;
    if (p->is_lifetime)
        onv_page_say(page,
                     "They part at step %u, %s: its %s are freed before "
                     "%s by the prediction, before %s in the measurement.",
                     p->step, p->operation, onv_page_bytes(page, p->bytes.predicted_bytes),
                     p->predicted_until, p->measured_until);
    else
        onv_page_say(page,
                     "They part at step %u, %s: predicted %s, measured "
                     "%s%s%s.",
                     p->step, p->operation,
                     p->bytes.predicted_bytes > 0 ? onv_page_bytes(page, p->bytes.predicted_bytes)
                                                  : "nothing",
                     p->bytes.measured_bytes > 0 ? onv_page_bytes(page, p->bytes.measured_bytes)
                                                 : "nothing",
                     p->where != NULL ? " at " : "", p->where != NULL ? p->where : "");
}

static void write_snapshot(const onv_measured *m, const onv_page *page)
{
    onv_page_say(page, "Peak predicted at %s, measured at %s.", m->predicted_peak,
                 m->measured_peak);
    write_parting(m, page);
    write_modules(m, page);
    write_singles(page, "Only in the measurement", m->only_measured.at, m->only_measured.count);
    write_singles(page, "Only in the prediction", m->only_predicted.at, m->only_predicted.count);
}

void onv_write_measured(const onv_view *view, const onv_page *page)
{
    const onv_measured *m = &view->measured;
    if (m->n_figures == 0) return;
    onv_page_head(page, "Measured");
    const char *device =
        m->devices > 1 ? onv_page_print(page, ", device %u of %u", m->device, m->devices) : "";
    const char *text =
        m->snapshot == NULL
            ? onv_page_print(page, "next to the prediction for %s", m->row->runtime)
            : onv_page_print(page, "next to the prediction for %s: %s%s, %u allocations",
                             m->row->runtime, m->snapshot, device, m->allocations);
    onv_write_char(page->out, ' ');
    onv_page_wrapped(page, text, 9, 2);
    write_kinds(m, page);
    explain_total(m, page);
    if (m->snapshot != NULL) write_snapshot(m, page);
}

/* --- By itself --------------------------------------------------------------------------------- */

onv_status onv_format_measured_write(onv_report_job *job)
{
    const onv_view *view = job->views[0];
    const onv_page *page = &job->page;
    if (job->count != 1 || view->measured.n_figures == 0)
        return onv_fail(job->err, ONV_ERR_USAGE,
                        "a comparison is of one model and of what was measured: set "
                        "onv_options.snapshot or onv_options.measured");
    if (onv_page_is_markdown(page)) onv_write_text(job->out, "### ");
    onv_write_title(view, page);
    onv_write_measured(view, page);
    return ONV_OK;
}

/* --- JSON -------------------------------------------------------------------------------------- */

static void put_sums(onv_json *json, const char *key, const onv_measured_pair *pair)
{
    onv_json_key(json, key);
    ONV_JSON_OBJECT(json, pair, predicted_bytes, measured_bytes);
}

static void put_figures(onv_json *json, const onv_measured *m)
{
    ONV_JSON_ROWS(json, "figures", i, m->n_figures, INLINE) {
        const onv_measured_figure *f = &m->figures[i];
        onv_json_put_string(json, "what", f->what);
        onv_json_put_total(json, f->predicted);
        ONV_JSON_FIELDS(json, f, measured_bytes, is_outside);
    }
}

static void put_singles(onv_json *json, const char *key, const onv_measured_single *rows, size_t n)
{
    ONV_JSON_LIST(json, key, LINES)
        for (size_t i = 0; i < n; i++) ONV_JSON_OBJECT(json, &rows[i], bytes, what, where);
}

static void put_parting(onv_json *json, const onv_measured_parting *p)
{
    ONV_JSON_FIELDS(json, p, step, phase, operation, node, module);
    ONV_JSON_FIELDS(json, &p->bytes, predicted_bytes, measured_bytes);
    if (p->where != NULL) onv_json_put_string(json, "where", p->where);
    if (p->is_lifetime) ONV_JSON_FIELDS(json, p, predicted_until, measured_until);
}

static void put_snapshot(onv_json *json, const onv_measured *m)
{
    ONV_JSON_FIELDS(json, m, snapshot, device, devices, allocations, has_history,
                    makes_optimizer_state, predicted_allocations, paired_allocations);
    ONV_JSON_PART(json, "kinds", LINES) {
        for (unsigned k = 0; k < ONV_N_MEASURED_KINDS; k++)
            put_sums(json, onv_measured_kind_name((onv_measured_kind)k), &m->kinds[k]);
        put_sums(json, "rounding", &m->rounding);
        put_sums(json, "cached", &m->cached);
    }
    ONV_JSON_FIELDS(json, m, predicted_peak, measured_peak);
    if (m->parting.found)
        ONV_JSON_PART(json, "parts_at", LINES) put_parting(json, &m->parting);
    ONV_JSON_ROWS(json, "modules", i, m->modules.count, INLINE) {
        onv_json_put_string(json, "module", m->modules.at[i].path);
        ONV_JSON_FIELDS(json, &m->modules.at[i].bytes, predicted_bytes, measured_bytes);
    }
    put_singles(json, "only_measured", m->only_measured.at, m->only_measured.count);
    put_singles(json, "only_predicted", m->only_predicted.at, m->only_predicted.count);
}

void onv_json_write_measured(onv_json *json, const onv_view *view)
{
    const onv_measured *m = &view->measured;
    onv_json_put_string(json, "runtime", m->row->runtime);
    onv_json_put_bool(json, "is_outside", m->is_outside);
    put_figures(json, m);
    if (m->snapshot != NULL) put_snapshot(json, m);
}

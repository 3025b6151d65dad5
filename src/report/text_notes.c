/* The end of the text report: what is open, what is not exact, and models side by side. */
#include <ctype.h>
#include <string.h>

#include "report/text.h"

enum { MAX_OPEN_DIMS = 16, MAX_DIAGS = 8 };

/* --- Free dims --------------------------------------------------------------------------------- */

static const onv_column open_columns[] = {
    {"", .least = 8},
    {"", .least = 12},
    {"", .least = 16, .style = ONV_STYLE_DIM},
};

/* NAME=N as a shell takes it. A quote in the name stays wrong there, and the name is shown. */
static const char *binding_option(onv_arena *arena, const onv_free_dim *dim)
{
    if (dim->axis == 0) return "--batch N";
    for (const char *c = dim->name; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && strchr("_-.:/", *c) == NULL)
            return onv_arena_printf(arena, "--dim '%s=N'", dim->name);
    return onv_arena_printf(arena, "--dim %s=N", dim->name);
}

void onv_write_open_dims(const onv_view *view, const onv_page *page)
{
    size_t count = view->infer->free_dims.count;
    if (count == 0) return;
    onv_page_line(page);
    onv_page_text(page, ONV_STYLE_WARN, "Free dimensions");
    onv_page_text(page, ONV_STYLE_PLAIN, ", bound by");
    onv_page_line(page);
    onv_table table;
    onv_table_init(&table, open_columns, 3);
    for (size_t i = 0; i < count && i < MAX_OPEN_DIMS; i++) {
        const onv_free_dim *dim = &view->infer->free_dims.at[i];
        onv_table_add(&table, dim->name);
        onv_table_add(&table, binding_option(page->arena, dim));
        onv_table_add(&table, dim->input == NULL ? ""
                                                 : onv_arena_printf(page->arena, "axis %d of %s",
                                                                    dim->axis, dim->input));
    }
    onv_table_finish(&table, page);
    if (count > MAX_OPEN_DIMS)
        onv_write_format(page->out, "  and %s more\n", onv_label_count(count - MAX_OPEN_DIMS).text);
}

/* --- Notes ------------------------------------------------------------------------------------- */

/* One note under the heading, which the first one writes. */
static void write_note(const onv_page *page, bool *has_heading, const char *code, const char *text)
{
    if (text == NULL) return;
    if (!*has_heading) {
        onv_page_line(page);
        onv_page_text(page, ONV_STYLE_WARN, "Notes");
        onv_page_line(page);
    }
    *has_heading = true;
    onv_write_text(page->out, "  ");
    size_t at = 2;
    if (code != NULL) {
        at += onv_page_fitted(page, ONV_STYLE_DIM, code, 30) + 2;
        onv_write_text(page->out, ": ");
    }
    onv_page_wrapped(page, text, at, 4);
}

static void write_diags(const onv_view *view, const onv_page *page, bool verbose, bool *has_heading)
{
    const onv_model *model = view->model;
    uint64_t left_out = model->dropped_diags;
    size_t shown = 0;
    for (size_t i = 0; i < model->diags.count; i++) {
        const onv_diag *diag = &model->diags.at[i];
        if (!verbose && diag->severity == ONV_NOTE) continue;
        if (!verbose && shown == MAX_DIAGS) {
            left_out++;
            continue;
        }
        shown++;
        bool names_node = diag->node != NULL && diag->node[0] != '\0';
        write_note(page, has_heading, diag->code,
                   onv_arena_printf(page->arena, "%s%s%s%s", names_node ? "node '" : "",
                                    names_node ? diag->node : "", names_node ? "': " : "",
                                    diag->message));
    }
    if (left_out > 0)
        write_note(
            page, has_heading, NULL,
            onv_arena_printf(page->arena, "more of them: %s", onv_label_count(left_out).text));
}

void onv_write_notes(const onv_view *view, const onv_page *page, bool verbose)
{
    const onv_live *live = view->live;
    const onv_infer_info *infer = view->infer;
    bool has_heading = false;
    if (infer->unknown_values > 0 && infer->unknown_cause != NULL)
        write_note(page, &has_heading, NULL,
                   onv_arena_printf(page->arena,
                                    "shapes not known: %s, the first behind %s '%s'; sums "
                                    "leave them out",
                                    onv_label_count(infer->unknown_values).text,
                                    infer->unknown_cause,
                                    infer->unknown_node != NULL ? infer->unknown_node : ""));
    if (live->bounded > 0)
        write_note(page, &has_heading, NULL,
                   onv_arena_printf(page->arena,
                                    "sizes that depend on the data: %s; their upper bounds are "
                                    "counted",
                                    onv_label_count(live->bounded).text));
    write_diags(view, page, verbose, &has_heading);
}

/* The end of a report: what is not exact, and the diagnostics. */
#include <string.h>

#include "report/sections.h"
#include "runtime/loads.h"

enum { MAX_DIAGS = 8 };

/* --- Notes ------------------------------------------------------------------------------------- */

static void write_heading(const onv_page *page, const char *text)
{
    onv_page_line(page);
    onv_page_text(page, ONV_STYLE_WARN, text);
    onv_page_line(page);
    if (onv_page_is_markdown(page)) onv_page_line(page);
}

/* One note under the heading, which the first one writes. */
static void write_note(const onv_page *page, bool *has_heading, const char *code, const char *text)
{
    if (!*has_heading) write_heading(page, "Notes");
    *has_heading = true;
    onv_page_item(page);
    size_t at = 2;
    if (code != NULL) {
        at += onv_page_fitted(page, ONV_STYLE_DIM, code, 30) + 2;
        onv_write_text(page->out, ": ");
    }
    onv_page_wrapped(page, text, at, 4);
}

static bool is_of_loading(const onv_diag *diag)
{
    return strncmp(diag->code, ONV_LOADS, strlen(ONV_LOADS)) == 0;
}

/* Nothing where ONNX Runtime loads the model and CUDA runs all of it. */
static void write_loading(const onv_view *view, const onv_page *page)
{
    bool has_heading = false;
    for (size_t i = 0; i < view->model.diags.count; i++) {
        const onv_diag *diag = &view->model.diags.at[i];
        if (!is_of_loading(diag)) continue;
        if (!has_heading) write_heading(page, "Will ONNX Runtime load it?");
        has_heading = true;
        onv_page_sentence(page, diag->message);
    }
}

static void write_diags(const onv_view *view, const onv_page *page, bool *has_heading)
{
    const onv_model *model = &view->model;
    uint64_t left_out = model->dropped_diags;
    size_t shown = 0;
    for (size_t i = 0; i < model->diags.count; i++) {
        const onv_diag *diag = &model->diags.at[i];
        if (is_of_loading(diag) || (!page->verbose && diag->severity == ONV_NOTE)) continue;
        if (!page->verbose && shown == MAX_DIAGS) {
            left_out++;
            continue;
        }
        shown++;
        bool names_node = diag->node != NULL && diag->node[0] != '\0';
        write_note(page, has_heading, diag->code,
                   onv_page_print(page, "%s%s%s%s", names_node ? "node '" : "",
                                  names_node ? diag->node : "", names_node ? "': " : "",
                                  diag->message));
    }
    if (left_out > 0)
        write_note(page, has_heading, NULL,
                   onv_page_print(page, "%s more", onv_label_count(left_out).text));
}

void onv_write_notes(const onv_view *view, const onv_page *page)
{
    const onv_live *live = &view->live;
    const onv_infer_info *infer = &view->infer;
    bool has_heading = false;
    write_loading(view, page);
    if (infer->unknown_values > 0 && infer->unknown_cause != NULL)
        write_note(page, &has_heading, NULL,
                   onv_page_print(page,
                                  "shapes not known: %s, the first behind %s '%s'; sums "
                                  "leave them out",
                                  onv_label_count(infer->unknown_values).text, infer->unknown_cause,
                                  infer->unknown_node != NULL ? infer->unknown_node : ""));
    if (live->bounded > 0)
        write_note(page, &has_heading, NULL,
                   onv_page_print(page,
                                  "sizes that depend on the data: %s; their upper bounds are "
                                  "counted",
                                  onv_label_count(live->bounded).text));
    write_diags(view, page, &has_heading);
}

/* --- JSON -------------------------------------------------------------------------------------- */

void onv_json_write_diagnostics(onv_json *json, const onv_view *view)
{
    const onv_model *model = &view->model;
    ONV_JSON_ROWS(json, "diagnostics", i, model->diags.count, INLINE) {
        const onv_diag *diag = &model->diags.at[i];
        onv_json_put_string(json, "severity", diag->severity == ONV_WARNING ? "warning" : "note");
        onv_json_put_string(json, "code", diag->code);
        onv_json_put_string(json, "node", diag->node != NULL ? diag->node : "");
        onv_json_put_string(json, "message", diag->message);
    }
    if (model->dropped_diags > 0)
        onv_json_put_u64(json, "diagnostics_dropped", model->dropped_diags);
}

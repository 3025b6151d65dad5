/* "answer": a line of the waterfall for each runtime that is judged, whether it fits, and why. In one line with -q. */
#include <string.h>

#include "report/sections.h"

/* What is missing: options that bind what is free, or what only data decides. What else is unknown has no remedy here. */
static const char *unsized_text(const onv_view *view, const onv_page *page)
{
    enum { MOST = 8 };
    size_t n = view->infer.free_dims.count;
    const char *text = "bind";
    if (n == 0) {
        text = onv_page_print(page, "%s tensors have no size",
                              onv_label_count(view->live.unknown).text);
        for (size_t i = 0; i < view->infer.data_dims.count; i++) {
            const onv_free_dim dim = {.name = view->infer.data_dims.at[i], .axis = -1};
            text = onv_page_print(page, "%s%s %s", text, i == 0 ? ": only data decides; bind" : "",
                                  onv_binding_option(page, &dim, -1));
        }
        return text;
    }
    size_t i = 0;
    for (uint32_t shown = 0; i < n && shown < MOST; i++) {
        const char *option = onv_binding_option(page, &view->infer.free_dims.at[i], -1);
        if (strstr(text, option) != NULL) continue; /* --batch N binds several */
        text = onv_page_print(page, "%s %s", text, option);
        shown++;
    }
    if (i < n) text = onv_page_print(page, "%s and %zu more", text, n - i);
    return text;
}

/* --- The waterfall ----------------------------------------------------------------------------- */

/* In the unit of the total: "0.25–0.59". */
static const char *part_text(const onv_page *page, onv_range part, uint64_t total)
{
    if (part.high == 0) return "";
    return onv_page_label(page, onv_label_part(part.low, part.high, total, onv_page_dash(page)));
}

static void write_waterfall(const onv_view *view, const onv_page *page)
{
    const onv_answer *answer = &view->answer;
    const char *reserved = onv_page_is_unicode(page) ? "> → reserved" : "> -> reserved";
    onv_table table =
        onv_table_of("", "> live", reserved, ">~ + libraries", ">~ + context", ">! = total");
    for (uint32_t i = 0; i < answer->n_rows; i++) {
        const onv_answer_row *row = &answer->rows[i];
        uint64_t total = row->total.high;
        onv_range libraries = {row->total.low - row->context.low - row->reserved.low,
                               row->library_bytes};
        onv_table_row(&table, row->runtime, part_text(page, row->live, total),
                      part_text(page, row->reserved, total), part_text(page, libraries, total),
                      part_text(page, row->context, total),
                      onv_page_range(page, row->total.low, row->total.high));
    }
    onv_table_finish(&table, page);
}

static void write_why(const onv_view *view, const onv_page *page)
{
    const onv_answer *answer = &view->answer;
    onv_page_title(page, "Why");
    if (onv_page_is_markdown(page)) onv_page_line(page);
    for (uint32_t i = 0; i < answer->n_rows; i++) {
        const onv_answer_row *row = &answer->rows[i];
        const char *text = onv_page_print(page, "%s: weights %s; set by %s", row->runtime,
                                          onv_label_bytes(row->weight_bytes).text, row->set_by);
        onv_page_sentence(page, text);
        onv_write_runtime_remarks(&view->runtimes[row->result], page, view->plan_alignment);
    }
}

static void write_warnings(const onv_answer *answer, const onv_page *page)
{
    const char *text = "Warnings, below:";
    if (answer->n_warnings == 0) return;
    for (uint32_t i = 0; i < answer->n_warnings; i++)
        text = onv_page_print(page, "%s%s %s", text, i > 0 ? "," : "", answer->warnings[i]);
    onv_page_sentence(page, text);
}

void onv_write_answer(const onv_view *view, const onv_page *page)
{
    const onv_answer *answer = &view->answer;
    onv_page_line(page);
    if (answer->n_rows == 0) {
        onv_page_text(page, ONV_STYLE_WARN, "Not sized");
        onv_write_text(page->out, ": ");
        onv_page_wrapped(page, unsized_text(view, page), 11, 2);
        return;
    }
    onv_page_text(page, ONV_STYLE_TITLE, "Needed");
    if (answer->gpu != NULL)
        onv_write_format(page->out, " on %s%s", answer->gpu,
                         answer->is_assumed ? " (assumed; --gpu NAME chooses)" : "");
    onv_page_line(page);
    write_waterfall(view, page);
    onv_write_fit(view, page);
    write_warnings(answer, page);
    write_why(view, page);
}

/* --- In one line ------------------------------------------------------------------------------- */

/* ", checkpoints sqrt (1f2e3d4c)"; where nothing chose a plan, the one that a plan file has. */
static void write_plan(const onv_view *view, const onv_page *page)
{
    const onv_training *t = &view->training;
    if (t->optimizer == NULL) return;
    bool is_chosen = t->chosen != ONV_NO_PLAN;
    uint32_t plan = is_chosen ? t->chosen : onv_training_knee(t);
    if (plan != ONV_NO_PLAN)
        onv_page_format(page, ", %scheckpoints %s (%s)", is_chosen ? "" : "recommended ",
                        onv_plan_label(page, &t->plans[plan]), t->plans[plan].id);
    if (t->compiled != NULL)
        onv_write_format(page->out, ", peak under torch.compile %s",
                         onv_label_bytes(t->compiled->peak_bytes).text);
}

void onv_write_answer_line(const onv_view *view, const onv_page *page)
{
    const onv_answer *answer = &view->answer;
    if (answer->n_rows == 0) {
        onv_write_text(page->out, "not sized: ");
        onv_page_put(page, unsized_text(view, page));
        return;
    }
    for (uint32_t i = 0; i < answer->n_rows; i++) {
        const char *total =
            onv_page_range(page, answer->rows[i].total.low, answer->rows[i].total.high);
        onv_write_format(page->out, "%s%s %s%s", i > 0 ? ", " : "", answer->rows[i].runtime, total,
                         answer->rows[i].out_of_memory ? " (gpu_mem_limit is not enough)" : "");
    }
    if (answer->gpu != NULL) {
        onv_write_text(page->out, " on ");
        onv_page_put(page, answer->gpu);
        onv_write_text(page->out, answer->is_assumed ? " (assumed)" : "");
    }
    /* A search for the largest size needs one to begin with, which may be nobody's choice. */
    if (answer->n_devices > 0 && answer->devices[0].fit.has_max_batch)
        onv_page_put(page, onv_sizes_text(view, page));
    write_plan(view, page);
    onv_write_fit_line(view, page);
}

/* --- JSON -------------------------------------------------------------------------------------- */

void onv_json_put_range(onv_json *json, const char *key, onv_range range)
{
    onv_json_key(json, key);
    onv_json_open(json, '[', ONV_JSON_INLINE);
    onv_json_u64(json, range.low);
    onv_json_u64(json, range.high);
    onv_json_close(json);
}

static void put_gpu(onv_json *json, const char *gpu, bool is_assumed)
{
    onv_json_put_string(json, "gpu", gpu);
    onv_json_put_bool(json, "gpu_assumed", is_assumed);
}

void onv_json_put_total(onv_json *json, onv_range total)
{
    onv_json_put_u64(json, "low_bytes", total.low);
    onv_json_put_u64(json, "high_bytes", total.high);
}

static void put_row(onv_json *json, const onv_answer_row *row)
{
    onv_json_put_string(json, "runtime", row->runtime);
    onv_json_put_total(json, row->total);
    onv_json_put_u64(json, "weight_bytes", row->weight_bytes);
    onv_json_put_range(json, "live_bytes", row->live);
    onv_json_put_range(json, "reserved_bytes", row->reserved);
    onv_json_put_u64(json, "library_bytes", row->library_bytes);
    onv_json_put_range(json, "context_bytes", row->context);
    ONV_JSON_FIELDS(json, row, set_by, out_of_memory);
}

static void put_device(onv_json *json, const onv_answer *answer, const onv_answer_device *device)
{
    onv_json_put_string(json, "device", device->name);
    put_gpu(json, device->gpu, device->is_assumed);
    ONV_JSON_FIELDS(json, &device->fit, budget_bytes, usable_bytes);
    onv_json_put_string(json, "runtime", answer->rows[device->largest].runtime);
    onv_json_put_total(json, device->totals[device->largest]);
    onv_json_write_fit_of(json, &device->fit, &device->fit.all);
    ONV_JSON_ROWS(json, "runtimes", i, answer->n_rows, INLINE) {
        const onv_fit_of *of = onv_answer_fit_of(answer, device, i);
        onv_json_put_string(json, "runtime", answer->rows[i].runtime);
        onv_json_put_total(json, device->totals[i]);
        onv_json_write_fit_of(json, &device->fit, of);
    }
}

static void put_remedies(onv_json *json, const onv_answer *answer)
{
    if (answer->n_remedies == 0) return;
    ONV_JSON_ROWS(json, "remedies", i, answer->n_remedies, INLINE) {
        const onv_remedy *r = &answer->remedies[i];
        ONV_JSON_FIELDS(json, r, option, what, runtime);
        onv_json_put_total(json, r->total);
        onv_json_put_bool(json, "fits", r->fits);
    }
}

void onv_json_write_answer(onv_json *json, const onv_view *view)
{
    const onv_answer *answer = &view->answer;
    const onv_answer_row *row = answer->n_rows > 0 ? &answer->rows[answer->largest] : NULL;
    onv_json_put_string(json, "runtime", row != NULL ? row->runtime : NULL);
    put_gpu(json, answer->gpu, answer->is_assumed);
    onv_json_put_known(json, "low_bytes", row != NULL, row != NULL ? row->total.low : 0);
    onv_json_put_known(json, "high_bytes", row != NULL, row != NULL ? row->total.high : 0);
    onv_json_key(json, "fits");
    if (answer->verdict == ONV_VERDICT_NONE)
        onv_json_null(json);
    else
        onv_json_bool(json, answer->verdict == ONV_VERDICT_FITS);
    onv_json_put_string(json, "set_by", row != NULL ? row->set_by : NULL);
    onv_json_put_texts(json, "warnings", answer->warnings, answer->n_warnings);
    ONV_JSON_ROWS(json, "runtimes", i, answer->n_rows, INLINE) put_row(json, &answer->rows[i]);
    if (answer->n_devices > 0)
        ONV_JSON_ROWS(json, "devices", i, answer->n_devices, LINES)
            put_device(json, answer, &answer->devices[i]);
    if (answer->n_usual > 0)
        ONV_JSON_ROWS(json, "usual_devices", i, answer->n_usual, LINES)
            put_device(json, answer, &answer->devices[answer->n_devices + i]);
    put_remedies(json, answer);
}

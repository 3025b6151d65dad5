/* Whether it fits, as the answer says: sentences for one budget, a table for several; in some words of a line with -q. */
#include <ctype.h>
#include <string.h>

#include "base/checked.h"
#include "report/sections.h"

static const char *batch_text(const onv_page *page, int64_t batch)
{
    if (batch == ONV_BATCH_NOT_FOUND) return "?";
    if (batch == 0) return "none";
    if (batch >= ONV_MAX_BATCH) return "no limit found";
    return onv_page_count(page, (uint64_t)batch);
}

const char *onv_batches_text(const onv_page *page, int64_t batch, int64_t by_release)
{
    const char *first = batch_text(page, batch);
    return by_release <= batch
               ? first
               : onv_page_print(page, "%s; %s", first, batch_text(page, by_release));
}

static const char *device_text(const onv_answer_device *device, const onv_page *page)
{
    if (device->name != NULL) return device->name;
    return onv_page_bytes(page, device->fit.budget_bytes);
}

/* "batch", or the dim that was searched. */
static const char *searched(const onv_answer_device *device)
{
    return device->fit.max_dim != NULL ? device->fit.max_dim : "batch";
}

/* --- One budget -------------------------------------------------------------------------------- */

/* "T4, 15.00 GiB", "T4, 15.00 GiB less 10%: 13.50 GiB". */
static const char *size_text(const onv_answer_device *device, const onv_page *page)
{
    const onv_fit *fit = &device->fit;
    const char *size = onv_page_bytes(page, fit->budget_bytes);
    if (device->name != NULL) size = onv_page_print(page, "%s, %s", device->name, size);
    if (fit->margin_percent == 0) return size;
    return onv_page_print(page, "%s less %u%%: %s", size, fit->margin_percent,
                          onv_label_bytes(fit->usable_bytes).text);
}

static const char *verdict_text(const onv_answer *answer, const onv_answer_device *device,
                                const onv_page *page)
{
    const char *size = size_text(device, page);
    const char *runtime = answer->rows[device->largest].runtime;
    uint64_t high = device->totals[device->largest].high, usable = device->fit.usable_bytes;
    onv_label most = onv_label_bytes(high);
    if (device->verdict == ONV_VERDICT_FITS)
        return onv_page_print(page, "It fits %s: %s needs up to %s.", size, runtime, most.text);
    if (device->verdict == ONV_VERDICT_FITS_BY_RELEASE)
        return onv_page_print(page,
                              "It does not fit %s: %s needs up to %s. It runs if PyTorch returns "
                              "cached memory to the device, and slower.",
                              size, runtime, most.text);
    if (high <= usable)
        return onv_page_print(page, "It does not fit: a limit of the runtime is not enough.");
    return onv_page_print(page, "It does not fit %s: %s needs up to %s, %s too much.", size,
                          runtime, most.text, onv_label_bytes(high - usable).text);
}

/* Whether the largest size has a second figure. */
static bool gains_by_release(const onv_answer *answer, const onv_answer_device *device)
{
    for (uint32_t i = 0; i < answer->n_rows; i++) {
        const onv_fit_of *of = onv_answer_fit_of(answer, device, i);
        if (of->max_batch_by_release > of->max_batch) return true;
    }
    return false;
}

/* "torch 1,091, ort 445"; "train 602 (1,032 if PyTorch returns cached memory, and slower)". */
static const char *batches_text(const onv_answer *answer, const onv_answer_device *device,
                                const onv_page *page)
{
    const char *text = "";
    for (uint32_t i = 0; i < answer->n_rows; i++) {
        const onv_fit_of *of = onv_answer_fit_of(answer, device, i);
        text = onv_page_print(page, "%s%s%s %s", text, i > 0 ? ", " : "", answer->rows[i].runtime,
                              batch_text(page, of->max_batch));
        if (of->max_batch_by_release > of->max_batch)
            text = onv_page_print(page, "%s (%s if PyTorch returns cached memory, and slower)",
                                  text, batch_text(page, of->max_batch_by_release));
    }
    return text;
}

/* Hundredths of samples a second. */
static uint64_t rate(uint64_t samples, uint64_t nanoseconds)
{
    const double hundredths = 1e11;
    return nanoseconds == 0 ? 0 : (uint64_t)((double)samples * hundredths / (double)nanoseconds);
}

/* ": 412-1,130 samples/s, an estimate", or why there is none. */
static const char *rate_text(const onv_fit_best *best, const onv_page *page)
{
    const onv_time *time = &best->time;
    if (time->refused != NULL) return onv_page_print(page, "; no time: %s", time->refused);
    if (!onv_time_is_known(time)) return "";
    onv_label rates = onv_label_rate(rate(best->samples, time->all.high),
                                     rate(best->samples, time->all.low), onv_page_dash(page));
    return onv_page_print(page, ": %s samples/s, an estimate", rates.text);
}

/* "most samples per second: batch 96 with optimal (--checkpoint 3f2a9c01), up to 15.20 GiB: 412-1,130 samples/s, an
 * estimate"; NULL: it was not asked for, or out of memory. */
static const char *best_text(const onv_fit_best *best, const onv_page *page)
{
    const char *rates = rate_text(best, page);
    if (best->objective == NULL || best->batch == 0) return NULL;
    return onv_page_print(
        page, "%s: batch %s%s%s%s%s%s, up to %s%s",
        strcmp(best->objective, "batch") == 0 ? "largest batch" : "most samples per second",
        onv_label_count((uint64_t)best->batch).text, best->plan[0] != '\0' ? " with " : "",
        best->plan, best->id[0] != '\0' ? " (--checkpoint " : "", best->id,
        best->id[0] != '\0' ? ")" : "", onv_label_bytes(best->total_bytes).text, rates);
}

/* As a sentence; with several budgets behind the device. */
static void write_best(const char *device, const onv_fit_best *best, const onv_page *page)
{
    const char *text = best_text(best, page);
    if (text == NULL) return;
    bool is_led = device[0] != '\0';
    int first = is_led ? text[0] : toupper((unsigned char)text[0]);
    onv_page_say(page, "%s%s%c%s.", device, is_led ? ": " : "", first, text + 1);
}

static void write_one(const onv_answer *answer, const onv_answer_device *device,
                      const onv_page *page)
{
    onv_page_sentence(page, verdict_text(answer, device, page));
    if (!device->fit.has_max_batch) return;
    onv_page_say(page, "Largest %s on %s: %s.", searched(device), device_text(device, page),
                 batches_text(answer, device, page));
    write_best("", &device->fit.best, page);
}

/* --- Several ----------------------------------------------------------------------------------- */

/* What a device says of a runtime: its total there, and the largest batch where that was asked for. */
static const char *cell(const onv_page *page, const onv_answer *answer,
                        const onv_answer_device *device, uint32_t row)
{
    const onv_fit_of *of = onv_answer_fit_of(answer, device, row);
    if (device->fit.has_max_batch)
        return onv_batches_text(page, of->max_batch, of->max_batch_by_release);
    return onv_page_print(page, "%s%s",
                          onv_page_range(page, device->totals[row].low, device->totals[row].high),
                          of->fits              ? ""
                          : of->fits_by_release ? ": if cached memory is returned"
                                                : ": no");
}

static void write_several(const onv_answer *answer, const onv_page *page)
{
    const onv_answer_device *first = &answer->devices[0];
    bool gains = false, is_searched = first->fit.has_max_batch;
    unsigned margin = first->fit.margin_percent;
    onv_page_titled(page, "Budgets", "%s, %s%s",
                    margin > 0 ? onv_page_print(page, ", less a margin of %u%%", margin) : "",
                    is_searched ? "and the largest " : "each with its own libraries",
                    is_searched ? searched(first) : "");
    onv_table table = onv_table_of("", "> memory", "fits");
    for (uint32_t r = 0; r < answer->n_rows; r++)
        onv_table_column(&table, onv_page_print(page, "> %s", answer->rows[r].runtime));
    for (uint32_t i = 0; i < answer->n_devices; i++) {
        const onv_answer_device *device = &answer->devices[i];
        onv_table_row(&table, device_text(device, page),
                      onv_page_bytes(page, device->fit.budget_bytes),
                      device->verdict == ONV_VERDICT_FITS ? "yes" : "no");
        gains |= device->fit.has_max_batch && gains_by_release(answer, device);
        for (uint32_t r = 0; r < answer->n_rows; r++)
            onv_table_add(&table, cell(page, answer, device, r));
    }
    onv_table_finish(&table, page);
    for (uint32_t i = 0; i < answer->n_devices; i++)
        write_best(device_text(&answer->devices[i], page), &answer->devices[i].fit.best, page);
    if (gains)
        onv_page_sentence(page, "The second figure: if PyTorch returns cached memory, and slower.");
}

/* --- What would make it fit -------------------------------------------------------------------- */

static void write_remedies(const onv_answer *answer, const onv_page *page)
{
    if (answer->n_remedies == 0) return;
    onv_page_titled(page, "To make it fit", ", add one of these to the command");
    if (onv_page_is_markdown(page)) onv_page_line(page);
    for (uint32_t i = 0; i < answer->n_remedies; i++) {
        const onv_remedy *r = &answer->remedies[i];
        onv_page_say(page, "%s: %s %s, %s (%s)", r->option, r->runtime,
                     onv_page_range(page, r->total.low, r->total.high),
                     r->fits ? "fits" : "not enough", r->what);
    }
}

void onv_write_fit(const onv_view *view, const onv_page *page)
{
    const onv_answer *answer = &view->answer;
    if (answer->n_devices > 1)
        write_several(answer, page);
    else if (answer->n_devices == 1)
        write_one(answer, &answer->devices[0], page);
    for (uint32_t i = 0; i < answer->n_rows && answer->n_devices != 1; i++)
        if (answer->rows[i].out_of_memory)
            onv_page_sentence(page,
                              onv_page_print(page, "%s does not run: gpu_mem_limit is not enough.",
                                             answer->rows[i].runtime));
    write_remedies(answer, page);
}

/* --- In a line --------------------------------------------------------------------------------- */

void onv_write_fit_line(const onv_view *view, const onv_page *page)
{
    const onv_answer *answer = &view->answer;
    for (uint32_t i = 0; i < answer->n_devices; i++) {
        const onv_answer_device *device = &answer->devices[i];
        onv_write_format(page->out, ", %s %s",
                         device->verdict == ONV_VERDICT_FITS ? "fits" : "does not fit",
                         device_text(device, page));
        if (answer->n_rows > 1)
            onv_write_format(page->out, " (by %s)", answer->rows[device->largest].runtime);
        if (device->verdict == ONV_VERDICT_FITS_BY_RELEASE)
            onv_write_text(page->out, " unless PyTorch returns cached memory");
    }
    for (uint32_t i = 0; i < answer->n_devices && answer->devices[i].fit.has_max_batch; i++) {
        const onv_answer_device *device = &answer->devices[i];
        const char *best = best_text(&device->fit.best, page);
        onv_page_format(page, "; largest %s on %s: %s%s%s", searched(device),
                        device_text(device, page), batches_text(answer, device, page),
                        best != NULL ? "; " : "", onv_page_kept(best));
    }
}

/* --- JSON -------------------------------------------------------------------------------------- */

/* Every runtime that is judged must fit, at the upper end of the estimates. */
void onv_json_write_fit_of(onv_json *json, const onv_fit *fit, const onv_fit_of *of)
{
    bool is_dim = fit->max_dim != NULL;
    onv_json_put_bool(json, "fits", of->fits);
    if (of->fits_by_release) onv_json_put_bool(json, "fits_by_release", true);
    if (!fit->has_max_batch) return;
    onv_json_put_u64(json, is_dim ? "max_size" : "max_batch", (uint64_t)of->max_batch);
    if (of->max_batch_by_release > of->max_batch)
        onv_json_put_u64(json, is_dim ? "max_size_by_release" : "max_batch_by_release",
                         (uint64_t)of->max_batch_by_release);
}

/* Samples of `nanoseconds`, in a second. */
static void put_rate(onv_json *json, const char *key, uint64_t samples, uint64_t nanoseconds)
{
    const uint64_t giga = 1000000000;
    uint64_t scaled;
    if (!onv_u64_mul(samples, giga, &scaled)) scaled = UINT64_MAX;
    onv_json_put_ratio(json, key, scaled, nanoseconds);
}

static void put_best(onv_json *json, const onv_fit_best *best)
{
    onv_json_put_string(json, "objective", best->objective);
    onv_json_put_u64(json, "batch", (uint64_t)best->batch);
    if (best->plan[0] != '\0') onv_json_put_string(json, "plan", best->plan);
    if (best->id[0] != '\0') onv_json_put_string(json, "id", best->id);
    if (best->batch > 0) onv_json_put_u64(json, "high_bytes", best->total_bytes);
    onv_json_put_time(json, &best->time, false);
    if (!onv_time_is_known(&best->time)) return;
    ONV_JSON_PART(json, "samples_per_second", INLINE) {
        put_rate(json, "low", best->samples, best->time.all.high);
        put_rate(json, "high", best->samples, best->time.all.low);
    }
}

static void put_device(onv_json *json, const onv_view *view, const onv_answer_device *device)
{
    const onv_answer *answer = &view->answer;
    const onv_fit *fit = &device->fit;
    if (device->name != NULL) onv_json_put_string(json, "device", device->name);
    ONV_JSON_FIELDS(json, fit, budget_bytes, margin_percent, usable_bytes);
    if (fit->max_dim != NULL) onv_json_put_string(json, "max_dim", fit->max_dim);
    onv_json_put_total(json, device->totals[device->largest]);
    onv_json_write_fit_of(json, fit, &fit->all);
    if (fit->best.objective != NULL)
        ONV_JSON_PART(json, "best", INLINE) put_best(json, &fit->best);
    ONV_JSON_PART(json, "runtimes", LINES)
        for (uint32_t i = 0; i < answer->n_rows; i++)
            ONV_JSON_PART(json, answer->rows[i].runtime, INLINE) {
                onv_json_put_total(json, device->totals[i]);
                onv_json_write_fit_of(json, fit, onv_answer_fit_of(answer, device, i));
            }
}

/* "fit" is the first device, "fits" lists all. */
void onv_json_write_fit(onv_json *json, const onv_view *view)
{
    const onv_answer *answer = &view->answer;
    if (answer->n_devices == 0) return;
    ONV_JSON_PART(json, "fit", LINES) put_device(json, view, &answer->devices[0]);
    if (answer->n_devices < 2) return;
    ONV_JSON_ROWS(json, "fits", i, answer->n_devices, LINES)
        put_device(json, view, &answer->devices[i]);
}

/* "replay": what a device held while it replayed what is predicted. */
#include <string.h>

#include "report/sections.h"

/* "torch", "train sqrt". */
static const char *name_text(const onv_page *page, const char *runtime, const char *plan)
{
    return plan == NULL ? runtime : onv_page_print(page, "%s %s", runtime, plan);
}

static const char *verdict_text(const onv_page *page, const onv_replay_result *r)
{
    if (r->n_faults > 0)
        return onv_page_print(page, "%s fault%s", onv_label_count(r->n_faults).text,
                              r->n_faults > 1 ? "s" : "");
    if (r->out_of_memory)
        return onv_page_print(page, "no memory at step %lu, as predicted",
                              (unsigned long)r->oom.step);
    return "agrees";
}

static void write_results(const onv_replays *replays, const onv_page *page)
{
    onv_table table = onv_table_of("", "~ mode", "> predicted", "> measured", "> difference",
                                   ">~ tolerated", "> buffers", "verdict");
    for (size_t i = 0; i < replays->results.count; i++) {
        const onv_replay_result *r = &replays->results.at[i];
        onv_table_row(&table, name_text(page, r->runtime, r->plan), r->mode,
                      onv_page_bytes(page, r->predicted_bytes),
                      onv_page_bytes(page, r->measured_bytes),
                      r->measured_bytes == r->predicted_bytes
                          ? "0 B"
                          : onv_change_text(page, r->predicted_bytes, r->measured_bytes),
                      onv_page_bytes(page, r->tolerance_bytes),
                      onv_page_count(page, r->checked_buffers), verdict_text(page, r));
    }
    onv_table_finish(&table, page);
}

/* --- What is behind the verdict ---------------------------------------------------------------- */

static void write_faults(const onv_replay_result *r, const onv_page *page)
{
    uint64_t shown = page->verbose ? ONV_REPLAY_MAX_FAULTS : 3;
    for (uint64_t i = 0; i < r->n_faults && i < shown && i < ONV_REPLAY_MAX_FAULTS; i++) {
        onv_write_text(page->out, "  ");
        onv_page_text(page, ONV_STYLE_WARN, onv_fault_name(r->faults[i].kind));
        onv_write_text(page->out, ": ");
        onv_page_wrapped(page, r->faults[i].text, 4 + strlen(onv_fault_name(r->faults[i].kind)), 4);
    }
    if (r->n_faults > shown)
        onv_write_format(page->out, "  and %s more\n", onv_label_count(r->n_faults - shown).text);
}

static void write_note(const onv_page *page, const char *text)
{
    onv_write_text(page->out, "  ");
    onv_page_wrapped(page, text, 2, 2);
}

/* How much an allocation may take beyond what was asked for. */
static const char *granularity_text(const onv_page *page, uint64_t granularity)
{
    if (granularity <= 1) return "nothing";
    return onv_page_print(page, "less than %s", onv_label_bytes(granularity).text);
}

static void write_tolerance(const onv_replays *replays, const onv_page *page)
{
    const char *plain = granularity_text(page, replays->device.granularity_bytes);
    const char *pooled = granularity_text(page, replays->device.pool_granularity_bytes);
    uint64_t foreign = 0;
    bool has_pool = false, complete = true;
    for (size_t i = 0; i < replays->results.count; i++) {
        const onv_replay_result *r = &replays->results.at[i];
        foreign += r->foreign_bytes;
        has_pool |= r->has_pool;
        complete &= !r->out_of_memory;
    }
    write_note(page,
               complete ? "Every buffer was filled when it was made and checked when it was last "
                          "read."
                        : "Buffers were filled when they were made and checked when they were last "
                          "read, until memory ran out.");
    write_note(page, onv_page_print(page,
                                    "Tolerated: what rounding may add, times the most "
                                    "allocations at a time: %s for a plain one%s%s%s.",
                                    plain, has_pool ? ", " : "", has_pool ? pooled : "",
                                    has_pool ? " for one of the pool" : ""));
    if (foreign > 0)
        write_note(page, onv_page_print(page,
                                        "Other processes took or freed %s meanwhile, which the "
                                        "tolerance includes.",
                                        onv_label_bytes(foreign).text));
}

/* --- Memory over time -------------------------------------------------------------------------- */

static void write_series(const onv_page *page, const char *name, const uint64_t *values, uint32_t n,
                         uint64_t peak)
{
    const char *line = onv_levels_text(page, values, n, page->width - 16, peak);
    onv_write_format(page->out, "    %-10s", name);
    onv_page_text(page, ONV_STYLE_BAR, onv_page_kept(line));
    onv_page_line(page);
}

/* The largest one and those that disagree, or all. */
static void write_timelines(const onv_replays *replays, const onv_page *page)
{
    size_t largest = 0;
    for (size_t i = 1; i < replays->results.count; i++)
        if (replays->results.at[i].predicted_bytes > replays->results.at[largest].predicted_bytes)
            largest = i;
    for (size_t i = 0; i < replays->results.count; i++) {
        const onv_replay_result *r = &replays->results.at[i];
        uint64_t held =
            r->predicted_bytes > r->measured_bytes ? r->predicted_bytes : r->measured_bytes;
        if (!page->verbose && i != largest && r->agrees) continue;
        onv_write_format(page->out, "  %s, mode %s: held over %s steps\n",
                         name_text(page, r->runtime, r->plan), r->mode,
                         onv_label_count(r->n_steps).text);
        write_series(page, "predicted", r->predicted_held_at, r->n_steps, held);
        write_series(page, "measured", r->measured_held_at, r->n_steps, held);
    }
}

/* --- The largest batch ------------------------------------------------------------------------- */

static void write_max_batches(const onv_replays *replays, const onv_page *page)
{
    if (replays->max_batches.count == 0) return;
    onv_table table =
        onv_table_of("", "~ mode", "> largest batch predicted", "> allocated", "verdict");
    for (size_t i = 0; i < replays->max_batches.count; i++) {
        const onv_replay_max_batch *max_batch = &replays->max_batches.at[i];
        onv_table_row(&table, name_text(page, max_batch->runtime, max_batch->plan), max_batch->mode,
                      onv_page_print(page, "%s%s",
                                     max_batch->predicted_is_least ? onv_page_at_least(page) : "",
                                     onv_label_count((uint64_t)max_batch->predicted).text),
                      onv_page_count(page, (uint64_t)max_batch->measured),
                      max_batch->agrees ? "agrees" : "differs");
    }
    onv_table_finish(&table, page);
}

/* On host memory the bookkeeping is held against itself; what a driver does is not tried. */
static bool is_self_check(const onv_replays *replays)
{
    return strcmp(replays->kind->name, "host") == 0;
}

void onv_write_replay_verdict(const onv_view *view, const onv_page *page)
{
    const onv_replays *replays = &view->replays;
    if (replays->kind == NULL) return;
    onv_page_format(page, "; %s on %s: %s", is_self_check(replays) ? "self-check" : "replay",
                    replays->device.name,
                    !replays->agrees         ? "contradicts the prediction"
                    : replays->out_of_memory ? "no memory, as predicted"
                                             : "agrees");
}

void onv_write_replays(const onv_view *view, const onv_page *page)
{
    const onv_replays *replays = &view->replays;
    if (replays->kind == NULL) return;
    onv_page_head(page, is_self_check(replays) ? "Self-check" : "Replay");
    onv_write_text(page->out, " on ");
    onv_page_fitted(page, ONV_STYLE_PLAIN, replays->device.name, page->width);
    onv_write_format(page->out, ", %s free", onv_label_bytes(replays->device.free_bytes).text);
    if (replays->device.has_context)
        onv_write_format(page->out, ", context %s",
                         onv_label_bytes(replays->device.context_bytes).text);
    onv_page_line(page);
    write_results(replays, page);
    for (size_t i = 0; i < replays->results.count; i++) write_faults(&replays->results.at[i], page);
    write_max_batches(replays, page);
    write_tolerance(replays, page);
    write_timelines(replays, page);
}

/* --- JSON -------------------------------------------------------------------------------------- */

static void put_faults(onv_json *json, const onv_replay_result *r)
{
    onv_json_put_u64(json, "faults", r->n_faults);
    uint64_t n = r->n_faults < ONV_REPLAY_MAX_FAULTS ? r->n_faults : ONV_REPLAY_MAX_FAULTS;
    ONV_JSON_ROWS(json, "first_faults", i, n, INLINE) {
        onv_json_put_string(json, "kind", onv_fault_name(r->faults[i].kind));
        ONV_JSON_FIELDS(json, &r->faults[i], step, offset);
        onv_json_put_string(json, "message", r->faults[i].text);
    }
}

static void put_memory(onv_json *json, const onv_replay_result *r)
{
    onv_json_key(json, "device_free_bytes");
    ONV_JSON_OBJECT(json, &r->device_free, before, least, after);
    onv_json_put_u64(json, "foreign_bytes", r->foreign_bytes);
    if (r->has_pool) onv_json_key(json, "pool");
    if (r->has_pool)
        ONV_JSON_OBJECT(json, &r->pool, used_peak_bytes, reserved_peak_bytes,
                        predicted_reserved_peak_bytes);
    if (!r->out_of_memory) return;
    onv_json_key(json, "out_of_memory");
    ONV_JSON_OBJECT(json, &r->oom, step, bytes, free_bytes);
}

static void put_result(onv_json *json, const onv_replay_result *r)
{
    ONV_JSON_FIELDS(json, r, mode, runtime);
    if (r->plan != NULL) onv_json_put_string(json, "plan", r->plan);
    ONV_JSON_FIELDS(json, r, predicted_bytes, measured_bytes, tolerance_bytes, granularity_bytes);
    ONV_JSON_FIELDS(json, r, most_allocations, predicted_live_bytes, measured_live_bytes, buffers,
                    checked_buffers, agrees);
    put_memory(json, r);
    put_faults(json, r);
    ONV_JSON_PART(json, "timeline", LINES) {
        onv_json_put_numbers(json, "predicted_bytes", r->predicted_held_at, r->n_steps);
        onv_json_put_numbers(json, "measured_bytes", r->measured_held_at, r->n_steps);
        onv_json_put_numbers(json, "predicted_live_bytes", r->predicted_live_at, r->n_steps);
        onv_json_put_numbers(json, "measured_live_bytes", r->measured_live_at, r->n_steps);
    }
}

static void put_max_batches(onv_json *json, const onv_replays *replays)
{
    if (replays->max_batches.count == 0) return;
    ONV_JSON_ROWS(json, "max_batch", i, replays->max_batches.count, INLINE) {
        const onv_replay_max_batch *max_batch = &replays->max_batches.at[i];
        ONV_JSON_FIELDS(json, max_batch, mode, runtime);
        if (max_batch->plan != NULL) onv_json_put_string(json, "plan", max_batch->plan);
        ONV_JSON_FIELDS(json, max_batch, predicted, measured, predicted_is_least, agrees);
    }
}

void onv_json_write_replays(onv_json *json, const onv_view *view)
{
    const onv_replays *replays = &view->replays;
    uint64_t predicted, measured;
    const onv_device_info *device = &replays->device;
    onv_replays_largest(replays, &predicted, &measured);
    onv_json_put_string(json, "device", device->name);
    onv_json_put_string(json, "backend", replays->kind->name);
    onv_json_put_bool(json, "is_gpu", device->is_gpu);
    onv_json_put_u64(json, "predicted_bytes", predicted);
    onv_json_put_u64(json, "measured_bytes", measured);
    onv_json_put_bool(json, "agrees", replays->agrees);
    onv_json_put_u64(json, "device_total_bytes", device->total_bytes);
    onv_json_put_known(json, "context_bytes", device->has_context, device->context_bytes);
    onv_json_put_known(json, "driver_version", device->driver_version > 0,
                       (uint64_t)device->driver_version);
    onv_json_put_string(json, "filled_by", device->filled_by);
    put_max_batches(json, replays);
    ONV_JSON_ROWS(json, "modes", i, replays->results.count, LINES)
        put_result(json, &replays->results.at[i]);
}

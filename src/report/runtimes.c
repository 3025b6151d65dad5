/* Runtimes: what the file leaves open of them, and the figures of each. */
#include <string.h>

#include "program/view.h"
#include "report/sections.h"

/* "256-600 MiB"; one label where both ends are one, none for nothing. */
static const char *range_text(const onv_page *page, onv_range range)
{
    if (range.high == 0) return "";
    return onv_page_range(page, range.low, range.high);
}

static void add_row(onv_table *table, const onv_page *page, const onv_runtime_result *r)
{
    onv_table_row(table, onv_page_print(page, "%s", r->runtime->name),
                  onv_page_bytes(page, r->weight_bytes), onv_page_bytes(page, r->activation_bytes),
                  range_text(page, (onv_range){r->driver_least_bytes, r->driver_bytes}),
                  range_text(page, r->context_bytes), range_text(page, r->total_bytes));
}

/* More than a hundredth apart. */
static bool differs(uint64_t low, uint64_t high)
{
    return high > low && high - low > low / 100;
}

/* What the file leaves open of eager PyTorch. */
static void write_ends(const onv_page *page, const onv_runtime_result *r)
{
    onv_range ends = r->tensor_ends;
    if (!differs(ends.low, ends.high)) return;
    bool is_program = strcmp(onv_program_evidence(r->model), "program") == 0;
    bool is_trained = strcmp(r->runtime->name, "train") == 0;
    const char *open =
        is_program   ? ""
        : is_trained ? ", which activations overwrite their input, and what has no gradient"
                     : ", which activations overwrite their input, and which equal weights are one";
    const char *tells =
        is_program ? "" : "PyTorch's program (dump_exported_program=True) says more, ";
    onv_page_say(page,
                 "%s: tensors take %s to %s: the file does not say how long "
                 "Python holds results%s; %sa recording (onnxvram.record) "
                 "says all",
                 r->runtime->name, onv_label_bytes(ends.low).text, onv_label_bytes(ends.high).text,
                 open, tells);
}

static void write_workspaces(const onv_page *page, const onv_runtime_result *r)
{
    if (r->has_open_workspaces && differs(r->low_bytes, r->high_bytes))
        onv_page_say(page,
                     "%s: reserved depends on what cuDNN takes for some convolutions: "
                     "its choice there is not certain",
                     r->runtime->name);
}

static void write_time(const onv_page *page, const onv_runtime_result *r)
{
    onv_label label = onv_label_time(r->time.all.low, r->time.all.high, onv_page_dash(page));
    if (onv_time_is_known(&r->time))
        onv_page_say(page,
                     "%s: a forward pass takes %s, estimated by peaks "
                     "of the GPU",
                     r->runtime->name, label.text);
    if (r->time.refused != NULL)
        onv_page_say(page, "%s: no time: %s", r->runtime->name, r->time.refused);
}

void onv_write_runtime_remarks(const onv_runtime_result *r, const onv_page *page,
                               uint64_t alignment)
{
    write_ends(page, r);
    write_workspaces(page, r);
    write_time(page, r);
    const char *text = NULL;
    if (strcmp(r->runtime->name, "arena") == 0) {
        onv_label bound = onv_label_bytes(r->lower_bound_bytes);
        text = r->optimal ? "arena: a plan; its offsets are proven optimal"
                          : onv_page_print(page, "arena: a plan; none is below %s", bound.text);
        if (alignment > 1)
            text = onv_page_print(page, "%s, at multiples of %llu bytes", text,
                                  (unsigned long long)alignment);
    } else if (strcmp(r->runtime->name, "ideal") == 0) {
        text = "ideal: a lower bound, the sum of what is live";
    } else if (strcmp(r->runtime->name, "tensorrt") == 0) {
        text = r->low_bytes < r->high_bytes
                   ? "tensorrt: an estimate by NVIDIA's documents, never measured: only a build "
                     "says which tactics, and so how much of the workspace, are needed"
                   : "tensorrt: an estimate by NVIDIA's documents, never measured, and without "
                     "workspace: by default tactics may take what the device has; --workspace "
                     "SIZE counts a limit";
    } else if (r->runtime->provider != ONV_PROVIDER_NONE) {
        const char *first = onv_page_bytes(page, r->first_run_bytes);
        const char *steady = onv_page_bytes(page, r->steady_bytes);
        text = strcmp(first, steady) == 0
                   ? onv_page_print(page, "%s: %s from the first run on", r->runtime->name, first)
                   : onv_page_print(page, "%s: %s after the first run, %s from the third on",
                                    r->runtime->name, first, steady);
    }
    onv_page_sentence(page, text);
    bool is_arena = r->runtime->consumer == ONV_CONSUMER_ALLOCATOR;
    if (is_arena && r->allocated_ends.high == 0 && differs(r->low_bytes, r->held_bytes))
        onv_page_say(page, "%s: as little as %s by workspaces and order of initializers",
                     r->runtime->name, onv_label_bytes(r->low_bytes).text);
    if (r->out_of_memory)
        onv_page_say(page,
                     "ort: gpu_mem_limit is not enough: a request of %s finds "
                     "no memory",
                     onv_label_bytes(r->oom_bytes).text);
}

void onv_write_comparison_runtimes(const onv_view *view, const onv_page *page)
{
    size_t n = 0;
    for (size_t i = 0; i < view->n_runtimes; i++) n += !view->runtimes[i].is_judged;
    if (n == 0) return;
    onv_page_title(page, "For comparison, not judged");
    onv_table table =
        onv_table_of("", "> weights", "> activations", ">~ libraries", ">~ context", "> together");
    for (size_t i = 0; i < view->n_runtimes; i++)
        if (!view->runtimes[i].is_judged) add_row(&table, page, &view->runtimes[i]);
    onv_table_finish(&table, page);
    for (size_t i = 0; i < view->n_runtimes; i++)
        if (!view->runtimes[i].is_judged)
            onv_write_runtime_remarks(&view->runtimes[i], page, view->plan_alignment);
}

/* --- JSON -------------------------------------------------------------------------------------- */

/* Rewrites of the graph by name: how often each was applied, or would be and is not modelled. */
static void put_rewrites(onv_json *json, const onv_rewritten *r, bool is_not_modelled)
{
    ONV_JSON_PART(json, is_not_modelled ? "not_modelled" : "rewrites", INLINE)
        for (uint32_t i = 0; i < r->n_counts; i++)
            if (r->counts[i].is_not_modelled == is_not_modelled)
                onv_json_put_u64(json, r->counts[i].name, r->counts[i].count);
}

static void put_rewritten(onv_json *json, const onv_rewritten *r)
{
    onv_json_put_u64(json, "nodes", r->model.nodes.count);
    onv_json_put_u64(json, "nodes_on_cpu", r->n_nodes_on_cpu);
    onv_json_put_u64(json, "copies", r->n_copies);
    put_rewrites(json, r, false);
    put_rewrites(json, r, true);
}

/* What the contract names for each runtime; "total_bytes" is what the runtime itself holds, the
 * ranges say what libraries and the driver add. */
static void put_runtime(onv_json *json, const onv_runtime_result *r)
{
    const char *name = r->runtime->name;
    if (strcmp(name, "ideal") == 0 || strcmp(name, "arena") == 0)
        onv_json_put_u64(json, "activation_peak_bytes", r->activation_bytes);
    if (strcmp(name, "arena") == 0) {
        onv_json_put_u64(json, "lower_bound_bytes", r->lower_bound_bytes);
        if (r->alignment > 1) onv_json_put_u64(json, "alignment_bytes", r->alignment);
        onv_json_put_bool(json, "optimal", r->optimal);
    } else if (r->runtime->consumer == ONV_CONSUMER_PLANNER) {
        onv_json_put_u64(json, "activation_peak_bytes", r->activation_bytes);
        onv_json_put_u64(json, "low_bytes", r->low_bytes);
        onv_json_put_u64(json, "high_bytes", r->held_bytes);
        onv_json_put_bool(json, "estimate", true);
    } else if (r->runtime->provider != ONV_PROVIDER_NONE) {
        ONV_JSON_FIELDS(json, r, first_run_bytes, steady_bytes, low_bytes);
        onv_json_put_u64(json, "high_bytes", r->held_bytes);
        ONV_JSON_FIELDS(json, r, driver_bytes, out_of_memory);
        onv_json_put_ort_settings(json, &r->ort);
        if (r->rewritten != NULL)
            ONV_JSON_PART(json, "graph", INLINE) put_rewritten(json, r->rewritten);
    } else if (strcmp(name, "ideal") != 0) {
        if (strcmp(name, "torch") == 0)
            onv_json_put_string(json, "evidence", onv_program_evidence(r->model));
        bool pool = strcmp(name, "async") == 0;
        onv_json_put_u64(json, pool ? "used_peak_bytes" : "allocated_peak_bytes",
                         r->allocated_peak_bytes);
        ONV_JSON_FIELDS(json, r, reserved_peak_bytes, tensor_peak_bytes, driver_bytes);
        if (r->allocated_ends.high > 0) {
            onv_json_put_u64(json, "least_peak_bytes", r->allocated_ends.low);
            onv_json_put_u64(json, "locals_peak_bytes", r->allocated_ends.high);
            onv_json_put_range(json, "tensor_range_bytes", r->tensor_ends);
        }
    }
    onv_json_put_u64(json, "total_bytes", r->held_bytes);
    onv_json_put_u64(json, "weight_bytes", r->weight_bytes);
    onv_json_put_time(json, &r->time, false);
    if (r->runtime->has_context) {
        onv_json_put_range(json, "context_bytes", r->context_bytes);
        onv_json_put_range(json, "total_range_bytes", r->total_bytes);
    }
}

void onv_json_write_runtimes(onv_json *json, const onv_view *view)
{
    if (view->n_runtimes == 0) return;
    ONV_JSON_PART(json, "runtimes", LINES)
        for (size_t i = 0; i < view->n_runtimes; i++)
            ONV_JSON_PART(json, view->runtimes[i].runtime->name, INLINE)
                put_runtime(json, &view->runtimes[i]);
}

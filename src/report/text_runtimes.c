/* What the file leaves open of runtimes, and the figures of those that nothing is judged by, one line each. */
#include <string.h>

#include "program/view.h"
#include "report/text.h"

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

/* Checkpointing plans for programs: docs/checkpointing.md describes the lines. */
#include <string.h>

#include "report/clean.h"
#include "report/embedded.h"
#include "report/format.h"

static void write_field(onv_writer *out, const char *text)
{
    onv_write_char(out, '\t');
    onv_write_clean(out, text, ONV_CLEAN_UNICODE);
}

static void write_number(onv_writer *out, const char *key, uint64_t number)
{
    onv_write_format(out, "%s\t%llu\n", key, (unsigned long long)number);
}

/* Wraps modules where they stand: the first one of a segment runs them all, the others hand on what
 * they get. Inner segments come first, so that outer ones run them wrapped. */
static const char wrapping[] =
    "#\n"
    "# from torch.utils.checkpoint import checkpoint\n"
    "#\n"
    "# def run(forwards, x, *args, **kwargs):\n"
    "#     for forward in forwards:\n"
    "#         x = forward(x, *args, **kwargs)\n"
    "#     return x\n"
    "#\n"
    "# def wrap(forwards):\n"
    "#     return lambda *args, **kwargs: checkpoint(run, forwards, *args, use_reentrant=False, "
    "**kwargs)\n"
    "#\n"
    "# for names in reversed(segments):\n"
    "#     modules = [model.get_submodule(name) for name in names.split()]\n"
    "#     modules[0].forward = wrap([module.forward for module in modules])\n"
    "#     for module in modules[1:]:\n"
    "#         module.forward = lambda x, *args, **kwargs: x\n";

static void write_sequential(onv_writer *out, const onv_training_plan *plan)
{
    onv_write_format(out,
                     "#: In PyTorch, where `model` is the network:\n"
                     "#\n"
                     "# from torch.utils.checkpoint import checkpoint_sequential\n"
                     "#\n"
                     "# model.forward = lambda x, functions=list(model): checkpoint_sequential("
                     "functions, %u, x, use_reentrant=False)\n",
                     (unsigned)plan->sequential);
}

/* One after the other, each with "# " before. */
static void write_python(onv_writer *out, const char *text)
{
    for (const char *end; *text != '\0'; text = end) {
        end = text + strcspn(text, "\n");
        onv_write_text(out, end > text ? "# " : "#");
        onv_write_bytes(out, text, (size_t)(end - text));
        onv_write_char(out, '\n');
        end += *end != '\0';
    }
}

static const char saving[] = "#: In PyTorch, where `model` is the network:\n"
                             "#\n"
                             "# import torch\n"
                             "#\n"
                             "# def save_on_cpu(forward):\n"
                             "#     def run(*args, **kwargs):\n"
                             "#         with torch.autograd.graph.save_on_cpu(pin_memory=True):\n"
                             "#             return forward(*args, **kwargs)\n"
                             "#     return run\n"
                             "#\n"
                             "# model.forward = save_on_cpu(model.forward)\n";

/* The network is compiled when it is called first. */
static void write_compiled(onv_writer *out, const onv_training_plan *plan)
{
    onv_write_format(out,
                     "#: In PyTorch, where `model` is the network:\n"
                     "#\n"
                     "# import torch._functorch.config\n"
                     "#\n"
                     "# torch._functorch.config.activation_memory_budget = %g\n"
                     "# model.compile()\n",
                     plan->memory_budget);
}

/* The names of modules are plain (names.h, borders.h), so the code is what it looks like. */
static void write_chains(onv_writer *out, const onv_training_plan *plan)
{
    onv_write_text(out, "# segments = [\n");
    for (uint32_t i = 0; i < plan->n_segments; i++) {
        onv_write_text(out, "#     \"");
        onv_write_text(out, plan->names[i].modules); /* may be longer than any buffer */
        onv_write_text(out, "\",\n");
    }
    onv_write_text(out, "# ]\n");
    onv_write_text(out, wrapping);
}

static void write_borders(onv_writer *out, const onv_training_plan *plan)
{
    write_python(out, onv_recompute_py);
    onv_write_text(out, "#\n#\n# Recompute(model, [\n");
    for (uint32_t i = 0; i < plan->n_segments; i++) {
        const onv_segment_names *names = &plan->names[i];
        if (names->begin == NULL) continue;
        onv_write_text(out, "#     (\"");
        onv_write_text(out, names->begin);
        onv_write_text(out, "\", \"");
        onv_write_text(out, names->end);
        onv_write_text(out, "\"),\n");
    }
    onv_write_text(out, "# ]");
    if (plan->n_kept_ops > 0) onv_write_text(out, ", keep=[\n");
    for (uint32_t i = 0; i < plan->n_kept_ops; i++) {
        onv_write_text(out, "#     \"");
        onv_write_text(out, plan->kept[i]);
        onv_write_text(out, "\",\n");
    }
    if (plan->n_kept_ops > 0) onv_write_text(out, "# ]");
    if (plan->offload_until > 0 && plan->until == NULL) onv_write_text(out, ", offload=True");
    if (plan->until != NULL) {
        onv_write_text(out, ", offload=\"");
        onv_write_text(out, plan->until);
        onv_write_text(out, "\"");
    }
    onv_write_text(out, ")\n");
}

static void write_by_hand(onv_writer *out, const onv_training_plan *plan)
{
    for (uint32_t i = 0; i < plan->n_segments; i++) {
        if (plan->names[i].begin != NULL) continue;
        onv_write_format(
            out,
            "#: Segment %u is not in it, for nothing tells where in the code it stands: "
            "put what is between\n"
            "#: its nodes into a function and call checkpoint(function, x, "
            "use_reentrant=False).\n",
            (unsigned)i + 1);
    }
    if (plan->placed_peak_bytes == 0) return;
    onv_write_format(out,
                     "#: The lines alone reach a peak of %llu bytes, and run %llu "
                     "multiply-accumulates again.\n",
                     (unsigned long long)plan->placed_peak_bytes,
                     (unsigned long long)plan->placed_macs);
}

static void write_snippet(onv_writer *out, const onv_training_plan *plan)
{
    if (plan->sequential > 0) {
        write_sequential(out, plan);
        return;
    }
    if (plan->saves_on_cpu) {
        onv_write_text(out, saving);
        return;
    }
    if (plan->compiles) {
        write_compiled(out, plan);
        return;
    }
    uint32_t n_chains = 0, n_bordered = 0;
    for (uint32_t i = 0; i < plan->n_segments; i++) {
        n_chains += plan->names[i].is_chain;
        n_bordered += plan->names[i].begin != NULL;
    }
    bool moves = plan->offload_until > 0;
    if (moves || n_bordered > 0 || n_chains == plan->n_segments)
        onv_write_text(out, "#: In PyTorch, where `model` is the network:\n#\n");
    if (!plan->prunes && !moves && n_chains == plan->n_segments)
        write_chains(out, plan);
    else if (moves || n_bordered > 0)
        write_borders(out, plan);
    if (plan->n_by_hand > 0) write_by_hand(out, plan);
}

static void write_plan(onv_writer *out, const onv_training_plan *plan, bool chosen)
{
    onv_write_text(out, "plan");
    write_field(out, plan->name);
    onv_write_char(out, '\n');
    if (chosen) onv_write_text(out, "chosen\n");
    write_number(out, "peak_bytes", plan->figures.peak_bytes);
    write_number(out, "recompute_macs", plan->recomputed_macs);
    if (plan->saves_on_cpu || plan->offload_until > 0) {
        write_number(out, "offloaded_bytes", plan->figures.offloaded_bytes);
        write_number(out, "returned_bytes", plan->figures.returned_bytes);
        write_number(out, "host_bytes", plan->figures.pinned_bytes);
    }
    for (uint32_t i = 0; i < plan->n_segments; i++) {
        const onv_segment_names *names = &plan->names[i];
        onv_write_text(out, "segment");
        write_field(out, names->first);
        write_field(out, names->last);
        write_field(out, names->modules != NULL ? names->modules : "");
        onv_write_char(out, '\n');
    }
    for (uint32_t i = 0; i < plan->n_kept_ops; i++) {
        onv_write_text(out, "keep");
        write_field(out, plan->kept[i]);
        onv_write_char(out, '\n');
    }
    if (plan->offload_until > 0) {
        onv_write_text(out, "offload");
        write_field(out, plan->until != NULL ? plan->until : "");
        onv_write_char(out, '\n');
    }
    if (plan->compiles) onv_write_format(out, "compile\t%g\n", plan->memory_budget);
    if (plan->n_segments > 0 || plan->saves_on_cpu || plan->offload_until > 0 || plan->compiles)
        write_snippet(out, plan);
}

onv_status onv_format_checkpoints_begin(const onv_report_job *job)
{
    onv_write_text(job->out, "# onnxvram checkpointing plans, version 1\n");
    return ONV_OK;
}

onv_status onv_format_checkpoints_add(const onv_report_job *job)
{
    const onv_view *view = &job->views[0];
    const onv_training *t = view->training;
    onv_write_text(job->out, "model");
    write_field(job->out, view->model->path != NULL ? view->model->path : "");
    onv_write_char(job->out, '\n');
    for (uint32_t i = 0; t != NULL && i < t->n_plans; i++)
        if (t->chosen == ONV_NO_PLAN || t->chosen == i)
            write_plan(job->out, &t->plans[i], t->chosen == i);
    return ONV_OK;
}

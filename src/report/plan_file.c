/* Checkpointing plans for programs: docs/checkpointing.md describes the lines. */
#include "report/clean.h"
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

static void write_single_modules(onv_writer *out, const onv_training_plan *plan)
{
    onv_write_text(out, "#\n# In PyTorch:\n#\n"
                        "# from functools import partial\n"
                        "# from torch.utils.checkpoint import checkpoint\n"
                        "# for name in [\n");
    for (uint32_t i = 0; i < plan->n_segments; i++)
        if (plan->names[i].is_one) onv_write_format(out, "#     \"%s\",\n", plan->names[i].modules);
    onv_write_text(out, "# ]:\n"
                        "#     module = model.get_submodule(name)\n"
                        "#     module.forward = partial(checkpoint, module.forward, "
                        "use_reentrant=False)\n");
}

/* The names of modules are plain (names.h), so the snippet is what it looks like. */
static void write_snippet(onv_writer *out, const onv_training_plan *plan)
{
    uint32_t n_single = 0;
    for (uint32_t i = 0; i < plan->n_segments; i++) n_single += plan->names[i].is_one;
    if (n_single > 0) write_single_modules(out, plan);
    for (uint32_t i = 0; i < plan->n_segments; i++) {
        const onv_segment_names *names = &plan->names[i];
        if (names->is_one) continue;
        onv_write_format(out, "#\n# Segment %u ", (unsigned)i + 1);
        if (names->modules == NULL)
            onv_write_text(out, "is no whole number of modules: put the code between its nodes "
                                "into a function\n");
        else
            onv_write_format(out, "runs several modules: put them into one function:\n#   %s\n",
                             names->modules);
        onv_write_text(out, "# and call checkpoint(function, x, use_reentrant=False).\n");
    }
}

static void write_plan(onv_writer *out, const onv_training_plan *plan, bool chosen)
{
    onv_write_text(out, "plan");
    write_field(out, plan->name);
    onv_write_char(out, '\n');
    if (chosen) onv_write_text(out, "chosen\n");
    write_number(out, "peak_bytes", plan->figures.peak_bytes);
    write_number(out, "recompute_macs", plan->recomputed_macs);
    for (uint32_t i = 0; i < plan->n_segments; i++) {
        const onv_segment_names *names = &plan->names[i];
        onv_write_text(out, "segment");
        write_field(out, names->first);
        write_field(out, names->last);
        write_field(out, names->modules != NULL ? names->modules : "");
        onv_write_char(out, '\n');
    }
    if (plan->n_segments > 0) write_snippet(out, plan);
}

static onv_status write_plans(const onv_report_job *job)
{
    onv_write_text(job->out, "# onnxvram checkpointing plans, version 1\n");
    for (size_t m = 0; m < job->count; m++) {
        const onv_view *view = &job->views[m];
        const onv_training *t = view->training;
        onv_write_text(job->out, "model");
        write_field(job->out, view->model->path != NULL ? view->model->path : "");
        onv_write_char(job->out, '\n');
        for (uint32_t i = 0; t != NULL && i < t->n_plans; i++)
            if (t->chosen == ONV_NO_PLAN || t->chosen == i)
                write_plan(job->out, &t->plans[i], t->chosen == i);
    }
    return ONV_OK;
}

const onv_report_format onv_format_checkpoints = {
    .id = ONV_FORMAT_CHECKPOINTS,
    .name = "checkpoints",
    .summary = "checkpointing plans, for programs to apply",
    .write = write_plans,
};

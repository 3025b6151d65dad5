/* One checkpointing plan as a file: JSON for programs and --plan, or a module of Python. docs/checkpointing.md describes both. */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "report/clean.h"
#include "report/sections.h"
#include "report/units.h"

void onv_json_put_segments(onv_json *json, const onv_training_plan *plan, bool are_places)
{
    ONV_JSON_LIST(json, "segments", LINES)
        for (uint32_t i = 0; i < plan->does.n_segments; i++) {
            const onv_segment_names *names = &plan->names[i];
            onv_json_open(json, '[', ONV_JSON_INLINE);
            onv_json_string(json, are_places ? names->begin : names->first);
            onv_json_string(json, are_places ? names->end : names->last);
            onv_json_close(json);
        }
}

static void put_kept(onv_json *json, const onv_training_plan *plan)
{
    ONV_JSON_LIST(json, "keep", LINES)
        for (uint32_t i = 0; i < plan->does.n_kept_ops; i++) onv_json_string(json, plan->kept[i]);
}

void onv_json_put_memory_budget(onv_json *json, double budget)
{
    enum { MILLION = 1000000 };
    onv_json_put_ratio(json, "memory_budget", (uint64_t)(budget * MILLION + 0.5), MILLION);
}

/* Its members are literals of Python, too: no true, false or null is among them. */
void onv_json_put_plan(onv_json *json, const char *key, const onv_training_plan *plan)
{
    if (key != NULL) onv_json_key(json, key);
    onv_json_open(json, '{', ONV_JSON_LINES);
    onv_json_put_string(json, "form", onv_plan_form_names[plan->form]);
    if (plan->form == ONV_PLAN_SEQUENTIAL) onv_json_put_u64(json, "count", plan->does.sequential);
    if (plan->form == ONV_PLAN_COMPILE) onv_json_put_memory_budget(json, plan->does.memory_budget);
    if (plan->form == ONV_PLAN_MODULES) {
        ONV_JSON_LIST(json, "modules", LINES)
            for (uint32_t i = 0; i < plan->does.n_segments; i++)
                onv_json_string(json, plan->names[i].modules);
        if (plan->does.save != NULL) onv_json_put_string(json, "save", plan->does.save);
        if (plan->does.is_reentrant) onv_json_put_string(json, "checkpoint", "reentrant");
    }
    if (plan->form == ONV_PLAN_OPERATIONS) {
        onv_json_put_segments(json, plan, true);
        put_kept(json, plan);
        if (plan->until != NULL) onv_json_put_string(json, "offload", plan->until);
    }
    onv_json_close(json);
}

/* The chosen one, or the one to take without a budget. */
static onv_status find_plan(const onv_report_job *job, const onv_training_plan **plan)
{
    const onv_training *t = &job->views[0]->training;
    uint32_t index = t->n_plans == 0            ? ONV_NO_PLAN
                     : t->chosen != ONV_NO_PLAN ? t->chosen
                                                : onv_training_knee(t);
    if (index == ONV_NO_PLAN || job->count != 1)
        return onv_fail(job->err, ONV_ERR_USAGE, "a plan file has one plan of one model");
    *plan = &t->plans[index];
    return ONV_OK;
}

onv_status onv_format_checkpoints_write(onv_report_job *job)
{
    const onv_training_plan *plan;
    onv_json *json = &job->json;
    ONV_TRY(find_plan(job, &plan));
    onv_json_open(json, '{', ONV_JSON_LINES);
    onv_json_put_u64(json, "plan_version", 1);
    onv_json_put_string(json, "generator", "onnxvram " ONV_VERSION);
    onv_json_put_string(json, "model", job->views[0]->model.path);
    ONV_JSON_FIELDS(json, plan, id);
    ONV_JSON_FIELDS(json, &plan->does, name);
    ONV_JSON_FIELDS(json, &plan->figures, peak_bytes, reserved_peak_bytes);
    onv_json_put_u64(json, "recompute_macs", plan->does.recomputed_macs);
    onv_json_put_ratio(json, "overhead", plan->does.recomputed_macs, plan->pass_macs);
    onv_json_put_u64(json, "offloaded_bytes", plan->figures.offloaded_bytes);
    onv_json_put_plan(json, "apply", plan);
    onv_json_close(json);
    return ONV_OK;
}

/* --- Python ------------------------------------------------------------------------------------ */

/* The list of modules whose members are the rows, one each, in order: "encoder.layers" of "encoder.layers.0" and so on.
 * NULL: there is none. */
static const char *list_of(const onv_training_plan *plan, size_t *length)
{
    if (plan->form != ONV_PLAN_MODULES) return NULL;
    const char *first = plan->names[0].modules, *dot = strrchr(first, '.');
    *length = dot != NULL ? (size_t)(dot - first) : 0;
    for (uint32_t i = 0; i < plan->does.n_segments; i++) {
        char number[16];
        const char *name = plan->names[i].modules;
        snprintf(number, sizeof number, ".%u", (unsigned)i);
        bool is_next = dot != NULL && strncmp(name, first, *length) == 0 &&
                       strcmp(name + *length, number) == 0;
        if (!is_next) return NULL;
    }
    return first;
}

static void write_heading(const onv_report_job *job, const onv_training_plan *plan)
{
    onv_writer *out = job->out;
    const onv_view *view = job->views[0];
    size_t length;
    const char *list = list_of(plan, &length);
    onv_write_text(out, "# Activation checkpoints for ");
    onv_write_clean(out, onv_view_path(view), ONV_CLEAN_ASCII);
    onv_write_format(out, ": plan %s@%s of onnxvram " ONV_VERSION ".\n#\n", plan->does.name,
                     plan->id);
    onv_write_format(out,
                     "# Peak %s of tensors, %s reserved; %.1f %% of forward and backward run "
                     "again.\n# Call apply(network) once, before the first step.\n",
                     onv_label_bytes(plan->figures.peak_bytes).text,
                     onv_label_bytes(plan->figures.reserved_peak_bytes).text,
                     plan->pass_macs > 0
                         ? 100.0 * (double)plan->does.recomputed_macs / (double)plan->pass_macs
                         : 0);
    if (plan->form != ONV_PLAN_MODULES) return;
    onv_write_text(out, "# Each row of PLAN is under one torch.utils.checkpoint");
    if (plan->does.save != NULL)
        onv_write_format(out,
                         "; create_selective_checkpoint_contexts saves what the\n# operations of "
                         "these kinds give: %s",
                         plan->does.save);
    onv_write_text(out, ".\n");
    if (list == NULL || plan->does.save != NULL) return;
    onv_write_text(out, "# They are members of ");
    onv_write_bytes(out, list, length);
    onv_write_format(out,
                     ": if these are all, gradient_checkpointing_enable(\n"
                     "# {\"use_reentrant\": %s}) of transformers%s does the same.\n",
                     plan->does.is_reentrant ? "True" : "False",
                     plan->does.is_reentrant ? "" : " or set_grad_checkpointing() of timm");
}

onv_status onv_format_checkpoints_python_write(onv_report_job *job)
{
    const onv_training_plan *plan;
    ONV_TRY(find_plan(job, &plan));
    if (plan->n_by_hand > 0)
        return onv_fail(job->err, ONV_ERR_USAGE,
                        "the file does not say where in the code %u of the plan's %u segments "
                        "are: export with torch.onnx.export(..., dynamo=True), or write the plan "
                        "to a .json",
                        (unsigned)plan->n_by_hand, (unsigned)plan->does.n_segments);
    write_heading(job, plan);
    onv_write_text(job->out, "from onnxvram import recompute\n\nPLAN = ");
    onv_json_put_plan(&job->json, NULL, plan);
    onv_write_text(job->out, "\n\ndef apply(network):\n"
                             "    \"\"\"Makes the network train as the plan says, in place; "
                             "returns it.\"\"\"\n"
                             "    return recompute.apply(network, PLAN)\n");
    return ONV_OK;
}

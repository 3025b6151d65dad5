/* What can be asked of an analysis: figures, rows, reports. */
#include "api/analysis.h"
#include "api/sized.h"
#include "base/heap.h"
#include "load/limits.h"
#include "report/report.h"

void onv_analysis_summary_get(const onv_analysis *analysis, onv_summary *summary, size_t size)
{
    const onv_live *live = &analysis->live;
    onv_summary full = {
        .nodes = live->timeline.steps.count,
        .parameters = live->weight_elems,
        .trainable = live->trainable_elems,
        .parameter_bytes = live->weight_bytes,
        .macs = live->macs_known ? live->macs : 0,
        .input_bytes = live->input_bytes,
        .output_bytes = live->output_bytes,
        .activation_bytes = live->activation_bytes,
        .peak_bytes = live->peak_bytes,
        .peak_step = live->peak_step,
        .unknown_tensors = live->unknown,
        .free_dims = analysis->infer.free_dims.count,
        .sized = live->unknown == 0,
        .bounded = live->bounded > 0,
    };
    onv_give(summary, size, &full, sizeof full);
}

/* --- Tensors: values of the graph, in the order of the file ------------------------------------ */

size_t onv_analysis_tensor_count(const onv_analysis *analysis)
{
    return analysis->model.values.count;
}

static onv_tensor_kind kind_of(const onv_value *value)
{
    switch ((onv_value_kind)value->kind) {
    case ONV_VALUE_INITIALIZER: return ONV_TENSOR_INITIALIZER;
    case ONV_VALUE_CONSTANT: return ONV_TENSOR_CONSTANT;
    case ONV_VALUE_INPUT: return value->graph.index == 0 ? ONV_TENSOR_INPUT : ONV_TENSOR_ACTIVATION;
    case ONV_VALUE_ACTIVATION: break;
    }
    return value->graph.index == 0 && value->is_output ? ONV_TENSOR_OUTPUT : ONV_TENSOR_ACTIVATION;
}

static void add_lifetime(onv_tensor_info *info, const onv_buffer *interval)
{
    info->live = true;
    info->bytes = interval->sized ? interval->bytes : ONV_SIZE_UNKNOWN;
    info->first_step = interval->first;
    info->last_step = interval->last;
}

bool onv_analysis_tensor_get(const onv_analysis *analysis, size_t index, onv_tensor_info *info,
                             size_t size)
{
    const onv_model *model = &analysis->model;
    if (index >= model->values.count) return false;
    const onv_value *value = &model->values.at[index];
    /* Text is made on request, into the analysis' own arena: one analysis, one thread. */
    onv_arena *arena = model->dims.arena;
    const char *shape = onv_type_shape_text(&model->dims, arena, &value->type);
    onv_tensor_info full = {
        .name = value->name,
        .kind = kind_of(value),
        .dtype = onv_dtype_name((onv_dtype)value->type.dtype),
        .shape = shape != NULL ? shape : "[...]",
        .bytes = value->tensor != NULL ? value->tensor->bytes : ONV_SIZE_UNKNOWN,
        .bound = value->bound_used,
    };
    uint32_t row = analysis->live.of_value[index];
    if (row != UINT32_MAX) add_lifetime(&full, &analysis->live.timeline.buffers.at[row]);
    return onv_give(info, size, &full, sizeof full);
}

static const char *external_file(const onv_tensor *tensor)
{
    if (tensor == NULL || tensor->payload.kind != ONV_PAYLOAD_EXTERNAL) return NULL;
    return tensor->payload.location;
}

const char *onv_analysis_external_file(const onv_analysis *analysis)
{
    const onv_model *model = &analysis->model;
    const char *file = NULL;
    for (size_t i = 0; i < model->values.count && file == NULL; i++)
        file = external_file(model->values.at[i].tensor);
    for (size_t i = 0; i < model->nodes.count && file == NULL; i++) {
        const onv_node *node = &model->nodes.at[i];
        for (uint32_t k = 0; k < node->n_attrs && file == NULL; k++)
            if (node->attrs[k].kind == ONV_ATTR_TENSOR) file = external_file(node->attrs[k].tensor);
    }
    return file;
}

/* --- Runtimes ---------------------------------------------------------------------------------- */

size_t onv_analysis_runtime_count(const onv_analysis *analysis)
{
    return analysis->n_runtimes;
}

bool onv_analysis_runtime_get(const onv_analysis *analysis, size_t index, onv_runtime_info *info,
                              size_t size)
{
    if (index >= analysis->n_runtimes) return false;
    const onv_runtime_result *r = &analysis->runtimes[index];
    onv_runtime_info full = {
        .name = r->runtime->name,
        .summary = r->runtime->summary,
        .weight_bytes = r->weight_bytes,
        .activation_bytes = r->activation_bytes,
        .held_bytes = r->held_bytes,
        .driver_bytes = r->driver_bytes,
        .context_low = r->context_bytes.low,
        .context_high = r->context_bytes.high,
        .total_low = r->total_bytes.low,
        .total_high = r->total_bytes.high,
        .out_of_memory = r->out_of_memory,
    };
    return onv_give(info, size, &full, sizeof full);
}

bool onv_analysis_training_get(const onv_analysis *analysis, onv_training_info *info, size_t size)
{
    const onv_training *t = &analysis->training;
    if (t->optimizer == NULL) return false;
    onv_training_info full = {.optimizer = t->optimizer->name,
                              .loss = t->loss,
                              .parameter_bytes = t->figures.parameter_bytes,
                              .gradient_bytes = t->figures.gradient_bytes,
                              .optimizer_bytes = t->figures.optimizer_bytes,
                              .saved_activation_bytes = t->figures.saved_activation_bytes,
                              .peak_bytes = t->figures.peak_bytes,
                              .allocated_peak_bytes = t->figures.allocated_peak_bytes,
                              .reserved_peak_bytes = t->figures.reserved_peak_bytes};
    return onv_give(info, size, &full, sizeof full);
}

bool onv_analysis_checkpoint_get(const onv_analysis *analysis, size_t index,
                                 onv_checkpoint_info *info, size_t size)
{
    const onv_training *t = &analysis->training;
    if (index >= t->n_plans) return false;
    const onv_training_plan *plan = &t->plans[index];
    onv_checkpoint_info full = {.name = plan->name,
                                .peak_bytes = plan->figures.peak_bytes,
                                .saved_activation_bytes = plan->figures.saved_activation_bytes,
                                .allocated_peak_bytes = plan->figures.allocated_peak_bytes,
                                .reserved_peak_bytes = plan->figures.reserved_peak_bytes,
                                .recompute_macs = plan->recomputed_macs,
                                .pass_macs = plan->pass_macs,
                                .segments = plan->n_segments,
                                .chosen = index == t->chosen,
                                .offloaded_bytes = plan->figures.offloaded_bytes,
                                .returned_bytes = plan->figures.returned_bytes,
                                .host_bytes = plan->figures.pinned_bytes};
    return onv_give(info, size, &full, sizeof full);
}

bool onv_analysis_compiled_get(const onv_analysis *analysis, onv_compiled_info *info, size_t size)
{
    const onv_compiled *c = analysis->training.compiled;
    if (c == NULL) return false;
    onv_compiled_info full = {.budget = c->budget,
                              .saved_activation_bytes = c->saved_activation_bytes,
                              .peak_bytes = c->peak_bytes,
                              .recompute_macs = c->recomputed_macs,
                              .pass_macs = c->pass_macs,
                              .saved = c->n_saved};
    return onv_give(info, size, &full, sizeof full);
}

static onv_fit_info fit_info(const onv_fit *fit)
{
    return (onv_fit_info){.budget = fit->budget_bytes,
                          .usable = fit->usable_bytes,
                          .fits = fit->fits,
                          .max_batch = fit->has_max_batch ? fit->max_batch : 0};
}

bool onv_analysis_fit_get(const onv_analysis *analysis, onv_fit_info *info, size_t size)
{
    if (analysis->fit.budget_bytes == 0) return false;
    onv_fit_info full = fit_info(&analysis->fit);
    return onv_give(info, size, &full, sizeof full);
}

size_t onv_analysis_growth_count(const onv_analysis *analysis)
{
    return analysis->gate.n_rows;
}

bool onv_analysis_growth_get(const onv_analysis *analysis, size_t index, onv_growth_info *info,
                             size_t size)
{
    if (index >= analysis->gate.n_rows) return false;
    const onv_gate_row *row = &analysis->gate.rows[index];
    onv_growth_info full = {row->what, row->before, row->after, row->exceeds};
    return onv_give(info, size, &full, sizeof full);
}

size_t onv_analysis_device_count(const onv_analysis *analysis)
{
    return analysis->n_devices;
}

bool onv_analysis_device_get(const onv_analysis *analysis, size_t index, const char **name,
                             onv_fit_info *info, size_t size)
{
    if (index >= analysis->n_devices) return false;
    if (name != NULL) *name = analysis->devices[index].name;
    onv_fit_info full = fit_info(&analysis->devices[index].fit);
    return onv_give(info, size, &full, sizeof full);
}

bool onv_analysis_replay_get(const onv_analysis *analysis, onv_replay_info *info, size_t size)
{
    const onv_replays *r = &analysis->replays;
    if (r->kind == NULL) return false;
    onv_replay_info full;
    onv_replays_info(r, &full);
    return onv_give(info, size, &full, sizeof full);
}

/* --- Diagnostics ------------------------------------------------------------------------------- */

size_t onv_analysis_diagnostic_count(const onv_analysis *analysis)
{
    return analysis->model.diags.count;
}

bool onv_analysis_diagnostic_get(const onv_analysis *analysis, size_t index,
                                 onv_diagnostic *diagnostic, size_t size)
{
    if (index >= analysis->model.diags.count) return false;
    const onv_diag *diag = &analysis->model.diags.at[index];
    onv_diagnostic full = {
        .severity = diag->severity == ONV_WARNING ? "warning" : "note",
        .code = diag->code,
        .node = diag->node != NULL ? diag->node : "",
        .message = diag->message,
    };
    return onv_give(diagnostic, size, &full, sizeof full);
}

/* --- Reports ----------------------------------------------------------------------------------- */

static onv_view view_of(const onv_analysis *analysis)
{
    const onv_model *types = analysis->unbound != NULL ? analysis->unbound : &analysis->model;
    return (onv_view){
        .model = &analysis->model,
        .unbound = analysis->writes_onnx ? types : NULL,
        .infer = &analysis->infer,
        .live = &analysis->live,
        .largest = &analysis->largest,
        .formula = &analysis->formula,
        .order = &analysis->order,
        .runtimes = analysis->runtimes,
        .n_runtimes = analysis->n_runtimes,
        .rewritten = analysis->rewritten.model.graphs.count > 0 ? &analysis->rewritten : NULL,
        .rewritten_live = &analysis->rewritten_live,
        .dumps_rewritten = analysis->dumps_rewritten,
        .plan_offsets = analysis->plan_offsets,
        .plan_alignment = analysis->plan_alignment,
        .training = &analysis->training,
        .trained = &analysis->trained,
        .levers = &analysis->levers,
        .savings = &analysis->savings,
        .quantized = &analysis->quantized,
        .cache = &analysis->cache,
        .fit = &analysis->fit,
        .gate = &analysis->gate,
        .devices = analysis->devices,
        .n_devices = analysis->n_devices,
        .node_stats = &analysis->node_stats,
        .advice = &analysis->advice,
        .requests = &analysis->requests,
        .replays = &analysis->replays,
        .executions = &analysis->executions,
    };
}

void onv_report_options_init(onv_report_options *options, size_t size)
{
    onv_start(options, size);
}

static onv_status report(const onv_analysis *const *analyses, size_t count, onv_format format,
                         const onv_report_options *options, onv_write_fn write, void *context,
                         onv_error *error)
{
    /* The examples stand behind the models. */
    onv_view *views = onv_heap_calloc(count, 2 * sizeof *views);
    if (views == NULL) return onv_fail_memory(error);
    for (size_t i = 0; i < count; i++) {
        views[i] = view_of(analyses[i]);
        if (analyses[i]->example == NULL) continue;
        views[count + i] = view_of(analyses[i]->example);
        views[i].example = &views[count + i];
    }
    onv_status status = onv_report_write(views, count, format, options, write, context, error);
    onv_heap_free(views);
    return status;
}

/* What one of the analyses has left of its memory. */
static onv_watch most_left(const onv_analysis *const *analyses, size_t count)
{
    onv_watch most = {0};
    for (size_t i = 0; i < count; i++) {
        const onv_quota *has = &analyses[i]->watch.quota;
        if (i == 0 || has->limit - has->used > most.quota.limit - most.quota.used)
            most = analyses[i]->watch;
    }
    return most;
}

onv_status onv_report(const onv_analysis *const *analyses, size_t count, onv_format format,
                      const onv_report_options *options, onv_write_fn write, void *context,
                      onv_error *error)
{
    if (error != NULL) *error = (onv_error){0};
    onv_report_options complete = onv_report_options_default();
    if (options != NULL) onv_take(&complete, sizeof complete, options, options->struct_size);
    if (count == 0) return report(analyses, count, format, &complete, write, context, error);
    onv_watch watch = most_left(analyses, count);
    onv_quota *before = onv_watch_resume(&watch);
    onv_status status = report(analyses, count, format, &complete, write, context, error);
    status = onv_watch_verdict(&watch, status, error);
    onv_watch_leave(&watch, before);
    return status;
}

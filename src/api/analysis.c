/* The public functions: they compose the passes and own their results. */
#include <string.h>

#include "base/heap.h"
#include "infer/infer.h"
#include "ir/check.h"
#include "live/live.h"
#include "load/load.h"
#include "report/report.h"

struct onv_analysis {
    onv_model model;
    onv_infer_info infer;
    onv_live live;
};

const char *onv_version(void)
{
    return ONV_VERSION;
}

/* Options of an older header are shorter; what they lack is zero, the default. */
static onv_options complete_options(const onv_options *given)
{
    onv_options options = onv_options_default();
    if (given == NULL) return options;
    size_t size = given->struct_size < sizeof options ? given->struct_size : sizeof options;
    memcpy(&options, given, size);
    options.struct_size = sizeof options;
    return options;
}

/* The passes after loading. */
static onv_status analyse(onv_analysis *analysis, const onv_options *options, onv_error *err)
{
    ONV_TRY(onv_graph_check(&analysis->model, err));
    ONV_TRY(onv_infer(&analysis->model, options, &analysis->infer, err));
    onv_status status = onv_live_compute(&analysis->model, NULL, &analysis->live, err);
    if (status != ONV_OK) onv_infer_info_cleanup(&analysis->infer);
    return status;
}

typedef struct source {
    const char *path;
    const void *data; /* NULL: read the path */
    size_t bytes;
} source;

static onv_status create(const source *from, const onv_options *given, onv_analysis **result,
                         onv_error *err)
{
    *result = NULL;
    if (err != NULL) *err = (onv_error){0};
    onv_options options = complete_options(given);
    onv_analysis *analysis = onv_heap_calloc(1, sizeof *analysis);
    if (analysis == NULL) return onv_fail_memory(err);
    onv_status status = from->data != NULL
                            ? onv_load_memory(from->data, from->bytes, from->path, &options.limits,
                                              &analysis->model, err)
                            : onv_load(from->path, &options.limits, &analysis->model, err);
    if (status == ONV_OK) {
        status = analyse(analysis, &options, err);
        if (status != ONV_OK) onv_model_cleanup(&analysis->model);
    }
    if (status != ONV_OK) {
        onv_heap_free(analysis);
        return status;
    }
    *result = analysis;
    return ONV_OK;
}

onv_status onv_analysis_new(const char *path, const onv_options *options, onv_analysis **analysis,
                            onv_error *error)
{
    return create(&(source){.path = path}, options, analysis, error);
}

onv_status onv_analysis_new_from_memory(const void *data, size_t bytes, const char *name,
                                        const onv_options *options, onv_analysis **analysis,
                                        onv_error *error)
{
    return create(&(source){name, data != NULL ? data : "", bytes}, options, analysis, error);
}

void onv_analysis_destroy(onv_analysis *analysis)
{
    if (analysis == NULL) return;
    onv_infer_info_cleanup(&analysis->infer);
    onv_model_cleanup(&analysis->model);
    onv_heap_free(analysis);
}

void onv_analysis_summary(const onv_analysis *analysis, onv_summary *summary)
{
    const onv_live *live = &analysis->live;
    onv_summary full = {
        .struct_size = sizeof full,
        .nodes = live->n_steps,
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
    size_t size = summary->struct_size < sizeof full ? summary->struct_size : sizeof full;
    full.struct_size = summary->struct_size;
    memcpy(summary, &full, size);
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

bool onv_analysis_tensor(const onv_analysis *analysis, size_t index, onv_tensor_info *info)
{
    const onv_model *model = &analysis->model;
    if (index >= model->values.count) return false;
    const onv_value *value = &model->values.at[index];
    /* Text is made on request, into the analysis' own arena: one analysis, one thread. */
    onv_arena *arena = model->dims.arena;
    const char *shape = onv_type_shape_text(&model->dims, arena, &value->type);
    *info = (onv_tensor_info){
        .name = value->name,
        .kind = kind_of(value),
        .dtype = onv_dtype_name((onv_dtype)value->type.dtype),
        .shape = shape != NULL ? shape : "[...]",
        .bytes = value->tensor != NULL ? value->tensor->bytes : ONV_SIZE_UNKNOWN,
        .bound = value->bound_used,
    };
    uint32_t row = analysis->live.of_value[index];
    if (row == UINT32_MAX) return true;
    const onv_interval *interval = &analysis->live.intervals[row];
    info->live = true;
    info->bytes = interval->sized ? interval->bytes : ONV_SIZE_UNKNOWN;
    info->first_step = interval->first;
    info->last_step = interval->last;
    return true;
}

size_t onv_analysis_diagnostic_count(const onv_analysis *analysis)
{
    return analysis->model.diags.count;
}

bool onv_analysis_diagnostic(const onv_analysis *analysis, size_t index, onv_diagnostic *diagnostic)
{
    if (index >= analysis->model.diags.count) return false;
    const onv_diag *diag = &analysis->model.diags.at[index];
    *diagnostic = (onv_diagnostic){
        .severity = diag->severity == ONV_WARNING ? "warning" : "note",
        .code = diag->code,
        .node = diag->node != NULL ? diag->node : "",
        .message = diag->message,
    };
    return true;
}

/* --- Reports ----------------------------------------------------------------------------------- */

onv_status onv_report(const onv_analysis *const *analyses, size_t count, onv_format format,
                      const onv_report_options *options, onv_write_fn write, void *context,
                      onv_error *error)
{
    if (error != NULL) *error = (onv_error){0};
    onv_report_options complete = onv_report_options_default();
    if (options != NULL) {
        size_t size =
            options->struct_size < sizeof complete ? options->struct_size : sizeof complete;
        memcpy(&complete, options, size);
        complete.struct_size = sizeof complete;
    }
    onv_view *views = onv_heap_calloc(count, sizeof *views);
    if (views == NULL) return onv_fail_memory(error);
    for (size_t i = 0; i < count; i++)
        views[i] = (onv_view){&analyses[i]->model, &analyses[i]->infer, &analyses[i]->live};
    onv_status status = onv_report_write(views, count, format, &complete, write, context, error);
    onv_heap_free(views);
    return status;
}

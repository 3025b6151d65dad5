/* The model as it is, with nothing bound: what the file that is written has, and what contradicts itself. */
#include "api/analysis.h"

#include "base/fail.h"
#include "base/heap.h"
#include "ir/check.h"
#include "load/load.h"
#include "program/view.h"

static onv_status infer(onv_model *model, const onv_options *how, onv_error *err)
{
    onv_infer_info info = {0};
    ONV_TRY(onv_graph_check(model, err));
    onv_status status = onv_infer(model, how, &info, err);
    onv_infer_info_cleanup(&info);
    if (status == ONV_OK && (model->arena.failed || model->dims.failed))
        return onv_fail_memory(err);
    return status;
}

/* On failure there is nothing to clean up. */
static onv_status infer_unbound(const onv_model *from, const onv_options *options, onv_model *model,
                                onv_error *err)
{
    onv_options how = *options;
    how.batch = 0;
    how.n_dims = how.n_shapes = how.n_input_values = 0;
    ONV_TRY(onv_load_again(from, options->limits, model, err));
    model->no_external_data = options->no_external_data;
    onv_status status = infer(model, &how, err);
    if (status != ONV_OK) onv_model_cleanup(model);
    return status;
}

/* By node; NULL where none does, or where that cannot be said. */
static bool *find_contradictions(const onv_model *model, const onv_options *options)
{
    onv_model unbound;
    if (infer_unbound(model, options, &unbound, NULL) != ONV_OK) return NULL;
    bool *marks = onv_heap_calloc(unbound.nodes.count, sizeof *marks), any = false;
    for (size_t i = 0; marks != NULL && i < unbound.nodes.count; i++)
        any |= marks[i] = unbound.nodes.at[i].contradicts;
    onv_model_cleanup(&unbound);
    if (any) return marks;
    onv_heap_free(marks);
    return NULL;
}

/* The view of a program has its types, and symbols among them. */
static onv_status infer_view(onv_analysis *analysis, const onv_options *options, onv_error *err)
{
    onv_model *model = &analysis->model;
    const onv_dim *sizes;
    ONV_TRY(onv_infer_bind(model, options, &analysis->infer, &sizes, err));
    onv_status status = onv_program_bind(model, sizes, err);
    onv_infer_find_unknown(model, &analysis->infer);
    if (status != ONV_OK) onv_infer_info_cleanup(&analysis->infer);
    return status;
}

/* Where the model contradicts the sizes that are asked for, it may contradict itself without them. */
onv_status onv_analysis_infer(const onv_request *from, const onv_options *options,
                              onv_analysis *analysis, onv_error *err)
{
    if (analysis->model.program != NULL) return infer_view(analysis, options, err);
    onv_status status = onv_infer(&analysis->model, options, &analysis->infer, err);
    if ((status == ONV_ERR_MODEL || status == ONV_ERR_USAGE) && from->contradicts == NULL &&
        !options->strict && onv_infer_has_sizes(options))
        analysis->making->contradicts = find_contradictions(&analysis->model, options);
    return status;
}

onv_status onv_analysis_infer_unbound(const onv_options *options, onv_analysis *analysis,
                                      onv_error *err)
{
    analysis->writes_onnx = options->onnx_out;
    if (!options->onnx_out) return ONV_OK;
    if (options->precision != ONV_PRECISION_AS_EXPORTED)
        return onv_fail(err, ONV_ERR_USAGE,
                        "the file that is written keeps the types of its weights: leave the "
                        "precision out");
    if (!onv_infer_has_sizes(options)) return ONV_OK;
    onv_model *model = ONV_ARENA_ARRAY(&analysis->making->arena, onv_model, 1);
    if (model == NULL) return onv_fail_memory(err);
    ONV_TRY(infer_unbound(&analysis->model, options, model, err));
    analysis->unbound = model;
    return ONV_OK;
}

/* From a file, a buffer or what was read before to a model whose sizes are inferred; and once more with nothing bound: what the
 * file that is written has, and what contradicts itself. */
#include "api/analysis.h"

#include "base/fail.h"
#include "base/heap.h"
#include "ir/check.h"
#include "load/load.h"
#include "program/load.h"
#include "program/view.h"

/* Whether more analyses of the model may follow for each of which it is copied, not read again. */
static bool is_asked_again(const onv_options *options)
{
    return options->savings || options->example || options->formulas || options->max_batch ||
           options->remedies || options->timelines || options->n_budgets > 1;
}

/* A model before inference once more, with what loading had to say. */
static onv_status copy_loaded(const onv_model *from, onv_model *to, onv_error *err)
{
    ONV_TRY(onv_model_copy(from, to, err));
    to->dropped_diags = from->dropped_diags;
    for (size_t i = 0; i < from->diags.count; i++)
        if (!onv_vec_push(&to->diags, from->diags.at[i])) {
            onv_model_cleanup(to);
            return onv_fail_memory(err);
        }
    return ONV_OK;
}

/* A file of ONNX, or a program of PyTorch, whose view is analysed as a model is. */
static onv_status load_either(const onv_request *from, const onv_options *options, onv_model *model,
                              onv_error *err)
{
    onv_program_mode mode = options->train != NULL ? ONV_PROGRAM_TRAINING : ONV_PROGRAM_INFERENCE;
    const onv_program_file file = {from->path, from->data, from->bytes};
    bool is_program;
    ONV_TRY(onv_program_is(&file, options->limits, &is_program, err));
    if (is_program) return onv_program_load(&file, options->limits, mode, model, err);
    return from->data != NULL
               ? onv_load_memory(from->data, from->bytes, from->path, options->limits, model, err)
               : onv_load(from->path, options->limits, model, err);
}

onv_status onv_analysis_load(const onv_request *from, const onv_options *options,
                             onv_analysis *analysis, onv_error *err)
{
    onv_model *model = &analysis->model;
    onv_status status = from->loaded != NULL ? copy_loaded(from->loaded, model, err)
                                             : load_either(from, options, model, err);
    if (status != ONV_OK) *model = (onv_model){0}; /* there is nothing to clean up */
    ONV_TRY(status);
    for (size_t i = 0; from->contradicts != NULL && i < model->nodes.count; i++)
        model->nodes.at[i].contradicts = from->contradicts[i];
    if (from->loaded != NULL || !is_asked_again(options)) return ONV_OK;
    onv_making *making = analysis->making;
    onv_model *loaded = making->loaded = ONV_ARENA_ARRAY(&making->arena, onv_model, 1);
    if (loaded == NULL) return onv_fail_memory(err);
    status = copy_loaded(model, loaded, err);
    if (status != ONV_OK) *loaded = (onv_model){0};
    return status;
}

void onv_analysis_forget_loaded(onv_analysis *analysis)
{
    onv_making *m = analysis->making;
    if (m->loaded != NULL) onv_model_cleanup(m->loaded);
    onv_eager_views_cleanup(&m->loaded_views);
    m->loaded = NULL;
}

/* --- Inference --------------------------------------------------------------------------------- */

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

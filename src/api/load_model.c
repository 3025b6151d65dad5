/* From a file, a buffer or what was read before to the model before inference. */
#include "api/analysis.h"

#include "base/fail.h"
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

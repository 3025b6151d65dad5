#include "api/unbound.h"

#include "base/fail.h"
#include "base/heap.h"
#include "ir/check.h"
#include "load/load.h"

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

onv_status onv_analysis_infer_unbound(const onv_options *options, onv_analysis *analysis,
                                      onv_error *err)
{
    analysis->writes_onnx = options->onnx_out;
    if (!options->onnx_out) return ONV_OK;
    if (options->precision != ONV_PRECISION_AS_EXPORTED)
        return onv_fail(err, ONV_ERR_USAGE,
                        "the file that is written keeps the types of its weights: leave the "
                        "precision out");
    if (options->batch == 0 && options->n_dims == 0 && options->n_shapes == 0 &&
        options->n_input_values == 0)
        return ONV_OK;
    const onv_model *from = &analysis->model;
    onv_options how = *options;
    how.batch = 0;
    how.n_dims = how.n_shapes = how.n_input_values = 0;
    onv_model *model = onv_heap_calloc(1, sizeof *model);
    if (model == NULL) return onv_fail_memory(err);
    onv_status status = onv_load_again(from, options->limits, model, err);
    if (status == ONV_OK) {
        model->no_external_data = options->no_external_data;
        status = infer(model, &how, err);
        if (status == ONV_OK)
            analysis->unbound = model;
        else
            onv_model_cleanup(model);
    }
    if (status != ONV_OK) onv_heap_free(model);
    return status;
}

void onv_analysis_forget_unbound(onv_analysis *analysis)
{
    if (analysis->unbound == NULL) return;
    onv_model_cleanup(analysis->unbound);
    onv_heap_free(analysis->unbound);
    analysis->unbound = NULL;
}

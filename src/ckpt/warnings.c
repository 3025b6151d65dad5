/* What makes the figures of training less than exact, as diagnostics of the model. */
#include <string.h>

#include "ckpt/warnings.h"
#include "program/view.h"

/* What the export hides from training. */
void onv_training_warn(onv_model *model, const onv_training_options *options,
                       const onv_training *result)
{
    if (result->folded_norms > 0)
        onv_model_diag(model, ONV_WARNING, "folded-batch-norm", NULL,
                       "batch norms seem folded into %u convolutions; export with "
                       "training=TrainingMode.TRAINING to see what training keeps for them",
                       result->folded_norms);
    if (model->listed.n_parameters == 0 && strcmp(onv_program_evidence(model), "graph") == 0)
        onv_model_diag(
            model, ONV_WARNING, "no-notes", NULL,
            "the file notes none of PyTorch's calls, as files of the older exporter do not: what "
            "runs again (torch.utils.checkpoint), functions with a backward of their own, which "
            "operations were one call, and layers whose results nothing reads are not seen; "
            "torch.onnx.export(..., dynamo=True, dump_exported_program=True) writes the program "
            "that has them; --missing-parameters N counts the parameters of such layers, where N "
            "is the "
            "sum of p.numel() for p in model.parameters()");
    if (result->restored_norms > 0)
        onv_model_diag(model, ONV_NOTE, "restored-batch-norm", NULL,
                       "the export folded batch norms into %u nodes; they are counted as its notes "
                       "say",
                       result->restored_norms);
    if (result->reserve_bytes > 0)
        onv_model_diag(
            model, ONV_NOTE, "recurrent-reserve", NULL,
            "cuDNN keeps %llu bytes for %u recurrent layers in addition to their tensors",
            (unsigned long long)result->reserve_bytes, result->recurrent);
    if (result->opaque > 0)
        onv_model_diag(model, ONV_WARNING, "training-opaque", NULL,
                       "of %u nodes (control flow or unknown) only outputs are counted",
                       result->opaque);
    if (options->train.weights != NULL && result->figures.parts.quantized_bytes == 0)
        onv_model_diag(model, ONV_WARNING, "nothing-quantized", NULL,
                       "no weight is quantized: that is for linear layers that are not trained "
                       "(--freeze, --train-only), the last one excepted");
    if (result->figures.trained_elems == 0)
        onv_model_diag(model, ONV_WARNING, "training-nothing", NULL,
                       "no parameter is trained: there are no gradients");
}

void onv_training_warn_of_units(onv_model *model, const onv_training_options *how, uint32_t n_units)
{
    if (how->train.parallel == ONV_PARALLEL_FSDP && n_units == 0)
        onv_model_diag(model, ONV_WARNING, "fsdp-units", NULL,
                       "no repeated modules were found: all parameters are gathered at once; "
                       "--fsdp=PATTERN names the modules that fully_shard() is called with");
}

/* Plans that recompute.py refuses on a network with shards. */
void onv_training_warn_of_shards(onv_model *model, const onv_training *t)
{
    uint32_t n = 0, first = 0;
    for (uint32_t i = 0; i < t->n_plans; i++) {
        const onv_training_plan *plan = &t->plans[i];
        bool is_refused = plan->form == ONV_PLAN_OPERATIONS;
        for (uint32_t k = 0; k < plan->does.n_segments && plan->form == ONV_PLAN_MODULES; k++)
            is_refused |= plan->names[k].n_modules > 1;
        if (is_refused && n++ == 0) first = i;
    }
    if (n > 0)
        onv_model_diag(
            model, ONV_WARNING, "fsdp-plans", NULL,
            "FSDP frees the parameters that segments between modules, and rows of several "
            "modules, would run again from: %u of %u plans (%s and others) are refused "
            "when they are applied; --checkpoint blocks has one module a segment",
            (unsigned)n, (unsigned)t->n_plans, t->plans[first].id);
}

void onv_training_warn_of_locals(onv_model *model, const onv_training *result)
{
    uint64_t peak = result->figures.peak_bytes, locals = result->most.peak_bytes;
    if (!onv_is_news(peak, locals)) { /* another step may be the peak of tensors and workspaces */
        peak = result->figures.requested_peak_bytes;
        locals = result->most.requested_peak_bytes;
    }
    if (!onv_is_news(peak, locals)) return;
    onv_model_diag(
        model, ONV_WARNING, "python-locals", NULL,
        "variables of the network's Python code may hold tensors until its functions "
        "return: the peak is from %llu to %llu bytes, which the file does not say; "
        "--locals counts the upper end. What a function other than forward computes and "
        "nothing reads, as the second result of f(x)[0], is not in the file: it comes on top. Nor "
        "are its calls of torch.utils.checkpoint: what they run counts as kept. Statements on one "
        "line (a = f(x); b = g(a)) hide which name holds what; a recording (onnxvram.record) "
        "knows all of this",
        (unsigned long long)peak, (unsigned long long)locals);
}

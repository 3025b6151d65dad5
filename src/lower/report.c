/* What is said of a lowering once it is done: what the export hides, and what was counted in its place.
 *
 * Takes the tape and the state of all passes. Gives diagnostics alone. */
#include <string.h>

#include "base/checked.h"
#include "emit/encoder.h"
#include "lower/lowering.h"
#include "ops/op.h"

/* Modules that have fused kernels of their own for inference. */
static const onv_node *find_fast_path(const onv_model *model)
{
    static const char *const classes[] = {"torch.nn.modules.transformer.TransformerEncoderLayer",
                                          "torch.nn.modules.activation.MultiheadAttention"};
    for (size_t k = 0; k < sizeof classes / sizeof classes[0]; k++)
        for (size_t i = 0; i < model->nodes.count; i++) {
            const char *around = model->nodes.at[i].call_classes;
            if (around != NULL && strstr(around, classes[k]) != NULL) return &model->nodes.at[i];
        }
    return NULL;
}

static void report_inference(onv_lowering *l)
{
    const onv_eager *e = l->emit.eager;
    onv_signature_report(l);
    const onv_node *fast = find_fast_path(l->emit.model);
    if (l->fusions.n_fast_layers > 0)
        onv_model_diag(l->emit.model, ONV_NOTE, "fast-path", fast != NULL ? fast->name : NULL,
                       "%u layers of nn.TransformerEncoder or nn.MultiheadAttention are counted "
                       "as PyTorch runs them in inference, by one call each (the fast path); "
                       "--no-fast-path counts the operations of the export",
                       l->fusions.n_fast_layers);
    else if (fast != NULL && onv_emit_takes_fast_path(&l->emit))
        onv_model_diag(
            l->emit.model, ONV_NOTE, "fast-path", fast->name,
            "in inference PyTorch may run nn.MultiheadAttention and "
            "nn.TransformerEncoderLayer by fused kernels (the fast path), which take less "
            "memory than the operations of the export, which are counted");
    if (e->restored_norms > 0)
        onv_model_diag(
            l->emit.model, ONV_NOTE, "folded-norms", e->first_restored->name,
            "eager PyTorch runs %u batch norms that the exporter folded into convolutions "
            "or products, this one first: their results, %llu bytes together, are counted; "
            "--folded-norms leaves them out",
            e->restored_norms, (unsigned long long)e->restored_bytes);
}

/* What the first operation of such a call reads is what its caller may have cloned before. */
static void report_caches(const onv_lowering *l)
{
    const onv_node *first = NULL;
    const char *scope = NULL;
    uint64_t bytes = 0;
    uint32_t calls = 0;
    for (uint32_t i = 0; i < l->live->timeline.steps.count; i++) {
        const onv_node *node = onv_model_node(l->emit.model, l->live->timeline.steps.at[i].node);
        bool is_call = onv_noted(node)->cache_call != NULL && node->scope != scope &&
                       node->n_inputs > 0 && onv_is_value(node->inputs[0]);
        if (node->graph.index == 0) scope = node->scope;
        uint32_t tensor = is_call ? l->values[node->inputs[0].index].tensor : ONV_NO_TENSOR;
        if (!is_call || tensor == ONV_NO_TENSOR) continue;
        if (calls++ == 0) first = node;
        if (!onv_u64_add(bytes, onv_tensor_at(&l->emit, tensor).bytes, &bytes)) bytes = UINT64_MAX;
    }
    if (calls > 0)
        onv_model_diag(
            l->emit.model, ONV_WARNING, "cached-calls", first->name,
            "%u calls of modules, '%s' first, are given a member of a list or dictionary called a "
            "cache, in which networks of video keep clones of frames until the next pass; what "
            "nothing reads there is not in the file: up to %llu bytes, all that these calls read, "
            "are to be added to the figures; torch.onnx.export(..., dump_exported_program=True) "
            "writes the program that has them",
            calls, first->scope, (unsigned long long)bytes);
}

/* What modules were told when they were built. */
static void report_settings(const onv_lowering *l)
{
    uint32_t lost = l->fusions.n_lost_dropouts;
    if (lost > 0 && l->emit.options->attention_dropout < 0)
        onv_model_diag(l->emit.model, ONV_WARNING, "attention-dropout", NULL,
                       "the exporter leaves out the dropout of scaled_dot_product_attention (%u "
                       "calls), which would keep %llu bytes; --attention-dropout P adds it, 0 says "
                       "that there was none",
                       lost, (unsigned long long)l->tally.lost_dropout.bytes);
    if (l->tally.activations.count > 0 && l->emit.options->n_inplace == 0)
        onv_model_diag(l->emit.model, ONV_WARNING, "activation-inplace", NULL,
                       "%u activations are counted with a result of their own; if the network has "
                       "them in place, it keeps up to %llu bytes less: --inplace, or "
                       "--inplace=PATTERN for modules",
                       l->tally.activations.count, (unsigned long long)l->tally.activations.bytes);
    if (l->tally.built_in_place.count > 0)
        onv_model_diag(
            l->emit.model, ONV_NOTE, "library-inplace", NULL,
            "%u activations overwrite their input, as the layers of timm and torchvision "
            "that they are in are built so by default: --inplace=PATTERN names those of "
            "a network that was built otherwise",
            l->tally.built_in_place.count);
    if (l->asks_for_gradient != NULL)
        onv_model_diag(
            l->emit.model, ONV_NOTE, "input-gradient", l->asks_for_gradient->name,
            "'%s' asks for a gradient of what it is given, as transformers writes it for "
            "checkpointing: %llu bytes, which live as long as the loss; --freeze %s if it is "
            "frozen",
            l->asks_for_gradient->scope, (unsigned long long)l->tally.input_gradient.bytes,
            l->asks_for_gradient->scope);
}

/* Of graphs inside the network's the file does not say whether torch.no_grad() or torch.autocast() made them. */
static void report_inner_graphs(const onv_lowering *l)
{
    const onv_node *first = NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->emit.model->nodes.count; i++) {
        const onv_node *node = &l->emit.model->nodes.at[i];
        if (onv_noted(node)->inner_graph == NULL || onv_noted(node)->n_parameters == 0) continue;
        if (n++ == 0) first = node;
    }
    if (n > 0)
        onv_model_diag(l->emit.model, ONV_WARNING, "inner-graph", first->name,
                       "%u nodes with parameters, this one first, came from graphs inside the "
                       "network's, as torch.no_grad() or torch.autocast() makes them: they are "
                       "counted with gradient, and keep more than under no_grad; "
                       "torch.onnx.export(..., dump_exported_program=True) writes the program, "
                       "which says so",
                       n);
}

/* Calls that are not in the file as PyTorch made them. */
static void report_calls(const onv_lowering *l)
{
    if (l->fusions.n_functions > 0)
        onv_model_diag(
            l->emit.model, ONV_WARNING, "autograd-function", NULL,
            "%u calls of torch.autograd.Functions (%s): their inputs alone are counted as "
            "kept; what their forward saves is not in the file",
            l->fusions.n_functions, l->fusions.function);
    if (l->fusions.n_functions_apart > 0)
        onv_model_diag(l->emit.model, ONV_WARNING, "autograd-function", NULL,
                       "%u nodes belong to torch.autograd.Functions (%s), and are counted as if "
                       "autograd kept what their derivatives read; what their forward saves is not "
                       "in the file",
                       l->fusions.n_functions_apart, l->fusions.function);
}

/* A reading that decides over more than 2 % of what is kept is to be seen. */
enum { ONE_IN = 50 };

static void report_reading(onv_lowering *l, const char *code, const onv_tally *tally,
                           const char *reading, const char *other)
{
    uint64_t kept = 0;
    if (tally->count == 0 || l->emit.status != ONV_OK) return;
    l->emit.status = onv_eager_saved(l->emit.model, l->emit.eager, &kept, NULL, l->emit.err);
    onv_model_diag(l->emit.model, tally->bytes > kept / ONE_IN ? ONV_WARNING : ONV_NOTE, code, NULL,
                   "%u %s: %llu bytes %s", tally->count, reading, (unsigned long long)tally->bytes,
                   other);
}

/* Sums with 0 and products with 1: each makes a tensor, which its reader may keep. */
static onv_tally count_removed(const onv_lowering *l)
{
    onv_tally removed = {0};
    for (uint32_t i = 0; i < l->emit.model->nodes.count; i++) {
        const onv_node *node = &l->emit.model->nodes.at[i];
        for (uint32_t k = 0; k < node->n_inputs && k < 32 && node->graph.index == 0; k++) {
            bool is_told =
                (onv_noted(node)->neutral & ONV_BIT(k)) != 0 && onv_is_value(node->inputs[k]);
            uint32_t tensor = is_told ? l->values[node->inputs[k].index].tensor : ONV_NO_TENSOR;
            if (tensor == ONV_NO_TENSOR) continue;
            uint64_t bytes = onv_tensor_at(&l->emit, tensor).bytes;
            removed.count++;
            if (!onv_u64_add(removed.bytes, bytes, &removed.bytes)) removed.bytes = UINT64_MAX;
        }
    }
    return removed;
}

/* Where the file can be read in two ways. */
static void report_readings(onv_lowering *l)
{
    onv_tally removed = count_removed(l), merged = onv_merged_calls(l);
    report_reading(
        l, "removed-calls", &removed,
        "calls that change nothing, as x + 0 and x * 1, were removed by the exporter, and are not "
        "counted; torch.onnx.export(..., dump_exported_program=True) writes the program that has "
        "them: PyTorch keeps up to",
        "more");
    report_reading(
        l, "merged-calls", &merged,
        "calls that are equal to others were merged by the exporter, as gaps in the numbers of "
        "calls "
        "and names of arguments say, and are counted once; torch.onnx.export(..., "
        "dump_exported_program=True) writes the program that has them: PyTorch keeps up to",
        "more");
    if (l->emit.unreached.count > 0)
        onv_model_diag(
            l->emit.model, ONV_NOTE, "no-gradient", NULL,
            "%u parameters ('%s' first), %llu bytes, get no gradient and no state: no operation "
            "with a derivative leads from them to the loss",
            l->emit.unreached.count, l->emit.unreached.first,
            (unsigned long long)l->emit.unreached.bytes);
    if (l->fusions.n_by_form > 0)
        onv_model_diag(
            l->emit.model, ONV_NOTE, "by-form", NULL,
            "%u groups of nodes ('%s' first) have the form in which PyTorch's exporter "
            "writes one operation, and are counted as one; the same written by hand would "
            "keep other tensors",
            l->fusions.n_by_form, l->fusions.by_form);
    report_reading(l, "reciprocal", &l->tally.quotients,
                   "reciprocals inside functions are counted as 1 / x, which multiplies them by "
                   "the number; were they torch.reciprocal(x), PyTorch would keep",
                   "less at most");
    report_reading(l, "silu", &l->tally.gates,
                   "products x * sigmoid(x) are counted as F.silu, which the older exporter writes "
                   "so; were they written by hand, PyTorch would keep the sigmoids too",
                   "more");
    report_reading(l, "gelu", &l->tally.gelus,
                   "formulas of GELU are counted as F.gelu, which the older exporter writes so "
                   "before opset 20; were they written by hand, PyTorch would keep",
                   "more");
    report_reading(l, "reduce-max", &l->tally.maxima,
                   "ReduceMax or ReduceMin keep input and result, as amax does; were they "
                   "torch.max(x, dim), PyTorch would keep indices",
                   "less");
}

void onv_lowering_report(onv_lowering *l)
{
    if (l->emit.benchmark_high > 0)
        onv_model_diag(
            l->emit.model, ONV_WARNING, "cudnn-benchmark", NULL,
            "which kernel is the fastest only the GPU can say: after the first iteration a "
            "convolution takes from 0 to %llu bytes of workspace; what cuDNN's heuristics "
            "choose is counted",
            (unsigned long long)l->emit.benchmark_high);
    onv_attention_report(l);
    report_caches(l);
    if (l->emit.options->inference) {
        report_inference(l);
        return;
    }
    onv_weights_report(l);
    onv_cells_report(l);
    report_inner_graphs(l);
    onv_exported_report(l);
    onv_parts_report(l);
    onv_checkpointed_report(l);
    report_settings(l);
    report_calls(l);
    report_readings(l);
}

/* What is said of a lowering once it is done: what the export hides, and what was counted in its place. Rows of said.def.
 *
 * Takes the tape and the state of all passes. Gives diagnostics alone. */
#include <string.h>

#include "base/checked.h"
#include "emit/encoder.h"
#include "lower/lowering.h"
#include "ops/op.h"

/* --- What passes did not say ------------------------------------------------------------------- */

static void say_once(onv_emitter *e, onv_said row, uint32_t n, const char *first, uint64_t bytes,
                     const onv_node *node)
{
    e->said[row] = (onv_saying){.of = {n, bytes, first}, .node = node};
}

/* Modules that have fused kernels of their own for inference. */
static const onv_node *find_fast_path(const onv_model *model)
{
    static const char *const classes[] = {"torch.nn.modules.transformer.TransformerEncoderLayer",
                                          "torch.nn.modules.activation.MultiheadAttention"};
    for (size_t k = 0; k < sizeof classes / sizeof classes[0]; k++)
        for (size_t i = 0; i < model->nodes.count; i++) {
            const char *around = onv_noted(&model->nodes.at[i])->call_classes;
            if (around != NULL && around[0] != '\0' && strstr(around, classes[k]) != NULL)
                return &model->nodes.at[i];
        }
    return NULL;
}

static void say_of_inference(onv_lowering *l)
{
    const onv_eager *e = l->emit.eager;
    const onv_node *fast = find_fast_path(l->emit.model);
    uint32_t layers = l->fusions->n_fast_layers;
    say_once(&l->emit, ONV_SAID_fast_layers, layers, NULL, 0, fast);
    bool is_open = layers == 0 || l->fusions->n_other_layers > 0;
    if (is_open && fast != NULL && onv_emit_takes_fast_path(&l->emit))
        say_once(&l->emit, ONV_SAID_fast_path, 1, NULL, 0, fast);
    say_once(&l->emit, ONV_SAID_restored_norms, e->restored_norms, NULL, e->restored_bytes,
             e->first_restored);
}

/* What the first operation of such a call reads is what its caller may have cloned before. */
static void say_of_caches(onv_lowering *l)
{
    const char *scope = NULL;
    for (uint32_t i = 0; i < l->live->timeline.steps.count; i++) {
        const onv_node *node = onv_model_node(l->emit.model, l->live->timeline.steps.at[i].node);
        bool is_call = onv_noted(node)->cache_call != NULL && onv_noted(node)->scope != scope &&
                       node->n_inputs > 0 && onv_is_value(node->inputs[0]);
        if (node->graph.index == 0) scope = onv_noted(node)->scope;
        uint32_t tensor = is_call ? l->values[node->inputs[0].index].tensor : ONV_NO_TENSOR;
        if (tensor != ONV_NO_TENSOR)
            onv_say(&l->emit, ONV_SAID_cached_calls, scope, onv_tensor_at(&l->emit, tensor).bytes,
                    node);
    }
}

/* What drops, or a batch norm that trains, shows that the network was exported in training mode. */
static bool trains(const onv_node *node)
{
    return node->code == ONV_OP_Dropout ||
           (node->code == ONV_OP_BatchNormalization &&
            onv_node_int(node, "training_mode", 0) != 0) ||
           (onv_noted(node)->tells_dropout && onv_noted(node)->dropout > 0);
}

/* Layers whose networks drop, as a rule. */
static bool is_next_to_dropout(const onv_node *node)
{
    return node->code == ONV_OP_LayerNormalization || node->code == ONV_OP_Softmax ||
           node->code == ONV_OP_LSTM || node->code == ONV_OP_GRU;
}

/* Networks of these libraries drop nothing unless they are told to. */
static bool is_built_without_dropout(const onv_node *node)
{
    const char *classes = onv_noted(node)->call_classes;
    return strstr(classes, "timm.") != NULL || strstr(classes, "torchvision.models.") != NULL;
}

/* A batch norm of the older exporter that does not train shows evaluation mode. The newer one writes all of them so: there, and where no
 * norm is, the mode is not known. */
static void say_of_mode(onv_lowering *l)
{
    const onv_model *model = l->emit.model;
    const onv_node *first = NULL;
    bool evaluates = false, may_drop = false;
    if (strncmp(model->producer, "pytorch", 7) != 0) return;
    for (uint32_t i = 0; i < model->nodes.count; i++) {
        const onv_node *node = &model->nodes.at[i];
        if (trains(node)) return;
        if (first == NULL && is_next_to_dropout(node)) first = node;
        may_drop |= is_next_to_dropout(node) && !is_built_without_dropout(node);
        evaluates |= node->code == ONV_OP_BatchNormalization && !l->weights.has_notes;
    }
    say_once(&l->emit, ONV_SAID_no_dropout, first != NULL,
             evaluates ? ", and its batch norms do not train" : "", 0, first);
    l->emit.said[ONV_SAID_no_dropout].warns = may_drop;
}

/* By nodes: graphs inside the network's, of which the file does not say whether torch.no_grad() or torch.autocast() made them;
 * sums with 0 and products with 1, each of which makes a tensor that its reader may keep. */
static void say_of_nodes(onv_lowering *l)
{
    for (uint32_t i = 0; i < l->emit.model->nodes.count; i++) {
        const onv_node *node = &l->emit.model->nodes.at[i];
        if (onv_noted(node)->inner_graph != NULL && onv_noted(node)->n_parameters > 0)
            onv_say(&l->emit, ONV_SAID_inner_graph, NULL, 0, node);
        for (uint32_t k = 0; k < node->n_inputs && k < 32 && node->graph.index == 0; k++) {
            bool is_told =
                (onv_noted(node)->neutral & ONV_BIT(k)) != 0 && onv_is_value(node->inputs[k]);
            uint32_t tensor = is_told ? l->values[node->inputs[k].index].tensor : ONV_NO_TENSOR;
            if (tensor != ONV_NO_TENSOR)
                onv_say(&l->emit, ONV_SAID_removed, NULL, onv_tensor_at(&l->emit, tensor).bytes,
                        NULL);
        }
    }
}

static void say_of_training(onv_lowering *l)
{
    const onv_fusions *f = l->fusions;
    say_of_nodes(l);
    say_of_mode(l);
    onv_parts_report(l);
    onv_checkpointed_report(l);
    onv_merged_calls(l);
    say_once(&l->emit, ONV_SAID_functions, f->n_functions, f->function, 0, NULL);
    say_once(&l->emit, ONV_SAID_functions_apart, f->n_functions_apart, f->function, 0, NULL);
    say_once(&l->emit, ONV_SAID_by_form, f->n_by_form, f->by_form, 0, NULL);
}

void onv_lowering_report(onv_lowering *l)
{
    say_once(&l->emit, ONV_SAID_cudnn_benchmark, l->emit.benchmark_high > 0, NULL,
             l->emit.benchmark_high, NULL);
    say_once(&l->emit, ONV_SAID_grouped_queries, l->fusions->n_grouped, NULL, 0, NULL);
    say_of_caches(l);
    onv_signature_report(l);
    onv_cells_report(l);
    if (l->emit.options->inference) {
        say_of_inference(l);
    } else {
        onv_weights_report(l);
        say_of_training(l);
    }
    onv_say_up_to(&l->emit, ONV_N_SAID);
}

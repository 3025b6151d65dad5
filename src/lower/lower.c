#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/heap.h"
#include "base/quota.h"
#include "eager/pytorch.h"
#include "emit/encoder.h"
#include "emit/loss.h"
#include "load/load.h"
#include "lower/lower.h"
#include "lower/lowering.h"
#include "ops/op.h"
#include "tape/tape.h"

/* --- The graph --------------------------------------------------------------------------------- */

/* zeros() and the like: the exporter writes those of numbers that it knows as an Expand of one. */
bool onv_node_fills(const onv_node *node)
{
    static const char calls[] = "zeros ones full zeros_like ones_like full_like new_zeros new_ones "
                                "new_full empty empty_like new_empty";
    if (node->code == ONV_OP_ConstantOfShape) return true;
    return node->code == ONV_OP_Expand && onv_node_is_aten(node, calls);
}

static bool touches_device(onv_lowering *l, const onv_node *node)
{
    bool any = false, random = node->op != NULL && (node->op->flags & ONV_OP_RANDOM) != 0;
    for (uint32_t k = 0; k < node->n_outputs; k++)
        any |= onv_is_value(node->outputs[k]) && !l->is_host[node->outputs[k].index];
    if (!any || (node->op != NULL && (node->op->flags & ONV_OP_HOST) != 0)) return false;
    for (uint32_t k = 0; k < node->n_inputs; k++)
        if (onv_node_in(l, node, k) != ONV_NO_TENSOR) return true;
    return random || node->code == ONV_OP_Range || onv_node_fills(node);
}

#define CALL(id)            .call = ONV_ATEN_##id
#define WRITES(id)          .in_place = ONV_ATEN_##id
#define TRAITS(id)          .traits = ONV_ATEN_##id
#define RULE(name)          .rule = onv_lower_##name
#define OP(op, name, ...)   [ONV_OP_##op] = {RULE(name), __VA_ARGS__},
#define VIEW(op, name, ...) [ONV_OP_##op] = {RULE(name), .is_view = true, __VA_ARGS__},

const onv_lower_row onv_lower_rows[ONV_N_OP_NAMES] = {
#include "lower/operators.def"
};

const onv_lower_row *onv_lower_row_of(const onv_node *node)
{
    return &onv_lower_rows[node->domain[0] == '\0' ? node->code : ONV_OP_OTHER];
}

static void lower_node(onv_lowering *l, const onv_node *node)
{
    if (onv_lower_sequence(l, node)) return;
    if (onv_node_has_graphs(node)) {
        onv_lower_flow(l, node);
        return;
    }
    if (node->code == ONV_OP_Constant || !touches_device(l, node)) return;
    const onv_lower_row *row = onv_lower_row_of(node);
    bool is_made = row->is_view && onv_node_in(l, node, 0) == ONV_NO_TENSOR;
    onv_lower_fn rule = row->rule == NULL || is_made ? onv_lower_by_traits : row->rule;
    bool is_foreign = node->code == ONV_OP_DeformConv;
    l->emit.eager->opaque += is_foreign || (node->op == NULL && rule == onv_lower_by_traits);
    uint32_t out = rule(l, node);
    if (out != ONV_NO_TENSOR) onv_node_set(l, node, 0, out);
    if (is_foreign)
        onv_say(&l->emit, ONV_SAID_foreign, node->name,
                onv_tensor_at(&l->emit, onv_value_tensor(l, node->outputs[0])).bytes, node);
}

/* Constants that an exporter wrote a kernel with, as places and weights of an interpolation, are not there. */
static bool is_kernel(const onv_lowering *l, uint32_t fusion)
{
    static const char *const kernels[] = {"affine_grid_generator", "logcumsumexp", "im2col",
                                          "multi_margin_loss"};
    bool is_named = false;
    const onv_fusion *f = fusion != 0 ? &l->fusions->at[fusion - 1] : NULL;
    if (f == NULL) return false;
    for (size_t i = 0; f->kind == ONV_FUSION_POINTWISE && i < sizeof kernels / sizeof kernels[0];
         i++)
        is_named |= strcmp(f->name, kernels[i]) == 0;
    return is_named || f->kind == ONV_FUSION_ADAPTIVE_POOL;
}

static bool is_for_kernel(const onv_lowering *l, uint32_t value)
{
    onv_node_id user = l->fusions->user[value];
    uint32_t fusion = onv_is_node(user) ? l->fusions->of_node[user.index] : 0;
    if (!is_kernel(l, fusion)) return false;
    const onv_fusion *f = &l->fusions->at[fusion - 1];
    return f->x.index != value && f->key.index != value;
}

static void lower_inputs(onv_lowering *l)
{
    const onv_graph *graph = &l->emit.model->graphs.at[0];
    for (uint32_t i = 0; i < graph->n_inputs && l->emit.status == ONV_OK; i++) {
        const onv_value *value = onv_model_value(l->emit.model, graph->inputs[i]);
        bool counts = value->type.kind == ONV_TYPE_TENSOR || l->emit.options->inference;
        if (!counts || l->is_host[graph->inputs[i].index]) continue;
        uint32_t tensor = onv_value_new(l, graph->inputs[i], ONV_UNDEFINED);
        onv_value_set(l, graph->inputs[i], tensor);
        if (tensor == ONV_NO_TENSOR) return;
        onv_eager_storage *storage =
            &l->emit.eager->storages.at[onv_tensor_at(&l->emit, tensor).storage];
        storage->kind = ONV_STORAGE_INPUT;
        storage->label = value->name;
    }
    /* Parameters that no node reads are there too. */
    for (uint32_t i = 0; i < l->emit.model->values.count && l->emit.status == ONV_OK; i++)
        if (onv_value_may_train(l->emit.model, &l->emit.model->values.at[i]) &&
            onv_value_is_held(&l->emit.model->values.at[i]) && !is_for_kernel(l, i))
            onv_lower_weight(l, (onv_value_id){i});
}

/* The dropout inside scaled_dot_product_attention, which the newer exporter leaves out. */
static void lower_lost_dropout(onv_lowering *l, const onv_node *node)
{
    if (l->emit.options->inference || !l->fusions->attention[l->emit.node.index].lost_dropout)
        return;
    onv_eager_tensor t = onv_tensor_at(&l->emit, onv_value_tensor(l, node->outputs[0]));
    if (!onv_noted(node)->tells_dropout && l->emit.options->attention_dropout < 0)
        onv_say(&l->emit, ONV_SAID_lost_dropout, NULL, t.bytes + t.elems,
                NULL); /* what drops, and its mask */
    if (onv_dropout_of_attention(&l->emit, node) <= 0) return;
    onv_value_set(l, node->outputs[0],
                  onv_emit_dropout(&l->emit, onv_value_tensor(l, node->outputs[0])));
}

enum { MAX_HOST_ELEMS = 64 };

/* A result of what is on the host, or of a rule that makes none: the caller's, or too large for a
 * shape. It is on the device all the same. */
static void make_missing(onv_lowering *l, const onv_node *node)
{
    for (uint32_t k = 0; k < node->n_outputs && l->emit.status == ONV_OK; k++) {
        onv_value_id id = node->outputs[k];
        if (!onv_is_value(id) || l->is_host[id.index]) continue;
        const onv_value *value = onv_model_value(l->emit.model, id);
        if (onv_value_is_weight(value) || onv_value_tensor(l, id) != ONV_NO_TENSOR) continue;
        uint32_t tensor = ONV_NO_TENSOR;
        bool is_result = value->is_output && value->graph.index == 0;
        onv_shape shape;
        bool is_list = value->type.kind == ONV_TYPE_SEQUENCE && !l->emit.options->inference;
        if (is_list && !is_result) continue;
        if (!is_result && l->fusions->n_uses[id.index] == 0) continue;
        if (!onv_value_shape(l, id, &shape)) return;
        uint64_t elems = 1; /* the product fits where the tensor does, which is looked at below */
        for (uint32_t i = 0; i < shape.rank && elems <= MAX_HOST_ELEMS; i++)
            elems *=
                (uint64_t)(shape.dims[i] < MAX_HOST_ELEMS ? shape.dims[i] : MAX_HOST_ELEMS + 1);
        if (!is_result && elems <= MAX_HOST_ELEMS) continue;
        tensor = onv_value_new(l, id, ONV_UNDEFINED);
        onv_emit_begin(&l->emit, node->op_type);
        for (uint32_t i = 0; i < node->n_inputs; i++)
            onv_emit_in(&l->emit, onv_node_in(l, node, i), ONV_GRAD_NONE);
        onv_node_set(l, node, k, onv_emit_out(&l->emit, tensor));
        onv_emit_end(&l->emit);
    }
}

void onv_lower_once(onv_lowering *l, onv_node_id id)
{
    uint32_t fusion = l->fusions->of_node[id.index];
    if (fusion != 0)
        onv_lower_fusion(l, &l->fusions->at[fusion - 1]);
    else
        lower_node(l, onv_model_node(l->emit.model, id));
}

/* What rules of products, and attention, ask of their node. */
void onv_lower_at(onv_emitter *e, onv_node_id id)
{
    const onv_node *node = onv_is_node(id) ? onv_model_node(e->model, id) : NULL;
    e->node = id;
    e->is_linear = node != NULL && onv_node_is_aten(node, "linear");
    e->drops_bias = node != NULL && onv_noted(node)->has_bias;
    e->dropout = node != NULL ? onv_dropout_of_attention(e, node) : 0;
    bool is_inner = node != NULL && onv_noted(node)->inner_graph != NULL;
    e->eager->has_inner_graphs |= is_inner;
    e->has_no_grad = is_inner && e->options->inner_no_grad;
}

/* The nodes of a fusion stand before its last one: their work waits for it. */
static void lower_in_order(onv_lowering *l, onv_node_id id)
{
    const onv_node *node = onv_model_node(l->emit.model, id);
    uint32_t fusion = l->fusions->of_node[id.index];
    onv_lower_at(&l->emit, id);
    onv_repeat_base(l, node);
    /* What the forward pass makes is made before the operation that reads it. */
    for (uint32_t k = 0; k < node->n_inputs && !is_kernel(l, fusion); k++)
        if (onv_is_value(node->inputs[k]) &&
            onv_value_is_weight(onv_model_value(l->emit.model, node->inputs[k])))
            onv_node_in(l, node, k);
    for (uint32_t k = 0; k < node->n_inputs && onv_noted(node)->detached != 0; k++)
        onv_node_in(l, node, k);
    if (fusion == 0) {
        lower_node(l, node);
        if (l->emit.options->inference) make_missing(l, node);
    } else if (l->fusions->at[fusion - 1].last.index == id.index) {
        onv_lower_fusion(l, &l->fusions->at[fusion - 1]);
    } else {
        return;
    }
    lower_lost_dropout(l, node);
}

void onv_lower_nodes(onv_lowering *l, const onv_node_id *nodes, uint32_t count)
{
    onv_node_id outer = l->emit.node;
    for (uint32_t i = 0; i < count && l->emit.status == ONV_OK; i++) {
        if (!onv_work(4)) l->emit.status = ONV_ERR_CANCELLED;
        lower_in_order(l, nodes[i]);
        const onv_node *node = onv_model_node(l->emit.model, nodes[i]);
        if (l->emit.status != ONV_OK) onv_error_at(l->emit.err, node->name, node->op_type);
    }
    onv_lower_at(&l->emit, outer);
}

static void lower_loss(onv_lowering *l)
{
    const onv_graph *graph = &l->emit.model->graphs.at[0];
    onv_loss_output *outputs = ONV_EMIT_ARRAY(&l->emit, onv_loss_output, graph->n_outputs);
    if (outputs == NULL) return;
    for (uint32_t i = 0; i < graph->n_outputs && l->emit.status == ONV_OK; i++)
        outputs[i] =
            (onv_loss_output){.name = onv_model_value(l->emit.model, graph->outputs[i])->name,
                              .tensor = onv_value_tensor(l, graph->outputs[i]),
                              .n_uses = l->fusions->n_uses[graph->outputs[i].index]};
    onv_emit_loss(&l->emit, outputs, graph->n_outputs);
}

static void lower_main(onv_lowering *l)
{
    for (uint32_t i = 0; i < l->live->timeline.steps.count && l->emit.status == ONV_OK; i++) {
        /* Subgraphs are lowered with the node that owns them. */
        if (onv_model_node(l->emit.model, l->live->timeline.steps.at[i].node)->graph.index == 0)
            onv_lower_nodes(l, &l->live->timeline.steps.at[i].node, 1);
    }
}

/* --- The passes -------------------------------------------------------------------------------- */

static void make_values(onv_lowering *l)
{
    size_t n = l->emit.model->values.count;
    l->values = onv_work(n) ? onv_heap_calloc(n + 1, sizeof *l->values) : NULL;
    if (l->values == NULL) l->emit.status = onv_fail_memory(l->emit.err);
}

static void prepare_weights(onv_lowering *l)
{
    l->emit.status = onv_weights_prepare(l);
}

/* Which nodes are one call. */
static void find_fusions(onv_lowering *l)
{
    const onv_lower_options *options = l->emit.options;
    bool has_calls = !onv_before_pytorch(options, ONV_PYTORCH_RELEASE(2, 0));
    onv_fusing_kernels kernels = {.rms_norm =
                                      !onv_before_pytorch(options, ONV_PYTORCH_RELEASE(2, 9)),
                                  .layers = onv_emit_takes_fast_path(&l->emit),
                                  .cells = !options->on_cpu,
                                  .low = options->amp != ONV_UNDEFINED,
                                  .packed = options->is_traced};
    onv_fusing fusing = options->attention == ONV_ATTENTION_MATH ? ONV_FUSE
                        : options->attention == ONV_ATTENTION_AUTO
                            ? has_calls ? ONV_FUSE_CALLS : ONV_FUSE
                            : ONV_FUSE_ATTENTION;
    if (options->as_exported) fusing = ONV_FUSE_NOTHING;
    l->emit.status = onv_fusions_find(l->emit.model, &l->live->timeline, fusing, kernels,
                                      &l->fusions, l->emit.err);
    if (l->emit.status != ONV_OK) return;
    l->emit.eager->slow_attentions = l->fusions->n_apart;
}

/* Operations of a loop's body stand for all of its iterations. */
static void count_runs(onv_lowering *l)
{
    for (size_t i = 0; i < l->emit.eager->ops.count && l->emit.model->graphs.count > 1; i++) {
        onv_eager_op *op = &l->emit.eager->ops.at[i];
        if (!onv_is_node(op->node) || op->macs > INT64_MAX) continue;
        onv_dim all = onv_graph_all_runs(l->emit.model, onv_model_node(l->emit.model, op->node),
                                         onv_dim_const((int64_t)op->macs));
        all = onv_dim_substitute_bounds(&l->emit.model->dims, all);
        op->macs = onv_dim_is_const(all) && all.raw > 0 ? (uint64_t)all.raw : 0;
    }
}

enum { ALWAYS, IN_TRAINING, FOR_REPORTS };

/* In their order, and why it is that. Each reads what those before it gave, and writes its own part of the state alone. */
static const struct {
    void (*run)(onv_lowering *l);
    uint8_t when;
} passes[] = {
    {make_values, ALWAYS},     /* which the others fill */
    {onv_clones_mark, ALWAYS}, /* of notes alone */
    {prepare_weights, ALWAYS}, /* names and owners: of the graph and its notes, not of fusions */
    {find_fusions, ALWAYS},    /* which nodes are one call: before anything is emitted */
    {lower_inputs, ALWAYS},    /* inputs and parameters are there before the first call */
    {lower_main, ALWAYS},      /* calls, in the order of execution */
    {count_runs, ALWAYS},      /* of what stands in loops */
    {lower_loss, ALWAYS},      /* of outputs, which all stand by now, and how gradients come back */
    {onv_check_patterns, IN_TRAINING}, /* --freeze and --inplace, once all parameters have names */
    {onv_parameters_complete,
     ALWAYS}, /* what --missing-parameters says is missing after all of these */
    {onv_buffers_complete, ALWAYS}, /* likewise --missing-buffers */
    {onv_lowering_report, FOR_REPORTS},
};

static bool applies(const onv_lower_options *options, uint8_t when)
{
    return when == ALWAYS || (when == IN_TRAINING ? !options->inference : options->reports);
}

static void clean_up(onv_lowering *l)
{
    onv_heap_free(l->values);
    onv_heap_free(l->weights.values);
    onv_ptr_map_cleanup(&l->weights.layers);
    onv_ptr_map_cleanup(&l->signature.buffers);
    onv_vec_cleanup(&l->weights.reads);
    onv_emitter_cleanup(&l->emit);
    onv_recover_cleanup(l);
    onv_vec_cleanup(&l->region.mark);
    onv_vec_cleanup(&l->to_clone);
}

/* The result of an instance norm is a view of that of a batch norm. */
static bool is_normed(onv_emitter *e, uint32_t tensor)
{
    const onv_eager_op *last =
        e->eager->ops.count > 0 ? &e->eager->ops.at[e->eager->ops.count - 1] : NULL;
    return last != NULL && last->n_out > 0 && last->out[0] == tensor &&
           strcmp(last->name, "instance_norm") == 0;
}

static void clone_results(onv_emitter *e)
{
    onv_clone_results((onv_lowering *)e);
}

onv_status onv_eager_lower(onv_model *model, const onv_live *live, const bool *is_host,
                           const onv_lower_options *options, onv_eager *eager, onv_error *err)
{
    if (model->program != NULL) return onv_tape_lower(model->program, model, options, eager, err);
    onv_eager_init(eager);
    onv_lowering l = {.emit = {.model = model,
                               .options = options,
                               .eager = eager,
                               .err = err,
                               .node = ONV_NO_NODE,
                               .amp = options->amp,
                               .region = ONV_NO_REGION,
                               .is_written_view = is_normed,
                               .ended = clone_results},
                      .recovery = {.like = ONV_NO_TENSOR},
                      .live = live,
                      .is_host = is_host};
    l.tape.is_recovered = true;
    for (size_t i = 0; i < sizeof passes / sizeof passes[0] && l.emit.status == ONV_OK; i++)
        if (applies(options, passes[i].when)) passes[i].run(&l);
    clean_up(&l);
    if (l.emit.status == ONV_OK) return onv_eager_complete(eager, model, err);
    onv_eager_cleanup(eager);
    return l.emit.status;
}

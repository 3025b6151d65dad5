/* Sums, products of elements, reductions, and the operations that overwrite their input. */
#include <string.h>

#include "base/checked.h"
#include "lower/lowering.h"
#include "lower/weight_place.h"

/* --- Pointwise --------------------------------------------------------------------------------- */

/* A gradient that needs no arithmetic is handed on, one of a broadcast operand is summed. */
static onv_grad sum_grad(onv_lowering *l, uint32_t in, uint32_t out)
{
    onv_eager_tensor x = onv_tensor_at(&l->emit, in), y = onv_tensor_at(&l->emit, out);
    return x.elems == y.elems && x.dtype == y.dtype ? ONV_GRAD_ALIAS : ONV_GRAD_NEW;
}

/* Backward needs x for the gradient of what it was multiplied by: autograd copies it before it is overwritten. */
static bool keeps_first(onv_lowering *l, const onv_node *node)
{
    bool multiplies = strcmp(node->op_type, "Mul") == 0 || strcmp(node->op_type, "Div") == 0;
    return multiplies && node->n_inputs > 1 &&
           onv_tensor_needs_grad(&l->emit, onv_node_in(l, node, 1));
}

/* `x -= y`, `x *= y` and a broadcast y: the result is x itself, where nothing else reads it. */
static uint32_t new_result(onv_lowering *l, const onv_node *node, uint8_t dtype)
{
    onv_eager_tensor x = onv_tensor_at(&l->emit, onv_node_in(l, node, 0));
    onv_shape shape;
    bool may =
        node->in_place == ONV_IN_PLACE_YES &&
        (l->emit.options->inference || !l->emit.options->checkpoints || !keeps_first(l, node)) &&
        !l->emit.options->no_inplace &&
        !l->emit.options->graph_module && /* torch.fx traces `x -= y` as `x - y` */
        x.dtype == dtype && onv_may_overwrite(l, node, 0) &&
        onv_value_shape(l, node->outputs[0], &shape) && shape.rank == x.rank;
    for (uint32_t i = 0; may && i < x.rank; i++) may = shape.dims[i] == x.dims[i];
    return may ? onv_tensor_on(&l->emit, x.storage, x.dtype, x.rank, x.dims, x.strides)
               : onv_node_new_pointwise(l, node, dtype);
}

static bool is_overwritten(const onv_lowering *l, uint32_t in, uint32_t out)
{
    return in != ONV_NO_TENSOR && out != ONV_NO_TENSOR &&
           onv_tensor_at(&l->emit, in).storage == onv_tensor_at(&l->emit, out).storage;
}

/* In an export without notes: whether each sum that a ReLU alone reads adds to the result of a batch norm, as where
 * residual blocks say `out += identity`. Those that say `x + block(x)` add to what is kept, and show that this network
 * makes new tensors. */
static bool has_residual_updates(onv_lowering *l)
{
    if (l->residual_updates != ONV_UPDATES_UNKNOWN) return l->residual_updates == ONV_UPDATES_YES;
    uint32_t found = 0, others = 0;
    for (uint32_t i = 0; i < l->emit.model->nodes.count; i++) {
        const onv_node *relu = &l->emit.model->nodes.at[i];
        if (relu->graph.index != 0 || strcmp(relu->op_type, "Relu") != 0) continue;
        onv_node_id at = onv_is_value(relu->inputs[0])
                             ? onv_model_value(l->emit.model, relu->inputs[0])->producer
                             : ONV_NO_NODE;
        const onv_node *sum = onv_is_node(at) ? onv_model_node(l->emit.model, at) : relu;
        if (strcmp(sum->op_type, "Add") != 0 || !onv_is_value(sum->inputs[0])) continue;
        onv_node_id from = onv_model_value(l->emit.model, sum->inputs[0])->producer;
        const char *of = onv_is_node(from) ? onv_model_node(l->emit.model, from)->op_type : "";
        bool fresh = strcmp(of, "BatchNormalization") == 0 &&
                     l->fusions.n_uses[sum->inputs[0].index] == 1 &&
                     l->fusions.n_uses[sum->outputs[0].index] == 1;
        *(fresh ? &found : &others) += 1;
    }
    bool updates = found > 0 && others == 0 && !l->weights.has_notes;
    l->residual_updates = updates ? ONV_UPDATES_YES : ONV_UPDATES_NO;
    return updates;
}

/* `x += y` says so in an export with notes. */
static bool is_update(onv_lowering *l, const onv_node *node)
{
    uint32_t x = onv_node_in(l, node, 0), y = onv_node_in(l, node, 1);
    onv_eager_tensor a = onv_tensor_at(&l->emit, x), b = onv_tensor_at(&l->emit, y);
    if (l->emit.options->no_inplace || l->emit.options->graph_module || x == ONV_NO_TENSOR ||
        y == ONV_NO_TENSOR || node->n_inputs != 2 || a.dtype != onv_promoted(l, node) ||
        a.rank != b.rank || !onv_may_overwrite(l, node, 0))
        return false;
    for (uint32_t i = 0; i < a.rank; i++)
        if (a.dims[i] != b.dims[i]) return false;
    if (node->in_place == ONV_IN_PLACE_YES) return true;
    onv_node_id from = onv_model_value(l->emit.model, node->inputs[0])->producer;
    return onv_is_node(from) &&
           strcmp(onv_model_node(l->emit.model, from)->op_type, "BatchNormalization") == 0 &&
           l->fusions.n_uses[node->outputs[0].index] == 1 && has_residual_updates(l);
}

static void lower_sum(onv_lowering *l, const onv_node *node)
{
    bool negated = strcmp(node->op_type, "Sub") == 0;
    bool in_place = !negated && is_update(l, node);
    onv_eager_tensor t = onv_tensor_at(&l->emit, onv_node_in(l, node, 0));
    uint32_t out = in_place ? onv_tensor_on(&l->emit, t.storage, t.dtype, t.rank, t.dims, t.strides)
                            : new_result(l, node, onv_promoted(l, node));
    onv_emit_begin(&l->emit, negated ? "sub" : "add");
    l->emit.op.in_place = is_overwritten(l, onv_node_in(l, node, 0), out);
    l->emit.op.swaps_grads = negated;
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        uint32_t in = onv_node_in(l, node, k);
        onv_emit_in(&l->emit, in, negated && k == 1 ? ONV_GRAD_NEW : sum_grad(l, in, out));
        onv_emit_sum_workspace(&l->emit, in, out);
    }
    onv_node_set(l, node, 0, onv_emit_out(&l->emit, out));
    onv_emit_end(&l->emit);
}

/* `x.mul_(x.sigmoid())` of timm's Swish, which may overwrite x. */
static bool is_library_gate(const onv_lowering *l, const onv_node *node)
{
    static const char swish[] = "timm.layers.activations.Swish";
    if (strcmp(node->op_type, "Mul") != 0 || node->call_classes == NULL ||
        strstr(node->call_classes, swish) == NULL || !onv_is_value(node->inputs[1]))
        return false;
    onv_node_id gate = onv_model_value(l->emit.model, node->inputs[1])->producer;
    const onv_node *from = onv_is_node(gate) ? onv_model_node(l->emit.model, gate) : node;
    return strcmp(from->op_type, "Sigmoid") == 0 &&
           from->inputs[0].index == node->inputs[0].index && from->scope == node->scope;
}

static void lower_product(onv_lowering *l, const onv_node *node)
{
    bool divides = strcmp(node->op_type, "Div") == 0;
    if (divides && onv_node_in(l, node, 0) == ONV_NO_TENSOR) {
        onv_lower_quotient_of_number(l, node);
        return;
    }
    uint32_t in[2] = {onv_amp_attention(l, node, 0), onv_amp_attention(l, node, 1)};
    onv_widen_attended(l, node);
    bool wants[2] = {onv_tensor_needs_grad(&l->emit, in[0]),
                     onv_tensor_needs_grad(&l->emit, in[1])};
    bool in_attention = onv_node_attention(l, node) != ONV_ATTENTION_NONE;
    uint8_t dtype = in_attention && l->emit.options->amp != ONV_UNDEFINED ? ONV_FLOAT
                    : in_attention && in[0] != onv_node_in(l, node, 0)
                        ? onv_tensor_at(&l->emit, in[0]).dtype
                        : onv_promoted(l, node);
    bool overwrites = is_library_gate(l, node) && onv_overwrites(l, node, node->inputs[0], 2);
    uint32_t out = overwrites ? in[0] : new_result(l, node, dtype);
    onv_emit_begin(&l->emit, divides ? "div" : "mul");
    l->emit.op.in_place = is_overwritten(l, in[0], out);
    l->emit.op.swaps_grads = true; /* of `other` before `self`: autograd sorts them by name */
    onv_emit_in(&l->emit, in[0], ONV_GRAD_NEW);
    onv_emit_in(&l->emit, in[1], ONV_GRAD_NEW);
    for (uint32_t k = 0; k < 2; k++) onv_emit_sum_workspace(&l->emit, in[k], out);
    l->emit.op.extras_first = wants[1] && l->emit.op.in_place;
    if (l->emit.op.extras_first)
        onv_emit_extra(&l->emit, onv_tensor_at(&l->emit, in[0]).bytes, 1, "input");
    else if (wants[1])
        onv_emit_save(&l->emit, in[0]);
    if (wants[0] || (divides && wants[1])) onv_emit_save(&l->emit, in[1]);
    onv_node_set(l, node, 0, onv_emit_out(&l->emit, out));
    onv_emit_end(&l->emit);
}

/* Does nobody but one node read the value, nor what it is a view of? What holds is kept, as in a chain
 * that is overwritten all along every node asks. */
static bool has_one_reader(onv_lowering *l, onv_value_id value, uint32_t storage)
{
    bool *known = &l->values[value.index].has_one_reader;
    while (l->fusions.n_uses[value.index] == 1) {
        if (l->values[value.index].has_one_reader) return *known = true;
        onv_node_id producer = onv_model_value(l->emit.model, value)->producer;
        if (producer.index == ONV_NO_NODE.index) return *known = true;
        const onv_node *node = onv_model_node(l->emit.model, producer);
        uint32_t k = 0;
        while (k < node->n_inputs &&
               (!onv_is_value(node->inputs[k]) ||
                onv_tensor_at(&l->emit, onv_node_in(l, node, k)).storage != storage))
            k++;
        if (k == node->n_inputs) return *known = true;
        value = node->inputs[k];
    }
    return false;
}

/* A part of a tensor stays: of chunk() and its like autograd refuses to overwrite one, and no other would be freed. */
static bool is_free(onv_lowering *l, uint32_t tensor)
{
    onv_eager_tensor t = onv_tensor_at(&l->emit, tensor);
    const onv_eager_storage *storage = &l->emit.eager->storages.at[t.storage];
    return storage->kind == ONV_STORAGE_ACTIVATION && !l->emit.saved.at[t.storage] &&
           t.storage >= l->region.first_storage && t.bytes >= storage->bytes;
}

bool onv_may_overwrite(onv_lowering *l, const onv_node *node, uint32_t k)
{
    uint32_t x = onv_node_in(l, node, k);
    if (x == ONV_NO_TENSOR) return false;
    uint32_t storage = onv_tensor_at(&l->emit, x).storage;
    return is_free(l, x) && has_one_reader(l, node->inputs[k], storage);
}

bool onv_overwrites(onv_lowering *l, const onv_node *node, onv_value_id value, uint32_t n_reads)
{
    uint32_t *n_uses = &l->fusions.n_uses[value.index], all = *n_uses;
    uint32_t x = onv_value_tensor(l, value);
    if (!l->emit.options->inference || l->emit.options->no_inplace || x == ONV_NO_TENSOR ||
        all != n_reads || !onv_is_inplace(l, node, true))
        return false;
    uint32_t storage = onv_tensor_at(&l->emit, x).storage;
    *n_uses = 1; /* what reads it is one operation */
    bool may = is_free(l, x) && has_one_reader(l, value, storage);
    *n_uses = all;
    return may;
}

/* Autograd takes what overwrites a view for an operation on all that it is a view of: its backward copies the
 * incoming gradient twice. The result of an instance norm is a view of that of a batch norm. */
static void copy_slices(onv_lowering *l, uint32_t x)
{
    size_t n = l->emit.eager->ops.count;
    if (!l->emit.op.in_place || n == 0 || x == ONV_NO_TENSOR) return;
    const onv_eager_op *from = &l->emit.eager->ops.at[n - 1];
    if (from->n_out == 0 || from->out[0] != x || strcmp(from->name, "instance_norm") != 0) return;
    uint64_t bytes;
    if (onv_u64_mul(onv_tensor_at(&l->emit, x).bytes, 2, &bytes))
        onv_emit_temps(&l->emit, 0, bytes);
}

/* Libraries that build theirs in place. */
static bool is_of_library(const onv_node *node)
{
    static const char *const names[] = {"'torchvision.", "'timm.", "'segmentation_models_pytorch."};
    for (size_t i = 0; i < sizeof names / sizeof names[0] && node->call_classes != NULL; i++)
        if (strstr(node->call_classes, names[i]) != NULL) return true;
    return false;
}

/* Relu keeps its result, whether in place or not. */
static void lower_relu(onv_lowering *l, const onv_node *node)
{
    uint32_t x = onv_node_in(l, node, 0);
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    bool makes_new = node->in_place == ONV_IN_PLACE_NO ||
                     (node->in_place == ONV_IN_PLACE_UNTOLD && onv_node_is_geometric(node));
    bool is_untold = node->in_place == ONV_IN_PLACE_UNTOLD;
    makes_new |= is_untold && l->emit.options->relu_makes_new;
    uint32_t out = !l->emit.options->no_inplace && !makes_new && onv_may_overwrite(l, node, 0)
                       ? onv_tensor_on(&l->emit, t.storage, t.dtype, t.rank, t.dims, t.strides)
                       : onv_node_new_pointwise(l, node, onv_promoted(l, node));
    onv_emit_begin(&l->emit, "relu");
    l->emit.op.in_place = out != ONV_NO_TENSOR && onv_tensor_at(&l->emit, out).storage == t.storage;
    if (l->emit.op.in_place && is_untold && onv_node_is_noted(node) && !is_of_library(node)) {
        l->emit.eager->untold_relus++;
        if (l->emit.eager->untold_bytes < t.bytes) l->emit.eager->untold_bytes = t.bytes;
    }
    onv_emit_in(&l->emit, x, ONV_GRAD_NEW);
    onv_emit_save(&l->emit, out);
    copy_slices(l, x);
    onv_node_set(l, node, 0, onv_emit_out(&l->emit, out));
    onv_emit_end(&l->emit);
}

/* Those that keep their result where they overwrite, their input otherwise. */
static void lower_leaky(onv_lowering *l, const onv_node *node)
{
    uint32_t x = onv_node_in(l, node, 0);
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    bool may = !l->emit.options->no_inplace && onv_may_overwrite(l, node, 0);
    bool in_place = may && (node->in_place == ONV_IN_PLACE_YES || onv_is_inplace(l, node, true));
    if (may && !in_place && onv_tensor_needs_grad(&l->emit, x)) {
        l->tally.activations.count++;
        l->tally.activations.bytes += t.bytes;
    }
    uint32_t out = in_place ? onv_tensor_on(&l->emit, t.storage, t.dtype, t.rank, t.dims, t.strides)
                            : onv_node_new_pointwise(l, node, onv_promoted(l, node));
    onv_emit_begin(&l->emit, node->op_type);
    l->emit.op.in_place = in_place;
    onv_emit_in(&l->emit, x, ONV_GRAD_NEW);
    onv_emit_save(&l->emit, in_place ? out : x);
    copy_slices(l, x);
    onv_node_set(l, node, 0, onv_emit_out(&l->emit, out));
    onv_emit_end(&l->emit);
}

/* --- Reductions -------------------------------------------------------------------------------- */

/* A sum hands its gradient on, repeated; a mean divides it. Neither keeps anything. Under autocast a sum
 * of low precision is float32, and its gradient is cast. */
static void lower_reduce(onv_lowering *l, const onv_node *node)
{
    bool sums = strcmp(node->op_type, "ReduceSum") == 0;
    uint32_t x = onv_node_in(l, node, 0);
    uint8_t dtype = onv_tensor_at(&l->emit, x).dtype;
    bool widens = sums && l->emit.options->amp != ONV_UNDEFINED && onv_tensor_is_float(&l->emit, x);
    if (widens) dtype = ONV_FLOAT;
    uint32_t out = onv_node_new(l, node, 0, dtype);
    bool hands_on = sums && dtype == onv_tensor_at(&l->emit, x).dtype;
    onv_emit_begin(&l->emit, sums ? "sum" : "mean");
    onv_emit_in(&l->emit, x, hands_on ? ONV_GRAD_PART : ONV_GRAD_NEW);
    onv_emit_pixel_sum(&l->emit, x, out);
    onv_node_set(l, node, 0, onv_emit_out(&l->emit, out));
    onv_emit_end(&l->emit);
}

/* A pooling to one place along one dim, which the exporter writes as amax over that and a dim of 1: it keeps its input and
 * an index for each result. */
static bool is_pool(const onv_lowering *l, const onv_node *node)
{
    onv_node_id from = onv_model_value(l->emit.model, node->inputs[0])->producer;
    const onv_type *in = &onv_model_value(l->emit.model, node->inputs[0])->type;
    const onv_type *axes = node->n_inputs > 1 && onv_is_value(node->inputs[1])
                               ? &onv_model_value(l->emit.model, node->inputs[1])->type
                               : NULL;
    return onv_node_is_aten(node, "amax") && onv_is_node(from) && in->rank == 4 &&
           onv_dim_is(in->dims[2], 1) && axes != NULL && axes->rank == 1 &&
           onv_dim_is(axes->dims[0], 2) &&
           onv_node_is_aten(onv_model_node(l->emit.model, from), "unsqueeze");
}

/* A mask, without a gradient. */
static void lower_truth(onv_lowering *l, const onv_node *node)
{
    uint32_t out = onv_node_new(l, node, 0, ONV_BOOL);
    onv_emit_begin(&l->emit, "any");
    onv_emit_in(&l->emit, onv_node_in(l, node, 0), ONV_GRAD_NONE);
    onv_node_set(l, node, 0, onv_emit_out(&l->emit, out));
    onv_emit_end(&l->emit);
}

/* amax keeps input and result; max(x, dim) the indices, which no one else may read. */
static void lower_maximum(onv_lowering *l, const onv_node *node)
{
    if (onv_node_tells_truth(node)) {
        lower_truth(l, node);
        return;
    }
    const char *name = strcmp(node->op_type, "ReduceMax") == 0 ? "max" : "min";
    uint32_t x = onv_node_in(l, node, 0);
    uint32_t out = onv_node_new(l, node, 0, onv_tensor_at(&l->emit, x).dtype);
    bool indices = node->aten_op != NULL && strncmp(node->aten_op, "aten.", 5) == 0 &&
                   strncmp(node->aten_op + 5, name, 3) == 0 &&
                   strcmp(node->aten_op + 8, ".dim") == 0;
    bool told = node->aten_op != NULL && node->aten_op[0] != '\0';
    uint64_t kept = onv_tensor_at(&l->emit, x).bytes + onv_tensor_at(&l->emit, out).bytes;
    uint64_t elems = onv_tensor_at(&l->emit, out).elems;
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    bool pools = node->pools || is_pool(l, node);
    onv_emit_begin(&l->emit, indices                        ? name
                             : pools                        ? "adaptive_max_pool"
                             : onv_node_is_aten(node, name) ? "max_all"
                                                            : node->op_type);
    onv_emit_in(&l->emit, x, ONV_GRAD_NEW);
    if (pools && !onv_tensor_is_contiguous(&t)) onv_emit_temps(&l->emit, t.bytes, t.bytes);
    l->emit.op.copies_first = pools;
    if (indices || pools) {
        if (!indices) onv_emit_save(&l->emit, x);
        onv_emit_extra(&l->emit, elems, sizeof(int64_t), "indices");
    } else {
        onv_emit_save(&l->emit, x);
        onv_emit_save(&l->emit, out);
    }
    onv_node_set(l, node, 0, onv_emit_out(&l->emit, out));
    onv_emit_end(&l->emit);
    if (told || !l->emit.op.has_backward || l->emit.status != ONV_OK ||
        kept / sizeof(int64_t) <= elems)
        return;
    l->tally.maxima.count++;
    l->tally.maxima.bytes += kept - elems * sizeof(int64_t);
}

/* Keeps its input, and the LU decomposition of that with pivots of int32. linalg_det_backward makes a diagonal matrix of the
 * gradient, a sum, and solves with copies of both. */
static void lower_det(onv_lowering *l, const onv_node *node)
{
    uint32_t x = onv_node_in(l, node, 0), out = onv_node_new(l, node, 0, ONV_UNDEFINED);
    if (x == ONV_NO_TENSOR || out == ONV_NO_TENSOR) return;
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    uint64_t rows =
        t.rank > 0 && t.dims[t.rank - 1] > 0 ? t.elems / (uint64_t)t.dims[t.rank - 1] : 0;
    uint64_t pivots, matrices;
    bool fits = onv_u64_mul(rows, 2 * sizeof(int32_t), &pivots) &&
                onv_u64_mul(t.bytes, 3, &matrices) && onv_u64_add(matrices, pivots, &matrices);
    onv_emit_begin(&l->emit, "linalg_det");
    onv_emit_in(&l->emit, x, ONV_GRAD_NEW);
    onv_emit_save(&l->emit, x);
    onv_emit_save(&l->emit, out);
    onv_emit_extra(&l->emit, t.elems, onv_dtype_bits((onv_dtype)t.dtype) / 8, "LU");
    onv_emit_extra(&l->emit, rows, sizeof(int32_t), "pivots");
    onv_emit_temps(&l->emit, 0, fits ? matrices : UINT64_MAX);
    onv_node_set(l, node, 0, onv_emit_out(&l->emit, out));
    onv_emit_end(&l->emit);
}

onv_lower_fn onv_lower_math(const char *op_type)
{
    static const struct {
        const char *name;
        onv_lower_fn rule;
    } rules[] = {
        {"Add", lower_sum},
        {"Sub", lower_sum},
        {"Sum", lower_sum},
        {"Mul", lower_product},
        {"Div", lower_product},
        {"Relu", lower_relu},
        {"Reciprocal", onv_lower_reciprocal},
        {"LeakyRelu", lower_leaky},
        {"Elu", lower_leaky},
        {"Celu", lower_leaky},
        {"Selu", lower_leaky},
        {"ReduceMax", lower_maximum},
        {"ReduceMin", lower_maximum},
        {"MatMul", onv_lower_matmul},
        {"Gemm", onv_lower_gemm},
        {"Det", lower_det},
        {"Einsum", onv_lower_einsum},
        {"SoftmaxCrossEntropyLoss", onv_lower_cross_entropy},
        {"ReduceMean", lower_reduce},
        {"ReduceSum", lower_reduce},
        {"GlobalAveragePool", lower_reduce},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(rules[i].name, op_type) == 0) return rules[i].rule;
    return NULL;
}

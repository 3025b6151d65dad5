/* Sums, products of elements, reductions, and the operations that overwrite their input. */
#include <string.h>

#include "base/checked.h"
#include "lower/lowering.h"
#include "lower/weight_place.h"

/* --- What may be overwritten -------------------------------------------------------------------- */

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
    bool is_max = strcmp(node->op_type, "ReduceMax") == 0;
    const char *name = is_max ? "max" : "min";
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
    onv_emit_begin_op(&l->emit, indices ? is_max ? ONV_ATEN_max__dim : ONV_ATEN_min__dim
                                : pools ? ONV_ATEN_adaptive_max_pool
                                : onv_node_is_aten(node, name) ? ONV_ATEN_max
                                : is_max                       ? ONV_ATEN_amax
                                                               : ONV_ATEN_amin);
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
        {"Reciprocal", onv_lower_reciprocal},
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

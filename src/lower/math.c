/* Sums, products of elements, reductions, and the operations that overwrite their input. */
#include <string.h>

#include "lower/lowering.h"

/* --- What may be overwritten -------------------------------------------------------------------- */

/* Does nobody but one node read the value, nor what it is a view of? What holds is kept, as in a chain
 * that is overwritten all along every node asks. */
static bool has_one_reader(onv_lowering *l, onv_value_id value, uint32_t n_uses, uint32_t storage)
{
    bool *known = &l->values[value.index].has_one_reader;
    while (n_uses == 1) {
        if (l->values[value.index].has_one_reader) return *known = true;
        const onv_node *node = onv_model_maker(l->emit.model, value);
        if (node == NULL) return *known = true;
        uint32_t k = 0;
        while (k < node->n_inputs &&
               (!onv_is_value(node->inputs[k]) ||
                onv_tensor_at(&l->emit, onv_node_in(l, node, k)).storage != storage))
            k++;
        if (k == node->n_inputs) return *known = true;
        value = node->inputs[k];
        n_uses = l->fusions->n_uses[value.index];
    }
    return false;
}

/* A part of a tensor stays: of chunk() and its like autograd refuses to overwrite one, and no other would be freed. */
static bool is_free(const onv_lowering *l, uint32_t tensor)
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
    onv_value_id value = node->inputs[k];
    return is_free(l, x) && has_one_reader(l, value, l->fusions->n_uses[value.index], storage);
}

bool onv_overwrites(onv_lowering *l, const onv_node *node, onv_value_id value, uint32_t n_reads)
{
    uint32_t x = onv_value_tensor(l, value);
    if (!l->emit.options->inference || l->emit.options->no_inplace || x == ONV_NO_TENSOR ||
        l->fusions->n_uses[value.index] != n_reads || !onv_is_inplace(l, node, true))
        return false;
    uint32_t storage = onv_tensor_at(&l->emit, x).storage;
    /* What reads it is one operation. */
    return is_free(l, x) && has_one_reader(l, value, 1, storage);
}

/* --- Reductions -------------------------------------------------------------------------------- */

static uint32_t recover_unary(onv_lowering *l, const onv_node *node, onv_aten_id op)
{
    return onv_recover_unary(l, op, onv_node_in(l, node, 0), node->outputs[0]);
}

uint32_t onv_lower_unary(onv_lowering *l, const onv_node *node)
{
    return recover_unary(l, node, onv_lower_row_of(node)->call);
}

/* Over all dims, unless it tells which. */
static bool has_axes(const onv_node *node)
{
    return (node->n_inputs > 1 && onv_is_value(node->inputs[1])) ||
           onv_node_attr(node, "axes") != NULL;
}

uint32_t onv_lower_product(onv_lowering *l, const onv_node *node)
{
    return recover_unary(l, node, has_axes(node) ? ONV_ATEN_prod__dim_int : ONV_ATEN_prod);
}

uint32_t onv_lower_norm(onv_lowering *l, const onv_node *node)
{
    onv_recover_real(l, "ord", node->code == ONV_OP_ReduceL1 ? 1 : 2);
    onv_recover_tensor(l, "self", onv_node_in(l, node, 0));
    return onv_recover_call(l, ONV_ATEN_linalg_vector_norm, node->outputs[0]);
}

/* A sum with an operation before it or behind it. */
uint32_t onv_lower_sum_and(onv_lowering *l, const onv_node *node)
{
    bool is_square = node->code == ONV_OP_ReduceSumSquare;
    uint32_t x = onv_node_in(l, node, 0);
    if (is_square) x = onv_recover_unary(l, ONV_ATEN_pow__Tensor_Scalar, x, node->inputs[0]);
    x = onv_recover_unary(l, ONV_ATEN_sum, x, node->outputs[0]);
    return is_square ? x : onv_recover_unary(l, ONV_ATEN_log, x, node->outputs[0]);
}

/* softmax(x, dtype=torch.float32) casts inside of its kernel; the export has what the network casts that to. In attention it looks
 * for rows of -inf alone. */
uint32_t onv_lower_softmax(onv_lowering *l, const onv_node *node)
{
    uint32_t x = onv_node_in(l, node, 0);
    uint8_t given = onv_tensor_at(&l->emit, x).dtype;
    bool was_asked = onv_noted(node)->asks_for_float32 && l->emit.options->amp == ONV_UNDEFINED &&
                     (given == ONV_FLOAT16 || given == ONV_BFLOAT16);
    l->recovery.dtype = was_asked ? (uint8_t)ONV_FLOAT : given;
    uint32_t out = onv_recover_unary(l, onv_lower_row_of(node)->call, x, node->outputs[0]);
    bool is_safe = node->code == ONV_OP_Softmax && out != ONV_NO_TENSOR &&
                   !l->emit.options->as_exported &&
                   onv_node_attention(l, node) != ONV_ATTENTION_NONE;
    if (is_safe)
        l->emit.eager->ops.at[l->emit.eager->ops.count - 1].forward_temp_bytes =
            onv_safe_softmax_bytes(&l->emit, x);
    return was_asked ? onv_emit_cast(&l->emit, out, given) : out;
}

uint32_t onv_lower_top(onv_lowering *l, const onv_node *node)
{
    l->recovery.has_second = true;
    uint32_t out = recover_unary(l, node, ONV_ATEN_topk);
    onv_node_set(l, node, 1, l->recovery.second);
    return out;
}

/* amax keeps input and result; max(x, dim) the indices, which no one else may read; any() and all() nothing. */
uint32_t onv_lower_maximum(onv_lowering *l, const onv_node *node)
{
    bool is_max = node->code == ONV_OP_ReduceMax;
    onv_aten_id by_dim = is_max ? ONV_ATEN_max__dim : ONV_ATEN_min__dim;
    onv_aten_id name = is_max ? ONV_ATEN_amax : ONV_ATEN_amin;
    bool told = onv_node_is_noted(node);
    if (onv_node_tells_truth(node))
        name = ONV_ATEN_any;
    else if (told &&
             strcmp(onv_noted(node)->aten_op, is_max ? "aten.max.dim" : "aten.min.dim") == 0)
        name = by_dim;
    else if (onv_node_is_aten(node, is_max ? "max" : "min"))
        name = is_max ? ONV_ATEN_max : ONV_ATEN_min;
    l->recovery.has_second = name == by_dim;
    uint32_t out = recover_unary(l, node, name);
    if (told || !onv_tensor_needs_grad(&l->emit, out)) return out;
    onv_eager_tensor y = onv_tensor_at(&l->emit, out);
    uint64_t kept = onv_tensor_at(&l->emit, onv_node_in(l, node, 0)).bytes + y.bytes;
    if (kept / sizeof(int64_t) > y.elems)
        onv_say(&l->emit, ONV_SAID_maxima, NULL, kept - y.elems * sizeof(int64_t), NULL);
    return out;
}

/* F.cross_entropy, called by the network. */
uint32_t onv_lower_cross_entropy(onv_lowering *l, const onv_node *node)
{
    static const char *const names[] = {"self", "target", "weight"};
    for (uint32_t k = 0; k < 3; k++) onv_recover_tensor(l, names[k], onv_node_in(l, node, k));
    if (onv_noted(node)->smooths_labels) onv_recover_real(l, "label_smoothing", 1);
    return onv_recover_call(l, ONV_ATEN_cross_entropy_loss, node->outputs[0]);
}

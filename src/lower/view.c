/* Operators that PyTorch runs as views, and the copies that stand beside them. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "lower/lowering.h"

uint32_t onv_lower_reshape(onv_lowering *l, const onv_node *node)
{
    onv_shape shape;
    if (!onv_value_shape(l, node->outputs[0], &shape)) return ONV_NO_TENSOR;
    return onv_emit_reshape(&l->emit, onv_node_in(l, node, 0), shape.rank, shape.dims);
}

uint32_t onv_lower_identity(onv_lowering *l, const onv_node *node)
{
    uint32_t x = onv_node_in(l, node, 0);
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    if (x == ONV_NO_TENSOR) return x;
    /* Exporters keep one copy of parameters that are equal; the network has two, or one that it uses twice. */
    bool has_twin =
        onv_value_may_train(l->emit.model, onv_model_value(l->emit.model, node->inputs[0]));
    l->emit.eager->differs_least |= has_twin;
    if (!has_twin || l->emit.options->least) return x;
    uint32_t twin = onv_tensor_new(&l->emit, t.dtype, t.rank, t.dims, NULL);
    if (twin == ONV_NO_TENSOR) return twin;
    *onv_storage_of(&l->emit, twin) = l->emit.eager->storages.at[t.storage];
    l->emit.eager->tensors.at[twin].needs_grad = t.needs_grad;
    l->emit.eager->tensors.at[twin].is_leaf = t.is_leaf;
    return twin;
}

/* A cast of the exporter's own: PyTorch's kernels take operands of two types, a mask of bytes, say, and keep what they are
 * given. */
static bool is_promotion(const onv_lowering *l, const onv_node *node, uint32_t x)
{
    static const char prefix[] = "prims.convert_element_type";
    onv_node_id user = l->fusions->user[node->outputs[0].index];
    bool is_own = strncmp(onv_noted(node)->aten_op, prefix, sizeof prefix - 1) == 0 &&
                  onv_is_node(user) && l->fusions->n_uses[node->outputs[0].index] == 1 &&
                  l->fusions->of_node[user.index] == 0;
    uint8_t to = onv_model_value(l->emit.model, node->outputs[0])->type.dtype;
    if (!is_own || onv_tensor_is_float(&l->emit, x) || !onv_dtype_is_float((onv_dtype)to))
        return false;
    return ONV_IS_ANY(onv_model_node(l->emit.model, user), ONV_OP_Add, ONV_OP_Sub, ONV_OP_Mul,
                      ONV_OP_Div, ONV_OP_Where);
}

uint32_t onv_lower_cast(onv_lowering *l, const onv_node *node)
{
    uint32_t x = onv_node_in(l, node, 0);
    if (x == ONV_NO_TENSOR || is_promotion(l, node, x)) return x;
    return onv_emit_cast(&l->emit, x, onv_model_value(l->emit.model, node->outputs[0])->type.dtype);
}

/* False where a dim is taken from no dim: a user-defined rule does not look at it. */
static bool permute(const onv_node *node, const onv_eager_tensor *t, int64_t *dims,
                    int64_t *strides)
{
    const onv_attr *perm = onv_node_attr(node, "perm");
    bool is_given = perm != NULL && perm->kind == ONV_ATTR_INTS && perm->count == t->rank;
    for (uint32_t i = 0; i < t->rank; i++) {
        int64_t from = is_given ? perm->ints[i] : t->rank - 1 - (int64_t)i;
        if (from < 0 || from >= (int64_t)t->rank) return false;
        dims[i] = t->dims[from];
        strides[i] = t->strides[from];
    }
    return true;
}

/* Whether a value is another Transpose's, reshaped or not. */
static bool is_moved(const onv_model *model, onv_value_id value)
{
    for (uint32_t i = 0; i < 4; i++) {
        const onv_node *made = onv_model_maker(model, value);
        if (made == NULL || !ONV_IS_ANY(made, ONV_OP_Transpose, ONV_OP_Reshape)) return false;
        if (made->code == ONV_OP_Transpose) return true;
        value = made->inputs[0];
    }
    return false;
}

/* contiguous() leaves no node. Between two moves of dims that undo each other it decides whether the result is in order,
 * and so how a linear layer multiplies it: the upper end of inference has the call. */
static bool may_be_copied(onv_lowering *l, const onv_node *node, const onv_eager_tensor *from,
                          const int64_t *dims, const int64_t *strides)
{
    onv_eager_tensor to = *from;
    to.dims = dims;
    to.strides = strides;
    if (!l->emit.options->inference || onv_tensor_is_contiguous(from) ||
        !onv_tensor_is_contiguous(&to) || !is_moved(l->emit.model, node->inputs[0]))
        return false;
    l->emit.eager->differs_most = true;
    return l->emit.options->locals;
}

uint32_t onv_lower_transpose(onv_lowering *l, const onv_node *node)
{
    uint32_t x = onv_node_in(l, node, 0);
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    int64_t dims[ONV_MAX_RANK], strides[ONV_MAX_RANK];
    if (!permute(node, &t, dims, strides)) return onv_lower_by_traits(l, node);
    if (may_be_copied(l, node, &t, dims, strides)) {
        x = onv_emit_contiguous(&l->emit, x);
        t = onv_tensor_at(&l->emit, x);
        permute(node, &t, dims, strides);
    }
    return onv_emit_view(&l->emit, "permute", x, t.rank, dims, strides, ONV_GRAD_ALIAS);
}

uint32_t onv_lower_expand(onv_lowering *l, const onv_node *node)
{
    onv_shape shape;
    if (!onv_value_shape(l, node->outputs[0], &shape)) return ONV_NO_TENSOR;
    return onv_emit_expand(&l->emit, onv_node_in(l, node, 0), shape.rank, shape.dims);
}

/* Steps along the axes; false where one is negative or not known. */
static bool slice_steps(onv_emitter *e, const onv_node *node, uint32_t rank, int64_t *steps)
{
    for (uint32_t i = 0; i < rank; i++) steps[i] = 1;
    if (node->n_inputs < 5 || !onv_is_value(node->inputs[4])) return true;
    uint32_t n = onv_node_operands(e, node, 4);
    for (uint32_t i = 0; i < n; i++) {
        int64_t axis = onv_node_operand(e, node, 3, i, i);
        if (axis < 0) axis += rank;
        if (axis < 0 || axis >= (int64_t)rank) return false;
        steps[axis] = onv_node_operand(e, node, 4, i, 0);
        if (steps[axis] < 1) return false;
    }
    return n > 0;
}

/* Tensor.unbind, and a loop over a tensor: one operation, of which the exporter writes each result apart. They stand behind
 * each other. */
static bool lower_unbind(onv_lowering *l, const onv_node *node)
{
    if (!onv_is_node(l->emit.node) || !onv_node_is_aten(node, "unbind")) return false;
    if (l->values[node->outputs[0].index].is_known) return true;
    const onv_node *end = l->emit.model->nodes.at + l->emit.model->nodes.count, *at = node;
    uint32_t x = onv_node_in(l, node, 0), n = 0;
    while (at < end && onv_is_same_call(at, node)) at++;
    onv_value_id *parts = ONV_EMIT_ARRAY(&l->emit, onv_value_id, (size_t)(at - node));
    if (x == ONV_NO_TENSOR || parts == NULL) return false;
    for (end = at, at = node; at < end; at++)
        if (at->code == ONV_OP_Slice && at->inputs[0].index == node->inputs[0].index)
            parts[n++] = at->outputs[0];
    onv_recover_tensor(l, "self", x);
    onv_recover_parts(l, ONV_ATEN_unbind, parts, n);
    return true;
}

uint32_t onv_lower_slice(onv_lowering *l, const onv_node *node)
{
    if (lower_unbind(l, node)) return ONV_NO_TENSOR;
    uint32_t x = onv_node_in(l, node, 0);
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    onv_shape shape;
    int64_t strides[ONV_MAX_RANK];
    if (!onv_value_shape(l, node->outputs[0], &shape)) return ONV_NO_TENSOR;
    if (!slice_steps(&l->emit, node, t.rank, strides))
        return onv_lower_by_traits(l, node); /* flip copies */
    bool whole = true;
    for (uint32_t i = 0; i < t.rank; i++) {
        /* A step past the end is never taken, and could be any number. */
        strides[i] = shape.dims[i] > 1 ? strides[i] * t.strides[i] : t.strides[i];
        whole &= shape.dims[i] == t.dims[i];
    }
    onv_grad grad = whole ? ONV_GRAD_ALIAS : ONV_GRAD_NEW;
    return onv_emit_view(&l->emit, "slice", x, shape.rank, shape.dims, strides, grad);
}

uint32_t onv_lower_split(onv_lowering *l, const onv_node *node)
{
    onv_recover_tensor(l, "self", onv_node_in(l, node, 0));
    onv_recover_parts(l, ONV_ATEN_split, node->outputs, node->n_outputs);
    return ONV_NO_TENSOR;
}

/* A sequence stands for what was split; PyTorch has its parts from the start. */
uint32_t onv_lower_split_to_sequence(onv_lowering *l, const onv_node *node)
{
    return onv_node_in(l, node, 0);
}

uint32_t onv_lower_sequence_at(onv_lowering *l, const onv_node *node)
{
    uint32_t x = onv_node_in(l, node, 0);
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    onv_shape shape;
    if (x == ONV_NO_TENSOR || !onv_value_shape(l, node->outputs[0], &shape)) return ONV_NO_TENSOR;
    /* Without keepdims the parts have no axis that they were split along. */
    const onv_node *from = onv_model_maker(l->emit.model, node->inputs[0]);
    if (from == NULL || from->code != ONV_OP_SplitToSequence)
        return onv_lower_by_traits(l, node); /* a sequence of something else */
    int64_t axis = onv_node_int(from, "axis", 0);
    if (axis < 0) axis += t.rank;
    int64_t strides[ONV_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t i = 0; i < t.rank; i++)
        if (shape.rank == t.rank || i != axis) strides[n++] = t.strides[i];
    if (n != shape.rank) return onv_lower_by_traits(l, node);
    return onv_emit_view(&l->emit, "split", x, n, shape.dims, strides, ONV_GRAD_NEW);
}

/* x[i] is a view; a table looked up by tokens is an embedding, anything else a copy that keeps the
 * indices. */
uint32_t onv_lower_gather(onv_lowering *l, const onv_node *node)
{
    uint32_t x = onv_node_in(l, node, 0), indices = onv_node_in(l, node, 1);
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    const onv_type *index = &onv_model_value(l->emit.model, node->inputs[1])->type;
    int64_t axis = onv_node_axis(node, 0, t.rank);
    if (x == ONV_NO_TENSOR || index->rank != 0 || indices != ONV_NO_TENSOR || axis < 0)
        return onv_lower_by_traits(l, node);
    int64_t dims[ONV_MAX_RANK], strides[ONV_MAX_RANK];
    for (uint32_t i = 0, to = 0; i < t.rank; i++) {
        if (i == axis) continue;
        dims[to] = t.dims[i];
        strides[to++] = t.strides[i];
    }
    onv_grad grad = t.dims[axis] == 1 ? ONV_GRAD_ALIAS : ONV_GRAD_NEW;
    return onv_emit_view(&l->emit, "select", x, t.rank - 1, dims, strides, grad);
}

uint32_t onv_lower_gather_nd(onv_lowering *l, const onv_node *node)
{
    uint32_t indices = onv_node_in(l, node, 1);
    size_t before = l->emit.eager->ops.count;
    uint32_t out = onv_lower_by_traits(l, node);
    onv_eager_op *op = onv_emit_made_since(&l->emit, before);
    onv_eager_tensor t = onv_tensor_at(&l->emit, indices);
    if (op == NULL || !op->has_backward || t.rank == 0 || t.dims[t.rank - 1] == 0) return out;
    uint64_t n = t.elems / (uint64_t)t.dims[t.rank - 1];
    op->backward_temp_bytes =
        onv_u64_plus(op->backward_temp_bytes, onv_u64_times(n, 4 * sizeof(int64_t)));
    return out;
}

/* Images whose channels all come last are joined so. */
uint32_t onv_lower_concat(onv_lowering *l, const onv_node *node)
{
    bool is_last = node->n_inputs > 0;
    onv_recover_list(l, "tensors");
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        uint32_t in = onv_node_in(l, node, k);
        onv_eager_tensor x = onv_tensor_at(&l->emit, in);
        is_last &= in != ONV_NO_TENSOR && onv_tensor_is_channels_last(&x);
        onv_recover_tensor(l, "", in);
        l->recovery.like = in;
    }
    if (!is_last) l->recovery.like = ONV_NO_TENSOR;
    return onv_recover_call(l, ONV_ATEN_cat, node->outputs[0]);
}

/* Scatters: assignments to a part of a tensor, and those that reduce: scatter_reduce to the least, the most or the product. Sums are scatter_add, which keeps
 * indices alone. */
#include <string.h>

#include "base/checked.h"
#include "eager/lower.h"

/* scatter_reduce_backward of a least or a most, beside both gradients. Of the result's size: where it was the base, how
 * many share a gradient, and their part; the base's gradient where nothing asked for it. Of the source's size: what was
 * taken, where that was the source; then the part that comes back with a comparison, or, where the base does not count
 * (include_self=False), the scatter that clears its gradient. */
static uint64_t backward_bytes(const onv_eager_tensor *base, const onv_eager_tensor *source,
                               bool trains_base, bool resets)
{
    uint64_t result, sources, part, kept, all;
    if (!onv_dtype_bytes((onv_dtype)base->dtype, base->elems, &result) ||
        !onv_dtype_bytes((onv_dtype)source->dtype, source->elems, &sources) ||
        !onv_u64_add(sources, source->elems, &part) ||
        !onv_u64_mul(result, trains_base ? 3 : 4, &kept) || !onv_u64_mul(sources, 2, &all) ||
        !onv_u64_add(all, kept, &all) ||
        !onv_u64_add(all, resets && result > part ? result : part, &all))
        return UINT64_MAX;
    return all;
}

static void lower(onv_lowering *l, onv_value_id base_id, const onv_node *node, bool resets)
{
    uint32_t base = onv_value_tensor(l, base_id), source = onv_node_in(l, node, 2);
    uint32_t indices = onv_node_in(l, node, 1), out = onv_node_new(l, node, 0, ONV_UNDEFINED);
    if (out == ONV_NO_TENSOR) return;
    onv_emit_begin(l, "scatter_reduce");
    onv_emit_in(l, base, ONV_GRAD_NEW);
    onv_emit_in(l, indices, ONV_GRAD_NONE);
    onv_emit_in(l, source, ONV_GRAD_NEW);
    onv_emit_save(l, base);
    onv_emit_save(l, indices);
    onv_emit_save(l, source);
    onv_emit_save(l, out);
    const onv_attr *reduction = onv_node_attr(node, "reduction");
    if (base != ONV_NO_TENSOR && source != ONV_NO_TENSOR && strcmp(reduction->s, "mul") != 0) {
        onv_eager_tensor to = onv_tensor_at(l, base), from = onv_tensor_at(l, source);
        onv_emit_temps(l, 0, backward_bytes(&to, &from, onv_tensor_needs_grad(l, base), resets));
    }
    onv_node_set(l, node, 0, onv_emit_out(l, out));
    onv_emit_end(l);
}

bool onv_node_assigns(const onv_node *node)
{
    return strncmp(node->op_type, "Scatter", 7) == 0 &&
           (onv_node_is_aten(node, "slice_scatter") || onv_node_is_aten(node, "select_scatter"));
}

bool onv_node_is_geometric(const onv_node *node)
{
    static const char library[] = "torch_geometric.";
    return node->module_class != NULL &&
           strncmp(node->module_class, library, sizeof library - 1) == 0;
}

/* zeros.scatter_add_(...): what is added to has no other reader, and becomes the result. PyTorch Geometric's scatter() does
 * so, which is no forward. */
static bool adds_in_place(onv_lowering *l, const onv_node *node)
{
    const onv_attr *reduction = onv_node_attr(node, "reduction");
    bool adds =
        reduction != NULL && reduction->kind == ONV_ATTR_STRING && strcmp(reduction->s, "add") == 0;
    bool may = node->in_place == ONV_IN_PLACE_YES ||
               (node->in_place == ONV_IN_PLACE_UNTOLD && onv_node_is_geometric(node));
    if (!adds || !may || node->n_inputs < 3 || l->options->no_inplace) return false;
    return onv_value_is_fill(l, node->inputs[0]);
}

static void add_in_place(onv_lowering *l, const onv_node *node)
{
    uint32_t base = onv_node_in(l, node, 0);
    onv_eager_tensor t = onv_tensor_at(l, base);
    uint32_t out = onv_tensor_on(l, t.storage, t.dtype, t.rank, t.dims, t.strides);
    onv_emit_begin(l, node->op_type);
    l->op.in_place = true;
    onv_emit_in(l, base, ONV_GRAD_ALIAS);
    onv_emit_in(l, onv_node_in(l, node, 1), ONV_GRAD_NONE);
    onv_emit_in(l, onv_node_in(l, node, 2), ONV_GRAD_NEW);
    onv_emit_save(l, onv_node_in(l, node, 1));
    onv_node_set(l, node, 0, onv_emit_out(l, out));
    onv_emit_end(l);
}

/* `x[:, n:] = y`: a copy into a view of x, which no operation keeps. The backward (CopySlices) copies the gradient of x, fills
 * the part with zeros, and hands on a copy of it. */
bool onv_lower_assignment(onv_lowering *l, const onv_node *node)
{
    if (!onv_node_assigns(node) || node->n_inputs < 3 || l->options->as_exported) return false;
    uint32_t base = onv_node_in(l, node, 0), source = onv_node_in(l, node, 2);
    onv_eager_tensor t = onv_tensor_at(l, base), part = onv_tensor_at(l, source);
    if (base == ONV_NO_TENSOR || l->status != ONV_OK) return false;
    bool is_own = l->eager->storages.at[t.storage].kind == ONV_STORAGE_ACTIVATION &&
                  !l->saved.at[t.storage] && !l->options->no_inplace;
    uint32_t out = is_own ? onv_tensor_on(l, t.storage, t.dtype, t.rank, t.dims, t.strides)
                          : onv_node_new_like(l, node, t.dtype, &t);
    uint64_t zeros = source != ONV_NO_TENSOR ? part.bytes : 0;
    if (!onv_tensor_needs_grad(l, base) && !onv_u64_add(zeros, t.bytes, &zeros)) zeros = UINT64_MAX;
    onv_emit_begin(l, "copy_");
    l->op.in_place = is_own;
    onv_emit_in(l, base, ONV_GRAD_NEW);
    onv_emit_in(l, source, ONV_GRAD_NEW);
    onv_emit_temps(l, 0, zeros);
    onv_node_set(l, node, 0, onv_emit_out(l, out));
    onv_emit_end(l);
    return true;
}

void onv_lower_scatter_elements(onv_lowering *l, const onv_node *node)
{
    if (onv_lower_assignment(l, node)) return;
    if (adds_in_place(l, node))
        add_in_place(l, node);
    else if (onv_scatter_reduces(node) && node->n_inputs >= 3)
        lower(l, node->inputs[0], node, false);
    else
        onv_lower_by_traits(l, node);
}

void onv_lower_scatter_fusion(onv_lowering *l, const onv_fusion *f)
{
    lower(l, f->x, onv_model_node(l->model, f->last), true);
}

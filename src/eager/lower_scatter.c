/* Scatters that reduce: scatter_reduce to the least, the most or the product. Sums are scatter_add, which keeps
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

void onv_lower_scatter_elements(onv_lowering *l, const onv_node *node)
{
    if (onv_scatter_reduces(node) && node->n_inputs >= 3)
        lower(l, node->inputs[0], node, false);
    else
        onv_lower_by_traits(l, node);
}

void onv_lower_scatter_fusion(onv_lowering *l, const onv_fusion *f)
{
    lower(l, f->x, onv_model_node(l->model, f->last), true);
}

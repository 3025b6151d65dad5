/* Scatters: writes into a part of a tensor, and those that reduce: scatter_reduce to the least, the most or the product. Sums are scatter_add, which keeps
 * indices alone. */
#include <string.h>

#include "lower/lowering.h"
#include "ops/op.h"

static bool adds_up(const onv_node *node)
{
    const onv_attr *reduction = onv_node_attr(node, "reduction");
    return reduction != NULL && reduction->kind == ONV_ATTR_STRING &&
           strcmp(reduction->s, "add") == 0;
}

/* A mean is a sum with a division behind it, which the node does not have. */
static uint32_t recover_reduction(onv_lowering *l, const onv_node *node)
{
    const onv_attr *reduction = onv_node_attr(node, "reduction");
    for (uint32_t k = 0; k < 3; k++) onv_recover_tensor(l, "", onv_node_in(l, node, k));
    onv_recover_text(l, "reduce",
                     !onv_scatter_reduces(node)         ? adds_up(node) ? "sum" : "mean"
                     : strcmp(reduction->s, "mul") == 0 ? "prod"
                                                        : reduction->s);
    return onv_recover_call(l, ONV_ATEN_scatter_reduce, node->outputs[0]);
}

bool onv_node_is_geometric(const onv_node *node)
{
    static const char library[] = "torch_geometric.";
    return strncmp(onv_noted(node)->module_class, library, sizeof library - 1) == 0;
}

uint32_t onv_lower_scatter_elements(onv_lowering *l, const onv_node *node)
{
    bool reduces = onv_scatter_reduces(node) || onv_node_is_aten(node, "scatter_reduce");
    return reduces && node->n_inputs >= 3 ? recover_reduction(l, node)
                                          : onv_lower_by_traits(l, node);
}

/* What may be written into: it is no constant, and no operation keeps it, which autograd would refuse. */
static bool may_write(const onv_lowering *l, uint32_t x)
{
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    const onv_eager_storage *storage = &l->emit.eager->storages.at[t.storage];
    bool is_own = storage->kind == ONV_STORAGE_ACTIVATION || storage->kind == ONV_STORAGE_INPUT;
    return is_own && !l->emit.saved.at[t.storage] && t.storage >= l->region.first_storage;
}

/* --- Tensors of places ------------------------------------------------------------------------- */

/* The strides before the exporter's own Transpose, which only ScatterND needs: what that gives is contiguous. */
static bool find_untransposed(const onv_lowering *l, const onv_node *node, const onv_shape *shape,
                              int64_t *strides)
{
    uint32_t value = node->outputs[0].index;
    onv_node_id user = l->fusions->user[value];
    const onv_node *reader = onv_is_node(user) ? onv_model_node(l->emit.model, user) : NULL;
    const onv_attr *perm = reader != NULL ? onv_node_attr(reader, "perm") : NULL;
    bool own = perm != NULL && perm->kind == ONV_ATTR_INTS && perm->count == shape->rank &&
               l->fusions->n_uses[value] == 1 && reader->code == ONV_OP_Transpose &&
               onv_noted(reader)->source_op == onv_noted(node)->source_op;
    int64_t step = 1;
    for (uint32_t i = shape->rank; own && i-- > 0;) {
        strides[perm->ints[i]] = step; /* inference has checked the permutation */
        step *= shape->dims[perm->ints[i]];
    }
    return own;
}

/* `y[:, i] = v` writes into y, which is never kept before: a tensor of its own that the exporter has as a constant, or one
 * that was computed. */
static bool puts_in_place(onv_lowering *l, const onv_node *node, uint32_t base)
{
    if (base == ONV_NO_TENSOR || onv_noted(node)->in_place != ONV_IN_PLACE_YES ||
        l->emit.options->no_inplace || !onv_node_is_aten(node, "index_put"))
        return false;
    return onv_value_is_fill(l, node->inputs[0]) || may_write(l, base);
}

/* `y = x.clone()` before it, which the exporter leaves out: of what is contiguous it is a copy, too. */
static uint32_t cloned_base(onv_lowering *l, const onv_node *node, uint32_t base)
{
    const onv_node *reader = node;
    if (base == ONV_NO_TENSOR || !onv_is_value(node->inputs[0])) return base;
    const onv_node *move = onv_model_maker(l->emit.model, node->inputs[0]);
    if (move != NULL && move->code == ONV_OP_Transpose && onv_is_same_call(move, node))
        reader = move;
    onv_value_id id = reader->inputs[0];
    if ((onv_noted(reader)->clones & ONV_BIT(0)) == 0 || !onv_is_value(id) ||
        l->values[id.index].tensor == ONV_NO_TENSOR)
        return base;
    onv_eager_tensor t = onv_tensor_at(&l->emit, base);
    if (t.storage != onv_tensor_at(&l->emit, l->values[id.index].tensor).storage)
        return base; /* it was made */
    int64_t strides[ONV_MAX_RANK];
    onv_strides_like(&t, strides);
    return onv_emit_of(&l->emit, "clone", base, ONV_GRAD_ALIAS, t.rank, t.dims, strides);
}

/* The batch is not written into, but a clone of it, which exports leave out. */
static bool writes_clone(const onv_emitter *e, uint32_t base)
{
    return onv_storage_of(e, base)->kind == ONV_STORAGE_INPUT;
}

/* `is_new`: of what is written into. */
static uint32_t new_result(onv_lowering *l, const onv_node *node, uint32_t base, bool in_place,
                           bool is_new)
{
    onv_shape shape;
    int64_t strides[ONV_MAX_RANK];
    if (!onv_value_shape(l, node->outputs[0], &shape)) return ONV_NO_TENSOR;
    bool own = find_untransposed(l, node, &shape, strides);
    onv_eager_tensor t = onv_tensor_at(&l->emit, base);
    if (!in_place)
        return onv_tensor_new(&l->emit, onv_promoted(l, node), shape.rank, shape.dims,
                              own ? strides : NULL);
    bool is_own = own && (is_new || onv_value_is_fill(l, node->inputs[0]));
    return onv_tensor_on(&l->emit, t.storage, t.dtype, t.rank, t.dims,
                         is_own ? strides : t.strides);
}

/* `x[:, t] = y` writes into a view of x; the exporter makes a new tensor of it. A call that is torch.slice_scatter does so itself. */
static void say_of_write(onv_lowering *l, const onv_node *node, uint32_t out)
{
    static const char writes[] = "select_scatter slice_scatter";
    if (onv_node_is_aten(node, writes) && onv_noted(node)->in_place != ONV_IN_PLACE_NO)
        onv_say(&l->emit, ONV_SAID_written, NULL, onv_tensor_at(&l->emit, out).bytes, node);
}

/* index_add and index_copy, which the newer exporter writes as index_put, keep what they add or copy. */
uint32_t onv_lower_scatter_nd(onv_lowering *l, const onv_node *node)
{
    bool adds = adds_up(node) && onv_node_is_aten(node, "index_put");
    uint32_t given = onv_node_in(l, node, 0), base = given, out;
    if (onv_noted(node)->in_place == ONV_IN_PLACE_YES) base = cloned_base(l, node, base);
    bool in_place = puts_in_place(l, node, base);
    bool copies = onv_noted(node)->copies_by_index;
    if (!adds && !copies && !in_place) {
        out = onv_lower_by_traits(l, node);
        say_of_write(l, node, out);
        return out;
    }
    if (in_place && writes_clone(&l->emit, base)) base = onv_emit_clone(&l->emit, base);
    bool is_new = base != given;
    if (is_new && base != ONV_NO_TENSOR)
        onv_storage_of(&l->emit, base)->is_given = true; /* it has a name */
    out = new_result(l, node, base, in_place, is_new);
    onv_emit_begin(&l->emit, adds ? "index_add" : copies ? "index_copy" : "index_put");
    l->emit.op.in_place = in_place;
    onv_emit_in(&l->emit, base, adds ? ONV_GRAD_ALIAS : ONV_GRAD_NEW);
    onv_emit_in_saved(&l->emit, onv_node_in(l, node, 1), ONV_GRAD_NONE);
    onv_emit_in(&l->emit, onv_node_in(l, node, 2), ONV_GRAD_NEW);
    if (adds || copies) onv_emit_save(&l->emit, onv_node_in(l, node, 2));
    onv_emit_out(&l->emit, out);
    onv_emit_end(&l->emit);
    return out;
}

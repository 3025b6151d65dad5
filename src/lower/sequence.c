/* Lists of tensors: sequences that are made of tensors and read again, for which PyTorch has a list that takes no memory of
 * its own, and blocks of a diagonal. */
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "lower/lowering.h"

static bool is_op(const onv_node *node, onv_op_name op)
{
    return node != NULL && node->domain[0] == '\0' && node->code == op;
}

/* torch.atleast_2d and its like of a list, which hstack and vstack call: views, dims of 1 more or none. */
static bool maps_views(const onv_node *node)
{
    return is_op(node, ONV_OP_SequenceMap) && node->n_inputs == 1 &&
           onv_node_is_aten(node, "atleast_1d atleast_2d atleast_3d");
}

/* Without a place: behind the last item. */
static bool appends(const onv_node *node)
{
    return is_op(node, ONV_OP_SequenceInsert) &&
           (node->n_inputs < 3 || !onv_is_value(node->inputs[2]));
}

static bool makes_list(const onv_node *node)
{
    return is_op(node, ONV_OP_SequenceConstruct) || is_op(node, ONV_OP_SequenceEmpty) ||
           appends(node) || maps_views(node);
}

static int64_t length_of(const onv_emitter *e, onv_value_id list)
{
    const onv_type *type = &onv_model_value(e->model, list)->type;
    const onv_dim length = onv_type_elements(type).length;
    return type->kind == ONV_TYPE_SEQUENCE && onv_dim_is_const(length) ? length.raw : -1;
}

/* Each list knows its depth and one further back, so that looking for an item takes few steps in a long chain. */
static void note_list(onv_lowering *l, const onv_node *node)
{
    if (l->lists == NULL)
        l->lists =
            ONV_ARENA_ARRAY(&l->emit.eager->arena, onv_list_place, l->emit.model->values.count);
    if (l->lists == NULL) l->emit.status = onv_fail_memory(l->emit.err);
    bool goes_on =
        (appends(node) || maps_views(node)) && node->n_inputs > 0 && onv_is_value(node->inputs[0]);
    if (l->lists == NULL || !goes_on || !onv_is_value(node->outputs[0])) return;
    uint32_t from = node->inputs[0].index;
    onv_list_place before = l->lists[from], first = l->lists[before.jump];
    bool doubles = before.depth - first.depth == first.depth - l->lists[first.jump].depth;
    l->lists[node->outputs[0].index] = (onv_list_place){
        .depth = before.depth + 1, .jump = doubles && before.depth > 0 ? first.jump : from};
}

/* The tensor that was put there; ONV_NO_TENSOR where that is not known. */
static uint32_t item_of(onv_lowering *l, onv_value_id list, int64_t place)
{
    if (place < 0) place += length_of(&l->emit, list);
    while (onv_is_value(list) && place >= 0 && l->emit.status == ONV_OK) {
        const onv_node *maker = onv_model_maker(l->emit.model, list);
        if (!onv_work(1)) l->emit.status = ONV_ERR_CANCELLED;
        if (is_op(maker, ONV_OP_SequenceConstruct))
            return place < maker->n_inputs ? onv_node_in(l, maker, (uint32_t)place) : ONV_NO_TENSOR;
        if (maker == NULL || !makes_list(maker) || maker->n_inputs == 0) return ONV_NO_TENSOR;
        if (appends(maker) && length_of(&l->emit, list) == place + 1)
            return onv_node_in(l, maker, 1);
        onv_value_id further = {l->lists != NULL ? l->lists[list.index].jump : 0};
        bool is_there = l->lists != NULL && l->lists[list.index].depth > 0 &&
                        length_of(&l->emit, further) > place;
        list = is_there ? further : maker->inputs[0];
    }
    return ONV_NO_TENSOR;
}

static void fail_on(onv_emitter *e, onv_value_id list)
{
    if (e->status == ONV_OK)
        e->status = onv_fail(e->err, ONV_ERR_USAGE, "'%s' is not a tensor; cannot size training",
                             onv_model_value(e->model, list)->name);
}

static void lower_at(onv_lowering *l, const onv_node *node)
{
    double place;
    onv_shape shape;
    uint32_t item = onv_node_scalar(&l->emit, node, 1, &place)
                        ? item_of(l, node->inputs[0], (int64_t)place)
                        : ONV_NO_TENSOR;
    if (item == ONV_NO_TENSOR) {
        fail_on(&l->emit, node->inputs[0]);
    } else if (onv_value_shape(l, node->outputs[0], &shape)) {
        onv_node_set(l, node, 0,
                     onv_tensor_has_dims(&l->emit, item, shape.rank, shape.dims)
                         ? item
                         : onv_emit_reshape(&l->emit, item, shape.rank, shape.dims));
    }
}

static void lower_joined(onv_lowering *l, const onv_node *node)
{
    int64_t n = length_of(&l->emit, node->inputs[0]);
    if (n < 1) {
        fail_on(&l->emit, node->inputs[0]);
        return;
    }
    onv_recover_list(l, "tensors");
    for (int64_t i = 0; i < n && l->emit.status == ONV_OK; i++) {
        uint32_t item = item_of(l, node->inputs[0], i);
        if (item == ONV_NO_TENSOR) fail_on(&l->emit, node->inputs[0]);
        onv_recover_tensor(l, "", item);
    }
    bool stacks = onv_node_int(node, "new_axis", 0) != 0;
    onv_node_set(l, node, 0,
                 onv_recover_call(l, stacks ? ONV_ATEN_stack : ONV_ATEN_cat, node->outputs[0]));
}

bool onv_lower_sequence(onv_lowering *l, const onv_node *node)
{
    if (l->emit.options->inference) return false;
    if (makes_list(node)) {
        note_list(l, node);
        return true;
    }
    bool joins = is_op(node, ONV_OP_ConcatFromSequence);
    if (!joins && !is_op(node, ONV_OP_SequenceAt)) return false;
    const onv_node *maker =
        node->n_inputs > 0 ? onv_model_maker(l->emit.model, node->inputs[0]) : NULL;
    if (maker == NULL || !makes_list(maker)) return false;
    (joins ? lower_joined : lower_at)(l, node);
    return true;
}

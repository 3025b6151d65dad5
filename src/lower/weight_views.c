/* Weights that were views of smaller ones in PyTorch: indices that repeat along dims. */
#include <string.h>

#include "base/fail.h"
#include "load/load.h"
#include "lower/lowering.h"

/* Does the tensor repeat along a dim of `count` blocks of `block` bytes each? */
static bool repeats(const unsigned char *data, uint64_t outer, uint64_t count, size_t block)
{
    for (uint64_t o = 0; o < outer; o++, data += count * block)
        for (uint64_t i = 1; i < count; i++)
            if (memcmp(data, data + i * block, block) != 0) return false;
    return true;
}

/* Larger ones are not read, and so many are compared. */
enum { MAX_VIEW_BYTES = 64 << 20, MAX_VIEWS = 64 };

/* Does a scatter take `elems` indices that the file has as they are? They are what others repeat. */
static bool has_plain_indices(const onv_emitter *e, uint64_t elems)
{
    for (size_t i = 0; i < e->model->nodes.count; i++) {
        const onv_node *node = &e->model->nodes.at[i];
        if (node->code != ONV_OP_ScatterElements || node->n_inputs < 2) continue;
        if (!onv_is_value(node->inputs[1])) continue;
        const onv_value *index = onv_model_value(e->model, node->inputs[1]);
        if (onv_value_is_weight(index) && index->tensor != NULL && index->tensor->elems == elems)
            return true;
    }
    return false;
}

/* Indices of elements have at least the dim that they index along. */
static uint64_t indexed_bytes(const onv_lowering *l, onv_value_id id)
{
    const onv_tensor *tensor = onv_model_value(l->emit.model, id)->tensor;
    onv_node_id user = l->fusions->user[id.index];
    if (!onv_is_node(user) || tensor->elems == 0) return 0;
    const onv_node *node = onv_model_node(l->emit.model, user);
    int64_t rank = tensor->type.rank, axis = onv_node_axis(node, 0, rank);
    bool indexes = node->code == ONV_OP_ScatterElements || node->code == ONV_OP_GatherElements;
    if (!indexes || axis < 0) return 0;
    uint64_t elems = (uint64_t)tensor->type.dims[axis].raw;
    if (rank == 1) return tensor->bytes; /* it is the plain one */
    return has_plain_indices(&l->emit, elems) ? 0 : tensor->bytes / tensor->elems * elems;
}

static bool is_alike(const onv_emitter *e, onv_value_id a, onv_value_id b)
{
    const onv_type *type = &onv_model_value(e->model, a)->tensor->type;
    const onv_type *other = &onv_model_value(e->model, b)->tensor->type;
    bool same = type->dtype == other->dtype && type->rank == other->rank;
    for (int d = 0; same && d < type->rank; d++) same = onv_dim_same(type->dims[d], other->dims[d]);
    return same;
}

/* Calls in turn are given the same indices: those of one shape are views of one tensor, if the file has nothing else. */
static bool is_viewed_before(const onv_lowering *l, onv_value_id id)
{
    for (size_t i = 0; i < l->weights.views.count; i++)
        if (is_alike(&l->emit, id, l->weights.views.at[i])) return true;
    return false;
}

uint64_t onv_weight_viewed_bytes(onv_lowering *l, onv_value_id id)
{
    const onv_tensor *tensor = onv_model_value(l->emit.model, id)->tensor;
    const onv_payload *data = &tensor->payload;
    if (l->weights.views.count >= MAX_VIEWS || is_viewed_before(l, id)) return 0;
    if (!onv_vec_push(&l->weights.views, id)) onv_emit_fail_memory(&l->emit);
    uint64_t left = tensor->bytes, outer = 1;
    const unsigned char *bytes = NULL;
    if (data->bytes == tensor->bytes && tensor->bytes <= MAX_VIEW_BYTES && l->emit.status == ONV_OK)
        l->emit.status = onv_load_raw(l->emit.model, tensor, &bytes, l->emit.err);
    if (bytes == NULL || tensor->elems == 0) return indexed_bytes(l, id);
    for (int i = 0; i < tensor->type.rank; i++) {
        uint64_t count = (uint64_t)tensor->type.dims[i].raw;
        uint64_t block = tensor->bytes / outer / count;
        if (repeats(bytes, outer, count, (size_t)block)) left /= count;
        outer *= count;
    }
    return left;
}

/* Weights that were views of smaller ones in PyTorch: indices that repeat along dims. */
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/quota.h"
#include "base/rules.h"
#include "base/strings.h"
#include "load/load.h"
#include "lower/lowering.h"
#include "lower/weight_place.h"

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
static bool has_plain_indices(const onv_lowering *l, uint64_t elems)
{
    for (size_t i = 0; i < l->emit.model->nodes.count; i++) {
        const onv_node *node = &l->emit.model->nodes.at[i];
        if (strcmp(node->op_type, "ScatterElements") != 0 || node->n_inputs < 2) continue;
        if (!onv_is_value(node->inputs[1])) continue;
        const onv_value *index = onv_model_value(l->emit.model, node->inputs[1]);
        if (onv_value_is_weight(index) && index->tensor != NULL && index->tensor->elems == elems)
            return true;
    }
    return false;
}

/* Indices of elements have at least the dim that they index along. */
static uint64_t indexed_bytes(const onv_lowering *l, onv_value_id id)
{
    const onv_tensor *tensor = onv_model_value(l->emit.model, id)->tensor;
    onv_node_id user = l->fusions.user[id.index];
    if (!onv_is_node(user) || tensor->elems == 0) return 0;
    const onv_node *node = onv_model_node(l->emit.model, user);
    int64_t rank = tensor->type.rank, axis = onv_node_int(node, "axis", 0);
    bool indexes = strcmp(node->op_type, "ScatterElements") == 0 ||
                   strcmp(node->op_type, "GatherElements") == 0;
    if (axis < 0) axis += rank;
    if (!indexes || axis < 0 || axis >= rank) return 0;
    uint64_t elems = (uint64_t)tensor->type.dims[axis].raw;
    if (rank == 1) return tensor->bytes; /* it is the plain one */
    return has_plain_indices(l, elems) ? 0 : tensor->bytes / tensor->elems * elems;
}

static bool is_alike(const onv_lowering *l, onv_value_id a, onv_value_id b)
{
    const onv_type *type = &onv_model_value(l->emit.model, a)->tensor->type;
    const onv_type *other = &onv_model_value(l->emit.model, b)->tensor->type;
    bool same = type->dtype == other->dtype && type->rank == other->rank;
    for (int d = 0; same && d < type->rank; d++) same = onv_dim_same(type->dims[d], other->dims[d]);
    return same;
}

/* Which node indexes by it along the first dim; NULL: none. */
static const onv_node *first_dim_indexer(const onv_lowering *l, onv_value_id id)
{
    onv_node_id user = l->fusions.user[id.index];
    const onv_node *node = onv_is_node(user) ? onv_model_node(l->emit.model, user) : NULL;
    bool indexes = node != NULL && strcmp(node->op_type, "ScatterElements") == 0 &&
                   onv_node_int(node, "axis", 0) == 0;
    return indexes ? node : NULL;
}

/* Do both repeat the same index for each row? Of as many rows as their first bytes have. */
static bool repeats_same(onv_lowering *l, onv_value_id a, onv_value_id b, bool if_unknown)
{
    enum { PER_WORK = 256 }; /* bytes */
    const onv_tensor *t[2] = {onv_model_value(l->emit.model, a)->tensor,
                              onv_model_value(l->emit.model, b)->tensor};
    const unsigned char *data[2];
    unsigned char *buffers[2];
    uint64_t row[2], n = UINT64_MAX;
    if (!onv_work(2 * ONV_MOST_HEAD / PER_WORK)) l->emit.status = ONV_ERR_CANCELLED;
    for (int k = 0; k < 2; k++) {
        size_t bytes = t[k]->bytes < ONV_MOST_HEAD ? (size_t)t[k]->bytes : ONV_MOST_HEAD;
        row[k] = t[k]->bytes / (uint64_t)t[k]->type.dims[0].raw;
        data[k] = onv_weight_head(l, t[k], bytes, &buffers[k]);
        if (bytes / row[k] < n) n = bytes / row[k];
    }
    bool is_known = data[0] != NULL && data[1] != NULL, same = is_known || if_unknown;
    size_t each = (size_t)(t[0]->bytes / t[0]->elems);
    for (uint64_t i = 0; same && i < n && is_known; i++)
        same = memcmp(data[0] + i * row[0], data[1] + i * row[1], each) == 0;
    for (int k = 0; k < 2; k++) onv_heap_free(buffers[k]);
    return same;
}

/* The same edges for layers of other widths. */
static bool is_wider(onv_lowering *l, onv_value_id a, onv_value_id b)
{
    const onv_tensor *t = onv_model_value(l->emit.model, a)->tensor,
                     *other = onv_model_value(l->emit.model, b)->tensor;
    return t->type.dtype == other->type.dtype && t->type.rank > 1 && other->type.rank > 1 &&
           t->elems > 0 && other->elems > 0 && t->bytes >= t->elems &&
           onv_dim_same(t->type.dims[0], other->type.dims[0]) && first_dim_indexer(l, a) != NULL &&
           first_dim_indexer(l, b) != NULL && repeats_same(l, a, b, true);
}

/* Does the file have the indices that it repeats as they are, which another operation reads? */
static bool has_unrepeated(onv_lowering *l, onv_value_id id)
{
    const onv_tensor *tensor = onv_model_value(l->emit.model, id)->tensor;
    if (first_dim_indexer(l, id) == NULL || tensor->type.rank < 2 || tensor->elems == 0 ||
        tensor->bytes < tensor->elems)
        return false;
    if (!onv_work(l->emit.model->values.count)) l->emit.status = ONV_ERR_CANCELLED;
    for (uint32_t i = 0; i < l->emit.model->values.count && l->emit.status == ONV_OK; i++) {
        const onv_value *value = &l->emit.model->values.at[i];
        const onv_tensor *other = value->tensor;
        if (!onv_value_is_weight(value) || other == NULL || other->type.rank != 1 ||
            other->type.dtype != tensor->type.dtype || l->fusions.n_uses[i] == 0 ||
            !onv_dim_same(other->type.dims[0], tensor->type.dims[0]))
            continue;
        if (repeats_same(l, id, (onv_value_id){i}, false)) return true;
    }
    return false;
}

static bool is_same_view(onv_lowering *l, onv_value_id a, onv_value_id b)
{
    const onv_tensor *t = onv_model_value(l->emit.model, a)->tensor;
    bool has_rows = t->type.rank > 0 && t->elems > 0 && t->bytes >= t->elems;
    return is_alike(l, a, b) && (!has_rows || repeats_same(l, a, b, true));
}

/* Calls in turn are given the same indices: those of one shape are views of one tensor, if the file has nothing else. */
static bool is_viewed_before(onv_lowering *l, onv_value_id id)
{
    for (size_t i = 0; i < l->weights.views.count; i++)
        if (is_same_view(l, id, l->weights.views.at[i]) || is_wider(l, id, l->weights.views.at[i]))
            return true;
    return false;
}

uint64_t onv_weight_viewed_bytes(onv_lowering *l, onv_value_id id)
{
    const onv_tensor *tensor = onv_model_value(l->emit.model, id)->tensor;
    const onv_payload *data = &tensor->payload;
    if (l->weights.views.count >= MAX_VIEWS || is_viewed_before(l, id) || has_unrepeated(l, id))
        return 0;
    if (!onv_vec_push(&l->weights.views, id) && l->emit.status == ONV_OK)
        l->emit.status = onv_fail_memory(l->emit.err);
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

uint64_t onv_weight_contents(onv_lowering *l, onv_value_id id)
{
    const onv_tensor *tensor = onv_model_value(l->emit.model, id)->tensor;
    size_t bytes = tensor->bytes < ONV_MOST_HEAD ? (size_t)tensor->bytes : ONV_MOST_HEAD;
    unsigned char *buffer;
    const unsigned char *data = onv_weight_head(l, tensor, bytes, &buffer);
    uint64_t hash = data != NULL ? onv_hash_bytes(data, bytes, 1) : 0;
    onv_heap_free(buffer);
    return hash;
}

/* --- What modules are given -------------------------------------------------------------------- */

/* "unsqueeze_14" is a view of what something else made: of tables of rotations, say, that all layers are given. An
 * export that computed them has a copy for each layer. They are one tensor where modules of one class read them, and where
 * the file has the same of them: layers of two kinds, with global and with local attention, are given a table each. Where
 * their contents are not at hand, the order decides in which each module reads them. */
static bool is_given(const onv_lowering *l, onv_value_id id, const onv_weight_read *read)
{
    if (!onv_rule_is_on("lower.given_views")) return false;
    static const char *const views[] = {"unsqueeze", "squeeze",   "permute", "expand", "select",
                                        "flatten",   "transpose", "slice",   "t"};
    const char *name = onv_model_value(l->emit.model, id)->name;
    return read != NULL && read->scope[0] != '\0' && l->emit.region == ONV_NO_REGION &&
           l->emit.model->nodes.at[read->node].module_class != NULL &&
           onv_is_call_of_any(name, views, sizeof views / sizeof views[0]);
}

uint32_t onv_weight_given_before(onv_lowering *l, onv_value_id id, const onv_weight_read *read,
                                 onv_given *given)
{
    *given = (onv_given){.value = ONV_NO_VALUE};
    if (!is_given(l, id, read)) return ONV_NO_TENSOR;
    *given = (onv_given){id, ONV_NO_TENSOR, onv_weight_contents(l, id), read->scope,
                         l->emit.model->nodes.at[read->node].module_class};
    for (size_t i = 0; i < l->weights.given.count; i++) {
        onv_given *at = &l->weights.given.at[i];
        bool is_other = strcmp(at->last_scope, given->last_scope) != 0;
        if ((!is_other && given->contents == 0) ||
            strcmp(at->module_class, given->module_class) != 0 || !is_alike(l, id, at->value) ||
            at->contents != given->contents)
            continue;
        at->last_scope = given->last_scope;
        l->emit.eager->storages.at[l->emit.eager->tensors.at[at->tensor].storage].is_given = true;
        return at->tensor;
    }
    return ONV_NO_TENSOR;
}

void onv_weight_note_given(onv_lowering *l, onv_given given, uint32_t tensor)
{
    if (!onv_is_value(given.value) || l->weights.given.count >= MAX_VIEWS) return;
    given.tensor = tensor;
    if (!onv_vec_push(&l->weights.given, given) && l->emit.status == ONV_OK)
        l->emit.status = onv_fail_memory(l->emit.err);
}

/* Equal constants, and nodes that compute the same. */
#include <string.h>

#include "base/heap.h"
#include "base/quota.h"
#include "base/strings.h"
#include "rewrite/rules.h"

/* An open hash table of numbers. */
typedef struct table {
    uint32_t *slots; /* index + 1; 0: empty */
    uint32_t mask;
} table;

static bool open_table(onv_edit *e, table *t, size_t n)
{
    uint32_t size = 16;
    while (size < 2 * n && size < UINT32_C(1) << 31) size *= 2;
    t->slots = onv_heap_calloc(size, sizeof *t->slots);
    t->mask = size - 1;
    return onv_edit_checked(e, t->slots) != NULL;
}

typedef bool same_row(const onv_edit *e, uint32_t a, uint32_t b);

/* The same one that is there; else `index` itself, which is there from now on. */
static uint32_t find_or_add(const onv_edit *e, const table *t, uint64_t hash, uint32_t index,
                            same_row *same)
{
    uint32_t slot = (uint32_t)hash & t->mask;
    while (t->slots[slot] != 0 && !same(e, t->slots[slot] - 1, index)) slot = (slot + 1) & t->mask;
    if (t->slots[slot] == 0) t->slots[slot] = index + 1;
    return t->slots[slot] - 1;
}

/* --- Constants --------------------------------------------------------------------------------- */

/* Of up to 8 elements (constant_sharing.h). */
static bool is_shareable(onv_edit *e, onv_value_id id, const onv_known **known)
{
    enum { MOST_ELEMENTS = 8 };
    const onv_value *value = onv_edit_value_at(e, id);
    uint8_t dtype = value->type.dtype;
    bool is_listed = dtype == ONV_FLOAT || dtype == ONV_FLOAT16 || dtype == ONV_DOUBLE ||
                     dtype == ONV_INT32 || dtype == ONV_INT64;
    if (value->kind != ONV_VALUE_INITIALIZER || value->tensor == NULL || value->tensor->elems < 1 ||
        value->tensor->elems > MOST_ELEMENTS || e->values.at[id.index].n_uses == 0 ||
        value->is_output)
        return false;
    if (!is_listed || onv_edit_is_read_inside(e, id)) return false;
    *known = onv_edit_constant(e, id);
    return *known != NULL && (*known)->count == value->tensor->elems;
}

/* By bits: of floats two zeros are told apart, and NaN is itself. */
static uint64_t hash_constant(const onv_known *known)
{
    uint64_t hash = onv_hash_bytes(known->dims, (size_t)known->rank * sizeof *known->dims,
                                   onv_hash_word(known->dtype));
    return onv_hash_bytes(known->elems, known->count * sizeof *known->elems, hash);
}

static bool same_constant(const onv_edit *e, uint32_t first, uint32_t second)
{
    const onv_known *a = e->model->values.at[first].known, *b = e->model->values.at[second].known;
    return a->dtype == b->dtype && a->rank == b->rank && a->count == b->count &&
           (a->rank == 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0) &&
           memcmp(a->elems, b->elems, a->count * sizeof *a->elems) == 0;
}

/* Small tensors with the same type, shape and numbers are one; in the main graph. */
uint32_t onv_rule_constant_sharing(onv_edit *e, onv_graph_id graph)
{
    table t;
    uint32_t n_shared = 0, n_values = (uint32_t)e->values.count;
    if (graph.index != 0) return 0;
    if (!onv_work(n_values)) onv_edit_fail(e, ONV_ERR_MEMORY);
    if (e->status != ONV_OK || !open_table(e, &t, n_values)) return 0;
    for (uint32_t i = 0; i < n_values && e->status == ONV_OK; i++) {
        const onv_known *known;
        onv_value_id id = {i};
        if (onv_edit_value_at(e, id)->graph.index != graph.index || !is_shareable(e, id, &known))
            continue;
        uint32_t first = find_or_add(e, &t, hash_constant(known), i, same_constant);
        if (first == i) continue;
        onv_edit_replace(e, id, (onv_value_id){first});
        n_shared++;
    }
    onv_heap_free(t.slots);
    return n_shared;
}

/* --- Nodes ------------------------------------------------------------------------------------- */

/* What makes an attribute what it is: of tensors, small ones whose bytes are at hand. NULL: it is like no other. */
static const void *bytes_of(const onv_attr *attr, size_t *size)
{
    const onv_tensor *tensor = attr->tensor;
    switch ((onv_attr_kind)attr->kind) {
    case ONV_ATTR_INT: *size = sizeof attr->i; return &attr->i;
    case ONV_ATTR_FLOAT: *size = sizeof attr->f; return &attr->f;
    case ONV_ATTR_STRING: *size = strlen(attr->s); return attr->s;
    case ONV_ATTR_INTS: *size = attr->count * sizeof *attr->ints; return attr->ints;
    case ONV_ATTR_FLOATS: *size = attr->count * sizeof *attr->floats; return attr->floats;
    case ONV_ATTR_TENSOR: {
        bool is_small = tensor->payload.kind == ONV_PAYLOAD_RAW && tensor->type.rank <= 1 &&
                        tensor->payload.bytes <= ONV_PAYLOAD_AT_HAND;
        *size = (size_t)tensor->payload.bytes;
        return is_small ? tensor->payload.data : NULL;
    }
    default: return NULL; /* graphs and the like */
    }
}

static bool same_attr(const onv_attr *a, const onv_attr *b)
{
    size_t n, n_other;
    const void *bytes = bytes_of(a, &n), *other = bytes_of(b, &n_other);
    if (a->name != b->name || a->kind != b->kind || bytes == NULL || other == NULL) return false;
    if (a->kind == ONV_ATTR_TENSOR &&
        (a->tensor->type.dtype != b->tensor->type.dtype ||
         a->tensor->type.rank != b->tensor->type.rank || a->tensor->elems != b->tensor->elems))
        return false;
    return n == n_other && memcmp(bytes, other, n) == 0;
}

static bool same_node(const onv_edit *e, uint32_t first, uint32_t second)
{
    const onv_node *a = &e->model->nodes.at[first], *b = &e->model->nodes.at[second];
    if (e->nodes.at[first].is_removed || a->op_type != b->op_type || a->domain != b->domain ||
        a->n_inputs != b->n_inputs || a->n_attrs != b->n_attrs)
        return false;
    for (uint32_t k = 0; k < a->n_inputs; k++)
        if (a->inputs[k].index != b->inputs[k].index) return false;
    for (uint32_t k = 0; k < a->n_attrs; k++) /* one exporter writes them in one order */
        if (!same_attr(&a->attrs[k], &b->attrs[k])) return false;
    return true;
}

static bool hash_attr(const onv_attr *attr, uint64_t *hash)
{
    size_t size;
    const void *bytes = bytes_of(attr, &size);
    if (bytes == NULL) return false;
    *hash = onv_hash_bytes(bytes, size, onv_hash_word(*hash ^ (uintptr_t)attr->name) | 1);
    return true;
}

/* False where it is like no other. */
static bool hash_node(const onv_node *node, uint64_t *hash)
{
    if (node->op == NULL || (node->op->flags & (ONV_OP_RANDOM | ONV_OP_SUBGRAPH)) != 0)
        return false;
    *hash = onv_hash_word((uintptr_t)node->op_type ^ node->n_attrs);
    for (uint32_t k = 0; k < node->n_inputs; k++)
        *hash = onv_hash_word(*hash + node->inputs[k].index);
    for (uint32_t k = 0; k < node->n_attrs; k++)
        if (!hash_attr(&node->attrs[k], hash)) return false;
    return true;
}

/* What reads outputs of a node reads those of an equal one that ran before. */
static bool merge(onv_edit *e, onv_node_id before, onv_node_id node)
{
    const onv_node *from = onv_edit_node_at(e, node), *to = onv_edit_node_at(e, before);
    bool is_replaced = false;
    for (uint32_t k = 0; k < from->n_outputs && k < to->n_outputs; k++) {
        if (!onv_is_value(from->outputs[k]) || !onv_is_value(to->outputs[k]) ||
            onv_edit_is_result(e, from->outputs[k]))
            continue;
        onv_edit_replace(e, from->outputs[k], to->outputs[k]);
        is_replaced = true;
    }
    if (is_replaced && onv_edit_is_unread(e, node)) onv_edit_remove(e, node);
    return is_replaced && !onv_edit_is_there(e, node);
}

uint32_t onv_rule_common_subexpressions(onv_edit *e, onv_graph_id graph)
{
    table t;
    uint32_t n_merged = 0;
    if (!open_table(e, &t, onv_edit_n_nodes(e, graph))) return 0;
    for (onv_node_id id = onv_edit_first(e, graph); onv_is_node(id) && e->status == ONV_OK;
         id = onv_edit_next(e, id)) {
        const onv_node *node = onv_edit_node_at(e, id);
        uint64_t hash;
        if (!hash_node(node, &hash)) continue;
        uint32_t first = find_or_add(e, &t, hash, id.index, same_node);
        if (first != id.index) n_merged += merge(e, (onv_node_id){first}, id);
    }
    onv_heap_free(t.slots);
    return n_merged;
}

/* Reshapes: to shapes put together from their own input, and several in a row. */
#include "rewrite/fuse.h"

/* --- A shape that is put together -------------------------------------------------------------- */

enum { MOST_DIMS = ONV_MAX_RANK };

typedef struct new_shape {
    int64_t dims[MOST_DIMS];
    uint32_t count, open; /* how many are -1 */
} new_shape;

static bool append(new_shape *s, int64_t dim)
{
    if (s->count == MOST_DIMS) return false;
    s->dims[s->count++] = dim;
    s->open += dim == -1;
    return true;
}

static bool append_constant(onv_edit *e, onv_value_id value, new_shape *s)
{
    const onv_scalar *list;
    uint32_t n;
    if (!onv_edit_is_constant(e, value) || !onv_edit_ints(e, value, &list, &n)) return false;
    for (uint32_t i = 0; i < n; i++)
        if (!append(s, list[i].i.raw)) return false;
    return true;
}

/* Unsqueeze by axis 0. */
static bool unsqueezes_first(onv_edit *e, onv_node_id node)
{
    const onv_attr *attr = onv_node_attr(onv_edit_node_at(e, node), "axes");
    const onv_scalar *list;
    uint32_t n;
    if (!onv_fuse_is(e, node, "Unsqueeze")) return false;
    if (attr != NULL && attr->kind == ONV_ATTR_INTS) return attr->count == 1 && attr->ints[0] == 0;
    onv_value_id in = onv_edit_in(e, node, 1);
    return onv_is_value(in) && onv_edit_is_constant(e, in) && onv_edit_ints(e, in, &list, &n) &&
           n == 1 && onv_dim_is(list[0].i, 0);
}

static bool has_same_dims(const onv_edit *e, onv_value_id a, onv_value_id b)
{
    int rank = onv_fuse_rank(e, a);
    if (onv_fuse_same_value(a, b)) return true;
    if (rank < 0 || rank != onv_fuse_rank(e, b)) return false;
    for (int i = 0; i < rank; i++)
        if (!onv_dim_same(onv_fuse_dim(e, a, i), onv_fuse_dim(e, b, i))) return false;
    return true;
}

/* root -> Shape -> Gather(axis) -> Unsqueeze: the very dim that a 0 there copies. */
static bool is_own_dim(onv_edit *e, onv_value_id value, onv_value_id root, uint32_t axis)
{
    const onv_scalar *list;
    uint32_t n;
    onv_node_id unsqueeze = onv_edit_producer(e, value);
    if (!onv_is_node(unsqueeze) || !unsqueezes_first(e, unsqueeze)) return false;
    onv_node_id gather = onv_edit_in_node(e, unsqueeze, 0);
    if (!onv_is_node(gather) || !onv_fuse_is(e, gather, "Gather")) return false;
    onv_node_id shape = onv_edit_in_node(e, gather, 0);
    onv_value_id index = onv_edit_in(e, gather, 1);
    return onv_is_node(shape) && onv_fuse_is(e, shape, "Shape") && onv_is_value(index) &&
           onv_edit_is_constant(e, index) && onv_fuse_rank(e, index) <= 1 &&
           onv_edit_ints(e, index, &list, &n) && n == 1 && onv_dim_is(list[0].i, axis) &&
           has_same_dims(e, onv_edit_in(e, shape, 0), root);
}

static bool has_one_element(const onv_edit *e, onv_value_id value)
{
    int rank = onv_fuse_rank(e, value);
    for (int i = 0; i < rank; i++)
        if (!onv_dim_is(onv_fuse_dim(e, value, i), 1)) return false;
    return rank >= 0;
}

/* The Concat of the shape becomes constant numbers: 0 for a dim that is copied, -1 for one that is computed. */
static bool fuse_shape(onv_edit *e, onv_node_id reshape)
{
    onv_value_id root = onv_edit_in(e, reshape, 0), shape = onv_edit_in(e, reshape, 1);
    onv_node_id concat = onv_edit_producer(e, shape);
    if (!onv_is_node(concat) || !onv_fuse_is(e, concat, "Concat") ||
        !onv_fuse_has_uses(e, concat, 1))
        return false;
    new_shape s = {.count = 0};
    for (uint32_t k = 0; k < onv_edit_node_at(e, concat)->n_inputs; k++) {
        onv_value_id in = onv_edit_in(e, concat, k);
        if (append_constant(e, in, &s)) continue;
        bool is_own = is_own_dim(e, in, root, s.count);
        if (!is_own && !has_one_element(e, in)) return false;
        if (!append(&s, is_own ? 0 : -1)) return false;
    }
    if (s.open > 1) return false;
    int64_t count = s.count;
    onv_graph_id graph = onv_edit_node_at(e, concat)->graph;
    onv_value_id weight = onv_edit_add_weight(e, graph, onv_edit_value_at(e, shape)->name,
                                              ONV_INT64, &count, 1, s.dims);
    if (e->status != ONV_OK) return false;
    onv_edit_set_input(e, reshape, 1, weight);
    onv_edit_remove_with_inputs(e, concat);
    onv_edit_retype(e, reshape);
    return true;
}

/* --- Reshapes in a row ------------------------------------------------------------------------- */

static bool is_reshaping(const onv_edit *e, onv_node_id node)
{
    return onv_fuse_is(e, node, "Reshape") || onv_fuse_is(e, node, "Squeeze") ||
           onv_fuse_is(e, node, "Unsqueeze");
}

/* All of them are one where the dims of the last are numbers. */
static bool fuse_row(onv_edit *e, onv_node_id reshape)
{
    onv_node_id nodes[MOST_DIMS] = {reshape};
    uint32_t n = 1;
    while (n < MOST_DIMS && onv_fuse_has_uses(e, nodes[n - 1], 1)) {
        onv_node_id next = onv_fuse_reader(e, nodes[n - 1]);
        if (!onv_is_node(next) || !is_reshaping(e, next) ||
            !onv_type_is_static(onv_edit_seen(e, onv_edit_out(e, next, 0))))
            break;
        nodes[n++] = next;
    }
    if (n < 2) return false;
    const onv_type *type = onv_edit_seen(e, onv_edit_out(e, nodes[n - 1], 0));
    int64_t dims[ONV_MAX_RANK], count = type->rank;
    for (int i = 0; i < type->rank; i++) dims[i] = type->dims[i].raw;
    onv_graph_id graph = onv_edit_node_at(e, reshape)->graph;
    onv_value_id inputs[2] = {
        onv_edit_in(e, reshape, 0),
        onv_edit_add_weight(e, graph, "new_reshape_shape", ONV_INT64, &count, 1, dims)};
    if (e->status != ONV_OK) return false;
    return onv_fuse_replace(e, &(onv_fused){.op_type = "Reshape",
                                            .version = onv_edit_opset(e),
                                            .inputs = inputs,
                                            .n_inputs = 2,
                                            .last = nodes[n - 1],
                                            .nodes = nodes,
                                            .n_nodes = n});
}

bool onv_fuse_reshape(onv_edit *e, onv_node_id reshape)
{
    if (!onv_fuse_is(e, reshape, "Reshape")) return false;
    bool is_shape = fuse_shape(e, reshape);
    return fuse_row(e, reshape) || is_shape;
}

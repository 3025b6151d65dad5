/* Gathers and Slices that share out a tensor; a Gather of a range. */
#include "rewrite/fuse.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/vec.h"

/* --- GatherSliceToSplitFusion ------------------------------------------------------------------ */

enum { MAX_PARTS = 64 }; /* a value that is shared out to more is left alone */

typedef struct part {
    onv_node_id node;
    int64_t start, size;
    bool is_squeezed; /* the index of a Gather has no dims */
} part;

/* An end far beyond any size counts as one. */
static bool read_number(onv_edit *e, onv_value_id value, int64_t *number)
{
    const onv_scalar *list;
    uint32_t n;
    if (onv_edit_seen(e, value)->dtype != ONV_INT64 || onv_fuse_rank(e, value) > 1 ||
        !onv_edit_ints(e, value, &list, &n) || n != 1)
        return false;
    *number = list[0].i.raw;
    return true;
}

static bool read_axis(onv_edit *e, onv_node_id node, int rank, int64_t *axis)
{
    if (onv_edit_is(e, node, ONV_OP_Gather))
        *axis = onv_edit_int(e, node, "axis", 0);
    else if (!read_number(e, onv_edit_in(e, node, 3), axis))
        return false;
    if (*axis < 0) *axis += rank;
    return *axis >= 0 && *axis < rank;
}

static int64_t clamp_index(int64_t index, int64_t size)
{
    if (index < 0) index += size;
    return index < 0 ? 0 : index > size ? size : index;
}

static bool read_part(onv_edit *e, onv_node_id node, int rank, int64_t axis, int64_t size, part *p)
{
    int64_t own, end, step = 1;
    *p = (part){.node = node, .size = 1};
    if (!read_axis(e, node, rank, &own) || own != axis) return false;
    if (!read_number(e, onv_edit_in(e, node, 1), &p->start)) return false;
    if (onv_edit_is(e, node, ONV_OP_Gather)) {
        if (p->start < 0) p->start += size;
        p->is_squeezed = onv_fuse_rank(e, onv_edit_in(e, node, 1)) == 0;
        return p->start >= 0 && p->start < size;
    }
    if (!read_number(e, onv_edit_in(e, node, 2), &end)) return false;
    onv_value_id steps = onv_edit_in(e, node, 4);
    if (onv_is_value(steps) && (!read_number(e, steps, &step) || step != 1)) return false;
    p->start = clamp_index(p->start, size);
    p->size = clamp_index(end, size) - p->start;
    return p->size > 0;
}

/* The parts in the order of their starts; false where they overlap or leave something out. */
static bool sort_parts(part *parts, uint32_t n, int64_t size)
{
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = i; k > 0 && parts[k - 1].start > parts[k].start; k--) {
            part held = parts[k];
            parts[k] = parts[k - 1];
            parts[k - 1] = held;
        }
    int64_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (parts[i].start != at) return false;
        at += parts[i].size;
    }
    return at == size;
}

static bool replace_parts(onv_edit *e, onv_value_id value, const part *parts, uint32_t n,
                          int64_t axis)
{
    onv_value_id outputs[MAX_PARTS];
    int64_t sizes[MAX_PARTS];
    onv_node_id first = parts[0].node;
    for (uint32_t i = 0; i < n; i++) {
        onv_value_id out = onv_edit_out(e, parts[i].node, 0);
        outputs[i] = parts[i].is_squeezed
                         ? onv_edit_add_value(e, onv_edit_node_at(e, first)->graph, out, "_split")
                         : out;
        sizes[i] = parts[i].size;
        if (parts[i].node.index < first.index) first = parts[i].node;
    }
    onv_edit_add(e,
                 &ONV_NEW_NODE(.op_type = "Split", .at = first,
                               ONV_INPUTS(value, onv_edit_add_ints(e, first, "splits", sizes, n)),
                               .outputs = outputs, .n_outputs = n,
                               ONV_ATTRS(onv_fuse_int(e, "axis", axis))));
    for (uint32_t i = 0; i < n && e->status == ONV_OK; i++) {
        onv_node_id node = parts[i].node;
        if (parts[i].is_squeezed)
            onv_fuse_squeeze(e, node, "Squeeze", outputs[i], &axis, 1, onv_edit_out(e, node, 0));
        onv_edit_remove(e, node);
    }
    return e->status == ONV_OK;
}

/* All Gathers and Slices of the value along one axis. */
static bool share_out(onv_edit *e, onv_value_id value, onv_graph_id graph)
{
    part parts[MAX_PARTS];
    int rank = onv_fuse_rank(e, value);
    uint32_t n = 0;
    int64_t axis = 0;
    onv_dim size = ONV_DIM_UNKNOWN;
    ONV_EACH_USE(e, value, use)
    {
        if (use->input != 0 || onv_edit_node_at(e, use->node)->graph.index != graph.index ||
            (!onv_edit_is(e, use->node, ONV_OP_Gather) && !onv_edit_is(e, use->node, ONV_OP_Slice)))
            continue;
        if (n == MAX_PARTS || (n == 0 && !read_axis(e, use->node, rank, &axis))) return false;
        size = onv_fuse_dim(e, value, (int)axis);
        if (!onv_dim_is_const(size) || !read_part(e, use->node, rank, axis, size.raw, &parts[n++]))
            return false;
    }
    return n > 1 && sort_parts(parts, n, size.raw) && replace_parts(e, value, parts, n, axis);
}

typedef ONV_VEC(uint32_t) weight_list;

static int compare_weights(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* The graph's initializers that some Gather or Slice of it reads, as they stand in the file. */
static bool list_weights(const onv_edit *e, onv_graph_id graph, weight_list *weights)
{
    for (onv_node_id node = onv_edit_first(e, graph); onv_is_node(node);
         node = onv_edit_next(e, node)) {
        if (!onv_edit_is(e, node, ONV_OP_Gather) && !onv_edit_is(e, node, ONV_OP_Slice)) continue;
        onv_value_id data = onv_edit_in(e, node, 0);
        if (!onv_is_value(data)) continue;
        const onv_value *v = onv_edit_value_at(e, data);
        if (!onv_value_is_weight(v) || v->graph.index != graph.index) continue;
        if (!onv_vec_push(weights, data.index)) return false;
    }
    if (weights->count > 1)
        qsort(weights->at, weights->count, sizeof *weights->at, compare_weights);
    return true;
}

static uint32_t share_out_weights(onv_edit *e, onv_graph_id graph)
{
    uint32_t n = 0;
    weight_list weights = {0};
    if (!list_weights(e, graph, &weights)) e->status = onv_fail_memory(e->err);
    for (size_t i = 0; i < weights.count && e->status == ONV_OK; i++) {
        onv_value_id value = {weights.at[i]};
        bool is_again = i > 0 && weights.at[i - 1] == weights.at[i];
        if (!is_again && onv_edit_n_uses(e, value) > 1) n += share_out(e, value, graph);
    }
    onv_vec_cleanup(&weights);
    return n;
}

/* Inputs, then initializers, then what nodes with one output make, but for Shape. */
uint32_t onv_fuse_gather_slice_to_split(onv_edit *e, onv_graph_id graph)
{
    uint32_t n = 0;
    const onv_graph *at = onv_model_graph(e->model, graph);
    onv_node_id first = onv_edit_first(e, graph);
    if (!onv_is_node(first) || onv_edit_opset(e) < 13) return 0;
    for (uint32_t i = 0; i < at->n_inputs && e->status == ONV_OK; i++)
        if (onv_edit_n_uses(e, at->inputs[i]) > 1) n += share_out(e, at->inputs[i], graph);
    n += share_out_weights(e, graph);
    for (onv_node_id node = onv_edit_first(e, graph); onv_is_node(node) && e->status == ONV_OK;
         node = onv_edit_next(e, node)) {
        if (!onv_edit_is_there(e, node) || onv_edit_node_at(e, node)->n_outputs != 1 ||
            onv_edit_is(e, node, ONV_OP_Shape) || onv_edit_n_output_uses(e, node) < 2)
            continue;
        n += share_out(e, onv_edit_out(e, node, 0), graph);
    }
    return n;
}

/* --- GatherToSliceFusion ----------------------------------------------------------------------- */

bool onv_fuse_gather_to_slice(onv_edit *e, onv_node_id range)
{
    onv_form_match m;
    if (!onv_fuse_form(e, range, "^Gather(xRange(?))", &m)) return false;
    const int64_t zero = 0, one = 1, axis = onv_edit_int(e, m.nodes[0], "axis", 0);
    onv_dtype dtype = onv_edit_dtype(e, onv_edit_out(e, range, 0));
    onv_value_id lengths[3];
    for (uint32_t i = 0; i < 3; i++)
        lengths[i] = onv_fuse_squeeze(e, range, "Unsqueeze", onv_edit_in(e, range, i), &zero, 1,
                                      ONV_NO_VALUE);
    onv_value_id axes = onv_edit_add_weight(e, onv_edit_node_at(e, range)->graph, "slice_axes",
                                            dtype, &one, 1, &axis);
    return ONV_FORM_BY(
        e, &m, "Slice",
        ONV_INPUTS(onv_form_value(&m, 'x'), lengths[0], lengths[1], axes, lengths[2]));
}

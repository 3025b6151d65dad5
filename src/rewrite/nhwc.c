/* NhwcTransformer: convolutions of integers on the CPU read images with channels last; the Transposes around them move on, or
 * meet. Read in source (core/optimizer/nhwc_transformer.cc). */
#include "rewrite/fuse.h"
#include "rewrite/transpose.h"

onv_perm onv_perm_channels_last(int rank)
{
    onv_perm perm = {.rank = rank};
    for (int i = 1; i < rank; i++) perm.at[i] = i + 1 < rank ? i + 1 : 1;
    return perm;
}

/* Weights of int8 around 0, which the kernel packs in another way. */
static bool is_symmetric(onv_edit *e, onv_node_id node)
{
    enum { WEIGHT = 3, ZERO_POINT = 5 };
    onv_value_id zero = onv_edit_in(e, node, ZERO_POINT), w = onv_edit_in(e, node, WEIGHT);
    const onv_scalar *list;
    uint32_t n;
    if (onv_edit_seen(e, w)->dtype != ONV_INT8 || !onv_edit_ints(e, zero, &list, &n)) return false;
    for (uint32_t i = 0; i < n; i++)
        if (!onv_dim_is(list[i].i, 0)) return false;
    return true;
}

static bool move_channels(onv_edit *e, onv_node_id node)
{
    const onv_node *at = onv_edit_node_at(e, node);
    int rank = onv_fuse_rank(e, onv_edit_in(e, node, 0));
    bool is_fused = at->domain[0] != '\0';
    if (!onv_edit_is_there(e, node) || at->provider != ONV_PROVIDER_CPU || rank < 3 ||
        at->code != ONV_OP_QLinearConv || at->n_inputs > 9 ||
        (is_fused && (!onv_edit_is_of(e, node, ONV_MS_DOMAIN, ONV_OP_QLinearConv) ||
                      onv_edit_int(e, node, "channels_last", 0) != 0)))
        return false;
    onv_edit_set_attr(e, node, onv_fuse_int(e, "channels_last", 1));
    onv_edit_set_attr(e, node, onv_fuse_int(e, "symmetric", is_symmetric(e, node)));
    onv_node old = *at;
    onv_perm last = onv_perm_channels_last(rank), first = onv_perm_inverse(&last);
    onv_value_id inputs[9], out = onv_edit_out(e, node, 0);
    for (uint32_t k = 0; k < old.n_inputs; k++) inputs[k] = old.inputs[k];
    inputs[0] = ONV_MAKE(e, node, "Transpose", .version = onv_edit_opset(e), ONV_INPUTS(inputs[0]),
                         ONV_ATTRS(onv_fuse_ints(e, "perm", last.at, (uint32_t)rank)));
    onv_node_id made = onv_edit_add(
        e, &ONV_NEW_NODE(.op_type = "QLinearConv", .domain = ONV_MS_DOMAIN, .version = 1,
                         .at = node, .inputs = inputs, .n_inputs = old.n_inputs, ONV_OUTPUTS(out),
                         .attrs = old.attrs, .n_attrs = old.n_attrs));
    if (e->status != ONV_OK) return false;
    onv_edit_remove(e, node);
    onv_push_outputs(e, made, &first);
    return true;
}

uint32_t onv_move_channels(onv_edit *e, onv_graph_id graph)
{
    uint32_t n = onv_edit_n_nodes(e, graph), n_done = 0;
    if (!onv_fuse_has_on_cpu(e, graph, "QLinearConv")) return 0;
    onv_node_id *nodes = onv_edit_backward_order(e, graph);
    for (uint32_t i = 0; i < n && e->status == ONV_OK; i++) n_done += move_channels(e, nodes[i]);
    return n_done > 0 ? n_done + onv_move_transposes(e, graph) : 0;
}

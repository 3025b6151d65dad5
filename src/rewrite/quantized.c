/* Quantized models: pairs of QuantizeLinear and DequantizeLinear around operators. */
#include "rewrite/rules.h"

/* Each reader of a DequantizeLinear has one of its own. */
bool onv_rule_unique_dequantize(onv_edit *e, onv_node_id node)
{
    onv_value_id out = onv_edit_out(e, node, 0);
    onv_graph_id graph = onv_edit_node_at(e, node)->graph;
    bool keeps = onv_edit_is_result(e, out) || onv_edit_is_read_inside(e, out), is_changed = false;
    if (onv_edit_n_uses(e, out) < 2 && !(keeps && onv_edit_n_uses(e, out) > 0)) return false;
    for (uint32_t at = e->values.at[out.index].first_use;
         at != ONV_NO_USE && e->status == ONV_OK;) {
        onv_use use = e->uses.at[at];
        at = use.next;
        if (onv_edit_node_at(e, use.node)->graph.index != graph.index) continue;
        if (!keeps) { /* the first one keeps the one that is there */
            keeps = true;
            continue;
        }
        onv_node copied = *onv_edit_node_at(e, node);
        onv_value_id own =
            ONV_MAKE(e, onv_edit_next(e, node), copied.op_type, .domain = copied.domain,
                     .version = copied.version, .inputs = copied.inputs,
                     .n_inputs = copied.n_inputs, .attrs = copied.attrs, .n_attrs = copied.n_attrs);
        if (e->status != ONV_OK) return false;
        onv_edit_node_at(e, onv_edit_producer(e, own))->provider = copied.provider;
        onv_edit_set_input(e, use.node, use.input, own);
        is_changed = true;
    }
    return is_changed;
}

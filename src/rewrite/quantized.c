/* DequantizeLinear: one for each node that reads it. */
#include "rewrite/rules.h"

/* EnsureUniqueDQForNodeUnit. What subgraphs and the caller read stays with the first one. */
bool onv_rule_unique_dequantize(onv_edit *e, onv_node_id node)
{
    onv_value_id out = onv_edit_out(e, node, 0);
    if (!onv_edit_is(e, node, "DequantizeLinear", 0) &&
        !onv_edit_is_of(e, node, "com.microsoft", "DequantizeLinear"))
        return false;
    bool is_kept = onv_edit_is_result(e, out) || onv_edit_is_read_inside(e, out);
    uint32_t graph = onv_edit_node_at(e, node)->graph.index, n_left = onv_edit_n_uses(e, out);
    bool done = false;
    for (; n_left > (is_kept ? 0u : 1u) && e->status == ONV_OK; n_left--) {
        const onv_use *use = onv_edit_first_use(e, out);
        while (use != NULL && onv_edit_node_at(e, use->node)->graph.index != graph)
            use = onv_edit_next_use(e, use);
        if (use == NULL) break;
        onv_node_id reader = use->node;
        uint32_t input = use->input;
        const onv_node *at = onv_edit_node_at(e, node);
        onv_new_node copy = {.op_type = at->op_type,
                             .domain = at->domain,
                             .version = at->version,
                             .inputs = at->inputs,
                             .n_inputs = at->n_inputs,
                             .n_outputs = 1,
                             .attrs = at->attrs,
                             .n_attrs = at->n_attrs,
                             .at = node};
        onv_node_id made = onv_edit_add(e, &copy);
        if (e->status != ONV_OK) break;
        onv_edit_set_input(e, reader, input, onv_edit_out(e, made, 0));
        done = true;
    }
    return done;
}

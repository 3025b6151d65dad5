/* Nodes that do nothing. */
#include "rewrite/rules.h"

bool onv_rule_eliminate_identity(onv_edit *e, onv_node_id node)
{
    return onv_edit_bypass(e, node, 0);
}

/* In inference it hands its input on; who asks for the mask keeps it. */
bool onv_rule_eliminate_dropout(onv_edit *e, onv_node_id node)
{
    onv_value_id mask = onv_edit_out(e, node, 1);
    if (onv_edit_n_uses(e, mask) > 0 || onv_edit_is_result(e, mask)) return false;
    double training = 0;
    onv_value_id mode = onv_edit_in(e, node, 2);
    if (onv_is_value(mode) && (!onv_edit_scalar(e, mode, &training) || training != 0)) return false;
    return onv_edit_bypass(e, node, 0);
}

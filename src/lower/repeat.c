/* Zeros, ones and masks that several calls begin with, which the exporter has once: each makes its own.
 *
 * Takes fusions and notes, before the node that reads them is lowered. Gives them a tensor of their own. Keeps what others read. */
#include <string.h>

#include "base/rules.h"
#include "lower/lowering.h"

/* Zeros, ones and the like, which exporters make once for all that read equal ones. */
bool onv_value_is_fill(onv_lowering *l, onv_value_id id)
{
    if (!onv_is_value(id) || !l->values[id.index].is_known) return false;
    const onv_value *value = onv_model_value(l->emit.model, id);
    if (onv_value_is_weight(value)) return onv_weight_use_of(l, id) == ONV_WEIGHT_MADE;
    const onv_node *maker = onv_model_maker(l->emit.model, id);
    return maker != NULL && onv_node_fills(maker);
}

/* A weight of the file is made again where it is read. */
static void repeat_fill(onv_lowering *l, onv_value_id id)
{
    onv_node_id producer = onv_model_value(l->emit.model, id)->producer, reader = l->emit.node;
    if (!onv_is_node(producer)) {
        l->values[id.index].is_known = false;
        return;
    }
    size_t first_op = l->emit.eager->ops.count;
    onv_lower_at(&l->emit, producer);
    onv_lower_once(l, producer);
    onv_lower_at(&l->emit, reader);
    for (size_t i = first_op; i < l->emit.eager->ops.count; i++)
        l->emit.eager->ops.at[i].node = reader;
}

void onv_fill_again(onv_lowering *l, onv_value_id id)
{
    if (onv_value_is_fill(l, id) && !l->emit.options->as_exported) repeat_fill(l, id);
}

/* What is scattered into is a tensor of the call's own, as is the state that a recurrent layer begins with. */
void onv_repeat_base(onv_lowering *l, const onv_node *node)
{
    if (!onv_rule_is_on("lower.repeat_base")) return;
    enum { SCATTERED_INTO = 0, INITIAL_STATE = 5 };
    bool scatters = onv_node_scatters(node);
    uint32_t base = scatters ? SCATTERED_INTO : INITIAL_STATE;
    if (!scatters && !onv_node_is_recurrent(node)) return;
    if (node->n_inputs <= base || node->graph.index != 0) return;
    onv_value_id id = node->inputs[base];
    if (onv_is_value(id) && l->fusions->user[id.index].index != l->emit.node.index)
        onv_fill_again(l, id);
}
